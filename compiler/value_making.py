"""Values made by rule: numbers, masks, words, and values that decide shapes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from trtc.engines.signature import numpy_dtype

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trtc.compiler.input_roles import ShapeUse
    from trtc.compiler.value_rules import ValueRule
    from trtc.engines.signature import TensorSpec
    from trtc.profiles import Sizes

Array: TypeAlias = "np.ndarray[Any, Any]"
_PLAIN_SHARE = 0.4
_TELLING_SHARES = (0.05, 0.3)
"""Part of the feeds without values that the graph compares with, and their part of the elements in the others."""


def made_tensor(
    rule: ValueRule, shape: tuple[int, ...], dtype: np.dtype[Any], sizes: Sizes, rng: np.random.Generator
) -> Array:
    """Make a tensor by a rule; ``sizes`` are of every symbol, and ``rng`` is the only source of randomness."""
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
    return no_row_all_zero((mask & ~holes).astype(np.int64))


def no_row_all_zero(mask: Array) -> Array:
    """Return the mask with a 1 at the first place of each row, along the last axis, that had none."""
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


def made_sequence(spec: TensorSpec, shape: tuple[int, ...], rng: np.random.Generator) -> Any:
    """A short sequence of small tensors; an optional holds its value."""
    element = spec.dtype.removeprefix("optional(").removeprefix("seq(").removeprefix("tensor(").rstrip(")")
    made: list[Any] = []
    for words in (["a", "b"], ["c", "d"]):
        drawn = rng.integers(0, 2, shape, endpoint=element != "string")
        made.append(np.array(words, object)[drawn] if element == "string" else drawn)
    made = [np.asarray(item).astype(numpy_dtype(element)) for item in made]
    return made if "seq(" in spec.dtype else made[0]
