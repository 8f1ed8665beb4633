"""What a plan says in sentences and in tables: the same at a terminal and on a page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trtc.compiler.cost_grid import longer_s, unsteady
from trtc.tools.durations import seconds_text
from trtc.tools.output import counted
from trtc.tools.planned import cost_text, runs_text

if TYPE_CHECKING:
    from trtc.tools.plan_view import PlanView


def sentences(view: PlanView) -> list[str]:
    """Say what was found, for the page and for the terminal."""
    point = view.point
    requests = counted(view.traffic.requests, "request") if view.traffic.requests else "a distribution"
    proof = (
        "no ladder of that length is better" if point.proven else f"a ladder as long is at most {point.gap:.1%} better"
    ) + f" for the {_costs(view)}"
    count = f"{point.profiles} profile{'s' * (point.profiles != 1)}"
    found = [
        f"{requests} over {', '.join(view.traffic.symbols)}, {len(view.traffic.sizes)} different sizes",
        (
            f"{count}: {seconds_text(point.expected_s)} a request in its bucket, {point.waste:.1%} of the work is "
            f"padding; at exact sizes {seconds_text(view.exact_s)}; {proof}"
        ),
        f"why this many: {view.reason}",
        f"costs: {cost_text(view.cost)}",
    ]
    if view.refused:
        found.insert(0, f"{view.refused:.3%} of the requests are refused; all figures are of the others")
    if view.execution is not None:
        found.append(runs_text(view.execution))
    return [f"{text[0].upper()}{text[1:]}." for text in found]


def _costs(view: PlanView) -> str:
    """Name the costs that a proof holds for: it says nothing about how right they are."""
    if view.cost.model.source == "analytic":
        return "counted costs"
    held = view.cost.model.held_out
    if held is None or not unsteady(held):
        return "measured costs"
    return (
        f"measured costs, which are off by {held.median:.0%} in the middle, {held.worst:.0%} at worst; measure "
        f"longer with --measure-seconds {longer_s(view.measure_s):g}"
    )


@dataclass(frozen=True, slots=True)
class Shown:
    """A table of the page and of the terminal.

    Attributes:
        title: above it.
        columns: their names.
        rows: cells.
        chosen: the row that was chosen; -1 where none is.
    """

    title: str
    columns: tuple[str, ...]
    rows: list[tuple[object, ...]]
    chosen: int = -1


def tables(view: PlanView) -> list[Shown]:
    """The profiles, the best ladder of each length, and other ladders."""
    return [_profiles(view), _lengths(view), _others(view)]


def _profiles(view: PlanView) -> Shown:
    rows: list[tuple[object, ...]] = [
        (
            profile.name,
            ", ".join(f"{s} {r}" for s, r in profile.ranges.items()),
            seconds_text(cost_s),
            f"{use.share:.1%}",
            f"{use.waste:.1%}",
        )
        for profile, cost_s, use in zip(view.ladder.profiles, view.ladder.cost_s, view.evaluation.buckets, strict=True)
    ]
    return Shown("profiles", ("profile", "sizes", "one run at the bucket", "requests", "padding waste"), rows)


def _lengths(view: PlanView) -> Shown:
    rows: list[tuple[object, ...]] = [
        (
            point.profiles,
            seconds_text(point.expected_s),
            f"{point.waste:.1%}",
            "yes" if point.proven else f"within {point.gap:.1%}",
        )
        for point in view.curve
    ]
    chosen = next(i for i, point in enumerate(view.curve) if point.profiles == view.point.profiles)
    columns = ("profiles", "a request", "padding waste", "proven best for these costs")
    return Shown("best ladder of each length", columns, rows, chosen)


def _others(view: PlanView) -> Shown:
    def row(name: str, profiles: object, expected_s: float, waste: float) -> tuple[object, ...]:
        factor = expected_s / view.point.expected_s if view.point.expected_s else 1.0
        return name, profiles, seconds_text(expected_s), f"{waste:.1%}", f"{factor:.2f}"

    rows = [
        row("this plan", view.point.profiles, view.point.expected_s, view.point.waste),
        *(row(other.name, other.profiles, other.expected_s, other.waste) for other in view.compared),
        row("every size exact", "-", view.exact_s, 0.0),
    ]
    columns = ("ladder", "profiles", "a request", "padding waste", "times this plan")
    return Shown("beside other ladders", columns, rows)
