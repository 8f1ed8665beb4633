"""What SIGINT (Ctrl-C) and SIGTERM do to a command: the first ends it, and no other disturbs how it ends.

Imports next to nothing: it is loaded before everything else, see ``entry.py``.
"""

from __future__ import annotations

import signal
import sys

INTERRUPTED = 130
"""What shells report for a command that SIGINT stopped; likewise below for SIGTERM."""
TERMINATED = 143
INTERRUPTED_TEXT = "trtc: interrupted; nothing half-written was left"


class Stops:
    """Handlers of both signals, while a ``with`` block lasts. SIGINT stays ignored where it is, as under nohup.

    The first signal raises, so that temporary folders are removed and running calls are waited for. While what it
    raised is being handled, later ones do nothing. (Where a library swallows what it raised, the next one raises.)

    Attributes:
        raised: what signals raised, in order.
        settled: set it when the exit code stands; signals do nothing from then on.
    """

    def __init__(self) -> None:
        self.raised: list[BaseException] = []
        self.settled = False
        self._before: dict[int, object] = {}

    def __enter__(self) -> Stops:  # noqa: PYI034 (typing takes longer to import than all of this)
        for number in (signal.SIGTERM, signal.SIGINT):
            if number == signal.SIGTERM or signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._stop)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def _stop(self, number: int, _frame: object) -> None:
        if self.settled or self._is_being_handled():
            return
        self.raised.append(KeyboardInterrupt() if number == signal.SIGINT else SystemExit(TERMINATED))
        raise self.raised[-1]

    def _is_being_handled(self) -> bool:
        """Tell whether the code that a signal came upon runs because of an earlier signal: cleans up, or waits."""
        error = sys.exception()
        while error is not None and error not in self.raised:
            error = error.__cause__ or error.__context__
        return error is not None
