"""From traffic to a ladder: bounds of each symbol, proof of padding inside them, cost on the target, the planner."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, replace
from math import lcm
from typing import TYPE_CHECKING

import numpy as np

from trtc.compiler.construct import open_provisional
from trtc.compiler.cost_grid import Axis, GridOptions, MeasuredCost, analytic_cost, measure_cost, unsteadiness
from trtc.compiler.measure import Measured, fastest, ways_of
from trtc.compiler.operation_counts import analytic_seconds
from trtc.compiler.plan_options import check_align
from trtc.compiler.prove import prove
from trtc.compiler.replay import Caller, Request
from trtc.compiler.runnable import target_to_measure
from trtc.compiler.ways import Outcome, Race, Way, race
from trtc.compiler.workload import workload_of
from trtc.engines.errors import EngineError
from trtc.engines.layout import plan_layout
from trtc.engines.manifest import CostRecord, PlanRecord
from trtc.engines.registry import backend_named
from trtc.profiles import Ladder, ModelError, Profile, Range, UsageError, unknown_name
from trtc.profiles.cost import element_cost
from trtc.profiles.evaluation import served_part
from trtc.profiles.plan_space import check_limits, plan_space
from trtc.profiles.plan_values import ArenaBudget, PlanRequest
from trtc.profiles.planner import plan_ladder
from trtc.profiles.traffic import traffic_from_rows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from collections.abc import Set as AbstractSet

    import numpy.typing as npt

    from trtc.compiler.analysis import Analysis, Declared
    from trtc.compiler.construct import Opener
    from trtc.compiler.model import Model
    from trtc.compiler.options import Setting
    from trtc.engines.manifest import Mode
    from trtc.profiles.plan_values import PlanResult
    from trtc.profiles.traffic import Traffic

_WAYS_SHARE, _GRID_SHARE = 0.2, 0.5
"""Parts of the time for measuring: which threads, the cost grid; the rest compares exact with padded."""
_NEAR = 0.75
"""Ways below this share of the best rate at exact sizes are not tried padded."""


@dataclass(frozen=True, slots=True)
class Planning:
    """A ladder planned for traffic, and everything that led to it.

    Attributes:
        traffic: over the symbols that it was planned for.
        request: what the planner was asked for.
        result: what it found.
        cost: on the target, with what it rests on.
        target: that was measured, or counted for.
        measured: how to run it; None where that is to be measured on the engine that is built.
    """

    traffic: Traffic
    request: PlanRequest
    result: PlanResult
    cost: CostRecord
    target: str
    measured: Measured | None

    @property
    def record(self) -> PlanRecord:
        """For the manifest."""
        result, request = self.result, self.request
        return PlanRecord(
            traffic=self.traffic.digest,
            requests=self.traffic.requests,
            expected_s=result.point.expected_s,
            exact_s=result.exact_s,
            waste=result.point.waste,
            gap=result.point.gap,
            reason=result.reason,
            max_profiles=request.max_profiles,
            refused=result.refused,
            align=dict(request.align),
            rare=request.rare,
            refuse_share=request.refuse_share,
        )


def planned(model: Model, analysis: Analysis, declared: Declared, setting: Setting) -> Analysis:
    """Replace the ladder of an analysis by the best one for this traffic.

    Padding is proven inside the bounds first: what is refused here stops the build. It has to be proven again for the
    ladder that is returned.

    Args:
        model: that is built.
        analysis: with the profile that bounds what is served.
        declared: the options as read, with traffic.
        setting: of the build.

    Returns:
        The analysis with its new ladder, and ``planning``.

    Raises:
        UsageError: for symbols that the model does not have, or sizes outside its limits.
        PaddingRefusedError: for padding that changes answers.
        ModelError: when the model does not run at a size of the traffic.
        CheckError: when no ladder satisfies a budget.
    """
    reading = declared.traffic
    if reading is None:
        raise UsageError("a plan is made from traffic; give --traffic FILE, which session.record_traffic writes")
    for note in reading.notes:
        setting.progress.note(note)
    bounds = Bounds.of(analysis, reading.traffic, _stated(analysis, declared), setting)
    analysis = with_ladder(_without_idle_rules(analysis, bounds, setting), Ladder((bounds.profile,)))
    for note in _unspoken(analysis, bounds):
        setting.progress.note(note)
    # What no ladder can satisfy is told before minutes of proving and measuring; any cost will do for that.
    plan_space(bounds.traffic, element_cost(bounds.traffic.symbols), request_for(analysis, bounds, setting))
    prove(with_ladder(analysis, Ladder((bounds.trial,))), setting)
    planning = _planning(model, analysis, bounds, setting)
    for note in planning.result.notes:
        setting.progress.note(note)
    return replace(with_ladder(analysis, planning.result.ladder), planning=planning)


def _without_idle_rules(analysis: Analysis, bounds: Bounds, setting: Setting) -> Analysis:
    """Drop padding of symbols that have one size only: there is nothing to pad, so nothing could be shown either."""
    rules = analysis.plan.padding
    idle = [
        rule.symbol
        for rule in rules
        if bounds.profile.ranges[rule.symbol].max == bounds.profile.ranges[rule.symbol].min
    ]
    for symbol in idle:
        setting.progress.note(
            f"{symbol} is always {bounds.profile.ranges[symbol].min} in the traffic and is not padded"
        )
    kept = tuple(rule for rule in rules if rule.symbol not in idle)
    return replace(analysis, plan=replace(analysis.plan, padding=kept))


def _unspoken(analysis: Analysis, bounds: Bounds) -> list[str]:
    """Say which padded sizes the traffic leaves out: nothing can be chosen for them."""
    padded = [rule.symbol for rule in analysis.plan.padding]
    return [
        f"the traffic says nothing of {s}, which may be padded: every profile takes all of it, {s} "
        f"{bounds.profile.ranges[s]}; give its size with every request, or state it, such as --dim {s}=1"
        for s in padded
        if s not in bounds.traffic.symbols
    ]


def with_ladder(analysis: Analysis, ladder: Ladder) -> Analysis:
    """Return an analysis for other profiles."""
    return replace(
        analysis, plan=replace(analysis.plan, ladder=ladder), subject=replace(analysis.subject, ladder=ladder)
    )


@dataclass(frozen=True, slots=True)
class Bounds:
    """What is planned, and between which sizes.

    Attributes:
        traffic: over symbols of the signature.
        limits: the sizes that may be served.
        steps: the model takes multiples of these numbers only.
        profile: everything that may be served, as one profile.
        trial: the same up to the middle of the traffic: padding that changes answers is mostly found out there already,
            long before the costly sizes are run.
        axes: sizes that costs are wanted for.
        fixed: sizes, for measuring, of the symbols that the traffic does not speak of.
    """

    traffic: Traffic
    limits: dict[str, Range]
    steps: dict[str, int]
    profile: Profile
    trial: Profile
    axes: tuple[Axis, ...]
    fixed: dict[str, int]

    @classmethod
    def of(cls, analysis: Analysis, traffic: Traffic, stated: AbstractSet[str], setting: Setting) -> Bounds:
        """Settle them.

        What was asked for is served: the traffic, the ranges that the options state, and with a catch-all whatever the
        model takes. Sizes that nobody asked for would have to be compared, and cost time, for nothing.

        Args:
            analysis: with the ranges that the model takes, or the options state.
            traffic: as read.
            stated: symbols whose largest size the options state.
            setting: of the build.

        Raises:
            UsageError: for symbols that the model does not have, and options that contradict the traffic.
        """
        traffic = _traffic_of(analysis, traffic)
        align = _aligned(analysis, setting)
        ranges = _one_profile(analysis)
        padded = {rule.symbol for rule in analysis.plan.padding}
        everything = setting.options.plan.rare == "catch_all"
        limits, axes = {}, []
        for symbol in traffic.symbols:
            r = ranges[symbol]
            rule = analysis.found.workable.get(symbol)
            step = 1 if rule is None else rule.multiple_of
            sizes, _ = traffic.marginal(symbol)
            if symbol not in padded and (sizes % step).any():
                raise UsageError(
                    f"the traffic has {symbol}={int(sizes[sizes % step > 0][0])}, but the model takes multiples of "
                    f"{step}; add --pad {symbol}, or leave these requests out"
                )
            unit = lcm(step, align.get(symbol, 1))
            wanted = -(-int(sizes[-1]) // unit) * unit
            top = wanted if r.max is None else min(wanted, r.max)
            high = (r.max or top) if symbol in stated or everything else top
            limits[symbol] = Range(max(r.min, 1), high, high)
            low = min(max(-(-int(sizes[0]) // step) * step, r.min), top)
            axes.append(Axis(symbol, low, top, step))
        check_limits(traffic, limits)
        rest = {s: r for s, r in ranges.items() if s not in limits}
        tops = {axis.symbol: axis.high for axis in axes}
        covered = {
            s: (limits[s] if everything else Range(limits[s].min, tops[s], tops[s])) if s in limits else r
            for s, r in ranges.items()
        }
        base = analysis.found.base
        fixed = {s: r.opt if r.opt is not None else max(base.get(s, 1), r.min) for s, r in rest.items()}
        steps = {axis.symbol: axis.step for axis in axes}
        trial = {
            s: _up_to(r, traffic.quantiles(s, [0.5])[0], steps[s]) if s in steps else r for s, r in covered.items()
        }
        return cls(traffic, limits, steps, Profile("p0", covered), Profile("p0", trial), tuple(axes), fixed)


def _stated(analysis: Analysis, declared: Declared) -> frozenset[str]:
    """Symbols of the signature whose largest size the options state."""
    merges = analysis.found.merges
    return frozenset(merges.get(s, s) for p in declared.profiles for s, r in p.ranges.items() if r.max is not None)


def _up_to(r: Range, size: int, step: int) -> Range:
    """End a range at a size, rounded up to a multiple, with some room between its ends."""
    top = max(-(-size // step) * step, r.min + step)
    return r if r.max is not None and r.max <= top else Range(r.min, top, top)


def _traffic_of(analysis: Analysis, traffic: Traffic) -> Traffic:
    """Bring the traffic to the symbols of the signature: some names of the file may have been found to be one size."""
    merges, symbols = analysis.found.merges, analysis.plan.signature.symbols
    for symbol in traffic.symbols:
        if symbol not in symbols and symbol not in merges:
            raise UsageError(f"the traffic has an {unknown_name('symbol', symbol, symbols)}")
    kept = [symbol for symbol in traffic.symbols if symbol in symbols]
    for symbol in set(traffic.symbols) - set(kept):
        other = merges[symbol]
        if other not in traffic.symbols:
            raise UsageError(f"the traffic counts {symbol}, which is the size {other} of this model; call it {other}")
        if (traffic.sizes[:, traffic.column(symbol)] != traffic.sizes[:, traffic.column(other)]).any():
            raise UsageError(f"the traffic has requests where {symbol} and {other} differ; this model takes them equal")
    return traffic.restricted([symbol for symbol in symbols if symbol in kept])


def _aligned(analysis: Analysis, setting: Setting) -> dict[str, int]:
    """The alignment asked for: of symbols that may be padded, for others have no bucket of their own."""
    align = setting.options.plan.align
    check_align(align, analysis.plan.signature.symbols, {rule.symbol for rule in analysis.plan.padding}, ())
    return dict(align)


def _one_profile(analysis: Analysis) -> Mapping[str, Range]:
    profiles = analysis.plan.ladder.profiles
    if len(profiles) > 1:
        raise UsageError(
            f"--traffic chooses the profiles, but the options state {len(profiles)}; give one range for each symbol, "
            "such as --dim seq=1..512, or leave --traffic out"
        )
    return profiles[0].ranges


def _planning(model: Model, analysis: Analysis, bounds: Bounds, setting: Setting) -> Planning:
    """Measure or count what runs cost, plan, and compare ways of running."""
    options = setting.options
    target, why = target_to_measure(options.targets)
    request = request_for(analysis, bounds, setting)
    if options.measure_s <= 0 or why:
        why = "--measure-seconds 0" if options.measure_s <= 0 else f"target {target.text}: {why}"
        setting.progress.note(f"costs are counted, not measured ({why}): they rank ladders, their seconds mean nothing")
        run = analytic_seconds(model, analysis.subject.values, bounds.fixed)
        symbols = bounds.traffic.symbols
        model_s = analytic_cost(bounds.axes, lambda point: run(dict(zip(symbols, point, strict=True))))
        result = _whole(plan_ladder(bounds.traffic, model_s, request), bounds)
        return Planning(bounds.traffic, request, result, CostRecord(model=model_s), target.text, None)
    opener = open_provisional(model, analysis, setting, target)
    setting.progress.stage("measuring which threads serve this traffic")
    first = _first_race(opener, analysis, bounds, setting)
    way = first.best
    setting.progress.stage("measuring what sizes cost")
    cost = _measured_cost(opener, analysis, bounds, setting, way)
    if warning := unsteadiness(cost.model.held_out):
        setting.progress.note(warning)
    setting.progress.stage("planning the ladder")
    result = _whole(plan_ladder(bounds.traffic, cost.model, request), bounds)
    record = CostRecord(model=cost.model, threads=way.threads, runs=cost.runs, refused=cost.refused, spread=cost.spread)
    planning = Planning(bounds.traffic, request, result, record, target.text, None)
    if target.needs_ranges:
        return planning  # an engine for other profiles runs otherwise: the one that is built is measured
    final = with_ladder(analysis, result.ladder)
    return replace(planning, measured=_compared(opener, final, bounds, setting, first))


def _whole(result: PlanResult, bounds: Bounds) -> PlanResult:
    """Give every profile the ranges of the symbols that the traffic does not speak of."""
    profiles = tuple(
        Profile(p.name, {s: p.ranges.get(s, r) for s, r in bounds.profile.ranges.items()})
        for p in result.ladder.profiles
    )
    return replace(result, ladder=Ladder(profiles, result.ladder.cost_s))


def request_for(analysis: Analysis, bounds: Bounds, setting: Setting) -> PlanRequest:
    """Say to the planner what the options say to the build."""
    options = setting.options
    plan = options.plan
    padded = frozenset(rule.symbol for rule in analysis.plan.padding) & set(bounds.traffic.symbols)
    target, _ = target_to_measure(options.targets)
    align = {
        symbol: lcm(bounds.steps[symbol], plan.align.get(symbol, 1))
        for symbol in bounds.traffic.symbols
        if symbol in padded and (symbol in plan.align or bounds.steps[symbol] > 1)
    }
    arena = None
    if plan.max_slot_bytes is not None:
        arena = ArenaBudget(plan.max_slot_bytes, lambda rows: _slot_bytes(analysis, bounds, rows))
    return PlanRequest(
        max_profiles=plan.max_profiles,
        padded=padded,
        form="ranges" if backend_named(target.backend).computes else "static",
        align=align,
        limits=bounds.limits,
        rare=plan.rare,
        refuse_share=plan.refuse_share,
        arena_bytes=arena,
        within=plan.within,
    )


def _first_race(opener: Opener, analysis: Analysis, bounds: Bounds, setting: Setting) -> Outcome:
    """Compare threads at exact sizes: costs depend on them, and the ladder on costs."""
    course = Race(opener.open, analysis.subject, (), _rounded(bounds, workload_of(bounds.traffic)), setting.threads)
    ways = [Way(slots, threads, "exact") for slots, threads in ways_of(setting.threads)]
    try:
        return race(course, ways, _WAYS_SHARE * setting.options.measure_s)
    except EngineError as error:
        raise _unrunnable(error) from error


def _measured_cost(opener: Opener, analysis: Analysis, bounds: Bounds, setting: Setting, way: Way) -> MeasuredCost:
    symbols = bounds.traffic.symbols
    with closing(opener.open(way.threads)) as engine:
        caller = Caller(engine, analysis.subject, ())

        def run(point: tuple[int, ...]) -> float:
            sizes = bounds.fixed | dict(zip(symbols, point, strict=True))
            return caller.seconds(Request(sizes, sizes))

        steps = np.array([bounds.steps[symbol] for symbol in symbols])
        runs_at = traffic_from_rows(symbols, -(-bounds.traffic.sizes // steps) * steps, bounds.traffic.weights)
        options = GridOptions(_GRID_SHARE * setting.options.measure_s, setting.options.seed)
        try:
            return measure_cost(bounds.axes, run, runs_at, options)
        except EngineError as error:
            raise _unrunnable(error) from error


def _compared(opener: Opener, final: Analysis, bounds: Bounds, setting: Setting, first: Outcome) -> Measured:
    """Compare exact sizes with padded ones, on the ladder that was planned."""
    setting.progress.stage("comparing exact sizes with padded ones")
    least = _NEAR * first.rates[first.best]
    near = [(way.slots, way.threads) for way, rate in first.rates.items() if rate >= least]
    share = 1 - _WAYS_SHARE - _GRID_SHARE
    padded = {rule.symbol for rule in final.plan.padding}
    course = Race(
        opener.open,
        final.subject,
        final.plan.padding,
        [bounds.fixed | sizes for sizes in workload_of(served_part(final.plan.ladder, bounds.traffic, padded))],
        setting.threads,
    )
    return fastest(course, _modes(final, bounds, setting), near, share * setting.options.measure_s)


def _modes(final: Analysis, bounds: Bounds, setting: Setting) -> tuple[Mode, ...]:
    """The modes that can be chosen from: what was asked for, and what the model takes."""
    wanted = setting.options.mode
    padded = {rule.symbol for rule in final.plan.padding} & set(bounds.traffic.symbols)
    if wanted != "auto" or not padded:
        return ("bucket" if wanted == "bucket" else "exact",)
    sizes, symbols = bounds.traffic.sizes, bounds.traffic.symbols
    exact = not any((sizes[:, i] % bounds.steps[symbol]).any() for i, symbol in enumerate(symbols))
    return ("exact", "bucket") if exact else ("bucket",)


def _rounded(bounds: Bounds, requests: Sequence[Mapping[str, int]]) -> list[dict[str, int]]:
    """Sizes that the model takes as they are."""
    return [
        bounds.fixed | {s: -(-size // bounds.steps[s]) * bounds.steps[s] for s, size in sizes.items()}
        for sizes in requests
    ]


def _unrunnable(error: EngineError) -> ModelError:
    return ModelError(
        f"the model does not run at every size of the traffic: {error}; leave such requests out of the traffic, or "
        "state the sizes that run, such as --dim seq=1..512"
    )


def _slot_bytes(analysis: Analysis, bounds: Bounds, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    symbols = bounds.traffic.symbols
    found = [
        plan_layout(analysis.plan.signature, {**bounds.fixed, **dict(zip(symbols, map(int, row), strict=True))})
        for row in rows
    ]
    return np.array([layout.size_bytes for layout in found], np.float64)
