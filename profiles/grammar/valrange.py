"""Polygraphy's ``--val-range NAME:[lo,hi]``: between which values an input is drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtc.profiles.errors import ProfileError
from trtc.profiles.grammar.digits import parse_number
from trtc.profiles.grammar.names import check_count
from trtc.profiles.grammar.polygraphy import bracketed

if TYPE_CHECKING:
    from collections.abc import Sequence

_FORM = "NAME:[lo,hi]"


def val_ranges(texts: Sequence[str]) -> dict[str, tuple[float | int, float | int]]:
    """Read the value range of each named input.

    Args:
        texts: one for each ``--val-range``; whole numbers stay ints.

    Raises:
        ProfileError: for a text that does not follow the grammar, a name given twice, infinities, or lo above hi.
    """
    check_count(len(texts), "entries", "--val-range")
    ranges: dict[str, tuple[float | int, float | int]] = {}
    for text in texts:
        name, ends = bracketed(text, _FORM)
        where = f"--val-range of input {name!r}"
        if len(ends) != 2:  # noqa: PLR2004 - lo and hi
            raise ProfileError(f"{where} has {len(ends)} values; write {_FORM}")
        if name in ranges:
            raise ProfileError(f"{where} is given twice; keep one")
        low, high = (parse_number(end, where) for end in ends)
        if low > high:
            raise ProfileError(f"{where} runs from {low} to {high}; write the smaller number first")
        ranges[name] = (low, high)
    return ranges
