"""Cost models from figures: measured ones made monotone, counted ones taken as they are, and how far off they are."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy as np

from trtc.profiles.cost import CostModel, HeldOut
from trtc.profiles.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from trtc.profiles.traffic import FloatArray

_LEAST_S = 1e-12


def monotone_grid(table: npt.ArrayLike) -> FloatArray:
    """Make the nearest costs that never fall along any axis: the largest change, as a ratio, is as small as can be.

    Each point becomes the geometric mean of the largest cost at or below it and the smallest at or above it. A pair
    that is out of order has to meet somewhere between, and the middle moves the two least; so no monotone table has a
    smaller largest ratio (isotonic regression in the maximum norm, of logarithms). Costs in order stay as they are.

    Args:
        table: positive seconds, one axis for each symbol, sizes ascending.

    Raises:
        UsageError: for costs that are not positive and finite.
    """
    costs = np.asarray(table, np.float64)
    if not (np.isfinite(costs).all() and (costs > 0).all()):
        raise UsageError("a measured cost is zero, negative, NaN or infinite; measure that size again")
    floor, ceiling = costs, costs
    for axis in range(costs.ndim):
        floor = np.maximum.accumulate(floor, axis=axis)
        ceiling = np.flip(np.minimum.accumulate(np.flip(ceiling, axis), axis=axis), axis)
    middle = np.sqrt(floor) * np.sqrt(ceiling)
    fitted: FloatArray = np.where(floor == ceiling, costs, middle)
    for axis in range(costs.ndim):
        fitted = np.maximum.accumulate(fitted, axis=axis)
    return fitted


def measured_cost(symbols: Sequence[str], grid: Sequence[Sequence[int]], table: npt.ArrayLike) -> CostModel:
    """Make a cost model of seconds that were measured on a grid.

    Args:
        symbols: one for each axis.
        grid: ascending sizes of each symbol.
        table: seconds, [sizes of the first symbol, sizes of the second, ...].

    Raises:
        UsageError: as ``monotone_grid`` and ``CostModel`` do, or where the table has another shape than the grid.
    """
    _check_shape(grid, np.asarray(table).shape)
    costs = monotone_grid(table)
    return CostModel(tuple(symbols), tuple(map(tuple, grid)), tuple(map(float, costs.ravel())), "measured")


def analytic_cost(
    symbols: Sequence[str],
    grid: Sequence[Sequence[int]],
    operations: npt.ArrayLike,
    operations_per_s: float,
    overhead_s: float = 0.0,
) -> CostModel:
    """Make a cost model of operation counts: right in shape, but its scale is only as good as ``operations_per_s``.

    Args:
        symbols: one for each axis.
        grid: ascending sizes of each symbol.
        operations: of one run at each point of the grid.
        operations_per_s: what the target does in a second.
        overhead_s: seconds of every run, whatever its sizes.

    Raises:
        UsageError: for a rate that is not positive, or as ``measured_cost`` does.
    """
    if not operations_per_s > 0:
        raise UsageError(f"{operations_per_s} operations a second; give a positive rate")
    counts = np.asarray(operations, np.float64)
    _check_shape(grid, counts.shape)
    costs = monotone_grid(np.maximum(overhead_s + counts / operations_per_s, _LEAST_S))
    return CostModel(tuple(symbols), tuple(map(tuple, grid)), tuple(map(float, costs.ravel())), "analytic")


def held_out(cost: CostModel, sizes: npt.ArrayLike, seconds: npt.ArrayLike) -> HeldOut:
    """Compare a cost model with measurements that it was not made of.

    Args:
        cost: the model.
        sizes: [n, k], a column for each symbol of the model.
        seconds: [n], positive.

    Raises:
        UsageError: for seconds that are not positive, or another number of them.
    """
    measured = np.asarray(seconds, np.float64)
    if not len(measured):
        return HeldOut(0, 0.0, 0.0)
    predicted = cost.seconds(sizes)
    if len(predicted) != len(measured) or not (measured > 0).all():
        raise UsageError(f"{len(measured)} measurements for {len(predicted)} sizes; give positive seconds for each")
    error = np.abs(predicted - measured) / measured
    return HeldOut(len(error), float(np.median(error)), float(error.max()))


def _check_shape(grid: Sequence[Sequence[int]], shape: tuple[int, ...]) -> None:
    if shape != tuple(map(len, grid)):
        raise UsageError(
            f"a table of shape {list(shape)} for a grid of {prod(map(len, grid))} points, "
            f"{[len(axis) for axis in grid]}; give one figure for each point"
        )
