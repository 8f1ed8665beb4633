"""The sizes of one symbol that run, as a rule: smallest, largest, multiples. Pure: it only asks what runs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_FAR = (100, 257, 520, 1030)
_BROADCAST_SIZES = 4
"""Sizes up to here may run by the accident that one broadcasts; they say nothing about multiples."""
_STRETCH = 3
"""Fewer multiples in a row than this are chance."""


@dataclass(frozen=True, slots=True)
class SizeRule:
    """Sizes of one symbol that the model runs at, as far as tried.

    Attributes:
        min: smallest size from which all multiples of ``multiple_of`` ran.
        multiple_of: sizes must be multiples of this.
        max: largest size that ran where larger ones failed; None when none failed.
        reason: the node's error outside these sizes; empty when none failed.
        fails_at: a size inside that failed, where the limit below it could not be searched; None otherwise.
    """

    min: int
    multiple_of: int = 1
    max: int | None = None
    reason: str = ""
    fails_at: int | None = None

    @property
    def fixed(self) -> bool:
        """Whether only one size runs."""
        return self.max == self.min

    def holds(self, size: int) -> bool:
        """Tell whether a size lies inside."""
        return size >= self.min and size % self.multiple_of == 0 and (self.max is None or size <= self.max)

    def sizes(self, count: int, top: int | None) -> list[int]:
        """The first ``count`` sizes, none above ``top`` or the rule's own max."""
        ends = [end for end in (top, self.max) if end is not None]
        found = [self.min + i * self.multiple_of for i in range(count)]
        return [size for size in found if not ends or size <= min(ends)]

    def __str__(self) -> str:
        if self.fixed:
            return f"only {self.min}"
        text = f"{self.min}..{'' if self.max is None else self.max}"
        return text if self.multiple_of == 1 else f"{text} in multiples of {self.multiple_of}"


def bisect_low(runs: Callable[[int], bool | None], low: int, works: int) -> int:
    """Smallest size that runs, given that ``works`` does; assumes one boundary."""
    if runs(low):
        return low
    while works - low > 1:
        middle = (low + works) // 2
        ran = runs(middle)
        if ran is None:
            return works  # the smallest that was seen to run
        low, works = (low, middle) if ran else (middle, works)
    return works


def classify(worked: Mapping[int, bool], start: int, runs: Callable[[int], bool | None]) -> SizeRule:
    """The divisor whose multiples run in one unbroken stretch and which explains most of the sizes that ran."""
    found: list[tuple[int, int, SizeRule]] = []
    for divisor in sorted({*range(1, 65), start}):
        multiples = sorted(size for size in worked if size % divisor == 0)
        pieces = [p for p in _pieces(multiples, worked) if p[-1] > _BROADCAST_SIZES or len(multiples) == len(p)]
        if len(pieces) != 1 or (len(pieces[0]) < _STRETCH and divisor != start):
            continue
        low, top = pieces[0][0], pieces[0][-1]
        below = [m for m in multiples if m < low]
        above = [m for m in multiples if m > top]
        if len(pieces[0]) < _STRETCH and above and below:
            continue
        if any(runs(low + i * divisor) is False for i in range(1, 6) if not above or low + i * divisor <= top):
            continue  # the sizes tried so far were too sparse for this divisor
        if divisor == 1 and below and low - below[-1] > 1:
            low = bisect_low(runs, below[-1], low)
        end = top if above else None
        if divisor == 1 and above:
            end = bisect_high(runs, top, above[0])
        found.append((-len(pieces[0]), divisor, SizeRule(low, divisor, end)))
    return min(found, key=lambda item: item[:2])[2] if found else SizeRule(start, 1, start)


def bisect_high(runs: Callable[[int], bool | None], works: int, fails: int) -> int | None:
    """Largest size that runs, given one that does and a larger one that does not; assumes one boundary.

    None when a size in between could not be tried: what was not run is no limit.
    """
    while fails - works > 1:
        middle = (works + fails) // 2
        ran = runs(middle)
        if ran is None:
            return None
        works, fails = (middle, fails) if ran else (works, middle)
    return works


def _pieces(multiples: Sequence[int], worked: Mapping[int, bool]) -> list[list[int]]:
    """Unbroken stretches of sizes that ran."""
    pieces: list[list[int]] = []
    open_piece = False
    for size in multiples:
        if worked[size] and open_piece:
            pieces[-1].append(size)
        elif worked[size]:
            pieces.append([size])
        open_piece = worked[size]
    return pieces


def find_top(rule: SizeRule, runs: Callable[[int], bool | None]) -> SizeRule:
    """Try far sizes; where one fails, find the largest that runs (a position table, a fixed buffer)."""
    works = rule.min
    step = rule.multiple_of
    for far in _FAR:
        size = far // step * step
        if size <= works:
            continue
        ran = runs(size)
        if ran is None:
            return rule
        if not ran:
            low = works // step
            top = bisect_high(lambda n: runs(n * step), low, size // step)
            return rule if top is None else replace(rule, max=top * step)
        works = size
    return rule
