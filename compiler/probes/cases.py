"""Which sizes an experiment on padding runs at: decided here, run elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trtc.profiles import Ladder, Range, Sizes

_OPEN_PAIRS = ((1, 2), (2, 5), (5, 6), (3, 4), (1, 4), (7, 10), (13, 16), (29, 32))
"""Real and padded sizes where a range has no upper end, counted from its lower end."""
_OTHER_SIZES = (2, 1, 3)
"""Sizes of the symbols that a rule does not pad: small, and two before one, since one row cannot be mixed up."""


@dataclass(frozen=True, slots=True)
class PadCase:
    """One experiment: real sizes, and the sizes to run at."""

    sizes: dict[str, int]
    run_sizes: dict[str, int]


def pad_cases(ladder: Ladder, symbols: Sequence[str], max_cases: int) -> tuple[PadCase, ...]:
    """Choose sizes for padding ``symbols`` together.

    Every profile contributes its bucket, with a size of one, with one and three elements of padding, and with half;
    and small sizes with one and three elements of padding. When there are more than ``max_cases``, each profile
    keeps its first ones.
    """
    columns = []
    for profile in ladder.profiles:
        pairs = {symbol: _pairs(profile.ranges[symbol]) for symbol in symbols if symbol in profile.ranges}
        count = max((len(found) for found in pairs.values()), default=0)
        if len(pairs) < len(symbols) or any(not found for found in pairs.values()):
            continue
        column = []
        for k in range(count):
            sizes = {name: _small(r, k) for name, r in profile.ranges.items()}
            run_sizes = dict(sizes)
            for i, (symbol, found) in enumerate(pairs.items()):
                sizes[symbol], run_sizes[symbol] = found[(k + i) % len(found)]
            column.append(PadCase(sizes, run_sizes))
        columns.append(column)
    seen: dict[tuple[tuple[int, ...], tuple[int, ...]], PadCase] = {}
    for row in zip_longest(*columns):
        for case in row:
            if case is not None:
                seen.setdefault((tuple(case.sizes.values()), tuple(case.run_sizes.values())), case)
    return tuple(seen.values())[:max_cases]


def bucket_cases(ladder: Ladder, symbols: Sequence[str], sizes: Sizes) -> tuple[PadCase, ...]:
    """Choose the padded sizes for a real request: its bucket, and one and three elements of padding."""
    grown: list[dict[str, int]] = []
    fitting = [p for p in ladder.profiles if p.fits(sizes, frozenset(symbols))]
    if fitting:
        grown.append(fitting[0].run_sizes(sizes, frozenset(symbols), to_bucket=True))
    grown += [{**sizes, **{symbol: sizes[symbol] + more for symbol in symbols}} for more in (1, 3)]
    return tuple(
        PadCase(dict(sizes), run_sizes)
        for run_sizes in grown
        if any(run_sizes[symbol] > sizes[symbol] > 0 for symbol in symbols)
    )


def _pairs(r: Range) -> list[tuple[int, int]]:
    """Choose (real, padded) sizes in a range; padded ones stay inside, real ones may lie below it."""
    low = max(1, r.min)
    if r.max is None:
        found = [(low - 1 + real, low - 1 + padded) for real, padded in _OPEN_PAIRS]
        return [*found[:2], (1, low), *found[2:]] if low > 1 else found
    top = r.max
    wanted = [
        (1, top),
        (top - 1, top),
        (top - 3, top),
        ((low + top) // 2, top),
        (low, low + 1),
        (low, low + 3),
        (low + 1, low + 2),
        ((low + top) // 2, (low + top) // 2 + 1),
        (top - 2, top - 1),
        (1, low),
    ]
    return list(dict.fromkeys((real, padded) for real, padded in wanted if 1 <= real < padded <= top))


def _small(r: Range, k: int) -> int:
    size = _OTHER_SIZES[k % len(_OTHER_SIZES)]
    return max(r.min, size if r.max is None else min(size, r.max))
