"""What the grammars hand to ``bind``: ranges per input or per symbol, one tuple for each profile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from trtc.profiles.dims import Dim, Expr
from trtc.profiles.errors import ProfileError
from trtc.profiles.ranges import Range

OPEN: Final = Range(0, None, None)
"""Any size: what a symbol has when nobody said anything about it."""


@dataclass(frozen=True, slots=True)
class InputShape:
    """The range of every axis of one input in one profile: what trtexec, Polygraphy and OpenVINO state.

    Attributes:
        name: name of the input.
        dims: one range for each axis; empty for a scalar.
        tuned: the user stated each ``opt``; otherwise it only repeats ``max`` and follows it.
    """

    name: str
    dims: tuple[Range, ...]
    tuned: bool = True


@dataclass(frozen=True, slots=True)
class SymbolRange:
    """The range of one symbol in one profile: what ``--dim`` and ``--bucket`` state."""

    symbol: str
    range: Range


InputProfiles: TypeAlias = tuple[tuple[InputShape, ...], ...]
SymbolProfiles: TypeAlias = tuple[tuple[SymbolRange, ...], ...]
ParsedShapes: TypeAlias = InputProfiles | SymbolProfiles
"""One tuple for each profile; empty when no shape was given at all."""

InputDims: TypeAlias = Mapping[str, tuple[Dim, ...]]
"""Input name to its dims, as in the signature."""


def checked_range(where: str, low: int, opt: int, high: int) -> Range:
    """Make a range, or say where the three numbers came from.

    Raises:
        ProfileError: unless ``0 <= low <= opt <= high``.
    """
    if not 0 <= low <= opt <= high:
        raise ProfileError(
            f"{where}: min {low}, opt {opt}, max {high}; sizes need 0 <= min <= opt <= max, so put them in order"
        )
    return Range(low, opt, high)


def input_axis(name: str, axis: int) -> str:
    """Name one axis of one input, as every message does."""
    return f"input {name!r}, axis {axis}"


def input_symbols(input_dims: InputDims) -> tuple[str, ...]:
    """Name the symbols of all inputs, in the order in which the signature first shows them."""
    symbols: dict[str, None] = {}
    for dims in input_dims.values():
        for dim in dims:
            if isinstance(dim, str):
                symbols[dim] = None
            elif isinstance(dim, Expr):
                symbols.update((step.symbol, None) for term in dim.terms for step in term.steps)
    return tuple(symbols)
