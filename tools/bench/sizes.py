"""Which sizes are measured: fixed ones, a grid, random ones, or recorded traffic. Pure choices, no values yet."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

from trtc.profiles import UsageError, unknown_name
from trtc.profiles.grammar import quote_name
from trtc.profiles.grammar.names import split_items, split_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from trtc.profiles import Ladder

    Sizes = dict[str, int]

MAX_GRID = 1000
MAX_SENT = 100_000
"""Calls of one turn through recorded traffic; counts beyond this are scaled down together."""


@dataclass(frozen=True, slots=True)
class Mix:
    """Requests that are measured together.

    Attributes:
        name: for people.
        sizes: the distinct sizes; in a mix from small to large, the first symbol first.
        order: indices into ``sizes``, in the order in which requests are sent.
    """

    name: str
    sizes: tuple[dict[str, int], ...]
    order: tuple[int, ...]


def fixed(name: str, sizes: Sizes) -> Mix:
    """Send one request over and over."""
    return Mix(name, (sizes,), (0,))


def grid_of(texts: Sequence[str], symbols: Sequence[str]) -> list[Sizes]:
    """Read ``batch=1,8 seq=32,64`` and return every combination, the last symbol changing fastest.

    Raises:
        UsageError: for unknown, repeated or missing symbols, sizes that are none, or too many combinations.
    """
    values: dict[str, list[int]] = {}
    for text in (word for given in texts for word in ([given] if '"' in given else given.split())):
        name, given = split_name(text, "=", "--grid batch=1,8,32")
        if name not in symbols:
            raise UsageError(f"--grid: {unknown_name('symbol', name, symbols)}")
        if name in values:
            raise UsageError(f"--grid: {name} is given twice; write {quote_name(name)}=1,2,3 once")
        items = split_items(given)
        if not items or not all(item.strip().isdecimal() for item in items):
            raise UsageError(f"--grid: {text!r}: write sizes as {quote_name(name)}=1,8,32")
        values[name] = [int(item) for item in items]
    if missing := [symbol for symbol in symbols if symbol not in values]:
        typed = " ".join(f"{quote_name(symbol)}=1,8" for symbol in missing)
        raise UsageError(f"--grid: no sizes for {', '.join(missing)}; add {typed}")
    found = [dict(zip(symbols, combined, strict=True)) for combined in product(*(values[s] for s in symbols))]
    if len(found) > MAX_GRID:
        raise UsageError(f"--grid: {len(found)} combinations, at most {MAX_GRID}; leave some sizes out")
    return found


def random_mix(ladder: Ladder, count: int, rng: np.random.Generator) -> Mix:
    """Draw sizes: a profile, each as likely, and in it every size that no smaller profile takes, each as likely.

    Raises:
        UsageError: where a maximum is open, so that there is nothing to draw from.
    """
    buckets: dict[str, set[int]] = {}
    for profile in ladder.profiles:
        for symbol, size in profile.bucket.items():
            if size is None:
                raise UsageError(
                    f"--random: {symbol} is open upwards, so there is no range to draw from; give --sizes, --grid or "
                    "--traffic, or build with a range"
                )
            buckets.setdefault(symbol, set()).add(size)
    drawn = []
    for index in rng.integers(0, len(ladder.profiles), count):
        sizes = {}
        for symbol, served in ladder.profiles[index].ranges.items():
            high = served.max or 0
            low = max([served.min, *(size + 1 for size in buckets[symbol] if size < high)])
            sizes[symbol] = int(rng.integers(low, high, endpoint=True))
        drawn.append(sizes)
    return _mixed(f"{count} random requests", drawn)


def replayed(name: str, traffic: Sequence[tuple[Sizes, float]], rng: np.random.Generator) -> Mix:
    """Send recorded requests as often as they came, shuffled: a sum does not say in which order they did.

    Weights that are no whole numbers are shares: they are scaled up until the smallest is one request.
    """
    counts = [count for _, count in traffic]
    unit = 1.0 if all(count == round(count) for count in counts) else min(counts)
    share = min(1 / unit, MAX_SENT / sum(counts))
    drawn = [sizes for sizes, count in traffic for _ in range(max(1, round(count * share)))]
    return _mixed(name, [drawn[i] for i in rng.permutation(len(drawn))])


def _mixed(name: str, drawn: Sequence[Sizes]) -> Mix:
    """Tell distinct sizes apart; all requests have the same symbols, in the same order."""
    distinct = sorted({tuple(sizes.items()) for sizes in drawn})
    index = {key: i for i, key in enumerate(distinct)}
    return Mix(name, tuple(dict(key) for key in distinct), tuple(index[tuple(sizes.items())] for sizes in drawn))
