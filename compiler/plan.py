"""The plan: all that a build needs to know, as one frozen value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trtc.profiles import Profile, ProfileError, Range

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trtc.compiler.workable import SizeRule
    from trtc.engines.signature import Signature
    from trtc.profiles import Derived, Ladder, PadRule


@dataclass(frozen=True, slots=True)
class Plan:
    """What will be built.

    Attributes:
        signature: with relations.
        ladder: the profiles.
        padding: declared rules.
        derived: inputs that the runtime makes.
        targets: in order of preference.
    """

    signature: Signature
    ladder: Ladder
    padding: tuple[PadRule, ...]
    derived: tuple[Derived, ...]
    targets: tuple[str, ...]


def symbol_ranges_of(profiles: tuple[Profile, ...]) -> dict[str, Range]:
    """Return, for each symbol that a user bounded, the range over all profiles; open ones are left out."""
    found: dict[str, Range] = {}
    for symbol in {s: None for p in profiles for s in p.ranges}:
        ranges = [p.ranges[symbol] for p in profiles if symbol in p.ranges]
        low = min(r.min for r in ranges)
        tops = [r.max for r in ranges if r.max is not None]
        if len(tops) == len(ranges):
            found[symbol] = Range(low, max(tops), max(tops))
        elif low > 0:
            found[symbol] = Range(low, None, None)
    return found


def merged_profiles(profiles: tuple[Profile, ...], merges: Mapping[str, str]) -> tuple[Profile, ...]:
    """Give symbols that must be equal one range: the intersection.

    Raises:
        ProfileError: when two such symbols have no size in common.
    """
    return tuple(Profile(p.name, _merged(p, merges)) for p in profiles)


def _merged(profile: Profile, merges: Mapping[str, str]) -> dict[str, Range]:
    ranges: dict[str, Range] = {}
    for symbol, r in profile.ranges.items():
        name = merges.get(symbol, symbol)
        old = ranges.get(name)
        ranges[name] = r if old is None else _intersection(name, symbol, old, r)
    return ranges


def _intersection(name: str, symbol: str, a: Range, b: Range) -> Range:
    low = max(a.min, b.min)
    tops = [t for t in (a.max, b.max) if t is not None]
    high = min(tops) if tops else None
    if high is not None and low > high:
        raise ProfileError(
            f"{name} and {symbol} are the same size in this model, but {a} and {b} have none in common; "
            "give both the same range"
        )
    opts = [o for o in (a.opt, b.opt) if o is not None]
    return Range(low, None if high is None else min(max(min(opts), low), high), high)


def tightened(
    profiles: tuple[Profile, ...], workable: Mapping[str, SizeRule], lowest: Mapping[str, int]
) -> tuple[Profile, ...]:
    """Start open ranges at the smallest size that was seen to run, and end them where larger sizes were seen to fail.

    Args:
        profiles: as bound.
        workable: sizes that run, by symbol.
        lowest: the smallest size that runs, by symbol; 0 where empty inputs work.
    """

    def tight(symbol: str, r: Range) -> Range:
        if r.max is not None or symbol not in workable:
            return r
        low = max(r.min, lowest.get(symbol, workable[symbol].min))
        top = workable[symbol].max
        return Range(low, top, top)

    return tuple(Profile(p.name, {s: tight(s, r) for s, r in p.ranges.items()}) for p in profiles)
