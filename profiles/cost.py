"""The cost model: seconds of one run as a monotone function of its sizes."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise, product
from math import isfinite, prod
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from trtc.profiles.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

CostSource: TypeAlias = Literal["measured", "analytic"]


@dataclass(frozen=True, slots=True)
class HeldOut:
    """How far a cost model is off at sizes that it was not fitted to.

    Attributes:
        count: sizes that were compared; 0 where none were.
        median: of ``abs(predicted - measured) / measured``.
        worst: the largest of these.
    """

    count: int
    median: float
    worst: float


@dataclass(frozen=True, slots=True)
class CostModel:
    """Seconds of one run, on a grid of sizes and between its points.

    Between grid points the cost is interpolated linearly in each symbol. Below the smallest grid size it stays what
    it is there; above the largest it grows in proportion to the size (work that grows faster is underestimated:
    measure up to the largest size that is served). It never falls when a size grows, and never is negative.

    Attributes:
        symbols: in the order of ``grid`` and of the columns given to ``seconds``.
        grid: ascending sizes of each symbol, at least one.
        grid_s: seconds at every combination, the last symbol fastest.
        source: ``measured`` on the target; or ``analytic``: from operation counts, right in shape only.
        held_out: its error at sizes that were kept apart; None where nothing was compared.

    Raises:
        UsageError: for a grid that is not ascending or not of positive sizes, a number of costs that does not match,
            costs that are negative or not finite, or costs that fall when a size grows (``monotone_grid`` mends that).
    """

    symbols: tuple[str, ...]
    grid: tuple[tuple[int, ...], ...]
    grid_s: tuple[float, ...]
    source: CostSource
    held_out: HeldOut | None = None

    def __post_init__(self) -> None:
        if not self.symbols or len(self.grid) != len(self.symbols) or len(set(self.symbols)) != len(self.symbols):
            raise UsageError(f"a cost model over {list(self.symbols)} needs one grid for each symbol")
        for symbol, axis in zip(self.symbols, self.grid, strict=True):
            if not axis or axis[0] < 1 or any(a >= b for a, b in pairwise(axis)):
                raise UsageError(f"grid of {symbol}: {list(axis)}; give ascending sizes of 1 or more")
        if len(self.grid_s) != prod(map(len, self.grid)):
            raise UsageError(
                f"{len(self.grid_s)} costs for a grid of {prod(map(len, self.grid))} points; give one each"
            )
        if not all(isfinite(s) and s >= 0 for s in self.grid_s):
            raise UsageError("a cost is negative, NaN or infinite; costs are seconds of 0 or more")
        table = self.table
        for at in range(table.ndim):
            if (np.diff(table, axis=at) < 0).any():
                raise UsageError(
                    f"costs fall where {self.symbols[at]} grows; monotone_grid makes the nearest costs that do not"
                )

    @property
    def table(self) -> npt.NDArray[np.float64]:
        """The costs as float64 [grid of the first symbol, grid of the second, ...]."""
        return np.asarray(self.grid_s, np.float64).reshape([len(axis) for axis in self.grid])

    def seconds(self, sizes: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return the cost of one run at each row of sizes.

        Args:
            sizes: [n, k], one column for each of ``symbols``.

        Returns:
            float64 [n], seconds.

        Raises:
            UsageError: for another number of columns.
        """
        points = np.asarray(sizes, np.float64)
        if points.ndim != 2 or points.shape[1] != len(self.symbols):  # noqa: PLR2004 - rows and columns
            raise UsageError(f"sizes {list(points.shape)} for a cost over {len(self.symbols)} symbols; give [n, k]")
        table, cost = self.table, np.zeros(len(points))
        beyond = np.ones(len(points))
        low, share = [], []
        for column, axis in enumerate(self.grid):
            grid = np.asarray(axis, np.float64)
            inside = np.clip(points[:, column], grid[0], grid[-1])
            beyond *= np.maximum(points[:, column] / grid[-1], 1.0)
            at = np.clip(np.searchsorted(grid, inside, side="right") - 1, 0, max(len(grid) - 2, 0))
            low.append(at)
            share.append((inside - grid[at]) / (grid[at + 1] - grid[at]) if len(grid) > 1 else np.zeros(len(points)))
        for corner in product((0, 1), repeat=len(self.grid)):
            weight = np.ones(len(points))
            for side, part in zip(corner, share, strict=True):
                weight *= part if side else 1.0 - part
            index = tuple(
                np.minimum(at + side, len(axis) - 1) for at, side, axis in zip(low, corner, self.grid, strict=True)
            )
            cost += weight * table[index]
        return cost * beyond


def element_cost(symbols: Sequence[str]) -> CostModel:
    """Return the cost that counts elements: the product of all sizes. Planning with it minimises padding waste."""
    return CostModel(tuple(symbols), ((1,),) * len(symbols), (1.0,), "analytic")
