"""Measure a bundle: schedules and statistics are pure, a clock is handed in, and only the edges touch a machine.

From Python::

    from trtc.runtime import load
    from trtc.tools.bench import Budget, MonotonicClock, closed_loop, summarise

    with load("minilm.trtc") as session:
        samples = closed_loop(session.run, [feeds], Budget(iterations=200), MonotonicClock())
        print(summarise(samples.latency_s))
"""

from trtc.tools.bench.arrivals import Arrivals
from trtc.tools.bench.budget import Budget
from trtc.tools.bench.clock import Clock, MonotonicClock
from trtc.tools.bench.closed_loop import closed_loop
from trtc.tools.bench.open_loop import open_loop
from trtc.tools.bench.ratio import Ratio, ratio_of
from trtc.tools.bench.rounds import Rounds, alternate
from trtc.tools.bench.samples import Samples
from trtc.tools.bench.summary import Summary, summarise

__all__ = [
    "Arrivals",
    "Budget",
    "Clock",
    "MonotonicClock",
    "Ratio",
    "Rounds",
    "Samples",
    "Summary",
    "alternate",
    "closed_loop",
    "open_loop",
    "ratio_of",
    "summarise",
]
