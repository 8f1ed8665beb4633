"""What may be padded, and with what: ``--pad seq:right --fill input_ids=0``."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

from trtc.profiles.dims import dim_symbols
from trtc.profiles.errors import ProfileError
from trtc.profiles.grammar.digits import BLANKS, parse_number, shown
from trtc.profiles.grammar.names import QUOTES, first_repeated, quote_name, read_quoted, split_name
from trtc.profiles.grammar.values import input_symbols
from trtc.profiles.nearest import unknown_name
from trtc.profiles.padding import PadRule, Side

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from trtc.profiles.grammar.values import InputDims

_BOOLS = {"true": True, "True": True, "false": False, "False": False}
_SIDES: tuple[Side, ...] = get_args(Side)


def pad_rules(
    pads: Sequence[str], fills: Sequence[str], input_dims: InputDims, *, accept_error: bool = False
) -> tuple[PadRule, ...]:
    """Read what may be padded.

    Without a side, a symbol that is axis 0, and no other axis, of every input that carries it is padded by rows;
    any other symbol on the right. A symbol whose own name ends in ``:left``, ``:right`` or ``:rows`` needs quotes.

    Args:
        pads: one for each ``--pad``: ``SYMBOL``, ``SYMBOL:left``, ``SYMBOL:right`` or ``SYMBOL:rows``.
        fills: one for each ``--fill``: ``INPUT=VALUE`` with a number, ``true`` or ``false``.
        input_dims: dims of each input, as in the signature.
        accept_error: put into every rule.

    Raises:
        ProfileError: for a text that does not follow the grammar, unknown or repeated names, inputs without the fill
            that they need (all of them in one message), or a fill that nothing would use.
    """
    symbols = input_symbols(input_dims)
    sides = [_split_pad(text, symbols) for text in pads]
    values = [_split_fill(text, input_dims) for text in fills]
    for option, names in (("--pad", [symbol for symbol, _ in sides]), ("--fill", [name for name, _ in values])):
        repeated = first_repeated(names)
        if repeated is not None:
            raise ProfileError(f"{option} names {repeated!r} twice; keep one")
    fill_of = dict(values)
    missing: dict[str, str] = {}
    used: set[str] = set()
    rules = []
    for symbol, stated in sides:
        carriers = [name for name, dims in input_dims.items() if any(symbol in dim_symbols(dim) for dim in dims)]
        side = stated or ("rows" if _is_row_symbol(symbol, carriers, input_dims) else "right")
        needed = [] if side == "rows" else carriers
        missing.update((name, symbol) for name in needed if name not in fill_of)
        used.update(needed)
        rules.append(PadRule(symbol, side, {name: fill_of[name] for name in needed if name in fill_of}, accept_error))
    _check_fills(missing, [name for name in fill_of if name not in used], rules)
    return tuple(rules)


def _split_pad(text: str, symbols: Collection[str]) -> tuple[str, Side | None]:
    body = text.strip(BLANKS)
    if body[:1] and body[0] in QUOTES:
        symbol, end = read_quoted(body, 0)
        colon, word = body[end : end + 1], body[end + 1 :]
    else:
        symbol, colon, word = body.rpartition(":")
        if not colon or (word not in _SIDES and body in symbols):
            symbol, colon, word = body, "", ""
    side = next((side for side in _SIDES if side == word), None)
    if symbol in symbols and (colon or word) and (side is None or colon != ":"):
        raise ProfileError(
            f"--pad {shown(text)}: {shown(colon + word)} is not a side; write :left, :right or :rows, or no side"
        )
    if symbol not in symbols:
        raise ProfileError(f"--pad: {unknown_name('symbol', symbol, symbols)}; 'trtc inspect MODEL' lists the symbols")
    return symbol, side


def _split_fill(text: str, inputs: Collection[str]) -> tuple[str, float | int | bool]:
    name, value = split_name(text, "=", "--fill input_ids=0")
    if name not in inputs:
        raise ProfileError(f"--fill: {unknown_name('input', name, inputs)}; 'trtc inspect MODEL' lists the inputs")
    word = value.strip(BLANKS)
    return name, _BOOLS[word] if word in _BOOLS else parse_number(value, f"--fill {quote_name(name)}")


def _is_row_symbol(symbol: str, carriers: Sequence[str], input_dims: InputDims) -> bool:
    return all(
        input_dims[name][0] == symbol and not any(symbol in dim_symbols(dim) for dim in input_dims[name][1:])
        for name in carriers
    )


def _check_fills(missing: dict[str, str], unused: list[str], rules: list[PadRule]) -> None:
    if missing:
        needs = ", ".join(f"{name!r} (padded along {symbol!r})" for name, symbol in missing.items())
        options = " ".join(f"--fill {quote_name(name)}=VALUE" for name in missing)
        raise ProfileError(f"no fill for {needs}; add {options}, with the value that the model ignores")
    if unused:
        told = ", ".join(f"{rule.symbol}:{rule.side}" for rule in rules) or "nothing"
        raise ProfileError(
            f"--fill for {', '.join(map(repr, unused))} is not used: no symbol of it is padded on the left or right "
            f"(padded: {told}); leave the fill out, or add --pad SYMBOL:right for one of its symbols"
        )
