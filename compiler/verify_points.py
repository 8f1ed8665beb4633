"""Which requests an engine is verified with: decided here, run elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from trtc.compiler.probes.cases import PadCase
from trtc.compiler.probes.subject import sizes_of
from trtc.profiles import dim_value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trtc.compiler.probes.subject import Feeds, Subject
    from trtc.compiler.verify import VerifyOptions
    from trtc.profiles import PadRule, Profile, Range

_MAX_OPEN_ELEMENTS = 2**26
"""Of all inputs and outputs of one request, where a range has no upper end."""
_EASY_ELEMENTS = 2**21
"""Above this, sizes that have an upper end are halved beside those that have none: a large product of two takes minutes
and tells no more than a large size of each, which is run beside small ones."""
Queues: TypeAlias = "dict[tuple[str, str], list[Point]]"


@dataclass(frozen=True, slots=True)
class Point:
    """One request.

    Attributes:
        case: real sizes, and the sizes to run at (the same for an exact run).
        feeds: a real sample, or None for generated values.
    """

    case: PadCase
    feeds: Feeds | None = None

    @property
    def sizes(self) -> dict[str, int]:
        """Real sizes by symbol."""
        return self.case.sizes

    @property
    def run_sizes(self) -> dict[str, int]:
        """Sizes to run at by symbol."""
        return self.case.run_sizes

    def described(self) -> dict[str, int]:
        """Return the sizes for a report: the real ones, and what was padded to."""
        return {**self.sizes, **{f"{n} padded": s for n, s in self.run_sizes.items() if s != self.sizes[n]}}


def verify_points(subject: Subject, rules: Sequence[PadRule], options: VerifyOptions) -> Queues:
    """Choose requests for every profile, exact and padded, the most telling first.

    Returns:
        Points by profile name and mode. A mode without a point (padding where a range is open) is absent.
    """
    padded = frozenset(rule.symbol for rule in rules)
    rng = np.random.default_rng(options.seed)
    queues: Queues = {}
    for profile in subject.ladder.profiles:
        rows = _sizes(subject, profile, options, rng)
        queues[profile.name, "exact"] = [Point(PadCase(sizes, sizes)) for sizes in rows]
        small = _padded_sizes(subject, profile, rows, padded)
        points = [Point(PadCase(s, profile.run_sizes(s, padded, to_bucket=True))) for s in small]
        if points := [point for point in points if point.sizes != point.run_sizes]:
            queues[profile.name, "padded"] = _in_reach(subject, profile, points)
    _add_samples(queues, subject, padded, options.max_samples)
    return queues


def _sizes(
    subject: Subject, profile: Profile, options: VerifyOptions, rng: np.random.Generator
) -> list[dict[str, int]]:
    units = subject.multiples
    choices = {symbol: _choices(r, units.get(symbol, 1), options, rng) for symbol, r in profile.ranges.items()}
    count = max((len(found) for found in choices.values()), default=1)
    rows = [{symbol: found[k % len(found)] for symbol, found in choices.items()} for k in range(count)]
    if _is_open(profile):
        rows = [_eased(subject, row, profile) for row in rows]
        rows[1:1] = _upper_ends(subject, profile, rows)
        rows = [point.sizes for point in _in_reach(subject, profile, [Point(PadCase(row, row)) for row in rows])]
    return [row for i, row in enumerate(rows) if row not in rows[:i]]


def _is_open(profile: Profile) -> bool:
    return any(r.max is None for r in profile.ranges.values())


def _in_reach(subject: Subject, profile: Profile, points: list[Point]) -> list[Point]:
    """Leave out what nobody asked for: where a range is open, products of sizes can leave any memory behind."""
    if not _is_open(profile):
        return points
    return [p for p in points if _elements(subject, p.run_sizes) <= _MAX_OPEN_ELEMENTS] or points[:1]


def _upper_ends(subject: Subject, profile: Profile, rows: list[dict[str, int]]) -> list[dict[str, int]]:
    """Return a row for each upper end that none has beside sizes above 0: beside the least such of all others."""
    least = {symbol: max(r.min, subject.multiples.get(symbol, 1)) for symbol, r in profile.ranges.items()}
    ends = {symbol: r.max for symbol, r in profile.ranges.items() if r.max is not None}
    told = [row for row in rows if 0 not in row.values()]
    return [least | {s: end} for s, end in ends.items() if all(row[s] < end for row in told)]


def _eased(subject: Subject, row: dict[str, int], profile: Profile) -> dict[str, int]:
    """Halve the sizes of ranges with an upper end, in whole units, until the request is small or they cannot shrink."""
    while _elements(subject, row) > _EASY_ELEMENTS:
        smaller = dict(row)
        for symbol, size in row.items():
            r, unit = profile.ranges[symbol], subject.multiples.get(symbol, 1)
            if r.max is not None and size > max(r.min, unit):
                smaller[symbol] = max(r.min, unit, size // 2 // unit * unit)
        if smaller == row:
            break
        row = smaller
    return row


def _elements(subject: Subject, sizes: dict[str, int]) -> int:
    """Count the elements of all tensors of known size."""
    specs = (*subject.signature.inputs, *subject.signature.outputs)
    shapes = ([dim_value(dim, sizes) for dim in spec.dims or ()] for spec in specs)
    return sum(prod(size for size in shape if size is not None) for shape in shapes)


def _choices(r: Range, unit: int, options: VerifyOptions, rng: np.random.Generator) -> list[int]:
    """Choose sizes of one range; positions of closed ranges agree, so all are at opt, min and max together."""
    if r.max is None or r.opt is None:
        return list(dict.fromkeys(max(r.min, size * unit) for size in (0, *options.open_sizes)))
    drawn = (int(rng.integers(r.min, r.max + 1)) for _ in range(options.random_points))
    return [r.opt, r.min, r.max, *(max(r.min, size // unit * unit) for size in drawn)]


def _padded_sizes(
    subject: Subject, profile: Profile, rows: list[dict[str, int]], padded: frozenset[str]
) -> list[dict[str, int]]:
    """Make the padded symbols smaller than what they are padded to: by one, down to one, to half, to a third."""
    found = []
    for k, row in enumerate(rows):
        small = {}
        for symbol, size in row.items():
            r, unit = profile.ranges[symbol], subject.multiples.get(symbol, 1)
            top = (r.min if r.max is None else r.max) // unit if symbol in padded else 0
            small[symbol] = size if top <= 1 else (top - 1, 1, -(-top // 2), -(-top // 3))[k % 4] * unit
        if small not in found:
            found.append(small)
    return found


def _add_samples(queues: Queues, subject: Subject, padded: frozenset[str], max_samples: int) -> None:
    """Put each real sample first in the queues of the profile that would take it."""
    for sample in subject.samples[:max_samples]:
        sizes = sizes_of(subject.signature, sample)
        exact = [p for p in subject.ladder.profiles if p.fits(sizes, frozenset())]
        for profile in exact[:1]:
            queues[profile.name, "exact"].insert(0, Point(PadCase(sizes, sizes), sample))
        for profile in [p for p in subject.ladder.profiles if p.fits(sizes, padded)][:1]:
            run_sizes = profile.run_sizes(sizes, padded, to_bucket=True)
            if run_sizes != sizes:
                queues.setdefault((profile.name, "padded"), []).insert(0, Point(PadCase(sizes, run_sizes), sample))
