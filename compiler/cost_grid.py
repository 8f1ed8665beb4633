"""Seconds over sizes from few measurements: a grid that is refined where it is furthest off, and checked apart from it.

Sampling and choosing points is all that happens here; what one run costs is asked of a function, so that a test can be
the machine.
"""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass, field, replace
from itertools import product
from math import sqrt
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from trtc.compiler.plan_options import MEASURE_S
from trtc.profiles.cost import CostModel
from trtc.profiles.cost_fit import held_out, measured_cost, monotone_grid

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trtc.profiles.cost import HeldOut
    from trtc.profiles.traffic import Traffic

Point: TypeAlias = "tuple[int, ...]"
Clock: TypeAlias = "Callable[[], float]"

FIRST_RUNS = 3
"""Runs of a point before anything is decided with it."""
_MOST_RUNS = 100
_CLOSE_ENOUGH = 0.02
"""Interpolation that is off by no more than this is not refined further."""
_NARROWEST = 1.15
"""Sizes nearer to each other than this are not told apart by measuring between them."""
_GRID_SHARE = 0.5
"""Part of the time after which refining is over; the rest is for runs of all points in turns."""
_MOST_HELD_OUT = 12
LARGE_MEDIAN, LARGE_WORST = 0.25, 0.5
"""Costs that are further off than one of these, at sizes that were kept apart, rank ladders badly."""
_MOST_POINTS = 400
_OUTLIER_MADS = 6.0
_MAD_TO_SIGMA = 1.4826
_LEAST_SIGMA = 0.01
"""A spread below this share of the median is no sign of outliers."""
_EVERYWHERE = 0.05
"""Part of the interest that every gap has, also where no traffic lies."""


@dataclass(frozen=True, slots=True)
class Axis:
    """Sizes of one symbol that are to be covered.

    Attributes:
        symbol: its name.
        low, high: both ends.
        step: sizes are multiples of it.
    """

    symbol: str
    low: int
    high: int
    step: int = 1

    def between(self, a: int, b: int) -> int | None:
        """A size between two others, near their geometric mean; None where there is none."""
        if b < a * _NARROWEST:
            return None
        wanted = sqrt(a * b) / self.step
        for size in (round(wanted) * self.step, int(wanted) * self.step, (int(wanted) + 1) * self.step):
            if a < size < b:
                return size
        return None


@dataclass(frozen=True, slots=True)
class GridOptions:
    """How long to measure.

    Attributes:
        budget_s: seconds for everything. The corners of the grid are measured even beyond it.
        seed: of the order of measurements.
        clock: seconds that pass.
    """

    budget_s: float
    seed: int = 0
    clock: Clock = time.perf_counter


@dataclass(frozen=True, slots=True)
class MeasuredCost:
    """A cost model, and what it rests on.

    Attributes:
        model: with its error at held-out sizes.
        runs: that were timed.
        refused: of these, how many were outliers and not used.
        spread: median over the points of (third quartile minus first) / median.
    """

    model: CostModel
    runs: int
    refused: int
    spread: float


@dataclass(slots=True)
class _Times:
    """Owns the times of every point."""

    run: Callable[[Point], float]
    by_point: dict[Point, list[float]] = field(default_factory=dict)

    def visit(self, point: Point, least: int = 1) -> float:
        """Run a point until it has ``least`` times, and return its median."""
        times = self.by_point.setdefault(point, [])
        if not times:
            self.run(point)  # prepares the call; its time says nothing
        while len(times) < least:
            times.append(self.run(point))
        return statistics.median(times)

    def again(self, point: Point) -> None:
        """Run a point once more."""
        if point not in self.by_point:
            self.run(point)
        self.by_point.setdefault(point, []).append(self.run(point))

    def noise(self, point: Point) -> float:
        """How far the median of a point may be off, as a share of it."""
        values = self.by_point[point]
        middle = statistics.median(values)
        deviation = statistics.median(abs(value - middle) for value in values)
        return _MAD_TO_SIGMA * deviation / sqrt(len(values)) / middle if middle else 0.0


def measure_cost(
    axes: Sequence[Axis], run: Callable[[Point], float], traffic: Traffic, options: GridOptions
) -> MeasuredCost:
    """Measure.

    Corners come first. Then every gap of every axis is looked at once in its middle, and the gap where interpolation is
    furthest off, counted by the traffic that lies in it, is split; again and again, until nothing is off by more than
    the noise or the time for it is over. What is left goes to runs of all grid points, and of sizes of the traffic that
    are not on the grid, in turns and in another order each time.

    Args:
        axes: one for each symbol, in the order of the traffic's.
        run: runs once at these sizes and returns the seconds; its first run at a size is thrown away.
        traffic: where accuracy matters.
        options: how long.
    """
    start_s = options.clock()

    def spent(share: float) -> bool:
        return options.clock() - start_s > share * options.budget_s

    times = _Times(run)
    grid = [sorted({axis.low, axis.high}) for axis in axes]
    for point in reversed(list(product(*grid))):  # the largest first: memory grows once
        times.visit(point, FIRST_RUNS)
    _refine(axes, grid, times, traffic, lambda: spent(_GRID_SHARE))
    points = list(product(*grid))
    apart = _apart(axes, traffic, set(times.by_point))
    _rounds(times, [*points, *apart], np.random.default_rng(options.seed), lambda: spent(1.0))
    kept = {point: without_outliers(values) for point, values in times.by_point.items()}
    medians = np.array([statistics.median(kept[point]) for point in points]).reshape([len(sizes) for sizes in grid])
    model = measured_cost([axis.symbol for axis in axes], grid, medians)
    seen = [point for point in apart if point in kept]
    error = held_out(model, seen, [statistics.median(kept[point]) for point in seen]) if seen else None
    runs = sum(map(len, times.by_point.values()))
    return MeasuredCost(
        replace(model, held_out=error),
        runs,
        runs - sum(map(len, kept.values())),
        statistics.median(_spread(kept[point]) for point in points),
    )


def _rounds(times: _Times, points: Sequence[Point], rng: np.random.Generator, over: Callable[[], bool]) -> None:
    """Run all points in turns until the time is over."""
    for _ in range(_MOST_RUNS):
        for i in rng.permutation(len(points)):
            if over():
                return
            times.again(points[i])


def without_outliers(values: Sequence[float]) -> list[float]:
    """Leave out times far above the median: something else had the processor. At least half of them stay."""
    middle = statistics.median(values)
    deviation = statistics.median(abs(value - middle) for value in values)
    sigma = max(_MAD_TO_SIGMA * deviation, _LEAST_SIGMA * middle)
    return [value for value in values if value <= middle + _OUTLIER_MADS * sigma]


def unsteady(error: HeldOut | None) -> bool:
    """Whether costs are too far off to tell ladders apart well; not where none were compared."""
    return error is not None and (error.median > LARGE_MEDIAN or error.worst > LARGE_WORST)


def unsteadiness(error: HeldOut | None, measure_s: float) -> str:
    """Say that costs are too far off, and the way out; nothing where they are not.

    Args:
        error: at sizes that were kept apart.
        measure_s: seconds that measuring had.
    """
    if error is None or not unsteady(error):
        return ""
    return (
        f"costs on this machine were unsteady: at sizes that were kept apart they are off by {error.median:.0%} in "
        f"the middle, {error.worst:.0%} at worst, and the choice is only as good as they are; measure longer with "
        f"--measure-seconds {longer_s(measure_s):g}, and let nothing else run meanwhile"
    )


def longer_s(measure_s: float) -> float:
    """Seconds that may be enough where so many were not."""
    return max(MEASURE_S, 2 * measure_s)


def analytic_cost(axes: Sequence[Axis], seconds: Callable[[Point], float], points: int = 9) -> CostModel:
    """Make a cost model of a function that is known exactly: an even grid, in proportions.

    Args:
        axes: one for each symbol.
        seconds: at these sizes.
        points: of each axis, at most.
    """
    grid = tuple(_even(axis, points) for axis in axes)
    table = np.array([seconds(point) for point in product(*grid)]).reshape([len(sizes) for sizes in grid])
    costs = monotone_grid(table)
    return CostModel(tuple(axis.symbol for axis in axes), grid, tuple(map(float, costs.ravel())), "analytic")


def _even(axis: Axis, points: int) -> tuple[int, ...]:
    wanted = np.geomspace(axis.low, axis.high, points)
    inside = {round(size / axis.step) * axis.step for size in wanted}
    return tuple(sorted({axis.low, axis.high} | {size for size in inside if axis.low < size < axis.high}))


def _refine(
    axes: Sequence[Axis], grid: list[list[int]], times: _Times, traffic: Traffic, over: Callable[[], bool]
) -> None:
    """Split gaps of the grid in place."""
    masses = [traffic.marginal(axis.symbol) for axis in axes]
    known: dict[tuple[int, int, int], tuple[float, int]] = {}
    while not over():
        for column, axis in enumerate(axes):
            for a, b in zip(grid[column][:-1], grid[column][1:], strict=True):
                middle = axis.between(a, b)
                if middle is None or (column, a, b) in known or over():
                    continue
                known[column, a, b] = (_off(grid, times, column, (a, middle, b)), middle)
        best, where = 0.0, None
        for (column, a, b), (off, middle) in known.items():
            if b not in grid[column] or grid[column][grid[column].index(b) - 1] != a:
                continue  # was split
            sizes, weights = masses[column]
            share = float(weights[(sizes > a) & (sizes <= b)].sum() / weights.sum())
            if off > _CLOSE_ENOUGH and off * (share + _EVERYWHERE) > best:
                best, where = off * (share + _EVERYWHERE), (column, middle)
        if where is None or np.prod([len(sizes) for sizes in grid]) > _MOST_POINTS:
            return
        column, middle = where
        grid[column] = sorted([*grid[column], middle])
        for point in product(*(sizes if i != column else [middle] for i, sizes in enumerate(grid))):
            times.visit(point, FIRST_RUNS)


def _off(grid: Sequence[Sequence[int]], times: _Times, column: int, gap: tuple[int, int, int]) -> float:
    """How far interpolation is off in the middle of a gap, less the noise; every other symbol at its largest."""
    low, middle, high = (
        (*(sizes[-1] for sizes in grid[:column]), size, *(sizes[-1] for sizes in grid[column + 1 :])) for size in gap
    )
    low_s, middle_s, high_s = (times.visit(point, FIRST_RUNS) for point in (low, middle, high))
    share = (gap[1] - gap[0]) / (gap[2] - gap[0])
    expected_s = low_s + (high_s - low_s) * share
    noise = max(times.noise(point) for point in (low, middle, high))
    return abs(expected_s - middle_s) / max(middle_s, 1e-9) - 2 * noise


def _apart(axes: Sequence[Axis], traffic: Traffic, used: set[Point]) -> list[Point]:
    """Sizes of the traffic that were not measured, evenly over its weight, the middle of it first."""
    inside = np.all([(c >= a.low) & (c <= a.high) for c, a in zip(traffic.sizes.T, axes, strict=True)], axis=0)
    rows = [i for i in np.flatnonzero(inside) if tuple(map(int, traffic.sizes[i])) not in used]
    if not rows:
        return []
    reached = np.cumsum(traffic.weights[rows])
    wanted = (np.arange(_MOST_HELD_OUT) + 0.5) / _MOST_HELD_OUT * reached[-1]
    chosen = dict.fromkeys(int(rows[min(i, len(rows) - 1)]) for i in np.searchsorted(reached, wanted))
    ordered = sorted(chosen, key=lambda i: abs(list(chosen).index(i) - len(chosen) / 2))
    return [tuple(map(int, traffic.sizes[i])) for i in ordered]


def _spread(values: Sequence[float]) -> float:
    if len(values) < 2:  # noqa: PLR2004 (quartiles need two)
        return 0.0
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return (high - low) / middle if middle else 0.0
