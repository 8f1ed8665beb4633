"""Cancelling a call from another thread."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

from trtc.engines.errors import CancelledError
from trtc.profiles import UsageError

if TYPE_CHECKING:
    from trtc.engines.protocol import Call


class CancelToken:
    """Give it to ``Session.run(..., cancel=token)``; ``token.cancel()`` from any thread stops that call.

    A token serves one call at a time, and stays cancelled once it is. The engine is asked to stop, and its memory is
    kept until it really has.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._call: Call | None = None
        self._cancelled = False

    @property
    def cancelled(self) -> bool:
        """Whether ``cancel`` was called."""
        return self._cancelled

    def cancel(self) -> None:
        """Ask the call to stop; one that has not started will not start."""
        with self._lock:
            self._cancelled = True
            if self._call is not None:
                self._call.cancel()

    def run(self, call: Call) -> None:
        """Run a prepared call under this token.

        Raises:
            CancelledError: when the token was cancelled before or during the run.
        """
        with self._lock:
            if self._cancelled:
                raise CancelledError("the call was cancelled before it started; use a new token for another call")
            if self._call is not None:
                raise UsageError("this token serves a call that is still running; use one token for each call")
            self._call = call
            # `cancel` gives the call a fresh `enqueue` for the next run: this run must start with the one of now.
            enqueue = call.enqueue
        try:
            enqueue()
        finally:
            with self._lock:
                self._call = None
