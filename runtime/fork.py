"""After ``fork``: what a child must not touch, and how it can still end.

The child has a copy of the parent's memory and none of its threads. A library that has threads cannot run there, and
cannot be taken down either: its destructors wait for threads that do not exist, or crash.
"""

from __future__ import annotations

import ctypes
import os
import sys
import weakref
from typing import TYPE_CHECKING

from trtc.engines.registry import BACKENDS
from trtc.runtime.arena import default_arena

if TYPE_CHECKING:
    from trtc.runtime.session import Session

_LIVE: weakref.WeakSet[Session] = weakref.WeakSet()


def remember(session: Session) -> None:
    """Make a session refuse to work in forked children."""
    _LIVE.add(session)


def _abandon_in_child() -> None:
    for session in list(_LIVE):
        # A reference that nobody owns: what is native in it is never freed, not even when the child ends.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(session.abandon()))
    _LIVE.clear()
    default_arena.cache_clear()
    if any(backend.needs and f"{backend.module}.load" in sys.modules for backend in BACKENDS):
        _end_without_native_destructors()


def _end_without_native_destructors() -> None:
    """Let the child end with its exit code right after Python's own shutdown and a flush of the C streams.

    Measured with ONNX Runtime 1.32: a child of a process that imported it waits for ever in ``exit``, in the
    destructor of a condition variable on which a thread of the parent waits. Exit functions run last in, first out,
    so what is registered here runs before the destructors of everything that was loaded before the fork.
    """
    libc = ctypes.CDLL(None)
    if hasattr(libc, "on_exit") and hasattr(libc, "__cxa_atexit"):  # glibc
        libc.on_exit(libc._exit, None)  # noqa: SLF001 (the C function)
        libc.__cxa_atexit(libc.fflush, None, None)  # noqa: SLF001 (as above)


os.register_at_fork(after_in_child=_abandon_in_child)
