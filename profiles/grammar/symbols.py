"""Our own grammar, per symbol: ``--dim seq=1:64:256``, ``--bucket batch=8,seq=64``, ``--buckets seq=32,64,128``.

A bucket's profile reaches from the symbol's ``--dim`` min (1 without one) to the bucket, and is tuned for the bucket.
Profiles overlap on purpose: the ladder picks the cheapest that fits.
"""

from __future__ import annotations

from itertools import product
from math import prod
from typing import TYPE_CHECKING

from trtc.profiles.errors import ProfileError
from trtc.profiles.grammar.digits import BLANKS, MAX_ENTRIES, parse_size, shown
from trtc.profiles.grammar.names import check_count, first_repeated, quote_name, split_items, split_name
from trtc.profiles.grammar.spans import parse_span
from trtc.profiles.grammar.values import SymbolProfiles, SymbolRange, checked_range
from trtc.profiles.ranges import Range

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_DIM_FORM = "--dim seq=1:64:256 (min:opt:max), seq=1..256, seq=1.. or seq=4"


def symbol_ranges(dims: Sequence[str] = (), bucket: Sequence[str] = (), buckets: Sequence[str] = ()) -> SymbolProfiles:
    """Read ranges and buckets of symbols.

    Args:
        dims: one for each ``--dim``.
        bucket: one for each ``--bucket``: each is one profile, and all name the same symbols.
        buckets: one for each ``--buckets``: the sizes of one symbol; several combine as a product, the last fastest.
            Beside ``bucket`` they must name other symbols, and every bucket is combined with every size.

    Returns:
        For each profile the symbols that were named; nothing when nothing was given.

    Raises:
        ProfileError: for a text that does not follow the grammar, a symbol given twice, buckets that exceed the
            symbol's ``--dim`` or leave its max uncovered, or more than 4096 profiles.
    """
    ranges = _dims(dims)
    rows = [_bucket(text) for text in bucket]
    columns = [_buckets(text) for text in buckets]
    _check_symbols(rows, [symbol for symbol, _ in columns])
    check_count((len(rows) or 1) * prod(len(sizes) for _, sizes in columns), "profiles", "--bucket and --buckets")
    ladder = [
        row | dict(zip((symbol for symbol, _ in columns), sizes, strict=True))
        for row in rows or [{}]
        for sizes in product(*(sizes for _, sizes in columns))
    ]
    if len({frozenset(row.items()) for row in rows}) < len(rows):
        raise ProfileError("the same --bucket stands twice; keep one")
    _check_cover(ranges, ladder)
    if not (ranges or rows or columns):
        return ()
    return tuple(
        tuple(
            SymbolRange(symbol, _reach(ranges.get(symbol), row[symbol]) if symbol in row else ranges[symbol])
            for symbol in dict.fromkeys([*ranges, *row])
        )
        for row in ladder
    )


def _dims(texts: Iterable[str]) -> dict[str, Range]:
    pairs = [split_name(text, "=", _DIM_FORM) for text in texts]
    _refuse_repeats("--dim", [symbol for symbol, _ in pairs])
    return {symbol: _range(symbol, text) for symbol, text in pairs}


def _range(symbol: str, text: str) -> Range:
    where = f"--dim {quote_name(symbol)}"
    parts = text.split(":")
    if len(parts) == 3:  # noqa: PLR2004 - min, opt, max
        return checked_range(where, *(parse_size(part, where) for part in parts))
    span = text.strip(BLANKS)
    if len(parts) != 1 or span in {"?", "-1"} or span.startswith(".."):
        raise ProfileError(f"{where}: {shown(text)} is not a range; write {_DIM_FORM}")
    return parse_span(span, where)


def _bucket(text: str) -> dict[str, int]:
    pairs = [split_name(item, "=", "--bucket batch=8,seq=64") for item in split_items(text)]
    _refuse_repeats("--bucket", [symbol for symbol, _ in pairs])
    return {symbol: parse_size(size, f"--bucket {quote_name(symbol)}") for symbol, size in pairs}


def _buckets(text: str) -> tuple[str, list[int]]:
    symbol, listed = split_name(text, "=", "--buckets seq=32,64,128")
    sizes = [parse_size(size, f"--buckets {quote_name(symbol)}") for size in split_items(listed)]
    if len(set(sizes)) != len(sizes):
        raise ProfileError(f"--buckets {quote_name(symbol)} holds a size twice: {shown(listed)}; keep one of each")
    return symbol, sizes


def _refuse_repeats(option: str, symbols: list[str]) -> None:
    check_count(len(symbols), "symbols", option, MAX_ENTRIES)
    repeated = first_repeated(symbols)
    if repeated is not None:
        raise ProfileError(f"{option} names the symbol {repeated!r} twice; keep one")


def _check_symbols(rows: list[dict[str, int]], columns: list[str]) -> None:
    _refuse_repeats("--buckets", columns)
    check_count(len(rows), "buckets", "--bucket")
    for row in rows:
        if row.keys() != rows[0].keys():
            odd = sorted(row.keys() ^ rows[0].keys())
            raise ProfileError(f"not every --bucket names the symbol {odd[0]!r}; give its size in each of them")
    shared = [symbol for symbol in columns if rows and symbol in rows[0]]
    if shared:
        raise ProfileError(
            f"the symbol {shared[0]!r} has both --bucket and --buckets; "
            "list every combination with --bucket, or only sizes with --buckets"
        )


def _check_cover(ranges: Mapping[str, Range], ladder: list[dict[str, int]]) -> None:
    for symbol, size_range in ranges.items():
        sizes = [row[symbol] for row in ladder if symbol in row]
        if not sizes:
            continue
        name, top = quote_name(symbol), max(sizes)
        outside = [size for size in sizes if not size_range.holds(size)]
        if outside:
            raise ProfileError(
                f"bucket {name}={outside[0]} lies outside --dim {name}={size_range}; "
                f"leave that bucket out, or write --dim {name}={min(size_range.min, *sizes, top)}..{top}"
            )
        if size_range.max != top:
            wanted = "any size above" if size_range.max is None else f"up to {size_range.max}"
            add = "" if size_range.max is None else f"add a bucket {name}={size_range.max}, or "
            raise ProfileError(
                f"--dim {name}={size_range} asks for {wanted}, but the largest bucket is {name}={top}; "
                f"{add}write --dim {name}={size_range.min}..{top}"
            )


def _reach(stated: Range | None, bucket: int) -> Range:
    return Range(stated.min if stated else min(1, bucket), bucket, bucket)
