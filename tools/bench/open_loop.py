"""Open loop: calls come at a rate, whether or not earlier ones have ended; what a user of a service waits.

The time of a call counts from when it should have begun. A caller that is late because an earlier call stalled does
not hide the wait: there is no coordinated omission (G. Tene, "How NOT to Measure Latency", 2013).
"""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Any

from trtc.tools.bench.callers import together
from trtc.tools.bench.samples import Samples, samples_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np

    from trtc.tools.bench.clock import Clock


def open_loop(
    call: Callable[[Any], object], requests: Sequence[Any], starts_s: np.ndarray, clock: Clock, callers: int = 1
) -> Samples:
    """Send requests in their order, over and over, each at its time or as soon after it as a caller is free.

    Args:
        call: takes one request; with several callers it is used from as many threads.
        requests: at least one.
        starts_s: when each call should begin, from now: ascending (see ``Arrivals``).
        clock: read before and after each call, and waited on.
        callers: calls that may be under way at once; further ones queue.

    Raises:
        Whatever ``call`` raises; the other callers stop.
    """
    queue, lock = enumerate(starts_s.tolist()), Lock()
    began_s = clock.now_s()
    now_s, wait_until_s, size = clock.now_s, clock.wait_until_s, len(requests)
    rows: list[list[tuple[int, float, float, float]]] = [[] for _ in range(callers)]

    def work(caller: int, stopped: Callable[[], bool]) -> None:
        mine = rows[caller]
        while not stopped():
            with lock:
                turn, start_s = next(queue, (-1, 0.0))
            if turn < 0:
                return
            request = requests[turn % size]
            wait_until_s(began_s + start_s)
            begun_s = now_s()
            call(request)
            mine.append((turn % size, began_s + start_s, begun_s, now_s()))

    together(work, callers)
    return samples_of([row for mine in rows for row in mine])
