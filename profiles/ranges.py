"""Ranges of one symbol, and profiles: one range for each symbol."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from trtc.profiles.errors import ProfileError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from collections.abc import Set as AbstractSet


@dataclass(frozen=True, slots=True)
class Range:
    """Sizes that one symbol may take, in elements.

    Attributes:
        min: smallest size, inclusive.
        opt: the size that a builder tunes for; None only where ``max`` is open.
        max: largest size, inclusive; None where the target needs no upper end.

    Raises:
        ProfileError: unless ``0 <= min <= opt <= max``.
    """

    min: int
    opt: int | None
    max: int | None

    def __post_init__(self) -> None:
        numbers = [n for n in (self.min, self.opt, self.max) if n is not None]
        if numbers[0] < 0 or numbers != sorted(numbers) or (self.opt is None) != (self.max is None):
            raise ProfileError(
                f"min {self.min}, opt {self.opt}, max {self.max} is not a range; "
                "write sizes with 0 <= min <= opt <= max, such as 1:64:256"
            )

    def holds(self, size: int) -> bool:
        """Tell whether ``size`` lies inside, both ends included."""
        return self.min <= size and (self.max is None or size <= self.max)

    def __str__(self) -> str:
        if self.max is None:
            return f"{self.min}.."
        return f"{self.min}" if self.min == self.max else f"{self.min}..{self.max}"


@dataclass(frozen=True, slots=True)
class Profile:
    """One range for each symbol; its bucket is the max of each.

    Attributes:
        name: ``p0``, ``p1``, ... in ladder order.
        ranges: symbol to range, in the order of the signature.
    """

    name: str
    ranges: dict[str, Range]

    @property
    def bucket(self) -> dict[str, int | None]:
        """The sizes that a padded request is run at: each symbol's max; None where open."""
        return {symbol: r.max for symbol, r in self.ranges.items()}

    def fits(self, sizes: Mapping[str, int], padded: AbstractSet[str]) -> bool:
        """Tell whether a request of these sizes can run here.

        A symbol in ``padded`` may be smaller than its range's min: it is padded up. A size of zero never is,
        since there is no real element to stand beside the padding.
        """
        for symbol, r in self.ranges.items():
            size = sizes[symbol]
            if not (r.holds(size) or (symbol in padded and 0 < size <= r.min)):
                return False
        return True

    def run_sizes(self, sizes: Mapping[str, int], padded: AbstractSet[str], *, to_bucket: bool) -> dict[str, int]:
        """The sizes that a fitting request is run at.

        Args:
            sizes: what the request has.
            padded: the symbols that may be padded.
            to_bucket: pad up to the bucket; otherwise only as far as the range's min demands.
        """
        run = {}
        for symbol, size in sizes.items():
            r = self.ranges.get(symbol)
            if r is None or symbol not in padded or size == 0:
                run[symbol] = size
            elif to_bucket and r.max is not None:
                run[symbol] = r.max
            else:
                run[symbol] = max(size, r.min)
        return run

    def padded_elements(self, sizes: Mapping[str, int], padded: AbstractSet[str]) -> int:
        """How many elements of padding the bucket would add, counted over the product of all symbols."""
        run = self.run_sizes(sizes, padded, to_bucket=True)
        return prod(run.values()) - prod(sizes.values())

    def __str__(self) -> str:
        return f"{self.name}: " + (", ".join(f"{symbol} {r}" for symbol, r in self.ranges.items()) or "fixed sizes")
