"""Calls of asynchronous engines, driven like those that compute in the caller's thread.

The paths of a session read results as soon as ``enqueue`` has returned. For an engine that only submits there, this is
where the run is waited for; other engines' calls are used as they are, so that they pay nothing for it. Several runs
are in flight where several threads hold a slot each: waiting leaves the interpreter lock to the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trtc.engines.protocol import Call, LateOutputs


class WaitedCall:
    """A call that is over when ``enqueue`` returns, or raises."""

    __slots__ = ("_late", "asynchronous")

    def __init__(self, asynchronous: Call) -> None:
        self.asynchronous = asynchronous
        self._late: LateOutputs = {}

    def enqueue(self) -> None:
        """Submit and wait; whatever happens in between, the device has left the slot alone before this ends."""
        call = self.asynchronous
        try:
            call.enqueue()
        except BaseException:
            call.wait()
            raise
        try:
            self._late = call.wait()
        except KeyboardInterrupt:
            call.wait()
            raise

    def wait(self) -> LateOutputs:
        """Hand over the outputs that have no place."""
        late, self._late = self._late, {}
        return late

    def cancel(self) -> None:
        """Ask the run in progress to stop."""
        self.asynchronous.cancel()
