"""Whether sizes fit a ladder, and everything that keeps them out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtc.profiles import Ladder, Profile, RequestError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from collections.abc import Set as AbstractSet


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
