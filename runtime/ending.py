"""When the interpreter ends: calls of daemon threads must have left the library by then.

Python ends a daemon thread the moment that it comes back from a library. Where that library is written in C++, as ONNX
Runtime is, the whole process then aborts (``terminate called without an active exception``) instead of exiting with its
own code. So at exit the calls in flight are waited for, and no new one begins: whoever comes waits for a slot, where a
thread can be ended without harm.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
import weakref
from typing import TYPE_CHECKING

from trtc.runtime.slots import SlotState

if TYPE_CHECKING:
    from trtc.runtime.session import Session

LONGEST_WAIT_S = 10.0
"""A call that takes longer is left alone: an end that hangs is worse than one that aborts."""
_LOOK_AGAIN_S = 0.001
_QUIET_LOOKS = 20
"""Slots that run nothing so often in a row are borrowed, or refer to kept views: no call is about to be submitted."""
_RUNNING = frozenset([SlotState.ALLOCATED, SlotState.FENCED])

_LIVE: weakref.WeakSet[Session] = weakref.WeakSet()


def watch(session: Session) -> None:
    """Let the end of the interpreter wait for the calls of a session."""
    _LIVE.add(session)


def _end_calls() -> None:
    if threading.active_count() == 1:
        return  # nobody is left who could be in a call
    deadline = time.monotonic() + LONGEST_WAIT_S
    sessions, quiet = list(_LIVE), 0
    while time.monotonic() < deadline:
        out = [state for session in sessions for state in session.withhold()]
        quiet = quiet + 1 if not _RUNNING.intersection(out) else 0
        if not out or quiet == _QUIET_LOOKS:
            return
        time.sleep(_LOOK_AGAIN_S)


atexit.register(_end_calls)
os.register_at_fork(after_in_child=_LIVE.clear)
