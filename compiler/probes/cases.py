"""Which sizes an experiment on padding runs at: decided here, run elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trtc.compiler.probes.subject import Subject
    from trtc.profiles import Range, Sizes

_OPEN_PAIRS = ((1, 2), (2, 5), (5, 6), (3, 4), (1, 4), (7, 10), (13, 16), (29, 32))
"""Real and padded sizes where a range has no upper end, counted from its lower end."""
_PARTS = (0.37, 0.81)
"""Real sizes as parts of a bucket, beside its half."""
_OTHER_SIZES = (2, 1, 3)
"""Sizes of the symbols that a rule does not pad: small, and two before one, since one row cannot be mixed up."""


@dataclass(frozen=True, slots=True)
class PadCase:
    """One experiment: real sizes, and the sizes to run at."""

    sizes: dict[str, int]
    run_sizes: dict[str, int]


def pad_cases(subject: Subject, symbols: Sequence[str], max_cases: int) -> tuple[PadCase, ...]:
    """Choose sizes for padding ``symbols`` together.

    Every profile contributes its bucket, with a size of one, with one and three elements of padding, and with half;
    and small sizes with one and three elements of padding. Where sizes must be multiples of a number, it is the
    element that is counted. When there are more than ``max_cases``, each profile keeps its first ones.
    """
    columns = []
    for profile in subject.ladder.profiles:
        pairs = {s: _pairs(profile.ranges[s], _unit(subject, s)) for s in symbols if s in profile.ranges}
        count = max((len(found) for found in pairs.values()), default=0)
        if len(pairs) < len(symbols) or any(not found for found in pairs.values()):
            continue
        column = []
        for k in range(count):
            sizes = {name: small_size(r, k, _unit(subject, name)) for name, r in profile.ranges.items()}
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


def sample_cases(subject: Subject, symbols: Sequence[str], sizes: Sizes) -> tuple[PadCase, ...]:
    """Choose the padded sizes for a real request: its bucket, and one and three elements of padding."""
    padded = frozenset(symbols)
    grown = [p.run_sizes(sizes, padded, to_bucket=True) for p in subject.ladder.profiles if p.fits(sizes, padded)][:1]
    grown += [{**sizes, **{s: sizes[s] + more * _unit(subject, s) for s in symbols}} for more in (1, 3)]
    return tuple(
        PadCase(dict(sizes), run_sizes)
        for run_sizes in grown
        if any(run_sizes[symbol] > sizes[symbol] > 0 for symbol in symbols)
    )


def small_size(r: Range, k: int, unit: int = 1) -> int:
    """Choose the ``k``-th small size of a range, in multiples of ``unit``."""
    size = _OTHER_SIZES[k % len(_OTHER_SIZES)] * unit
    return max(_lowest(r, unit), size if r.max is None else min(size, r.max // unit * unit))


def _pairs(r: Range, unit: int) -> list[tuple[int, int]]:
    """Choose (real, padded) sizes in a range; padded ones stay inside, real ones may lie below it."""
    low = max(1, _lowest(r, unit) // unit)
    if r.max is None:
        wanted = [(low - 1 + real, low - 1 + padded) for real, padded in _OPEN_PAIRS]
        wanted.insert(2, (1, low))
        top = wanted[-1][1]
    else:
        top = r.max // unit
        half = (low + top) // 2
        wanted = [(1, top), (top - 1, top), (top - 3, top), (half, top), (low, low + 1), (low, low + 3)]
        # An effect may live in a stretch of sizes that none of these meets; odd parts of a bucket look elsewhere.
        wanted[4:4] = [(round(part * top), top) for part in _PARTS if low < round(part * top)]
        wanted += [(low + 1, low + 2), (half, half + 1), (top - 2, top - 1), (1, low)]
    found = [(real * unit, padded * unit) for real, padded in wanted if 1 <= real < padded <= top]
    return list(dict.fromkeys(found))


def _lowest(r: Range, unit: int) -> int:
    return -(-r.min // unit) * unit


def _unit(subject: Subject, symbol: str) -> int:
    return subject.multiples.get(symbol, 1)
