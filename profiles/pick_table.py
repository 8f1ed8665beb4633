"""The pick of a ladder as a table: one look-up a symbol and one in the table, however many profiles there are."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import TYPE_CHECKING

from trtc.profiles.errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from trtc.profiles.ladder import Ladder

MOST_CELLS = 1 << 16
"""Larger tables are not made: the rule itself is then used."""


@dataclass(frozen=True, slots=True)
class PickTable:
    """Which profile takes which sizes.

    A symbol's sizes fall into classes between ``starts``; all sizes of one class have the same pick.

    Attributes:
        symbols: in the order of ``starts``.
        starts: for each symbol the first size of each class, ascending, the first 0.
        cells: index of the profile for each combination of classes, the last symbol fastest; -1 where none fits.
    """

    symbols: tuple[str, ...]
    starts: tuple[tuple[int, ...], ...]
    cells: tuple[int, ...]

    def pick(self, sizes: Mapping[str, int]) -> int:
        """Return the index of the profile, or -1 where none fits; ``Ladder.misfit`` then says why.

        Args:
            sizes: of every symbol of the table, 0 or more.
        """
        cell = 0
        for symbol, starts in zip(self.symbols, self.starts, strict=True):
            cell = cell * len(starts) + bisect_right(starts, sizes[symbol]) - 1
        return self.cells[cell]


def pick_table(ladder: Ladder, symbols: Sequence[str], padded: AbstractSet[str]) -> PickTable | None:
    """Work out the pick for all sizes.

    Args:
        ladder: every profile has a range for each of ``symbols``.
        symbols: in any order.
        padded: those that may be padded.

    Returns:
        None where the rule has to be asked itself: profiles name different symbols; one of several has an open range
        of a symbol that may be padded, whose padding then depends on the size; or there are more than ``MOST_CELLS``
        cells.
    """
    if any(ladder.profiles[0].ranges.keys() != p.ranges.keys() for p in ladder.profiles):
        return None
    open_padded = any(r.max is None for p in ladder.profiles for s, r in p.ranges.items() if s in padded)
    if open_padded and len(ladder.profiles) > 1:
        return None
    starts = tuple(_starts(ladder, symbol) for symbol in symbols)
    if prod(map(len, starts)) > MOST_CELLS:
        return None
    cells = []
    for point in product(*starts):
        try:
            cells.append(ladder.pick(dict(zip(symbols, point, strict=True)), padded))
        except RequestError:
            cells.append(-1)
    return PickTable(tuple(symbols), starts, tuple(cells))


def _starts(ladder: Ladder, symbol: str) -> tuple[int, ...]:
    """Sizes at which a profile begins to fit, or ceases to; 0 and 1 stand apart, since nothing pads a size of 0."""
    found = {0, 1}
    for profile in ladder.profiles:
        r = profile.ranges[symbol]
        found.add(r.min)
        if r.max is not None:
            found.add(r.max + 1)
    return tuple(sorted(found))
