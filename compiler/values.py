"""Values for experiments: inside what the graph allows, and taken from real samples where there are any."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import ceil, floor, inf, prod
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from trtc.engines.host_memory import host_memory
from trtc.engines.signature import numpy_dtype
from trtc.profiles import HostError, UsageError, sizes_text, unknown_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trtc.compiler.inference import Dims
    from trtc.compiler.input_roles import InputRole, ShapeUse
    from trtc.compiler.samples import Samples
    from trtc.engines.signature import TensorSpec
    from trtc.profiles import Sizes

Array: TypeAlias = "np.ndarray[Any, Any]"
_MAKING_BYTES = 16
"""Bytes for one element while values are made: drawn as doubles, then cast."""
_SMALL_BYTES = 2**28
"""Up to this many nobody asks how much memory is left."""
_UNKNOWN_RANK_SHAPE = (2, 3)
_ITEM_SHAPE = (2,)
_FREE_INTEGERS = (0, 9)
_FREE_DEFAULT_SYMBOL = 2
_PLAIN_SHARE = 0.4
_TELLING_SHARES = (0.05, 0.3)
"""Part of the feeds without values that the graph compares with, and their part of the elements in the others."""


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


@dataclass(frozen=True, slots=True)
class ValueSource:
    """Makes feeds at asked sizes; the same seed gives the same feeds.

    Attributes:
        inputs: specs of the graph inputs.
        rules: by input name.
        samples: real feeds, preferred where given; dims of ``inputs`` tell which axis is which symbol.
    """

    inputs: tuple[TensorSpec, ...]
    rules: dict[str, ValueRule]
    samples: Samples | None = None
    _rows: str | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        first = [spec.dims[0] for spec in self.inputs if spec.dims and isinstance(spec.dims[0], str)]
        rows = max(dict.fromkeys(first), key=first.count) if first else None
        object.__setattr__(self, "_rows", rows)

    @property
    def carries_shape(self) -> tuple[str, ...]:
        """Inputs whose values decide shapes; they can neither be padded nor batched."""
        return tuple(name for name, rule in self.rules.items() if rule.uses)

    @property
    def guesses(self) -> bool:
        """Whether some values are guessed: then a run may fail for its values and not for its sizes."""
        return any(rule.kind in ("integers", "candidates", "shape", "strings") for rule in self.rules.values())

    def feeds(self, sizes: Sizes, rng: np.random.Generator) -> dict[str, Any]:
        """Make one feed.

        Args:
            sizes: of every symbol of the inputs, in elements.
            rng: the only source of randomness.

        Returns:
            A value for each input; strings as object arrays, sequences as lists.

        Raises:
            HostError: when they would not fit into the memory that is left.
        """
        _require_room(self.inputs, sizes)
        real = self._real(sizes, rng)
        return {
            spec.name: real.get(spec.name, None) if spec.name in real else self._made(spec, sizes, rng)
            for spec in self.inputs
        }

    def describe(self) -> str:
        """Say where values come from, for reports."""
        made = [f"{spec.name} {self._rule_text(spec.name)}" for spec in self.inputs]
        if self.samples is None:
            return "generated: " + "; ".join(made) if made else "no inputs"
        count = len(self.samples.feeds)
        given = set().union(*self.samples.feeds)
        rest = [text for spec, text in zip(self.inputs, made, strict=True) if spec.name not in given]
        text = f"{count} real sample{'s' if count != 1 else ''}, cut or repeated along the symbols to the sizes asked"
        return text + (f"; generated: {'; '.join(rest)}" if rest else "")

    def _rule_text(self, name: str) -> str:
        rule = self.rules[name]
        return rule.reason or rule.kind

    def _made(self, spec: TensorSpec, sizes: Sizes, rng: np.random.Generator) -> Any:
        if not spec.is_tensor:
            return _made_sequence(spec, self._item_shape(spec, sizes), rng)
        rule = self.rules[spec.name]
        shape = (
            _UNKNOWN_RANK_SHAPE
            if spec.dims is None
            else tuple(dim if isinstance(dim, int) else sizes[str(dim)] for dim in spec.dims)
        )
        return _make(rule, shape, numpy_dtype(spec.dtype), sizes, rng)

    def _item_shape(self, spec: TensorSpec, sizes: Sizes) -> tuple[int, ...]:
        item = self.rules[spec.name].item
        if item is None:
            return _ITEM_SHAPE
        return tuple(dim if isinstance(dim, int) else sizes.get(str(dim), _FREE_DEFAULT_SYMBOL) for dim in item)

    def _real(self, sizes: Sizes, rng: np.random.Generator) -> dict[str, Array]:
        """Cut and repeat real feeds to ``sizes``; rows come from several samples where one has too few."""
        if self.samples is None or 0 in sizes.values():
            return {}
        order = [self.samples.feeds[i] for i in rng.permutation(len(self.samples.feeds))]
        specs = [spec for spec in self.inputs if spec.name in order[0] and spec.dims is not None]
        if any(_empty_along_symbol(order[0][spec.name], spec) for spec in specs):
            return {}
        feed = {}
        for spec in specs:
            parts = [
                _fitted(part[spec.name], spec, sizes, self._rows) for part in order if part.get(spec.name) is not None
            ]
            parts = [part for part in parts if not _empty_along_symbol(part, spec)]
            if self._rows in (spec.dims or ()):
                axis = (spec.dims or ()).index(self._rows)
                joined = np.concatenate(parts, axis=axis) if len(parts) > 1 else parts[0]
                feed[spec.name] = _resized(joined, axis, sizes[str(self._rows)])
            else:
                feed[spec.name] = parts[0]
            if self.rules[spec.name].kind == "mask":
                feed[spec.name] = _no_row_all_zero(feed[spec.name])
        return feed


def value_source(
    inputs: Sequence[TensorSpec],
    roles: Mapping[str, InputRole],
    val_ranges: Mapping[str, tuple[float, float]],
    samples: Samples | None = None,
) -> ValueSource:
    """Decide how values of each input are made.

    Args:
        inputs: specs of the graph inputs.
        roles: what the graph does with each.
        val_ranges: the user's own bounds by input name; they win over what the graph tells.
        samples: checked samples, or None.

    Raises:
        UsageError: a range for an unknown input, or a range that holds no value.
    """
    names = [spec.name for spec in inputs]
    for name, (low, high) in val_ranges.items():
        if name not in names:
            raise UsageError(unknown_name("input", name, names) + " in --val-range")
        if not low <= high:
            raise UsageError(f"--val-range {name}={low}:{high} holds no value; write it as {name}:[LOW,HIGH]")
    rules = {
        spec.name: replace(_rule(spec, roles[spec.name], val_ranges.get(spec.name)), item=roles[spec.name].item)
        for spec in inputs
    }
    return ValueSource(tuple(inputs), rules, samples)


def _require_room(inputs: Sequence[TensorSpec], sizes: Sizes) -> None:
    """Refuse sizes that this machine cannot hold, before anything is allocated: a range may be typed too wide."""
    elements = sum(
        prod(dim if isinstance(dim, int) else sizes[str(dim)] for dim in spec.dims)
        for spec in inputs
        if spec.is_tensor and spec.dims is not None
    )
    needed_bytes = elements * _MAKING_BYTES
    if needed_bytes < _SMALL_BYTES:
        return
    memory = host_memory()
    room_bytes = min(memory.available_bytes, memory.limit_bytes or memory.available_bytes)
    if needed_bytes > room_bytes:
        raise HostError(
            f"inputs at {sizes_text(sizes)} take {needed_bytes} bytes to make, and {room_bytes} are left on this "
            "machine; lower the largest sizes, or build where there is more memory"
        )


def _rule(spec: TensorSpec, role: InputRole, given: tuple[float, float] | None) -> ValueRule:
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


def _make(
    rule: ValueRule, shape: tuple[int, ...], dtype: np.dtype[Any], sizes: Sizes, rng: np.random.Generator
) -> Array:
    if rule.kind == "strings":
        words = np.array(["", "a", "héé", "two words", "0"], object)
        return words[rng.integers(0, len(words), shape)] if shape else np.array(words[rng.integers(len(words))], object)
    if rule.kind == "bools":
        return np.asarray(rng.random(shape) < rng.choice([0.2, 0.5, 0.8])).astype(dtype)
    if rule.kind == "mask":
        return _mask(shape, rng).astype(dtype)
    if rule.kind == "candidates":
        return np.asarray(rng.choice(np.array(rule.candidates), shape)).astype(dtype)
    if rule.kind == "shape":
        return _shape_values(rule.uses[0], shape, sizes, rng).astype(dtype)
    if rule.kind in ("integers", "index"):
        high = sizes.get(rule.high, 1) - 1 if isinstance(rule.high, str) else rule.high
        drawn = np.asarray(rng.integers(int(rule.low), max(int(rule.low), int(high)), shape, endpoint=True))
        return _with_telling(drawn, rule.candidates, rng).astype(dtype)
    if rule.high != rule.low or rule.reason.endswith("(as given)"):
        return np.asarray(rng.uniform(rule.low, float(rule.high), shape)).astype(dtype)
    return _floats(shape, dtype, rng)


def _with_telling(values: Array, telling: Sequence[float], rng: np.random.Generator) -> Array:
    """Put values that the graph compares with among others, now and then: an end token is one of many thousands."""
    if not telling or not values.ndim or rng.random() < _PLAIN_SHARE:
        return values
    chosen = rng.random(values.shape) < rng.choice(_TELLING_SHARES)
    return np.where(chosen, rng.choice(np.array(telling), values.shape).astype(np.int64), values)


def _floats(shape: tuple[int, ...], dtype: np.dtype[Any], rng: np.random.Generator) -> Array:
    """Mixed scales, drawn anew for each feed, since one scale hides what another shows."""
    style = rng.choice(4, p=[0.5, 0.25, 0.1, 0.15])
    values = rng.random(shape) if style == 1 else rng.standard_normal(shape)
    if style == 2:  # noqa: PLR2004
        values = values * 100
    if style == 3:  # noqa: PLR2004
        values = np.where(rng.random(shape) < 0.5, values, 0.0)  # noqa: PLR2004
    return np.asarray(values).astype(dtype)


def _mask(shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Ones, then zeros, along the last axis; now and then a hole. No row is all zero."""
    if 0 in shape or not shape:
        return np.ones(shape, np.int64)
    length = rng.integers(1, shape[-1], (*shape[:-1], 1), endpoint=True)
    mask = np.arange(shape[-1]) < length
    holes = rng.random(shape) < (0.2 if rng.random() < 0.25 else 0.0)  # noqa: PLR2004
    return _no_row_all_zero((mask & ~holes).astype(np.int64))


def _no_row_all_zero(mask: Array) -> Array:
    if mask.ndim == 0 or mask.size == 0:
        return mask
    empty = ~mask.astype(bool).any(axis=-1)
    if empty.any():
        mask = mask.copy()
        mask[empty, 0] = 1
    return mask


def _shape_values(use: ShapeUse, shape: tuple[int, ...], sizes: Sizes, rng: np.random.Generator) -> Array:
    """Values that keep the operator valid whatever its data are, and differ from run to run where they may."""
    values = np.ones(shape, np.int64)
    if use.op_type == "Reshape" and values.size:
        values.reshape(-1)[rng.integers(values.size)] = -1
    elif use.op_type in ("Tile", "ConstantOfShape", "Loop", "TopK") or (use.op_type, use.operand) == ("Range", 1):
        values = np.asarray(rng.integers(1, 1 if use.op_type == "TopK" else 3, shape, endpoint=True))
    elif use.op_type in ("Pad", "Squeeze", "Unsqueeze") or use.op_type.startswith("Reduce"):
        values = np.zeros(shape, np.int64)
    elif (use.op_type, use.operand) in (("Range", 0), ("Slice", 1), ("Slice", 3)):
        values = np.arange(values.size).reshape(shape) if use.operand == 3 else np.zeros(shape, np.int64)  # noqa: PLR2004
    elif use.op_type == "OneHot":
        values = np.asarray(rng.integers(2, 5, shape, endpoint=True))
    elif use.op_type == "Resize" and use.operand == 3 and use.dims is not None and values.size == len(use.dims):  # noqa: PLR2004
        values = np.array([d if isinstance(d, int) else sizes.get(str(d), 1) for d in use.dims]).reshape(shape)
    return np.asarray(values)


def _made_sequence(spec: TensorSpec, shape: tuple[int, ...], rng: np.random.Generator) -> Any:
    """A short sequence of small tensors; an optional holds its value."""
    element = spec.dtype.removeprefix("optional(").removeprefix("seq(").removeprefix("tensor(").rstrip(")")
    made: list[Any] = []
    for words in (["a", "b"], ["c", "d"]):
        drawn = rng.integers(0, 2, shape, endpoint=element != "string")
        made.append(np.array(words, object)[drawn] if element == "string" else drawn)
    made = [np.asarray(item).astype(numpy_dtype(element)) for item in made]
    return made if "seq(" in spec.dtype else made[0]


def _empty_along_symbol(array: Array, spec: TensorSpec) -> bool:
    """Tell whether there is nothing to cut or repeat along a symbol; an axis that the model fixes at 0 is as it is."""
    return any(isinstance(dim, str) and size == 0 for dim, size in zip(spec.dims or (), array.shape, strict=True))


def _fitted(array: Array, spec: TensorSpec, sizes: Sizes, rows: str | None) -> Array:
    """Cut or repeat along every symbol except the one that rows are counted by."""
    for axis, dim in enumerate(spec.dims or ()):
        if isinstance(dim, str) and dim != rows:
            array = _resized(array, axis, sizes[dim])
    return array


def _resized(array: Array, axis: int, size: int) -> Array:
    have = array.shape[axis]
    if have == size:
        return array
    return np.ascontiguousarray(np.take(array, np.arange(size) % have, axis=axis))


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
