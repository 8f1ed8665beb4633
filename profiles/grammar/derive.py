"""Inputs that trtc makes by itself: ``--derive attention_mask=ones``, ``--derive position_ids=positions:seq``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtc.profiles.dims import dim_symbols
from trtc.profiles.errors import ProfileError
from trtc.profiles.grammar.digits import BLANKS, shown
from trtc.profiles.grammar.names import QUOTES, first_repeated, read_quoted, split_name
from trtc.profiles.nearest import unknown_name
from trtc.profiles.padding import Derived

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trtc.profiles.grammar.values import InputDims

_FORM = "--derive NAME=ones, NAME=zeros or NAME=positions:SYMBOL"
_POSITIONS = "=positions:"


def derived_inputs(texts: Sequence[str], input_dims: InputDims) -> tuple[Derived, ...]:
    """Read which inputs trtc makes when the caller leaves them out.

    Args:
        texts: one for each ``--derive``.
        input_dims: dims of each input, as in the signature.

    Raises:
        ProfileError: for a text that does not follow the grammar, unknown or repeated names, or positions along a
            symbol that the input does not carry.
    """
    derived = tuple(_derived(text, input_dims) for text in texts)
    repeated = first_repeated(one.input for one in derived)
    if repeated is not None:
        raise ProfileError(f"--derive names {repeated!r} twice; keep one")
    return derived


def _derived(text: str, input_dims: InputDims) -> Derived:
    name, kind = _split(text)
    if name not in input_dims:
        raise ProfileError(f"--derive: {unknown_name('input', name, input_dims)}; 'trtc inspect MODEL' lists them")
    if kind == "ones":
        return Derived(name, "ones")
    if kind == "zeros":
        return Derived(name, "zeros")
    word, colon, symbol = kind.partition(":")
    if word != "positions" or not colon:
        raise ProfileError(f"--derive {shown(text)}: {shown(kind)} is not a kind; write {_FORM}")
    symbol = _unquoted(symbol)
    carried = list(dict.fromkeys(s for dim in input_dims[name] for s in sorted(dim_symbols(dim))))
    if symbol not in carried:
        raise ProfileError(f"--derive, for input {name!r}: {unknown_name('symbol', symbol, carried)}; write {_FORM}")
    return Derived(name, "positions", symbol)


def _split(text: str) -> tuple[str, str]:
    at = text.rfind(_POSITIONS)
    if at > 0 and text.lstrip(BLANKS)[:1] not in QUOTES:
        return text[:at].strip(BLANKS), text[at + 1 :].strip(BLANKS)
    name, kind = split_name(text, "=", _FORM)
    return name, kind.strip(BLANKS)


def _unquoted(symbol: str) -> str:
    if not symbol or symbol[0] not in QUOTES:
        return symbol
    name, end = read_quoted(symbol, 0)
    return name if end == len(symbol) else symbol
