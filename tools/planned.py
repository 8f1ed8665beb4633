"""What a bundle says about the traffic that its ladder was planned for, in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtc.tools.durations import seconds_text
from trtc.tools.output import counted

if TYPE_CHECKING:
    from trtc.engines.manifest import CostRecord, Execution, Manifest, PlanRecord


def planned_texts(manifest: Manifest) -> list[str]:
    """Say what was planned for, what was expected, and what the costs rest on; nothing where a person chose."""
    found = [] if manifest.planned is None else [_plan_text(manifest.planned)]
    return found + [f"costs of {e.name}: {cost_text(e.cost)}" for e in manifest.engines if e.cost is not None]


def way_text(execution: Execution) -> str:
    """Say how requests run: at which sizes, how many calls at once, with how many threads each."""
    sizes = "exact" if execution.mode == "exact" else "padded to the bucket"
    if not execution.slots:
        return sizes  # decided when it is loaded
    threads = counted(execution.threads, "thread") if execution.threads else "all threads"
    if execution.slots == 1:
        return f"{sizes}, 1 call at a time, {threads}"
    return f"{sizes}, {execution.slots} calls at once, {threads} each"


def runs_text(execution: Execution) -> str:
    """Say how requests run, and why."""
    return f"requests run {way_text(execution)}: {execution.reason or 'no reason was recorded'}"


def _plan_text(plan: PlanRecord) -> str:
    requests = counted(plan.requests, "request") if plan.requests else "a distribution"
    refused = f", {plan.refused:.3%} refused" if plan.refused else ""
    return (
        f"planned for {requests} (traffic {plan.traffic[:12]}): {seconds_text(plan.expected_s)} a request in its "
        f"bucket, {seconds_text(plan.exact_s)} at exact sizes, {plan.waste:.1%} padding{refused}; {plan.reason}"
    )


def cost_text(record: CostRecord) -> str:
    """Say what costs rest on."""
    if record.model.source == "analytic":
        return "counted from the graph's operations, not measured: they rank ladders and promise no seconds"
    points, threads = counted(len(record.model.grid_s), "grid point"), counted(record.threads, "thread")
    text = f"{counted(record.runs, 'run')} at {points}, {threads} each"
    held = record.model.held_out
    if held is not None:
        sizes = counted(held.count, "other size")
        text += f"; at {sizes} off by {held.median:.1%} in the middle, {held.worst:.1%} at worst"
    left_out = f"{counted(record.refused, 'outlier')} left out"
    return f"{text}; middle half of a point's times within {record.spread:.1%}, {left_out}"
