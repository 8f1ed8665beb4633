"""What ``trtc bench`` says of a call, against a loop around the same call as one writes it by hand.

python benchmarks/bench_overhead.py
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from measuring import Figure, Report, quartiles, us
from models import build_minilm, build_tiny, minilm_request

from trtc.runtime import load
from trtc.tools.bench import Budget, MonotonicClock, closed_loop, summarise

if TYPE_CHECKING:
    from trtc.runtime import Session

ROUNDS, BAR = 21, 1.02
SECONDS = 0.4
"""Of each side in each round."""


def measure(report: Report) -> None:
    """Add the figures."""
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as work:
        _, tiny = build_tiny(Path(work), 1, 1)
        minilm = build_minilm(Path(work), "exact")
        with load(tiny, threads=1) as session:
            report.add(_figure("tiny model", session, {"x0": rng.random((3, 16), np.float32)}))
        with load(minilm, threads=1) as session:
            report.add(_figure("MiniLM, 1 row of 17 tokens", session, minilm_request(rng, 1, 17)))


def _figure(name: str, session: Session, feeds: dict[str, np.ndarray]) -> Figure:
    """Take turns: the library's closed loop, and a loop written by hand."""
    for _ in range(50):
        session.run(feeds)
    ours: list[float] = []
    hand: list[float] = []
    for i in range(ROUNDS + 1):
        for side in (0, 1) if i % 2 else (1, 0):
            taken = _bench(session, feeds) if side else _by_hand(session, feeds)
            if i:
                (ours if side else hand).append(taken)
    ratios = sorted(a / b for a, b in zip(ours, hand, strict=True))
    return Figure(
        f"median as trtc bench measures it, against a hand-written loop: {name}",
        us(statistics.median(ours)),
        us(statistics.median(hand)),
        statistics.median(ratios),
        BAR,
        quartiles(ratios),
        f"median of {ROUNDS} rounds of {SECONDS} s in turns, 1 thread",
    )


def _bench(session: Session, feeds: dict[str, np.ndarray]) -> float:
    samples = closed_loop(session.run, [feeds], Budget(10, SECONDS, 0), MonotonicClock())
    return summarise(samples.latency_s).median_s


def _by_hand(session: Session, feeds: dict[str, np.ndarray]) -> float:
    times = []
    until_s = time.perf_counter() + SECONDS
    while True:
        begun_s = time.perf_counter()
        session.run(feeds)
        finished_s = time.perf_counter()
        times.append(finished_s - begun_s)
        if finished_s >= until_s and len(times) >= 10:
            return statistics.median(times)


if __name__ == "__main__":
    only = Report()
    measure(only)
    only.show()
