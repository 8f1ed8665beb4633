"""What forbids padding, or batching, before anything is run: decided from the signature and the graph alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from trtc.compiler.probes.reach import carriers, trace_reach
from trtc.compiler.probes.subject import largest_finite
from trtc.engines.signature import TensorSpec, numpy_dtype
from trtc.profiles import PadRule, UsageError, dim_symbols, dim_text, shape_text, unknown_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trtc.compiler.probes.subject import Subject
    from trtc.engines.signature import Signature


def check_rules(signature: Signature, rules: Sequence[PadRule]) -> None:
    """Refuse rules that do not say enough, or name what the model does not have.

    Raises:
        UsageError: for an unknown symbol or input, a missing fill, or one that the dtype cannot hold.
    """
    by_name = {spec.name: spec for spec in signature.inputs}
    for rule in rules:
        if rule.symbol not in signature.symbols:
            raise UsageError(unknown_name("symbol", rule.symbol, signature.symbols))
        if rule.side == "rows":
            continue
        for name in carriers(signature, rule.symbol):
            if name not in rule.fills:
                raise UsageError(
                    f"padding {rule.symbol} needs a fill for input {name!r}, which carries it; add --fill {name}=VALUE"
                )
        for name, fill in rule.fills.items():
            if name not in by_name:
                raise UsageError(unknown_name("input", name, by_name))
            _check_fill(by_name[name], fill)


def padding_obstacles(subject: Subject, rules: Sequence[PadRule]) -> tuple[str, ...]:
    """Say why these symbols cannot be padded together, whatever the values are; empty when nothing forbids it."""
    sides = {rule.symbol: "left" if rule.side == "left" else "right" for rule in rules}
    found = _input_obstacles(subject, frozenset(sides))
    names = [name for symbol in sides for name in carriers(subject.signature, symbol)]
    reached = trace_reach(subject.graph).reached_from(names)
    for spec in subject.signature.outputs:
        if spec.name in reached and _is_late(spec):
            found.append(
                f"output {spec.name!r} {shape_text(spec.dims)} depends on {', '.join(sides)} in a way that is not "
                "known, or on the data, so its padding could not be cut off"
            )
        for dim in spec.dims or ():
            mixed = {symbol: sides[symbol] for symbol in sorted(dim_symbols(dim) & sides.keys())}
            if len(set(mixed.values())) > 1:
                found.append(
                    f"output {spec.name!r} has an axis {dim_text(dim)} with padding on both sides "
                    f"({', '.join(f'{symbol} {side}' for symbol, side in mixed.items())}); declare one side for all"
                )
    return tuple(found)


def row_obstacles(subject: Subject, symbol: str) -> tuple[str, ...]:
    """Say why rows along ``symbol`` cannot be told apart in inputs and outputs; empty when they can."""
    found = _input_obstacles(subject, frozenset([symbol]))
    names = carriers(subject.signature, symbol)
    if not names:
        found.append(f"no input has an axis {symbol}")
    found.extend(
        f"input {spec.name!r} {shape_text(spec.dims)} has {symbol} on more than one axis"
        for spec in subject.signature.inputs
        if (spec.dims or ()).count(symbol) > 1
    )
    reached = trace_reach(subject.graph).reached_from(names)
    for spec in subject.signature.outputs:
        if spec.name not in reached:
            continue
        carrying = [dim for dim in spec.dims or () if symbol in dim_symbols(dim)]
        if _is_late(spec):
            found.append(
                f"output {spec.name!r} {shape_text(spec.dims)} has a size that is not known, or depends on the data"
            )
        elif not carrying:
            found.append(
                f"output {spec.name!r} {shape_text(spec.dims)} belongs to the batch as a whole, not to its rows"
            )
        elif carrying != [symbol]:
            found.append(
                f"output {spec.name!r} {shape_text(spec.dims)} has no axis of exactly {symbol}: rows merge in it"
            )
    return tuple(found)


def _input_obstacles(subject: Subject, symbols: frozenset[str]) -> list[str]:
    found = []
    for spec in subject.signature.inputs:
        if symbols & spec.symbols and spec.name in subject.values.carries_shape:
            found.append(f"input {spec.name!r} decides shapes by its values, so added values would change them")
        if symbols & spec.symbols and not spec.in_memory:
            found.append(f"input {spec.name!r} holds {spec.dtype}, which has no place in planned memory to pad in")
        found.extend(
            f"input {spec.name!r} has an axis {dim_text(dim)}, which is no symbol of its own, so it cannot be padded"
            for dim in spec.dims or ()
            if not isinstance(dim, str) and dim_symbols(dim) & symbols
        )
    return found


def _is_late(spec: TensorSpec) -> bool:
    return not spec.in_memory or spec.dims is None or None in spec.dims


def _check_fill(spec: TensorSpec, fill: float | bool) -> None:  # noqa: FBT001 (a fill may be a bool)
    if not spec.in_memory:
        return
    dtype = numpy_dtype(spec.dtype)
    if dtype.kind in "biu":
        info = np.iinfo("u1" if dtype.kind == "b" else dtype.str)
        low, high = int(info.min), 1 if dtype.kind == "b" else int(info.max)
        if fill % 1 != 0 or not low <= fill <= high:
            raise UsageError(
                f"fill {fill} for input {spec.name!r} of type {spec.dtype}; give a whole number from {low} to {high}"
            )
    elif dtype.kind == "f" and np.isfinite(fill) and abs(fill) > largest_finite(dtype):
        raise UsageError(
            f"fill {fill} for input {spec.name!r} of type {spec.dtype} is too large for it; give a smaller one"
        )
