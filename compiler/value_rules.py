"""How values of an input are made for experiments: decided from what the graph does with them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, floor, inf
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trtc.compiler.inference import Dims
    from trtc.compiler.input_roles import InputRole, ShapeUse
    from trtc.engines.signature import TensorSpec

_FREE_INTEGERS = (0, 9)


@dataclass(frozen=True, slots=True)
class ValueRule:
    """How values of one input are made.

    Attributes:
        kind: ``floats``; ``integers`` inside ``low..high``; ``index``, the same where the graph fails outside;
            ``candidates``, any of these; ``mask``, 0 and 1 with no row all zero; ``bools``; ``strings``; ``shape``,
            values that decide a shape.
        low, high: both ends included; ``high`` may be a symbol, then it is that size minus one.
        candidates: constants of the graph that make a difference; an ``index`` is one of them now and then.
        uses: where a ``shape`` is read.
        reason: for people.
        item: dims of one item, for sequences that tell them; None for others.
    """

    kind: Literal["floats", "integers", "index", "candidates", "mask", "bools", "strings", "shape"]
    low: float = 0
    high: float | str = 0
    candidates: tuple[float, ...] = ()
    uses: tuple[ShapeUse, ...] = ()
    reason: str = ""
    item: Dims | None = None

    def renamed(self, symbols: Mapping[str, str]) -> ValueRule:
        """Return the rule with some symbols called otherwise."""
        high = symbols.get(self.high, self.high) if isinstance(self.high, str) else self.high
        item = self.item and tuple(symbols.get(d, d) if isinstance(d, str) else d for d in self.item)
        return replace(self, high=high, item=item)


def rule_of(spec: TensorSpec, role: InputRole, given: tuple[float, float] | None) -> ValueRule:
    """Decide how values of one input are made.

    Args:
        spec: of the input.
        role: what the graph does with it.
        given: bounds that the user states, both included; they win over what the graph tells.
    """
    uses = tuple(role.shapes)
    # Most shapes of a given range would not fit the data; those that fit are made whatever the range is.
    if given is not None and not any(use.op_type in ("Reshape", "Expand") for use in uses):
        return ValueRule(
            "integers" if _integral(spec.dtype) else "floats",
            *given,
            uses=uses,
            reason=f"in {given[0]:g}..{given[1]:g} (as given)",
        )
    if uses:
        where = ", ".join(dict.fromkeys(f"{use.op_type} node {use.node!r}" for use in uses[:3]))
        return ValueRule("shape", uses=uses, reason=f"decides a shape in {where}: values that keep it valid")
    if spec.dtype == "string":
        return ValueRule("strings", reason="short words")
    ranked = spec.dims is None or len(spec.dims) > 0
    if role.tables:
        return _table_rule(role)
    masking = role.bias or (role.mask and (spec.dtype == "bool" or _integral(spec.dtype)))
    if masking and ranked and role.compared <= {-1.0, 0.0, 1.0, 2.0}:
        return ValueRule("mask", 0, 1, reason="0 or 1, no row all zero (used as a mask)")
    if spec.dtype == "bool":
        return ValueRule("bools", 0, 1, reason="both truth values")
    if not _integral(spec.dtype):
        return ValueRule("floats", reason="unit normal, uniform 0..1 and larger scales, some zeros")
    if role.compared:
        fitting = tuple(sorted(v for v in role.compared if v == int(v) and _in_dtype(v, spec.dtype)))
        if fitting:
            shown = ", ".join(f"{v:g}" for v in fitting[:4]) + (f" ... {fitting[-1]:g}" if len(fitting) > 4 else "")  # noqa: PLR2004
            return ValueRule("candidates", candidates=fitting, reason=f"{shown} (the graph compares with these)")
    low, high = _free_range(spec.dtype)
    return ValueRule("integers", low, high, reason=f"in {low}..{high} (the graph does not bound it)")


def _table_rule(role: InputRole) -> ValueRule:
    low, high = 0.0, inf
    symbol, size = None, None
    for table in role.tables:
        if table.size is None:
            low, high = 0.0, min(high, 0.0)
        elif isinstance(table.size, str):
            symbol = table.size
        elif table.mul:
            ends = sorted([(0 - table.add_low) / table.mul, (table.size - 1 - table.add_high) / table.mul])
            low, high = max(low, ceil(ends[0] / table.share)), min(high, floor(ends[1] / table.share))
            size = table.size if size is None else min(size, table.size)
    if symbol is not None and high == inf:
        return ValueRule("index", int(low), symbol, reason=f"in {low:g}..{symbol}-1 (indexes an axis of size {symbol})")
    high = max(low, high) if high != inf else low
    text = f"indexes a table of {size} rows" if size is not None else "indexes an axis of unknown size"
    telling = tuple(sorted(v for v in role.compared if v == int(v) and low <= v <= high))
    return ValueRule("index", int(low), int(high), telling, reason=f"in {low:g}..{high:g} ({text})")


def _integral(dtype: str) -> bool:
    return dtype.startswith(("int", "uint"))


def _in_dtype(value: float, dtype: str) -> bool:
    low, high = _limits(dtype)
    return low <= value <= high


def _limits(dtype: str) -> tuple[int, int]:
    bits = int(dtype.removeprefix("u").removeprefix("int"))
    return (0, 2**bits - 1) if dtype.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _free_range(dtype: str) -> tuple[int, int]:
    """Bytes are pictures or quantized values and use their whole range; wider integers are counts."""
    low, high = _limits(dtype)
    return (low, high) if high < 256 else _FREE_INTEGERS  # noqa: PLR2004
