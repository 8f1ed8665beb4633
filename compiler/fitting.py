"""Fit the size of an output axis to sizes of symbols. Pure: numbers in, a dim out.

One symbol alone gives ``coef * ((mul * n + add) // div) + const``: identity, shifts, products with a constant, and the
stairs of strided layers. Several symbols give sums of products of such stairs, solved exactly in integers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import reduce
from itertools import combinations, pairwise
from math import ceil, floor, gcd, prod
from typing import TYPE_CHECKING

import numpy as np

from trtc.profiles import Dim, Expr, Step, Term, dim_value

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from trtc.profiles import Sizes

_MAX_DIV = 128
_MIN_POINTS = 8
_MAX_DROPPED = 8
_DROP_PRICE = 4
"""One size left out must buy a formula that is simpler by as much as 4 in its divisor."""
_MAX_SYMBOLS = 4


@dataclass(frozen=True, slots=True)
class Stair:
    """``coef * step + const`` over one symbol.

    Attributes:
        coef, step, const: of the formula.
        valid_from: smallest size that the formula holds for; below it the model does something else.
        more_sizes: how many consecutive sizes are needed to tell ``add`` for sure; 0 when it is sure.
    """

    coef: int
    step: Step
    const: int
    valid_from: int
    more_sizes: int = 0

    def value(self, size: int) -> int:
        """Evaluate for one size."""
        return self.coef * self.step.value({self.step.symbol: size}) + self.const


@dataclass(frozen=True, slots=True)
class AxisFit:
    """A fitted axis.

    Attributes:
        dim: the formula; None when nothing fits.
        valid_from: symbol to the smallest size that the formula holds for, where that is not the smallest tried.
        more_sizes: symbol to the count of consecutive sizes that would make the formula sure.
    """

    dim: Dim
    valid_from: dict[str, int] = field(default_factory=dict)
    more_sizes: dict[str, int] = field(default_factory=dict)


def fit_axis(scans: Mapping[str, Sequence[tuple[int, int]]], joint: Sequence[tuple[Sizes, int]]) -> AxisFit:
    """Fit one axis.

    Args:
        scans: symbol to (size, axis size) pairs, every other symbol at its base.
        joint: (sizes, axis size) pairs with several symbols moved, the base among them.

    Returns:
        The formula, or an ``AxisFit`` without dim. It holds on all scans (from ``valid_from`` on) and on all
        joint points.
    """
    moving = [s for s, points in scans.items() if len({y for _, y in points}) > 1]
    if not moving:
        values = {y for points in scans.values() for _, y in points} | {y for _, y in joint}
        return AxisFit(values.pop() if len(values) == 1 else None)
    stairs: dict[str, Stair] = {}
    for symbol in moving:
        stair = fit_stair(symbol, scans[symbol])
        if stair is None:
            return AxisFit(None)
        stairs[symbol] = stair
    valid_from = {s: stair.valid_from for s, stair in stairs.items() if stair.valid_from > min(scans[s])[0]}
    more_sizes = {s: stair.more_sizes for s, stair in stairs.items() if stair.more_sizes}
    inside = [(sizes, y) for sizes, y in joint if all(sizes[s] >= low for s, low in valid_from.items())]
    if len(moving) == 1:
        stair = stairs[moving[0]]
        found = _checked(_dim([((stair.step,), stair.coef)], stair.const), inside)
    else:
        found = _checked(_solve(stairs, inside), inside)
    if found is None:
        # a factor that is zero at the base hides the symbols that it is multiplied with
        every = {s: stairs.get(s) or Stair(1, Step(s), 0, 0) for s in scans}
        found = _checked(_solve(every, inside), inside) if len(every) > len(stairs) else None
    return AxisFit(None) if found is None else AxisFit(found, valid_from, more_sizes)


def _checked(dim: Dim, points: Sequence[tuple[Sizes, int]]) -> Dim:
    return dim if dim is not None and all(dim_value(dim, sizes) == y for sizes, y in points) else None


def fit_stair(symbol: str, points: Sequence[tuple[int, int]]) -> Stair | None:
    """Fit one symbol's stair; the smallest sizes may be left out when the rest fits without them."""
    ordered = sorted(set(points))
    if len({n for n, _ in ordered}) != len(ordered):
        return None
    line = _fit_line(symbol, ordered)
    if line is not None:
        return line
    found = []
    for dropped in range(_MAX_DROPPED + 1):
        rest = ordered[dropped:]
        if dropped and len(rest) < _MIN_POINTS:
            break
        stair = _fit_line(symbol, rest) or _fit_floor(symbol, rest)
        if stair is not None:
            found.append((stair.step.div + stair.step.mul + _DROP_PRICE * dropped, stair))
    return min(found, key=lambda item: item[0])[1] if found else None


def _fit_line(symbol: str, points: Sequence[tuple[int, int]]) -> Stair | None:
    if len(points) < 2:  # noqa: PLR2004
        return None
    (n0, y0), (n1, y1) = points[0], points[-1]
    slope = Fraction(y1 - y0, n1 - n0)
    const = y0 - slope * n0
    if const.denominator != 1 or any(y != slope * n + const for n, y in points):
        return None
    if slope.denominator == 1:
        return Stair(int(slope), Step(symbol), int(const), n0)
    return Stair(1, Step(symbol, slope.numerator, 0, slope.denominator), int(const), n0)


def _fit_floor(symbol: str, points: Sequence[tuple[int, int]]) -> Stair | None:
    """``coef * ((mul * n + add) // div) + const``, the smallest ``div`` first."""
    rises = [b[1] - a[1] for a, b in pairwise(points)]
    common = reduce(gcd, rises)
    if common == 0 or min(rises) < 0:
        return None
    for coef in (c for c in range(common, 0, -1) if common % c == 0):
        const = points[0][1] % coef
        levels = [(n, (y - const) // coef) for n, y in points]
        for div in range(2, _MAX_DIV + 1):
            for mul in _multipliers(levels, div):
                low = max(div * y - mul * n for n, y in levels)
                high = min(div * y - mul * n + div - 1 for n, y in levels)
                if low <= high:
                    add = 0 if low <= 0 <= high else low
                    needed = 0 if _stretch(points) in (1, *range(2 * div, len(points) + 1)) else 2 * div + _MAX_DROPPED
                    return Stair(coef, Step(symbol, mul, add, div), const, points[0][0], needed)
    return None


def _multipliers(levels: Sequence[tuple[int, int]], div: int) -> Iterator[int]:
    """Numerators that the slope between the ends allows, in lowest terms with ``div``."""
    (n0, y0), (n1, y1) = levels[0], levels[-1]
    low, high = (y1 - y0 - 1) / (n1 - n0), (y1 - y0 + 1) / (n1 - n0)
    for mul in range(max(1, ceil(low * div)), floor(high * div) + 1):
        if gcd(mul, div) == 1:
            yield mul


def _stretch(points: Sequence[tuple[int, int]]) -> int:
    """Length of the longest run of consecutive sizes; two periods of a stair show it for sure."""
    longest = current = 1
    for (a, _), (b, _) in pairwise(points):
        current = current + 1 if b - a == 1 else 1
        longest = max(longest, current)
    return longest


def _solve(stairs: Mapping[str, Stair], joint: Sequence[tuple[Sizes, int]]) -> Dim:
    """Sum of products of stairs: linear in its coefficients, solved on the joint points and checked exactly."""
    symbols = list(stairs)
    if len(symbols) > _MAX_SYMBOLS:
        return None
    steps = {s: _low_add(stair.step) for s, stair in stairs.items()}
    subsets = [c for size in range(len(symbols) + 1) for c in combinations(symbols, size)]
    if len(joint) < len(subsets) + 2:
        return None
    rows = [[prod(steps[s].value(sizes) for s in subset) for subset in subsets] for sizes, _ in joint]
    matrix, wanted = np.array(rows, float), np.array([y for _, y in joint], float)
    solution, _, rank, _ = np.linalg.lstsq(matrix, wanted, rcond=None)
    if rank < len(subsets):
        return None
    coefs = [round(c) for c in solution.tolist()]
    terms = [(tuple(steps[s] for s in subset), c) for subset, c in zip(subsets, coefs, strict=True) if subset and c]
    return _dim(terms, coefs[0])


def _low_add(step: Step) -> Step:
    """Move whole stairs out of ``add``: they become a constant of the sum."""
    return Step(step.symbol, step.mul, step.add % step.div, step.div)


def _dim(terms: Sequence[tuple[tuple[Step, ...], int]], const: int) -> Dim:
    """Build the simplest dim."""
    if len(terms) == 1 and const == 0:
        steps, coef = terms[0]
        if coef == 1 and len(steps) == 1 and steps[0] == Step(steps[0].symbol):
            return steps[0].symbol
    return Expr(tuple(Term(coef, steps) for steps, coef in terms), const)
