"""From a plan to its file, and from the file to a build: exactly that, or what no longer holds."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

from trtc.compiler.measure import Measured
from trtc.compiler.options import BuildOptions
from trtc.compiler.planning import planned, with_ladder
from trtc.compiler.runnable import target_to_measure
from trtc.engines.manifest import Execution, PlanRecord
from trtc.profiles import CheckError, UsageError
from trtc.profiles.grammar import ShapeOptions
from trtc.profiles.plan_file import (
    PlanFile,
    PlannedBuild,
    PlannedCost,
    PlannedExecution,
    PlannedTraffic,
    cost_digest,
    read_plan,
)
from trtc.profiles.plan_text import plan_text
from trtc.profiles.traffic_summary import summary_lines

if TYPE_CHECKING:
    from pathlib import Path

    from trtc.compiler.analysis import Analysis, Declared
    from trtc.compiler.model import Model
    from trtc.compiler.options import Setting
    from trtc.compiler.plan_model import PlannedModel

_FIXED = tuple(field.name for field in fields(PlannedBuild))
"""Options that a plan fixes: they have the same names in ``BuildOptions``."""


class PlanOutdatedError(CheckError):
    """Something that a frozen plan says does not hold any more. Exit code 1."""


@dataclass(frozen=True, slots=True)
class FromFile:
    """What a plan file settles about a build, as ``Planning`` does for traffic.

    Attributes:
        record: the traffic that the file was made for; None where a person wrote it.
        measured: how to run; None where that is measured anew.
        target: that this is about.
        cost: None: a plan file holds the costs of its buckets only.
    """

    record: PlanRecord | None
    measured: Measured | None
    target: str
    cost: None = None


def plan_file_text(made: PlannedModel, options: BuildOptions) -> str:
    """Write a plan as ``plan.toml``."""
    planning = made.planning
    result, cost, execution = planning.result, planning.cost.model, planning.measured
    return plan_text(
        PlanFile(
            made.model_sha256,
            made.plan.signature.symbols,
            result.ladder,
            PlannedBuild(**{name: getattr(options, name) for name in _FIXED}),
            None if execution is None else _execution_of(execution.execution),
            PlannedTraffic(planning.traffic.digest, planning.traffic.requests, summary_lines(planning.traffic)),
            PlannedCost(
                expected_s=result.point.expected_s,
                exact_s=result.exact_s,
                lower_s=result.point.lower_s,
                waste=result.point.waste,
                refused=result.refused,
                source=cost.source,
                model=cost_digest(cost),
                error=None if cost.held_out is None else cost.held_out.median,
                reason=result.reason,
            ),
        )
    )


def _execution_of(execution: Execution) -> PlannedExecution:
    return PlannedExecution(execution.mode, execution.slots, execution.threads, execution.reason)


def options_with_plan(path: Path, options: BuildOptions, *, frozen: bool) -> BuildOptions:
    """Take everything that a plan file fixes from it.

    Args:
        path: of the file.
        options: the others; what the plan fixes must be left at its default, or say the same.
        frozen: build exactly that: the same model, and run as the plan says.

    Raises:
        UsageError: for a file that is no plan, or options that say something else.
    """
    plan = read_plan(path)
    if options.shapes != ShapeOptions():
        raise UsageError(f"{path} states the profiles; leave --dim, --buckets and the like out, or plan again")
    default = BuildOptions()
    for name in _FIXED:
        given = getattr(options, name)
        if given not in (getattr(default, name), getattr(plan.build, name)):
            raise UsageError(
                f"{_option(name)} {_said(given)} contradicts {path}, which says "
                f"{_said(getattr(plan.build, name))}; leave it out, or plan again"
            )
    if options.mode != "auto":
        raise UsageError(f"--mode {options.mode}: {path} says how requests run; leave it out, or plan again")
    taken = {name: getattr(plan.build, name) for name in _FIXED}
    return replace(options, **taken, plan=replace(options.plan, plan=plan, frozen=frozen))


def settled(model: Model, analysis: Analysis, declared: Declared, setting: Setting) -> Analysis:
    """Settle the ladder of an analysis: planned for traffic, taken from a plan file, or left as the options state it.

    Raises:
        UsageError, ModelError, CheckError: as ``planned`` does.
        PlanOutdatedError: when a frozen plan does not hold any more.
    """
    if declared.traffic is not None:
        return planned(model, analysis, declared, setting)
    plan = setting.options.plan.plan
    if plan is None:
        return analysis
    if changed := list(_changes(plan, model, analysis)):
        if setting.options.plan.frozen:
            raise PlanOutdatedError(
                f"the plan does not hold any more: {'; '.join(changed)}; plan again with trtc plan, or build without "
                "--frozen"
            )
        for change in changed:
            setting.progress.note(f"the plan is older than what it is used for: {change}")
    return replace(with_ladder(analysis, plan.ladder), planning=_from_file(plan, frozen=setting.options.plan.frozen))


def _changes(plan: PlanFile, model: Model, analysis: Analysis) -> list[str]:
    """What is not as the plan says."""
    symbols = analysis.plan.signature.symbols
    if set(plan.symbols) != set(symbols):
        raise UsageError(
            f"the plan has profiles over {', '.join(plan.symbols) or 'no symbol'}, but the model has "
            f"{', '.join(symbols) or 'none'}; plan again with trtc plan"
        )
    found = []
    if plan.model != model.sha256:
        found.append(f"it was made for the model {plan.model[:12]}..., this one is {model.sha256[:12]}...")
    for profile, wanted in zip(analysis.plan.ladder.profiles, plan.ladder.profiles, strict=True):
        for symbol, r in profile.ranges.items():
            if r != wanted.ranges[symbol]:
                found.append(f"profile {profile.name} says {symbol} {wanted.ranges[symbol]}, but the model takes {r}")
    return found


def _from_file(plan: PlanFile, *, frozen: bool) -> FromFile:
    run = plan.execution
    measured = None
    if frozen and run is not None:
        execution = Execution(mode=run.mode, slots=run.slots, threads=run.threads, reason=run.reason)
        measured = Measured(execution, plan.ladder.cost_s)
    record = None
    if plan.traffic is not None and plan.cost is not None:
        cost = plan.cost
        record = PlanRecord(
            traffic=plan.traffic.digest,
            requests=plan.traffic.requests,
            expected_s=cost.expected_s,
            exact_s=cost.exact_s,
            waste=cost.waste,
            gap=max(0.0, 1 - cost.lower_s / cost.expected_s) if cost.expected_s else 0.0,
            reason=cost.reason,
            max_profiles=len(plan.ladder.profiles),
            refused=cost.refused,
        )
    return FromFile(record, measured, target_to_measure(plan.build.targets)[0].text)


def _option(name: str) -> str:
    return "--callers" if name == "callers" else f"--{name.removesuffix('s').replace('_', '-')}"


def _said(value: object) -> str:
    return " ".join(map(str, value)) or "nothing" if isinstance(value, tuple) else str(value)
