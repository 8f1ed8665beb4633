"""Traffic: how often each joint size was requested, and when."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from trtc.profiles.errors import UsageError
from trtc.profiles.nearest import unknown_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    IntArray: TypeAlias = npt.NDArray[np.int64]
    FloatArray: TypeAlias = npt.NDArray[np.float64]
    BoolArray: TypeAlias = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Arrivals:
    """When requests came: all of them, or an even sample of many.

    Attributes:
        count: requests whose time is known.
        first_s: the earliest time, in seconds from any origin.
        last_s: the latest.
        times_s: float64 [m], ascending: of the sampled requests.
        rows: int64 [m]: the row of ``Traffic.sizes`` that each asked for.
        every: one request in this many stands in the sample; 1 when all do.

    Raises:
        UsageError: for arrays of unequal length, times that are not finite or go back, or times outside
            ``first_s`` to ``last_s``.
    """

    count: int
    first_s: float
    last_s: float
    times_s: FloatArray
    rows: IntArray
    every: int = 1

    def __post_init__(self) -> None:
        times = self.times_s
        ordered = bool(np.isfinite(times).all() and (times[1:] >= times[:-1]).all())
        inside = not len(times) or (self.first_s <= times[0] and times[-1] <= self.last_s)
        if len(times) != len(self.rows) or not ordered or not inside or self.count < len(times) or self.every < 1:
            raise UsageError(
                f"{len(times)} arrival times for {len(self.rows)} rows of {self.count} requests between {self.first_s} "
                f"and {self.last_s} s are not a sample of them; give finite, ascending times with one row each"
            )


@dataclass(frozen=True, slots=True, eq=False)
class Traffic:
    """Distinct joint sizes with their weights. Two are the same traffic when their ``digest`` is.

    Attributes:
        symbols: names of the columns of ``sizes``.
        sizes: int64 [n, k], positive; rows are distinct and in ascending order (first symbol first).
        weights: float64 [n], positive and finite: how often each row was requested, in any unit.
        requests: how many requests this was counted from; 0 where it describes a distribution.
        arrivals: when the requests came, where that is known.

    Raises:
        UsageError: for no symbol, no row, repeated symbols, arrays whose shapes disagree, sizes that are not positive,
            weights that are not positive and finite, or rows that repeat or are out of order. ``traffic_from_rows``
            sorts and joins rows.
    """

    symbols: tuple[str, ...]
    sizes: IntArray
    weights: FloatArray
    requests: int = 0
    arrivals: Arrivals | None = None

    def __post_init__(self) -> None:
        if not self.symbols or len(set(self.symbols)) != len(self.symbols):
            raise UsageError(f"traffic needs one or more symbols with different names, not {list(self.symbols)}")
        shape, count = self.sizes.shape, len(self.weights)
        if shape != (count, len(self.symbols)) or self.sizes.dtype != np.int64 or self.weights.dtype != np.float64:
            raise UsageError(
                f"traffic over {len(self.symbols)} symbols has sizes {self.sizes.dtype} {list(shape)} and weights "
                f"{self.weights.dtype} [{count}]; give int64 [n, {len(self.symbols)}] and float64 [n]"
            )
        if not count:
            raise UsageError("traffic holds no request at all; record or count at least one")
        if self.sizes.min() < 1:
            raise UsageError(f"traffic holds the size {self.sizes.min()}; sizes are whole numbers of 1 or more")
        if not (np.isfinite(self.weights).all() and self.weights.min() > 0):
            raise UsageError(
                "traffic holds a weight that is negative, zero, NaN or infinite; weights are positive numbers"
            )
        if not _ascending(self.sizes):
            raise UsageError("rows of traffic repeat or are out of order; traffic_from_rows sorts and joins them")
        self.sizes.setflags(write=False)
        self.weights.setflags(write=False)

    @property
    def total(self) -> float:
        """The sum of all weights."""
        return float(self.weights.sum())

    @property
    def digest(self) -> str:
        """SHA-256 of symbols, sizes and each row's share (rounded to 12 digits), as 64 hex digits."""
        shares = np.round(self.weights / self.total, 12)
        content = hashlib.sha256("\0".join(self.symbols).encode())
        content.update(self.sizes.astype("<i8").tobytes())
        content.update(shares.astype("<f8").tobytes())
        return content.hexdigest()

    def column(self, symbol: str) -> int:
        """Return the column of a symbol.

        Raises:
            UsageError: when this traffic does not have it; the nearest name is offered.
        """
        if symbol not in self.symbols:
            raise UsageError(f"traffic has an {unknown_name('symbol', symbol, self.symbols)}")
        return self.symbols.index(symbol)

    def restricted(self, symbols: Sequence[str]) -> Traffic:
        """Keep these symbols only, in this order; rows that become equal are joined.

        Raises:
            UsageError: as ``column`` does.
        """
        columns = [self.column(symbol) for symbol in symbols]
        sizes, inverse = np.unique(self.sizes[:, columns], axis=0, return_inverse=True)
        weights = np.bincount(inverse.ravel(), self.weights, len(sizes)).astype(np.float64)
        arrivals = self.arrivals
        if arrivals is not None:
            rows = inverse.ravel()[arrivals.rows].astype(np.int64)
            arrivals = Arrivals(
                arrivals.count, arrivals.first_s, arrivals.last_s, arrivals.times_s, rows, arrivals.every
            )
        return Traffic(tuple(symbols), np.ascontiguousarray(sizes), weights, self.requests, arrivals)

    def marginal(self, symbol: str) -> tuple[IntArray, FloatArray]:
        """Return the distinct sizes of one symbol, ascending, int64 [m], and their weights, float64 [m].

        Raises:
            UsageError: as ``column`` does.
        """
        one = self.restricted([symbol])
        return one.sizes[:, 0], one.weights

    def quantiles(self, symbol: str, shares: Sequence[float]) -> tuple[int, ...]:
        """For each share, the smallest size that at least this share of the weight does not exceed.

        Args:
            symbol: whose sizes.
            shares: each from 0 to 1.

        Raises:
            UsageError: as ``column`` does, or for a share outside 0 to 1.
        """
        if not all(0 <= share <= 1 for share in shares):
            raise UsageError(f"quantiles {list(shares)}: each is a share from 0 to 1")
        sizes, weights = self.marginal(symbol)
        reached = np.cumsum(weights) / weights.sum()
        at = np.searchsorted(reached, np.asarray(shares) - 1e-12)
        return tuple(int(sizes[min(i, len(sizes) - 1)]) for i in at)


def traffic_from_rows(
    symbols: Sequence[str],
    sizes: npt.ArrayLike,
    weights: npt.ArrayLike | None = None,
    requests: int | None = None,
) -> Traffic:
    """Sort rows, and join those that are equal.

    Args:
        symbols: names of the columns.
        sizes: [n, k], whole numbers; repeats are welcome.
        weights: [n]; each row counts 1 without it.
        requests: how many requests these are; the number of rows without it.

    Raises:
        UsageError: as ``Traffic`` does.
    """
    table = np.asarray(sizes)
    if table.dtype.kind not in "iu" or table.ndim != 2:  # noqa: PLR2004 - rows and columns
        raise UsageError(f"sizes are {table.dtype} {list(table.shape)}; give whole numbers, one row a request")
    counts = np.ones(len(table)) if weights is None else np.asarray(weights, np.float64)
    if len(counts) != len(table):
        raise UsageError(f"{len(counts)} weights for {len(table)} rows of sizes; give one for each")
    if not (np.isfinite(counts).all() and (counts > 0).all()):
        raise UsageError("traffic holds a weight that is negative, zero, NaN or infinite; weights are positive numbers")
    distinct, inverse = np.unique(table.astype(np.int64), axis=0, return_inverse=True)
    joined = np.bincount(inverse.ravel(), counts, len(distinct)).astype(np.float64)
    return Traffic(tuple(symbols), distinct, joined, len(table) if requests is None else requests)


def _ascending(sizes: IntArray) -> bool:
    """Tell whether rows are distinct and in lexicographic order: the first column that differs must grow."""
    steps = np.diff(sizes, axis=0)
    first = np.argmax(steps != 0, axis=1)
    return bool((steps[np.arange(len(steps)), first] > 0).all())
