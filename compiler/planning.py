"""From traffic to a ladder: padding proven inside the bounds, cost on the target, the planner, and how to run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import lcm
from typing import TYPE_CHECKING

import numpy as np

from trtc.compiler.construct import open_provisional
from trtc.compiler.cost_grid import analytic_cost, unsteadiness
from trtc.compiler.operation_counts import analytic_seconds
from trtc.compiler.plan_bounds import Bounds, stated_symbols
from trtc.compiler.plan_measure import compared, first_race, measured_cost
from trtc.compiler.prove import prove
from trtc.compiler.runnable import target_to_measure
from trtc.engines.layout import plan_layout
from trtc.engines.manifest import CostRecord, PlanRecord
from trtc.engines.registry import backend_named
from trtc.profiles import Ladder, Profile, UsageError
from trtc.profiles.cost import element_cost
from trtc.profiles.plan_space import plan_space
from trtc.profiles.plan_values import ArenaBudget, PlanRequest
from trtc.profiles.planner import plan_ladder

if TYPE_CHECKING:
    import numpy.typing as npt

    from trtc.compiler.analysis import Analysis, Declared
    from trtc.compiler.measure import Measured
    from trtc.compiler.model import Model
    from trtc.compiler.options import Setting
    from trtc.profiles.plan_values import PlanResult
    from trtc.profiles.traffic import Traffic


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
    bounds = Bounds.of(analysis, reading.traffic, stated_symbols(analysis, declared), setting)
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
    first = first_race(opener, analysis, bounds, setting)
    way = first.best
    setting.progress.stage("measuring what sizes cost")
    cost = measured_cost(opener, analysis, bounds, setting, way)
    if warning := unsteadiness(cost.model.held_out, options.measure_s):
        setting.progress.note(warning)
    setting.progress.stage("planning the ladder")
    result = _whole(plan_ladder(bounds.traffic, cost.model, request), bounds)
    record = CostRecord(model=cost.model, threads=way.threads, runs=cost.runs, refused=cost.refused, spread=cost.spread)
    planning = Planning(bounds.traffic, request, result, record, target.text, None)
    if target.needs_ranges:
        return planning  # an engine for other profiles runs otherwise: the one that is built is measured
    final = with_ladder(analysis, result.ladder)
    return replace(planning, measured=compared(opener, final, bounds, setting, first))


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


def _slot_bytes(analysis: Analysis, bounds: Bounds, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    symbols = bounds.traffic.symbols
    found = [
        plan_layout(analysis.plan.signature, {**bounds.fixed, **dict(zip(symbols, map(int, row), strict=True))})
        for row in rows
    ]
    return np.array([layout.size_bytes for layout in found], np.float64)
