"""The planner: the ladder that serves given traffic at the least expected cost.

With one symbol that may be padded the ladder is exactly optimal (``edges``), at any size. With several, candidates are
the corners of the grid that the sizes span; good choices come with a lower bound (``cover``), which an integer
programme closes for instances of moderate size (``cover_proof``). Nothing is random, and nothing depends on time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from trtc.profiles.errors import CheckError
from trtc.profiles.evaluation import evaluate_ladder, pick_rows
from trtc.profiles.ladder import Ladder
from trtc.profiles.plan_parts import PROVEN, PartChoice, shared_out, solve_part
from trtc.profiles.plan_space import Space, plan_space
from trtc.profiles.plan_values import ArenaBudget, Budget, CurvePoint, PlanRequest, PlanResult
from trtc.profiles.ranges import Profile, Range

if TYPE_CHECKING:
    from trtc.profiles.cost import CostModel
    from trtc.profiles.traffic import IntArray, Traffic

__all__ = ["ArenaBudget", "Budget", "CurvePoint", "PlanRequest", "PlanResult", "plan_ladder"]


def plan_ladder(traffic: Traffic, cost: CostModel, request: PlanRequest) -> PlanResult:
    """Find the ladder that serves this traffic at the least expected cost.

    Args:
        traffic: over the symbols of ``cost`` (others are summed out).
        cost: seconds by sizes; ``element_cost`` minimises padding waste.
        request: what the ladder has to keep to.

    Raises:
        UsageError: for symbols that the traffic does not have, sizes outside the limits, or alignment that contradicts
            them.
        CheckError: when no ladder satisfies the request; it says by how much, and the nearest that does.
    """
    space = plan_space(traffic, cost, request)
    choices = _choices(space, cost)
    ladders = [_ladder(space, choice.buckets, cost, request) for choice in choices]
    curve = tuple(_point(space, choice, ladder, cost, request) for choice, ladder in zip(choices, ladders, strict=True))
    at, reason = _chosen(curve, request.within)
    exact_s = evaluate_ladder(ladders[at], space.traffic, cost, request.padded, overhead_s=request.overhead_s).exact_s
    picked = pick_rows(ladders[at], space.traffic.symbols, traffic.restricted(cost.symbols).sizes, request.padded)
    return PlanResult(
        ladder=ladders[at],
        point=curve[at],
        curve=curve,
        reason=reason,
        exact_s=exact_s,
        refused=float(traffic.restricted(cost.symbols).weights[picked < 0].sum() / traffic.total),
        notes=_notes(space, curve[at], request),
    )


def _choices(space: Space, cost: CostModel) -> list[PartChoice]:
    """The best buckets for each possible number of profiles."""
    count = len(space.needs)
    if space.ranges or not space.free:
        parts = [np.arange(count)]
    else:
        _, inverse = np.unique(space.needs[:, list(space.free)], axis=0, return_inverse=True)
        parts = [np.flatnonzero(inverse.ravel() == i) for i in range(int(inverse.max()) + 1)]
    if len(parts) > space.most:
        names = ", ".join(space.traffic.symbols[c] for c in space.free)
        raise CheckError(
            f"a static ladder needs a profile for each of {len(parts)} sizes of {names}, which may not be padded, "
            f"but {space.most} profiles are allowed, {len(parts) - space.most} too few; allow {len(parts)} profiles "
            "(and budgets for them), allow padding, or refuse rare sizes"
        )
    room = space.most - len(parts) + 1
    found = [choice for choice in shared_out([solve_part(space, p, cost, room) for p in parts], space.most) if choice]
    if not found:
        raise CheckError(_scarce(space))
    return found


def _scarce(space: Space) -> str:
    """Say that no ladder of the allowed length covers the traffic within the arena's budget."""
    peak = space.needs.max(axis=0)[None]
    if space.arena is None:  # pragma: no cover - without a budget one profile takes everything
        return f"no ladder of {space.most} profiles was found that covers the traffic"
    need = float(space.arena.bytes_of(space.widened(peak))[0])
    over = need - space.arena.limit_bytes
    return (
        f"no ladder of at most {space.most} profiles was found that covers the traffic with slots of "
        f"{space.arena.limit_bytes:.0f} bytes; one profile for everything needs {need:.0f}, {over:.0f} more; allow "
        "that, allow more profiles, or refuse rare sizes"
    )


def _ladder(space: Space, buckets: IntArray, cost: CostModel, request: PlanRequest) -> Ladder:
    run = np.where(buckets == 0, space.widest, buckets)
    run_s = cost.seconds(run)
    order = np.lexsort((*run.T[::-1], run_s))
    profiles = tuple(
        Profile(
            f"p{i}", {s: _range(space, request, s, int(b)) for s, b in zip(space.traffic.symbols, row, strict=True)}
        )
        for i, row in enumerate(buckets[order])
    )
    return Ladder(profiles, tuple(float(s) for s in run_s[order]))


def _range(space: Space, request: PlanRequest, symbol: str, bucket: int) -> Range:
    limit = request.limits.get(symbol)
    if bucket and request.form == "static":
        return Range(bucket, bucket, bucket)
    if bucket:
        return Range(min(limit.min if limit else 1, bucket), bucket, bucket)
    sizes, top = space.traffic.marginal(symbol)[0], limit.max if limit else None
    if limit and top is None:
        return limit
    high = int(sizes[-1]) if top is None else top
    return Range(limit.min if limit else 1, space.traffic.quantiles(symbol, [0.5])[0], high)


def _point(space: Space, choice: PartChoice, ladder: Ladder, cost: CostModel, request: PlanRequest) -> CurvePoint:
    found = evaluate_ladder(ladder, space.traffic, cost, request.padded, overhead_s=request.overhead_s)
    lower_s = min(choice.lower / space.traffic.total + request.overhead_s, found.expected_s)
    return CurvePoint(
        profiles=len(ladder.profiles),
        expected_s=found.expected_s,
        waste=found.waste,
        lower_s=lower_s,
        proven=found.expected_s <= lower_s * (1 + PROVEN),
    )


def _chosen(curve: tuple[CurvePoint, ...], within: float) -> tuple[int, str]:
    """The shortest ladder that is nearly as cheap as the cheapest."""
    least = min(point.expected_s for point in curve)
    enough = least * (1 + within)
    at = next(i for i, point in enumerate(curve) if point.expected_s <= enough)
    point, last = curve[at], curve[-1]
    if len(curve) == 1:
        return at, f"{point.profiles} profile{'s' * (point.profiles != 1)}: no other number is possible"
    more = point.expected_s / least - 1 if least else 0.0
    reason = f"{point.profiles} of at most {last.profiles} profiles: within {more:.1%} of the cheapest"
    if at:
        saved = 1 - point.expected_s / curve[at - 1].expected_s if curve[at - 1].expected_s else 0.0
        reason += f"; one fewer costs {saved / (1 - saved):.1%} more"
    if at + 1 < len(curve):
        gained = 1 - curve[at + 1].expected_s / point.expected_s if point.expected_s else 0.0
        reason += f", one more saves {gained:.1%}"
    return at, reason


def _notes(space: Space, point: CurvePoint, request: PlanRequest) -> tuple[str, ...]:
    notes = []
    if not point.proven:
        notes.append(f"not proven optimal: a ladder as long could be at most {point.gap:.2%} cheaper")
    if space.most < request.max_profiles:
        notes.append(f"the budgets allow {space.most} of {request.max_profiles} profiles")
    if request.rare == "catch_all" and space.free and not space.ranges:
        names = ", ".join(space.traffic.symbols[c] for c in space.free)
        notes.append(f"the catch-all takes only sizes of {names} that the traffic holds: they may not be padded")
    return tuple(notes)
