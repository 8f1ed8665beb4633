"""OpenVINO's spelling of one axis: ``8``, ``1..8``, ``1..``, ``..8``, ``?`` or ``-1``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtc.profiles.errors import ProfileError
from trtc.profiles.grammar.digits import BLANKS, MAX_AXES, parse_size, shown
from trtc.profiles.grammar.names import check_count
from trtc.profiles.grammar.values import OPEN, InputShape, input_axis
from trtc.profiles.ranges import Range

if TYPE_CHECKING:
    from collections.abc import Sequence


def parse_span(text: str, where: str) -> Range:
    """Read one axis; ``opt`` equals ``max``.

    Raises:
        ProfileError: for anything else, or when the lower end is above the upper one.
    """
    body = text.strip(BLANKS)
    if body in {"?", "-1"}:
        return OPEN
    low, dots, high = body.partition("..")
    if not dots:
        size = parse_size(body, where)
        return Range(size, size, size)
    if not (low or high):
        raise ProfileError(f"{where}: {shown(text)} has no end; write ? for any size, or low..high such as 1..8")
    least = parse_size(low, where) if low else 0
    if not high:
        return Range(least, None, None)
    most = parse_size(high, where)
    if least > most:
        raise ProfileError(f"{where}: min {least} is above max {most}; write the smaller number first")
    return Range(least, most, most)


def shape_from_spans(name: str, parts: Sequence[str]) -> InputShape:
    """Make the ranges of one input from one text an axis.

    Raises:
        ProfileError: for a text that is no span, or more than 64 axes.
    """
    check_count(len(parts), f"axes of input {name!r}", ",".join(parts), MAX_AXES)
    dims = tuple(parse_span(part, input_axis(name, axis)) for axis, part in enumerate(parts))
    return InputShape(name, dims, tuned=False)
