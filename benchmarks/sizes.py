"""A real model at varying sizes: padded to buckets, and in the mode that the plan chose, against plain ONNX Runtime."""

from __future__ import annotations

import statistics
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from measuring import Figure, Report, quartiles, us
from models import BUCKETS, build_minilm, minilm_path, minilm_request, padded, plain_session

from trtc.runtime import load

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


REQUESTS, ROUNDS = 48, 9
NAMES = ["output", "463", "onnx::Shape_422", "461"]
Feeds: TypeAlias = dict[str, np.ndarray]
Run: TypeAlias = "Callable[[Feeds], object]"


def measure(report: Report) -> None:
    """Add the figures."""
    rng = np.random.default_rng(0)
    sizes = [(int(rng.integers(1, 5)), int(rng.integers(b - 15, b + 1))) for b in BUCKETS for _ in range(REQUESTS // 8)]
    requests = [minilm_request(rng, rows, length) for rows, length in sizes]
    rng.shuffle(requests)  # type: ignore[arg-type]
    with tempfile.TemporaryDirectory() as work:
        bucket, chosen = build_minilm(Path(work), "bucket"), build_minilm(Path(work), "auto")
        plain = plain_session(minilm_path(), threads=1)
        with load(bucket, threads=1) as session:
            run_sizes = [session.explain(_sizes(r)).run_sizes or {} for r in requests]
            wide = [padded(r, s["batch_size"], s["sequence_length"]) for r, s in zip(requests, run_sizes, strict=True)]
            figures = _in_turns(session.run, requests, lambda feeds: plain.run(NAMES, feeds), wide)
            report.add(_figure("padded to buckets, the same padded shapes for the peer, 1 thread", figures))
        with load(chosen, threads=1) as session:
            mode = session.explain().execution.mode
            figures = _in_turns(session.run, requests, lambda feeds: plain.run(NAMES, feeds), requests)
            report.add(_figure(f"mode chosen ({mode}), exact shapes for the peer, 1 thread", figures))
        _as_planned(report, chosen, requests)


def _in_turns(
    ours: Run, ours_feeds: Sequence[Feeds], peer: Run, peer_feeds: Sequence[Feeds]
) -> tuple[list[float], list[float]]:
    """Time each request on both sides in turns; mean seconds of a request for each round and side."""
    a: list[float] = []
    b: list[float] = []
    for i in range(ROUNDS + 1):
        mine = theirs = 0.0
        for k, (feeds, wide) in enumerate(zip(ours_feeds, peer_feeds, strict=True)):
            for side in (0, 1) if (i + k) % 2 else (1, 0):
                start = time.perf_counter()
                if side:
                    ours(feeds)
                else:
                    peer(wide)
                taken = time.perf_counter() - start
                mine, theirs = mine + taken * side, theirs + taken * (1 - side)
        if i:
            a.append(mine / len(ours_feeds))
            b.append(theirs / len(ours_feeds))
    return a, b


def _figure(name: str, times: tuple[list[float], list[float]], bar: float | None = 1.02) -> Figure:
    ours, peer = times
    ratios = [x / y for x, y in zip(ours, peer, strict=True)]
    how = f"seconds per request, {REQUESTS} requests over 8 profiles, {ROUNDS} rounds, in turns"
    return Figure(
        name,
        us(statistics.median(ours)),
        us(statistics.median(peer)),
        statistics.median(ratios),
        bar,
        quartiles(ratios),
        how,
    )


def _as_planned(report: Report, bundle: Path, requests: Sequence[Feeds]) -> None:
    """As a user meets both: our plan against ONNX Runtime's defaults, alone and with as many callers as slots."""
    with load(bundle) as session:
        execution = session.explain().execution
        label = f"{execution.slots} slots of {execution.threads} threads"
        callers = max(2, execution.slots)
        ours: dict[int, list[float]] = {1: [], callers: []}
        peer: dict[int, list[float]] = {1: [], callers: []}
        plain = plain_session(minilm_path())
        for i in range(ROUNDS + 1):
            for count in ours:
                for side in (0, 1) if i % 2 else (1, 0):
                    run = session.run if side else lambda feeds: plain.run(NAMES, feeds)
                    _drive(run, requests[:8], count)  # the other side's threads come to rest
                    taken = _drive(run, requests, count)
                    if i:
                        (ours if side else peer)[count].append(taken / len(requests))
    for count, times in ours.items():
        who = "one caller" if count == 1 else f"{count} callers"
        name = f"as planned ({label}), {who}, ONNX Runtime's defaults for the peer"
        report.add(_figure(name, (times, peer[count])))


def _drive(run: Callable[[Feeds], object], requests: Sequence[Feeds], callers: int) -> float:
    """Run all requests from a number of threads; seconds in all."""
    left = iter(requests)
    lock = threading.Lock()

    def work() -> None:
        while True:
            with lock:
                feeds = next(left, None)
            if feeds is None:
                return
            run(feeds)

    start = time.perf_counter()
    if callers == 1:
        work()
    else:
        threads = [threading.Thread(target=work) for _ in range(callers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return time.perf_counter() - start


def _sizes(feeds: Feeds) -> dict[str, int]:
    rows, length = feeds["input_ids"].shape
    return {"batch_size": rows, "sequence_length": length}


if __name__ == "__main__":
    only = Report()
    measure(only)
    only.show()
