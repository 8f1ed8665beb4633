"""Closed loop: each caller sends its next call when the one before has ended.

It finds what a bundle can do. It does not find what users wait: while one call stalls, the callers stall with it, and
the calls that would have come meanwhile are never made (the open loop makes them).
"""

from __future__ import annotations

from itertools import count as counter
from typing import TYPE_CHECKING, Any, TypeAlias

from trtc.tools.bench.callers import together
from trtc.tools.bench.samples import Samples, samples_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trtc.tools.bench.budget import Budget
    from trtc.tools.bench.clock import Clock

    Call: TypeAlias = Callable[[Any], object]


def closed_loop(call: Call, requests: Sequence[Any], budget: Budget, clock: Clock, callers: int = 1) -> Samples:
    """Send requests in their order, over and over, until the budget is met.

    Args:
        call: takes one request; with several callers it is used from as many threads.
        requests: at least one.
        budget: for all callers together.
        clock: read before and after each call, with nothing in between.
        callers: that call at once; 1 stays in this thread.

    Raises:
        Whatever ``call`` raises; the other callers stop.
    """
    turns = counter()  # its step is one operation of the interpreter, so threads share it without a lock
    began_s = clock.now_s()
    now_s, size, met = clock.now_s, len(requests), budget.met
    rows: list[list[tuple[int, float, float, float]]] = [[] for _ in range(callers)]

    def work(caller: int, stopped: Callable[[], bool]) -> None:
        mine = rows[caller]
        while not stopped():
            turn = next(turns)
            if callers > 1 and met(turn, now_s() - began_s):
                return
            request = requests[turn % size]
            begun_s = now_s()
            call(request)
            finished_s = now_s()
            mine.append((turn % size, begun_s, begun_s, finished_s))
            if callers == 1 and met(turn + 1, finished_s - began_s):
                return

    together(work, callers)
    return samples_of([row for mine in rows for row in mine])


def run_each(call: Call, requests: Sequence[Any], clock: Clock) -> list[float]:
    """Send each request once, and return what each call took: the first calls of a size prepare its route."""
    taken = []
    for request in requests:
        begun_s = clock.now_s()
        call(request)
        taken.append(clock.now_s() - begun_s)
    return taken
