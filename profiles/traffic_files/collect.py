"""Counts requests by their joint size, in bounded memory, whatever they come from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from trtc.profiles.errors import UsageError
from trtc.profiles.nearest import unknown_name
from trtc.profiles.traffic import Arrivals, Traffic, traffic_from_rows

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from trtc.profiles.traffic import FloatArray, IntArray

MOST_DISTINCT = 1 << 18
"""Distinct joint sizes that are kept: about 60 MB. With more, all are rounded up to fewer significant bits."""
MOST_ARRIVALS = 1 << 16
"""Arrival times that are kept: about 10 MB. With more, every second is dropped, and so on."""
MAX_SIZE = 2**31 - 1
_MOST_BITS = 31
_FEWEST_BITS = 3
_MOST_COUNT = 1e18


class Collector:
    """Counts requests.

    When more than ``MOST_DISTINCT`` joint sizes come, every size is rounded up to 8 significant bits (at most 0.8 %
    more), then 7, and so on down to 3, but never above the largest size of its symbol. The result depends on which
    sizes came, not on their order.

    Args:
        known: symbols that the model has; None allows any.

    Attributes:
        requests: how many came so far, counts included.
        bits: significant bits that sizes are kept with.
        passed_over: requests of other models, by digest: name of the model file, and how many.
    """

    def __init__(self, known: Collection[str] | None) -> None:
        self.requests = 0
        self.bits = _MOST_BITS
        self.passed_over: dict[str, tuple[str, int]] = {}
        self._known = known
        self._symbols: tuple[str, ...] = ()
        self._first = ""
        self._weights: dict[tuple[int, ...], float] = {}
        self._peak: list[int] = []
        self._times: list[tuple[float, tuple[int, ...]]] = []
        self._timed = 0
        self._every = 1
        self._span = (float("inf"), float("-inf"))

    def add(self, sizes: Mapping[str, object], weight: object, time_s: object, where: object, repeats: int = 1) -> None:
        """Count one request, or several alike.

        Args:
            sizes: of each symbol; checked here.
            weight: how many.
            time_s: when it came; None where that is not known.
            where: says file and line, for errors; made into text only then.
            repeats: how often the same entry stood in the file.

        Raises:
            UsageError: for symbols that are unknown or differ from those before, and values that are no sizes.
        """
        if not sizes or tuple(sizes) != self._symbols:
            sizes = self._ordered(sizes, where)
        row = tuple([_size(symbol, size, where) for symbol, size in sizes.items()])
        count = _weight(weight, where)
        self._count(row, count * repeats)
        self.requests += max(round(count), 1) * repeats
        if time_s is not None:
            at = _time(time_s, where)
            for _ in range(repeats):
                self._arrived(at, row)

    def add_block(self, symbols: Sequence[str], sizes: IntArray, weights: FloatArray | None, where: object) -> None:
        """Count many requests whose values were checked: int64 [n, k] and float64 [n] (1 each without)."""
        places = {symbol: i for i, symbol in enumerate(symbols)}
        order = [places[symbol] for symbol in self._ordered(dict.fromkeys(symbols), where)]
        ordered = sizes[:, order]
        keys = _keys(ordered)
        _, first, inverse = np.unique(keys, axis=0, return_index=True, return_inverse=True)
        counts = np.bincount(inverse.ravel(), weights, len(first))
        for row, count in zip(ordered[first].tolist(), counts.tolist(), strict=True):
            self._count(tuple(row), count)
        self.requests += len(sizes) if weights is None else max(round(float(weights.sum())), 1)

    def traffic(self, where: str) -> Traffic:
        """Return what was counted.

        Raises:
            UsageError: when nothing came.
        """
        if not self._weights:
            raise UsageError(f"{where}: there is no request in it; record or write at least one")
        peak = np.array(self._peak, np.int64)
        rows = np.minimum(np.array(list(self._weights), np.int64), peak)
        counted = traffic_from_rows(self._symbols, rows, list(self._weights.values()), self.requests)
        if not self._times:
            return counted
        self._times.sort(key=lambda pair: pair[0])
        at = {tuple(row): i for i, row in enumerate(counted.sizes.tolist())}
        kept = [at[tuple(np.minimum(self._rounded(row), peak).tolist())] for _, row in self._times]
        arrivals = Arrivals(
            self._timed, *self._span, np.array([t for t, _ in self._times]), np.array(kept, np.int64), self._every
        )
        return Traffic(counted.symbols, counted.sizes, counted.weights, self.requests, arrivals)

    def _ordered(self, sizes: Mapping[str, object], where: object) -> Mapping[str, object]:
        """Put symbols in the order of the first request."""
        if not self._symbols:
            if not sizes:
                raise UsageError(f'{where}: no symbol has a size; write one for each, such as {{"seq": 37}}')
            for symbol in sizes:
                if self._known is not None and symbol not in self._known:
                    raise UsageError(f"{where}: {unknown_name('symbol', symbol, self._known)}; rename or remove it")
            order = list(self._known) if self._known is not None else list(sizes)
            self._symbols = tuple(s for s in order if s in sizes)
            self._first, self._peak = str(where), [0] * len(sizes)
        if sizes.keys() != set(self._symbols):
            raise UsageError(
                f"{where}: sizes of {_listed(sizes)}, but {self._first} has {_listed(self._symbols)}; "
                "give the same symbols with every request"
            )
        return {symbol: sizes[symbol] for symbol in self._symbols}

    def _count(self, row: tuple[int, ...], count: float) -> None:
        kept = row if self.bits == _MOST_BITS else self._rounded(row)
        known = self._weights.get(kept)
        if known is None or self.bits < _MOST_BITS:
            self._peak = [max(a, b) for a, b in zip(self._peak, row, strict=True)]
        self._weights[kept] = count if known is None else known + count
        while len(self._weights) > MOST_DISTINCT and self.bits > _FEWEST_BITS:
            self.bits = min(self.bits, 9) - 1
            rounded: dict[tuple[int, ...], float] = {}
            for sizes, weight in self._weights.items():
                again = self._rounded(sizes)
                rounded[again] = rounded.get(again, 0.0) + weight
            self._weights = rounded
        if len(self._weights) > MOST_DISTINCT:
            raise UsageError(
                f"more than {MOST_DISTINCT} different joint sizes of {len(row)} symbols, even in steps of an eighth; "
                "keep only the symbols that matter"
            )

    def _rounded(self, row: tuple[int, ...]) -> tuple[int, ...]:
        return tuple([_round_up(size, self.bits) for size in row])

    def _arrived(self, time_s: float, row: tuple[int, ...]) -> None:
        if self._timed % self._every == 0:
            self._times.append((time_s, row))
            if len(self._times) > MOST_ARRIVALS:
                self._times, self._every = self._times[::2], self._every * 2
        self._timed += 1
        self._span = (min(self._span[0], time_s), max(self._span[1], time_s))


def _keys(sizes: IntArray) -> IntArray:
    """One number for each row, different for different rows; the rows themselves where no int64 holds it."""
    key = np.zeros(len(sizes), np.int64)
    room = 1
    for column in sizes.T:
        step = int(column.max(initial=0)) + 1
        room *= step
        if room >= 1 << 63:
            return sizes
        key = key * step + column
    return key


def _round_up(size: int, bits: int) -> int:
    shift = max(size.bit_length() - bits, 0)
    return -(-size >> shift) << shift if shift else size


def _size(symbol: str, value: object, where: object) -> int:
    if type(value) is not int or not 1 <= value <= MAX_SIZE:
        raise UsageError(f"{where}: {symbol} is {_shown(value)}; sizes are whole numbers from 1 to {MAX_SIZE}")
    return value


def _weight(value: object, where: object) -> float:
    if isinstance(value, (int, float)) and value is not True and 0 < value <= _MOST_COUNT:
        return float(value)
    raise UsageError(f"{where}: the count is {_shown(value)}; counts are positive numbers, up to {_MOST_COUNT:g}")


def _time(value: object, where: object) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool) and -_MOST_COUNT <= value <= _MOST_COUNT:
        return float(value)
    raise UsageError(f"{where}: time_s is {_shown(value)}; times are seconds, as a number")


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:40] + "..."  # noqa: PLR2004 - enough to find it


def _listed(symbols: Collection[str]) -> str:
    return ", ".join(symbols) or "nothing"
