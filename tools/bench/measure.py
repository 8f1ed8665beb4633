"""Measuring one workload on a loaded session."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from math import prod
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from trtc.profiles import RequestError, dim_value
from trtc.runtime.guards import guards_of
from trtc.tools.bench.budget import Budget
from trtc.tools.bench.closed_loop import closed_loop, run_each
from trtc.tools.bench.open_loop import open_loop
from trtc.tools.bench.results import CaseResult, SizeResult
from trtc.tools.bench.summary import PERCENTILES, summarise

if TYPE_CHECKING:
    from trtc.runtime import Session
    from trtc.tools.bench.arrivals import Arrivals
    from trtc.tools.bench.clock import Clock
    from trtc.tools.bench.samples import Samples
    from trtc.tools.bench.workload import Workload

LATE_S = 1e-3
MOST_PARTS, FEWEST_PARTS = 30, 3
PARTS_SHARE = 0.25
"""Of the budget's seconds, for the calls that are looked at in parts."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How to measure.

    Attributes:
        budget: of each case.
        callers: calls at once; None for one in a closed loop, and for as many as there are slots in an open one.
        arrivals: the open loop's rate; None for the closed loop.
        percentiles: to report.
    """

    budget: Budget
    callers: int | None = None
    arrivals: Arrivals | None = None
    percentiles: tuple[float, ...] = PERCENTILES


@dataclass(frozen=True, slots=True)
class Measured:
    """A case, and the times behind it."""

    case: CaseResult
    samples: Samples


def measure(session: Session, workload: Workload, plan: Plan, clock: Clock) -> Measured:
    """Warm every size up, time the calls, then look at their parts.

    Raises:
        RequestError: when the bundle does not take the requests.
        EngineError: when the engine fails.
    """
    arrivals = plan.arrivals
    callers = plan.callers or (1 if arrivals is None else session.stats.slots)
    first = warm_up(session, workload, plan.budget, clock, callers)
    if arrivals is None:
        samples = closed_loop(session.run, workload.sent, plan.budget, clock, callers)
    else:
        starts_s = arrivals.starts_s(plan.budget.iterations, plan.budget.duration_s)
        samples = open_loop(session.run, workload.sent, starts_s, clock, callers)
    by_request = np.asarray(workload.order, np.int64)[samples.request]
    sizes = []
    for i, (asked, feeds) in enumerate(zip(workload.sizes, workload.feeds, strict=True)):
        mine = samples.latency_s[by_request == i]
        latency = summarise(mine, plan.percentiles) if mine.size else None
        profile, run_sizes = where_it_runs(session, asked, feeds)
        sizes.append(SizeResult(asked, profile, run_sizes, waste_of(session, asked, run_sizes), first[i], latency))
    case = CaseResult(
        name=workload.name,
        loop="closed" if arrivals is None else "open",
        callers=callers,
        rate_per_second=None if arrivals is None else arrivals.per_second,
        per_second=samples.per_second,
        elapsed_s=samples.elapsed_s,
        latency=summarise(samples.latency_s, plan.percentiles),
        service=summarise(samples.service_s, plan.percentiles),
        late_share=float(np.mean(samples.begun_s - samples.intended_s > LATE_S)),
        parts=parts_of(session, workload, part_calls(plan.budget, samples)),
        sizes=tuple(sizes),
        generated=workload.generated,
    )
    return Measured(case, samples)


def warm_up(session: Session, workload: Workload, budget: Budget, clock: Clock, callers: int) -> list[float]:
    """Run every distinct request until its route is ready in every slot that will be used, and the time is spent.

    Returns:
        Seconds of the first call of each distinct request.
    """
    first = run_each(session.run, workload.feeds, clock)
    for feeds in workload.feeds:
        with ExitStack() as held:  # slots that are held make the next call take another one
            for _ in range(min(callers, session.stats.slots)):
                held.enter_context(session.borrow(feeds))
        session.run(feeds)
    if budget.warm_up_s:
        closed_loop(session.run, workload.sent, Budget(1, budget.warm_up_s), clock, callers)
    return first


def part_calls(budget: Budget, samples: Samples) -> int:
    """How many calls are looked at in parts: few where a call takes long."""
    mean_s = float(samples.service_s.mean())
    return int(min(MOST_PARTS, max(FEWEST_PARTS, PARTS_SHARE * budget.duration_s / mean_s if mean_s else MOST_PARTS)))


def parts_of(session: Session, workload: Workload, calls: int) -> dict[str, float]:
    """Return the median seconds of each part of a warm call, by name."""
    sent = workload.sent
    with session.trace(nodes=False) as trace:
        for i in range(calls):
            session.run(sent[i % len(sent)])
    taken: dict[str, list[int]] = {}
    for span in trace.spans:
        taken.setdefault(span.name, []).append(span.end_ns - span.start_ns)
    return {name: median(times) / 1e9 for name, times in taken.items()}


def where_it_runs(session: Session, sizes: dict[str, int], feeds: dict[str, Any]) -> tuple[str | None, dict[str, int]]:
    """Say which profile a request runs in, and at which sizes; None where it cannot be told: inputs were left out."""
    try:
        found = session.explain(sizes)
    except RequestError:
        return None, sizes
    guards = guards_of(session.manifest)
    outside = any(
        isinstance(value, np.ndarray) and name in guards and not guards[name].holds(value)
        for name, value in feeds.items()
    )
    return found.profile, sizes if outside else dict(found.run_sizes or sizes)


def waste_of(session: Session, sizes: dict[str, int], run_sizes: dict[str, int]) -> float:
    """Return the share of input elements that are padding, 0..1."""
    if run_sizes == sizes:
        return 0.0
    specs = [spec for spec in session.signature.inputs if spec.in_memory and spec.used]
    real, run = (
        sum(prod(dim_value(dim, given) or 0 for dim in spec.dims or ()) for spec in specs)
        for given in (sizes, run_sizes)
    )
    return 1 - real / run if run else 0.0
