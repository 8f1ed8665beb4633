"""Whether sizes fit a ladder, and everything that keeps them out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtc.profiles import Ladder, Profile, RequestError
from trtc.profiles.pick_table import PickTable, pick_table

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from collections.abc import Set as AbstractSet

MOST_CELLS = 4096
"""Of a table of picks: making one takes milliseconds, once a session and only when it is needed."""


def pick_profile(ladder: Ladder, sizes: Mapping[str, int], padded: AbstractSet[str]) -> int:
    """Return the index of the profile that takes these sizes.

    Args:
        ladder: of the bundle.
        sizes: of the symbols that matter to this request; ranges of other symbols are not looked at.
        padded: symbols that may be padded.

    Raises:
        RequestError: naming every symbol that keeps the request out.
    """
    try:
        return limited(ladder, sizes).pick(sizes, padded)
    except RequestError:
        raise RequestError("; ".join(misfits(ladder, sizes, padded))) from None


class PickTables:
    """Picks profiles of one ladder in constant time, where that can be a table. Thread-safe.

    Args:
        ladder: of the bundle.
        symbols: of its signature.
    """

    def __init__(self, ladder: Ladder, symbols: tuple[str, ...]) -> None:
        self._ladder = ladder
        self._symbols = frozenset(symbols)
        # Each profile begins and ends a class of sizes: no more cells than this.
        cells = (2 * len(ladder.profiles) + 2) ** len(symbols)
        whole = all(profile.ranges.keys() == self._symbols for profile in ladder.profiles)
        self._small = bool(symbols) and whole and cells <= MOST_CELLS
        self._tables: dict[AbstractSet[str], PickTable | None] = {}

    def pick(self, sizes: Mapping[str, int], padded: AbstractSet[str]) -> int:
        """Return what ``pick_profile`` returns, and raise what it raises."""
        if self._small and sizes.keys() == self._symbols:
            if padded not in self._tables:  # two threads may both make it: they make the same
                self._tables[padded] = pick_table(self._ladder, tuple(sizes), padded)
            table = self._tables[padded]
            index = -1 if table is None else table.pick(sizes)
            if index >= 0:
                return index
        return pick_profile(self._ladder, sizes, padded)


def misfits(ladder: Ladder, sizes: Mapping[str, int], padded: AbstractSet[str]) -> list[str]:
    """Say why no profile takes these sizes: each symbol that no profile takes alone, or else all together.

    Returns:
        Nothing when a profile takes them.
    """
    if _fits(limited(ladder, sizes), sizes, padded):
        return []
    alone = []
    for symbol, size in sizes.items():
        part = limited(ladder, [symbol])
        if not _fits(part, {symbol: size}, padded):
            alone.append(part.misfit({symbol: size}, padded))
    return alone or [limited(ladder, sizes).misfit(sizes, padded)]


def limited(ladder: Ladder, symbols: Collection[str]) -> Ladder:
    """Return the ladder without the ranges of other symbols."""
    if all(symbol in symbols for profile in ladder.profiles for symbol in profile.ranges):
        return ladder
    profiles = tuple(Profile(p.name, {s: r for s, r in p.ranges.items() if s in symbols}) for p in ladder.profiles)
    return Ladder(profiles, ladder.cost_s)


def _fits(ladder: Ladder, sizes: Mapping[str, int], padded: AbstractSet[str]) -> bool:
    return any(profile.fits(sizes, padded) for profile in ladder.profiles)
