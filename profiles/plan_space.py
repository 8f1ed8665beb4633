"""Where buckets may lie: the traffic's sizes rounded up to the alignment, checked against limits and budgets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from trtc.profiles.dims import sizes_text
from trtc.profiles.errors import CheckError, UsageError
from trtc.profiles.nearest import unknown_name
from trtc.profiles.traffic import Traffic

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trtc.profiles.cost import CostModel
    from trtc.profiles.plan_values import ArenaBudget, PlanRequest
    from trtc.profiles.ranges import Range
    from trtc.profiles.traffic import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Space:
    """What the solvers work on.

    Attributes:
        traffic: the part of the traffic that must be served, over the symbols of the cost.
        needs: int64 [n, k]: the smallest bucket of each row; its own size for symbols that may not be padded.
        padded: columns of the symbols that may be padded, ascending.
        most: profiles that the budgets allow.
        top: the bucket that must be in the ladder, one size for each of ``padded``; empty for none.
        arena: the budget of the largest profile.
        widest: int64 [k]: the largest size of each column, for profiles that take a whole range.
        ranges: profiles take the whole range of the symbols that may not be padded.
        refused: share of all weight that was left out.
    """

    traffic: Traffic
    needs: IntArray
    padded: tuple[int, ...]
    most: int
    top: tuple[int, ...]
    arena: ArenaBudget | None
    widest: IntArray
    ranges: bool
    refused: float

    @property
    def free(self) -> tuple[int, ...]:
        """Columns of the symbols that may not be padded."""
        return tuple(c for c in range(self.needs.shape[1]) if c not in self.padded)

    def allowed(self, buckets: IntArray) -> BoolArray:
        """Tell which buckets, int64 [m, k], keep to the arena's budget."""
        if self.arena is None:
            return np.ones(len(buckets), np.bool_)
        return _arena_bytes(self.arena, self.widened(buckets)) <= self.arena.limit_bytes

    def widened(self, buckets: IntArray) -> IntArray:
        """Put the largest size in place of each size that a profile takes a whole range of."""
        wide = buckets.copy()
        if self.ranges:
            wide[:, self.free] = self.widest[list(self.free)]
        return wide


def plan_space(traffic: Traffic, cost: CostModel, request: PlanRequest) -> Space:
    """Round, check, and leave out what may be refused.

    Raises:
        UsageError: for unknown symbols, sizes outside the limits, alignment of symbols that may not be padded, limits
            that are not a multiple of the alignment, or a catch-all without a largest size.
        CheckError: when a budget allows no profile at all.
    """
    missing = [symbol for symbol in cost.symbols if symbol not in traffic.symbols]
    if missing:
        raise UsageError(
            f"the traffic says nothing about {', '.join(missing)}, only about {', '.join(traffic.symbols)}; "
            "give the size of every symbol with each request"
        )
    traffic = traffic.restricted(cost.symbols)
    _check_symbols(traffic.symbols, request)
    check_limits(traffic, request.limits)
    padded = tuple(c for c, symbol in enumerate(traffic.symbols) if symbol in request.padded)
    needs = _rounded(traffic, request)
    widest = np.array(
        [_top(request, symbol) or int(traffic.sizes[:, c].max()) for c, symbol in enumerate(traffic.symbols)]
    )
    top = _catch_all(traffic.symbols, padded, request)
    ranges = request.form == "ranges"
    space = Space(
        traffic, needs, padded, _most_profiles(request), top, request.arena_bytes, widest, ranges, refused=0.0
    )
    if top:
        bucket = widest.copy()
        bucket[list(padded)] = top
        _check_arena(space, bucket[None], np.ones(1))
    kept = _kept(space, cost.seconds(traffic.sizes), request)
    weights = traffic.weights[kept]
    served = Traffic(traffic.symbols, traffic.sizes[kept], weights, traffic.requests)
    refused = 1.0 - float(weights.sum()) / traffic.total if not kept.all() else 0.0
    return Space(served, needs[kept], padded, space.most, top, request.arena_bytes, widest, ranges, refused)


def _check_symbols(symbols: tuple[str, ...], request: PlanRequest) -> None:
    for what, names in (("padding", request.padded), ("alignment", request.align), ("limits", request.limits)):
        for name in sorted(names):
            if name not in symbols:
                raise UsageError(f"{what}: {unknown_name('symbol', name, symbols)}; take it out, or record it")
    for name, step in sorted(request.align.items()):
        if name not in request.padded and step > 1:
            raise UsageError(
                f"{name} is to be aligned to {step}, but may not be padded, so its sizes stay as they are; "
                f"allow padding of {name}, or leave its alignment out"
            )


def check_limits(traffic: Traffic, limits: Mapping[str, Range]) -> None:
    """Refuse traffic outside the sizes that are taken.

    Raises:
        UsageError: with the share of it, what it asks for, and what is taken.
    """
    for c, symbol in enumerate(traffic.symbols):
        limit = limits.get(symbol)
        if limit is None:
            continue
        sizes = traffic.sizes[:, c]
        outside = (sizes < limit.min) | (sizes > (limit.max or sizes.max()))
        if outside.any():
            share = float(traffic.weights[outside].sum()) / traffic.total
            found = sizes[outside]
            spread = f"{found.min()}" if found.min() == found.max() else f"{found.min()} to {found.max()}"
            raise UsageError(
                f"{share:.2%} of the traffic has {symbol} {spread}, but the model takes {limit}; "
                "take these requests out of the traffic, or widen the limits"
            )


def _rounded(traffic: Traffic, request: PlanRequest) -> IntArray:
    needs = traffic.sizes.copy()
    for c, symbol in enumerate(traffic.symbols):
        if symbol not in request.padded:
            continue
        step, top = request.align.get(symbol, 1), _top(request, symbol)
        needs[:, c] = -(-needs[:, c] // step) * step
        if top and needs[:, c].max() > top:
            raise UsageError(
                f"{symbol} reaches {traffic.sizes[:, c].max()}, which is {needs[:, c].max()} in multiples of {step}, "
                f"but the model takes {symbol} up to {top}; align to {_divisor(top, step)}, or leave the alignment out"
            )
    return needs


def _divisor(top: int, step: int) -> int:
    return max(d for d in range(1, step + 1) if top % d == 0)


def _top(request: PlanRequest, symbol: str) -> int | None:
    limit = request.limits.get(symbol)
    return None if limit is None else limit.max


def _catch_all(symbols: tuple[str, ...], padded: tuple[int, ...], request: PlanRequest) -> tuple[int, ...]:
    if request.rare != "catch_all":
        return ()
    tops = []
    for c in padded:
        top, step = _top(request, symbols[c]), request.align.get(symbols[c], 1)
        if top is None:
            raise UsageError(f"a catch-all needs a largest size of {symbols[c]}; give its limits, such as 1..512")
        if top % step:
            raise UsageError(
                f"the catch-all has {symbols[c]}={top}, which is no multiple of {step}; "
                f"align to {_divisor(top, step)}, or leave the alignment out"
            )
        tops.append(top)
    return tuple(tops)


def _most_profiles(request: PlanRequest) -> int:
    most = request.max_profiles
    for name, unit, budget in (("engines", "bytes", request.engine_bytes), ("building", "s", request.build_s)):
        if budget is None:
            continue
        room = int((budget.limit - budget.fixed) / budget.each * (1 + 1e-12))
        if room < 1:
            least = budget.fixed + budget.each
            raise CheckError(
                f"the {name} may take {budget.limit:g} {unit}, but a ladder of one profile takes {least:g} {unit}, "
                f"{least - budget.limit:g} more; the nearest budget that works is {least:g} {unit}"
            )
        most = min(most, room)
    return most


def _kept(space: Space, cost_s: FloatArray, request: PlanRequest) -> BoolArray:
    """Tell which rows must be served: all but the costliest, within the share that may be refused."""
    weights = space.traffic.weights
    fits = space.allowed(space.needs)
    if request.rare != "refuse":
        _check_arena(space, space.needs, weights)
        return np.ones(len(weights), np.bool_)
    if float(weights[~fits].sum()) > request.refuse_share * space.traffic.total * (1 + 1e-12):
        _check_arena(space, space.needs, weights, f", and only {request.refuse_share:.2%} may be refused")
    order = np.lexsort((np.arange(len(weights))[::-1], -cost_s, fits))
    gone = np.cumsum(weights[order]) <= request.refuse_share * space.traffic.total * (1 + 1e-12)
    kept = np.ones(len(weights), np.bool_)
    kept[order[: int(gone.argmin()) if not gone.all() else len(gone)]] = False
    return kept


def _check_arena(space: Space, buckets: IntArray, weights: FloatArray, beside: str = "") -> None:
    if space.arena is None:
        return
    wide = space.widened(buckets)
    sizes_bytes = _arena_bytes(space.arena, wide)
    over = sizes_bytes > space.arena.limit_bytes
    if over.any():
        worst = int(sizes_bytes.argmax())
        sizes = dict(zip(space.traffic.symbols, (int(n) for n in wide[worst]), strict=True))
        need, limit = float(sizes_bytes[worst]), space.arena.limit_bytes
        share = float(weights[over].sum()) / float(weights.sum())
        instead = "" if over.all() else f", or refuse {share:.2%} of the traffic"
        raise CheckError(
            f"a slot may take {limit:.0f} bytes, but {sizes_text(sizes)} needs {need:.0f}, {need - limit:.0f} more"
            f"{beside}; the nearest budget that serves all is {need:.0f} bytes{instead}"
        )


def _arena_bytes(arena: ArenaBudget, buckets: IntArray) -> FloatArray:
    return np.asarray(arena.bytes_of(buckets), np.float64)
