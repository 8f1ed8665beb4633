"""Calls of asynchronous engines, driven like those that compute in the caller's thread.

The paths of a session read results as soon as ``enqueue`` has returned. For an engine that only submits there, this is
where the run is waited for; calls of other engines are used as they are, so that they pay nothing for it. Several runs
are in flight where several threads hold a slot each: waiting leaves the interpreter lock to the others.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from trtc.engines.errors import CancelledError, EngineError

if TYPE_CHECKING:
    from collections.abc import Callable

    from trtc.engines.protocol import Call, LateOutputs


class _Stop:
    """Whether one run was asked to stop."""

    __slots__ = ("asked",)

    def __init__(self) -> None:
        self.asked = False


class WaitedCall:
    """A call that is over when ``enqueue`` returns, or raises.

    What runs on a device cannot be stopped: a cancelled run is waited for, and its results are not handed out.

    Attributes:
        enqueue: runs once; ``cancel`` puts a fresh one in place for the next run.
        asynchronous: the engine's own call.
    """

    __slots__ = ("_late", "_stop", "asynchronous", "enqueue")

    enqueue: Callable[[], None]

    def __init__(self, call: Call) -> None:
        self.asynchronous = call
        self._late: LateOutputs = {}
        self._stop = _Stop()
        self.enqueue = partial(_run, call, self._stop, self._late)

    def wait(self) -> LateOutputs:
        """Hand over the outputs that have no place."""
        late = dict(self._late)
        self._late.clear()
        return late

    def cancel(self) -> None:
        """Ask the run in progress to stop."""
        stopped, self._stop = self._stop, _Stop()
        self.enqueue = partial(_run, self.asynchronous, self._stop, self._late)
        stopped.asked = True


def _run(call: Call, stop: _Stop, late: LateOutputs) -> None:
    """Submit and wait. Whatever happens in between, the device has left the slot alone before this ends."""
    if stop.asked:
        raise CancelledError("running a call: the call was cancelled")
    try:
        call.enqueue()
        found = call.wait()
    except BaseException:
        with suppress(EngineError):
            call.wait()
        raise
    if stop.asked:
        raise CancelledError("running a call: the call was cancelled")
    if found:
        late.update(found)
