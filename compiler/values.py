"""Values for experiments: inside what the graph allows, and taken from real samples where there are any."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from trtc.compiler.value_making import Array, made_sequence, made_tensor, no_row_all_zero
from trtc.compiler.value_rules import ValueRule, rule_of
from trtc.engines.host_memory import host_memory
from trtc.engines.signature import numpy_dtype
from trtc.profiles import HostError, UsageError, sizes_text, unknown_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trtc.compiler.input_roles import InputRole
    from trtc.compiler.samples import Samples
    from trtc.engines.signature import TensorSpec
    from trtc.profiles import Sizes

_MAKING_BYTES = 16
"""Bytes for one element while values are made: drawn as doubles, then cast."""
_SMALL_BYTES = 2**28
"""Up to this many nobody asks how much memory is left."""
_UNKNOWN_RANK_SHAPE = (2, 3)
_ITEM_SHAPE = (2,)
_FREE_DEFAULT_SYMBOL = 2


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
            return made_sequence(spec, self._item_shape(spec, sizes), rng)
        rule = self.rules[spec.name]
        shape = (
            _UNKNOWN_RANK_SHAPE
            if spec.dims is None
            else tuple(dim if isinstance(dim, int) else sizes[str(dim)] for dim in spec.dims)
        )
        return made_tensor(rule, shape, numpy_dtype(spec.dtype), sizes, rng)

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
                feed[spec.name] = no_row_all_zero(feed[spec.name])
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
        spec.name: replace(rule_of(spec, roles[spec.name], val_ranges.get(spec.name)), item=roles[spec.name].item)
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
