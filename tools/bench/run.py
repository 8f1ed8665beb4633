"""One benchmark from options to a report: loads, measures every case, looks at the machine before and after."""

from __future__ import annotations

import platform
import time
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path  # noqa: TC003 (a field of a frozen value)
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from trtc.engines.host import this_host
from trtc.tools.bench.clock import MonotonicClock
from trtc.tools.bench.conditions import conditions_of, read_moment
from trtc.tools.bench.limits import Ceiling, roof_of
from trtc.tools.bench.measure import Measured, Plan, measure
from trtc.tools.bench.memory import MOST_CALLS, Memory, new_bytes, status_bytes
from trtc.tools.bench.node_work import Work, work_of
from trtc.tools.bench.peers import open_peer
from trtc.tools.bench.results import BenchReport
from trtc.tools.bench.versus import Turns, versus
from trtc.tools.bench.waiting import for_one_caller, spinning_of, waiting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from trtc.engines.manifest import Manifest
    from trtc.runtime import Session
    from trtc.runtime.trace import Trace
    from trtc.tools.bench.clock import Clock
    from trtc.tools.bench.limits import Limits
    from trtc.tools.bench.workload import Workload
    from trtc.tools.output import Progress

T = TypeVar("T")
TRACED_CALLS = 5


@dataclass(frozen=True, slots=True)
class Subject:
    """What is measured, and beside what.

    Attributes:
        bundle: to load.
        load: further arguments of ``load``.
        peer: of ``--vs``; empty for none.
        model: that the peer runs.
    """

    bundle: Path
    load: dict[str, Any] = field(default_factory=dict)
    peer: str = ""
    model: Path | None = None


@dataclass(frozen=True, slots=True)
class Wishes:
    """What is wanted beside latencies.

    Attributes:
        plan: how to measure.
        roof: put each case under the machine's limits.
        trace: note a few calls of each case in every detail.
        seed: of resampling.
        notes: that the report carries.
    """

    plan: Plan
    roof: bool = False
    trace: bool = False
    seed: int = 0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Benched:
    """A report, the times behind it, and the trace if one was wanted."""

    report: BenchReport
    measured: tuple[Measured, ...]
    trace: Trace | None


def bench(
    subject: Subject, workloads: Callable[[Manifest], Sequence[Workload]], wishes: Wishes, progress: Progress
) -> Benched:
    """Measure.

    Args:
        subject: what to load.
        workloads: makes the requests, when the bundle's manifest is known.
        wishes: what to measure.
        progress: told what is going on.

    Raises:
        TrtcError: as ``load``, ``Session.run`` and ``open_peer`` do.
    """
    from trtc.runtime import load

    clock = MonotonicClock()
    before, resident = read_moment(), status_bytes("VmRSS")
    progress.stage("loading")
    begun_s = time.perf_counter()
    with load(subject.bundle, **_loading(subject)) as session:
        load_s, loaded = time.perf_counter() - begun_s, status_bytes("VmRSS") - resident
        progress.stage("making requests")
        todo = workloads(session.manifest)
        _refuse_unserved(session, todo)
        ceiling = Ceiling(clock) if wishes.roof else None
        measured = list(_measured(session, todo, wishes.plan, clock, progress))
        memory = _memory(session, todo, loaded)
        if ceiling is not None:
            progress.stage("measuring the limits of this machine")
            ceiling.settle()
        if subject.peer:
            pairs = list(zip(todo, measured, strict=True))
            measured = list(_looking(_beside(subject, session, pairs, wishes, progress), ceiling))
        if ceiling is not None:
            progress.stage("measuring the limits of this machine once more")
            works = list(_looking((_counted(session, workload) for workload in todo), ceiling))
            ceiling.settle()
            measured = [_under_roof(m, work, ceiling.limits) for m, work in zip(measured, works, strict=True)]
        trace = None
        if wishes.trace:
            progress.stage("tracing")
            with session.trace() as trace:
                for workload in todo:
                    for i in range(TRACED_CALLS):
                        session.run(workload.sent[i % len(workload.order)])
        report = _report(session, load_s, wishes.plan)
    progress.done()
    conditions = conditions_of(before, read_moment())
    if conditions.loaded:
        measured = [_without_verdict(found) for found in measured]
    cases = tuple(found.case for found in measured)
    whole = msgspec.structs.replace(
        report, cases=cases, memory=memory, conditions=conditions, limits=ceiling and ceiling.limits, notes=wishes.notes
    )
    return Benched(whole, tuple(measured), trace)


def _loading(subject: Subject) -> dict[str, Any]:
    """Say how to load: beside a peer calls come one at a time, and the bundle is opened for that."""
    if not subject.peer:
        return subject.load
    return {"spinning": for_one_caller(subject.load.get("threads"), subject.load.get("slots")), **subject.load}


def _without_verdict(found: Measured) -> Measured:
    """Call nobody faster: other work ran."""
    peer, replace = found.case.peer, msgspec.structs.replace
    if peer is None:
        return found
    ratio = replace(peer.ratio, verdict="loaded")
    return Measured(replace(found.case, peer=replace(peer, ratio=ratio)), found.samples)


def _refuse_unserved(session: Session, todo: Sequence[Workload]) -> None:
    """Refuse the last request before the first one is measured.

    Raises:
        RequestError: as ``Session.run``.
    """
    _, core = session.parts
    for workload in todo:
        for feeds in workload.feeds:
            _, sizes = core.check(feeds)
            session.explain(sizes)


def _measured(session: Session, todo: Sequence[Workload], plan: Plan, clock: Clock, progress: Progress) -> Any:
    for workload in todo:
        progress.stage(f"measuring {workload.name}")
        yield measure(session, workload, plan, clock)


def _memory(session: Session, todo: Sequence[Workload], loaded: int) -> Memory:
    """Look at memory once everything is warm; a few more calls show what each one adds."""
    sent = [feeds for workload in todo for feeds in workload.feeds]
    before = session.stats.arena.allocations
    added = new_bytes(session, sent)
    allocations = session.stats.arena.allocations - before
    arena = session.stats.arena
    return Memory(
        resident_bytes=status_bytes("VmRSS"),
        peak_resident_bytes=status_bytes("VmHWM"),
        loaded_bytes=max(0, loaded),
        arena_bytes=arena.in_use_bytes,
        arena_peak_bytes=arena.peak_bytes,
        arena_allocations_per_call=allocations / min(len(sent), MOST_CALLS),
        new_bytes_per_call=added,
    )


def _beside(
    subject: Subject, session: Session, pairs: Sequence[tuple[Workload, Measured]], wishes: Wishes, progress: Progress
) -> Iterator[Measured]:
    threads = session.explain().execution.threads
    progress.stage(f"opening {subject.peer}")
    spinning = spinning_of(session) is not False
    peer = open_peer(subject.peer, subject.model, session.manifest, threads, spinning=spinning)
    try:
        for workload, one in pairs:
            progress.stage(f"{workload.name} in turns with {subject.peer}")
            result = versus(session, peer, workload, Turns(wishes.plan, MonotonicClock(), wishes.seed))
            yield Measured(msgspec.structs.replace(one.case, peer=result), one.samples)
    finally:
        peer.close()


def _looking(found: Iterator[T], ceiling: Ceiling | None) -> Iterator[T]:
    """Look at the limits of the machine after each step of a run, so that a moment of other work decides nothing."""
    for one in found:
        if ceiling is not None:
            ceiling.look()
        yield one


def _counted(session: Session, workload: Workload) -> Work | None:
    """Count the work of each request by one traced call; a mix counts by its mean. None where nothing is told."""
    with session.trace(whole_shapes=True) as trace:
        for feeds in workload.feeds:
            session.run(feeds)
    if not trace.nodes:
        return None
    whole, count = work_of(trace.nodes), len(workload.feeds)
    return Work(round(whole.flop / count), round(whole.moved_bytes / count))


def _under_roof(found: Measured, work: Work | None, limits: Limits) -> Measured:
    if work is None:
        return found
    roof = roof_of(work, found.case.service.median_s, limits)
    return Measured(msgspec.structs.replace(found.case, roof=roof), found.samples)


def _report(session: Session, load_s: float, plan: Plan) -> Any:
    """Everything that does not depend on the figures; the rest is filled in by the caller."""
    loaded, _ = session.parts
    record, execution, host = loaded.record, loaded.execution, this_host()
    empty: Any = None
    return BenchReport(
        bundle=loaded.path,
        engine=record.name,
        backend=record.backend,
        target=record.target,
        mode=execution.mode,
        slots=execution.slots,
        threads=execution.threads,
        idle_threads=waiting(spinning_of(session)),
        transfers="copies of inputs into planned memory and of outputs out of it are in",
        graphs="none" if record.target in ("cpu", "null") else "as the engine was built",
        load_s=load_s,
        iterations=plan.budget.iterations,
        duration_s=plan.budget.duration_s,
        warm_up_s=plan.budget.warm_up_s,
        cases=(),
        memory=empty,
        conditions=empty,
        host={
            "cpu": host.cpu,
            "threads": f"{host.threads} thread{'s' * (host.threads != 1)}",
            "system": f"{host.system} {platform.release()} {host.architecture}",
        },
        versions={"python": platform.python_version(), **_versions(("trtc", "numpy", record.requirements.library))},
    )


def _versions(names: Sequence[str]) -> dict[str, str]:
    found = {}
    for name in names:
        try:
            found[name] = version(name) if name else ""
        except PackageNotFoundError:
            continue
    return {name: number for name, number in found.items() if number}
