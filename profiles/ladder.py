"""The ladder: the ordered profiles of a plan, and the rule that picks one for a request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trtc.profiles.dims import sizes_text
from trtc.profiles.errors import ProfileError, RequestError
from trtc.profiles.ranges import Profile  # noqa: TC001 (decoders of the manifest read annotations at run time)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from collections.abc import Set as AbstractSet


@dataclass(frozen=True, slots=True)
class Ladder:
    """An ordered set of profiles.

    The pick: profiles that fit the request; of those the least measured cost; then the fewest padded
    elements; then the lowest index. It is a pure function of the request's sizes.

    Attributes:
        profiles: at least one; names are unique.
        cost_s: measured seconds of one run at each profile's bucket, in the order of ``profiles``;
            empty when nothing was measured (then the second rule decides).

    Raises:
        ProfileError: for an empty ladder, repeated names, or a cost for some profiles only.
    """

    profiles: tuple[Profile, ...]
    cost_s: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        names = [p.name for p in self.profiles]
        if not names or len(set(names)) != len(names):
            raise ProfileError(f"a ladder needs one or more profiles with different names, not {names}")
        if self.cost_s and len(self.cost_s) != len(names):
            raise ProfileError(f"{len(self.cost_s)} costs for {len(names)} profiles; give one for each, or none")

    def pick(self, sizes: Mapping[str, int], padded: AbstractSet[str] = frozenset()) -> int:
        """Return the index of the profile that this request runs in.

        Args:
            sizes: the request's size of every symbol, in elements.
            padded: the symbols that may be padded.

        Raises:
            RequestError: when no profile fits; it lists what the ladder serves.
        """
        fitting = [i for i, p in enumerate(self.profiles) if p.fits(sizes, padded)]
        if not fitting:
            raise RequestError(self.misfit(sizes, padded))
        return min(
            fitting,
            key=lambda i: (self.cost_s[i] if self.cost_s else 0.0, self.profiles[i].padded_elements(sizes, padded), i),
        )

    def misfit(self, sizes: Mapping[str, int], padded: AbstractSet[str] = frozenset()) -> str:
        """Say why no profile takes a request of these sizes, and what would be taken."""
        for symbol, size in sizes.items():
            ranges = [p.ranges[symbol] for p in self.profiles if symbol in p.ranges]
            if ranges and not any(r.holds(size) or (symbol in padded and 0 < size <= r.min) for r in ranges):
                served = " or ".join(dict.fromkeys(str(r) for r in ranges))
                top = max((r.max for r in ranges if r.max is not None), default=size)
                advice = "shorten the request" if all(size > r.min for r in ranges) else "send a larger request"
                low = min(size, *(r.min for r in ranges))
                high = "" if any(r.max is None for r in ranges) else max(top, size)
                return (
                    f"{symbol}={size}, but this bundle serves {symbol} {served}; "
                    f"{advice} or rebuild with --dim {symbol}={low}..{high}"
                )
        served = "; ".join(str(p) for p in self.profiles)
        bucket = ",".join(f"{symbol}={size}" for symbol, size in sizes.items())
        return (
            f"no profile takes {sizes_text(sizes)} together; this bundle serves {served}; "
            f"send sizes that one of them holds or rebuild with --bucket {bucket} added"
        )
