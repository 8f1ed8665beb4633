"""Bind what was typed to the inputs of a model: ranges per input or per symbol become profiles.

Whatever the grammar, equal shapes give equal profiles.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtc.profiles.dims import Expr, dim_symbols, shape_text
from trtc.profiles.errors import ProfileError
from trtc.profiles.grammar.claims import Claim, common_range, expression_range
from trtc.profiles.grammar.names import quote_name, unknown_typed
from trtc.profiles.grammar.values import (
    OPEN,
    InputDims,
    InputShape,
    ParsedShapes,
    SymbolRange,
    input_axis,
    input_symbols,
)
from trtc.profiles.ranges import Profile, Range

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence


def bind_shapes(shapes: ParsedShapes, input_dims: InputDims) -> tuple[Profile, ...]:
    """Make the profiles ``p0``, ``p1`` ... of a model.

    Symbols that the symbol grammar leaves out are open. The per-input grammars must state every dynamic input, but for
    one whose symbols all stand alone on axes of inputs that have a shape: its ranges follow from those. Without any
    shapes there is one profile, with every symbol open.

    Args:
        shapes: what a grammar returned.
        input_dims: dims of each input, as in the signature; a dim of 0 is a real 0.

    Raises:
        ProfileError: for unknown names, a wrong rank, another size for a static axis, a dynamic axis that no shape
            tells the size of, or ranges of one symbol that contradict each other.
    """
    symbols = input_symbols(input_dims)
    profiles = []
    for index, entries in enumerate(shapes or ((),)):
        where = f"profile {index}: " if len(shapes) > 1 else ""
        inputs = [entry for entry in entries if isinstance(entry, InputShape)]
        if inputs or (shapes and not entries and symbols):
            ranges = _from_inputs(inputs, input_dims, where)
        else:
            ranges = _from_symbols([entry for entry in entries if isinstance(entry, SymbolRange)], symbols, where)
        profiles.append(Profile(f"p{index}", {symbol: ranges.get(symbol, OPEN) for symbol in symbols}))
    return tuple(profiles)


def require_closed(profiles: Sequence[Profile], target: str) -> None:
    """Refuse open ranges for a target that builds for stated ranges only.

    Args:
        profiles: what is to be built.
        target: name of the target, for the message.

    Raises:
        ProfileError: when a symbol has no upper end in some profile; lists all such symbols.
    """
    open_symbols = dict.fromkeys(symbol for p in profiles for symbol, r in p.ranges.items() if r.max is None)
    if open_symbols:
        raise ProfileError(
            f"target {target} needs a range for every symbol, but {', '.join(map(repr, open_symbols))} "
            f"ha{'s' if len(open_symbols) == 1 else 've'} no upper end; {ways_to_give(open_symbols)}"
        )


def ways_to_give(symbols: Iterable[str]) -> str:
    """Tell the three ways to give ranges, with the options to type."""
    names = [quote_name(symbol) for symbol in symbols]
    return (
        f"write {' '.join(f'--dim {name}=MIN:OPT:MAX' for name in names)}, "
        f"or {' '.join(f'--buckets {name}=SIZE,SIZE' for name in names)}, "
        "or the ranges of every dynamic input as --shape 'NAME[MIN..MAX,3]' "
        "(or trtexec's --minShapes, --optShapes and --maxShapes)"
    )


def _from_symbols(entries: list[SymbolRange], symbols: Sequence[str], where: str) -> dict[str, Range]:
    for entry in entries:
        if entry.symbol not in symbols:
            raise ProfileError(
                f"{where}{unknown_typed('symbol', entry.symbol, symbols)}; 'trtc inspect MODEL' lists the symbols"
            )
    return {entry.symbol: entry.range for entry in entries}


def _from_inputs(shapes: list[InputShape], input_dims: InputDims, where: str) -> dict[str, Range]:
    given = {shape.name for shape in shapes}
    for shape in shapes:
        _check_shape(shape, input_dims, where)
    claims: dict[str, list[Claim]] = {}
    followers: list[tuple[Expr, Claim]] = []
    for shape in shapes:
        for axis, (dim, size_range) in enumerate(zip(input_dims[shape.name], shape.dims, strict=True)):
            claim = Claim(shape.name, axis, size_range, tuned=shape.tuned and size_range.opt is not None)
            if isinstance(dim, str):
                claims.setdefault(dim, []).append(claim)
            elif isinstance(dim, Expr):
                followers.append((dim, claim))
            else:
                _check_plain(dim, claim, where)
    _check_missing({name: dims for name, dims in input_dims.items() if name not in given}, claims.keys(), where)
    ranges = {symbol: common_range(symbol, stated, where) for symbol, stated in claims.items()}
    for expr, claim in followers:
        expression_range(expr, claim, ranges, where)
    return ranges


def _check_shape(shape: InputShape, input_dims: InputDims, where: str) -> None:
    if shape.name not in input_dims:
        raise ProfileError(
            f"{where}{unknown_typed('input', shape.name, input_dims)}; 'trtc inspect MODEL' lists the inputs"
        )
    dims = input_dims[shape.name]
    if len(dims) != len(shape.dims):
        stated = ", ".join(map(str, shape.dims))
        raise ProfileError(
            f"{where}input {shape.name!r} has {len(dims)} axes {shape_text(dims)}, but {len(shape.dims)} were given "
            f"[{stated}]; write one size or range for each axis"
        )


def _check_plain(dim: int | None, claim: Claim, where: str) -> None:
    if dim is None:
        raise ProfileError(
            f"{where}{claim.axis_text}: the model does not tell what this size depends on, so {claim.range} cannot be "
            "bound; leave the per-input shapes out and give symbols with --dim"
        )
    if claim.range != Range(dim, dim, dim):
        raise ProfileError(
            f"{where}{claim.axis_text} is always {dim} in this model, but {claim.range} was given; write {dim} there"
        )


def _check_missing(missing: InputDims, known: Collection[str], where: str) -> None:
    """Refuse axes of inputs without a shape, unless every symbol of the axis has its range from another input."""
    unknown = [
        (name, axis, dim)
        for name, dims in missing.items()
        for axis, dim in enumerate(dims)
        if isinstance(dim, str | Expr) and not dim_symbols(dim) <= set(known)
    ]
    if unknown:
        listed = "; ".join(f"{input_axis(name, axis)} ({dim})" for name, axis, dim in unknown)
        symbols = input_symbols({name: missing[name] for name, _, _ in unknown})
        raise ProfileError(
            f"{where}no shape for dynamic dims: {listed}; {ways_to_give(s for s in symbols if s not in known)}"
        )
