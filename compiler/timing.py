"""Calls of an engine, timed: one after the other, and several at once."""

from __future__ import annotations

import statistics
import threading
import time
from functools import partial
from typing import TYPE_CHECKING

from trtc.compiler.probes.subject import reduced
from trtc.engines.at_once import at_once
from trtc.engines.memory import array_at, host_slot
from trtc.engines.route import fill_input, plan_route
from trtc.profiles import TrtcError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np

    from trtc.compiler.probes.subject import Subject
    from trtc.engines.protocol import Call, Engine
    from trtc.profiles import PadRule

_MOST_RUNS = 200


def prepared(
    engine: Engine, subject: Subject, rules: Sequence[PadRule], sizes: Mapping[str, int], rng: np.random.Generator
) -> Call:
    """Prepare a call with generated values, and run it once so that first costs are over."""
    feeds = subject.values.feeds(sizes, rng)
    signature = reduced(subject.signature, feeds)
    route = plan_route(signature, rules, sizes, sizes)
    slot = host_slot(route.layout.size_bytes)
    for spec in signature.inputs:
        if spec.name in route.layout.inputs:
            place = array_at(slot.buffer, route.layout.inputs[spec.name])
            fill_input(place, feeds[spec.name], route.inputs[spec.name])
        else:
            slot.objects[spec.name] = feeds[spec.name]
    call = engine.prepare(route.layout, slot)
    call.enqueue()
    call.wait()
    return call


def median_s(call: Call, budget_s: float) -> float:
    """Median seconds of a run: as many as the budget allows; three even beyond it, unless each is that long itself."""
    times: list[float] = []
    start = time.perf_counter()
    while not times or (spent := time.perf_counter() - start) < budget_s or (len(times) < 3 and spent < 3 * budget_s):  # noqa: PLR2004
        if len(times) == _MOST_RUNS:
            break
        start_s = time.perf_counter()
        call.enqueue()
        call.wait()
        times.append(time.perf_counter() - start_s)
    return statistics.median(times)


def calls_per_s(calls: Sequence[Call], budget_s: float) -> float:
    """Run all calls over and over, each in a thread of its own, and count."""
    counts = [0] * len(calls)
    failures: list[TrtcError] = []
    over = threading.Event()
    start_s = time.perf_counter()

    def work(i: int) -> None:
        try:
            while not over.is_set() and (time.perf_counter() - start_s < budget_s or counts[i] == 0):
                calls[i].enqueue()
                calls[i].wait()
                counts[i] += 1
        except TrtcError as error:
            failures.append(error)

    at_once([partial(work, i) for i in range(len(calls))], over.set)
    if failures:
        raise failures[0]
    return sum(counts) / (time.perf_counter() - start_s)
