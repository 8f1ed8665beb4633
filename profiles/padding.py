"""What the user declares about padding, and which inputs trtc makes by itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from trtc.profiles.errors import UsageError

Side: TypeAlias = Literal["left", "right", "rows"]
DerivedKind: TypeAlias = Literal["ones", "zeros", "positions"]


@dataclass(frozen=True, slots=True)
class PadRule:
    """How one symbol may be padded.

    Attributes:
        symbol: the symbol.
        side: ``right`` or ``left`` of the real elements, filled with ``fills``; or ``rows``: the last real
            row is repeated.
        fills: input name to fill value, for every input that carries the symbol (not for ``rows``).
        accept_error: the user accepts that answers move; the evidence then records by how much.
    """

    symbol: str
    side: Side
    fills: dict[str, float | int | bool]
    accept_error: bool = False


@dataclass(frozen=True, slots=True)
class Derived:
    """An input that the caller may leave out, because trtc makes it.

    Attributes:
        input: name of the input.
        kind: ``ones`` (a mask: 1 for each real element), ``zeros``, or ``positions`` (0, 1, 2 ... along ``symbol``).
        symbol: the symbol that positions count along; None for the other kinds.
    """

    input: str
    kind: DerivedKind
    symbol: str | None = None

    def __post_init__(self) -> None:
        if (self.kind == "positions") != (self.symbol is not None):
            raise UsageError(
                f"input {self.input!r}: {self.kind} with symbol {self.symbol!r}; "
                "write --derive NAME=ones, NAME=zeros or NAME=positions:SYMBOL"
            )
