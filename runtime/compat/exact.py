"""Feeds and output names that mean the same to ONNX Runtime and to a bundle; anything else is left to the former.

ONNX Runtime is more generous with some values than a bundle (it reads byte-swapped arrays as they lie, and cuts
fractions off where an integer is wanted), and stricter with others (no numbers, no tuples). What comes through here has
one meaning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_INTEGERS = "iu"


class InexactError(Exception):
    """Only ONNX Runtime itself knows what it makes of this; the text is the reason."""


def exact_feeds(feeds: Mapping[str, Any], dtypes: Mapping[str, np.dtype[Any] | None]) -> dict[str, Any]:
    """Return the feeds as arrays of the model's types.

    Args:
        feeds: by input name; exactly the inputs that ONNX Runtime demands.
        dtypes: of each input; None for an input that is no tensor of numbers or strings.

    Raises:
        InexactError: for any value that ONNX Runtime may read in another way.
    """
    return {name: _exact(name, feeds[name], dtype) for name, dtype in dtypes.items()}


def exact_names(names: Any, known: Sequence[str]) -> Sequence[str]:
    """Return the output names that are asked for: all for None or none.

    Raises:
        InexactError: for unknown or repeated names, or what is no list of texts.
    """
    if names is not None and not isinstance(names, list | tuple):
        raise InexactError("output names that are no list")
    if not names:
        return known
    if any(name not in known for name in names):
        raise InexactError("an output name that the model does not have")
    if len(set(names)) != len(names):
        raise InexactError("an output name that repeats")
    return names


def _exact(name: str, value: Any, dtype: np.dtype[Any] | None) -> Any:
    if dtype is None:
        raise InexactError(f"input {name!r} is no tensor of numbers or strings")
    if isinstance(value, list) and dtype.kind != "O":
        return _from_list(name, value, dtype)
    if not isinstance(value, np.ndarray):
        raise InexactError(f"input {name!r} came as {type(value).__name__}")
    if dtype.kind == "O":
        if value.dtype.kind == "U" or (value.dtype.kind == "O" and all(type(item) is str for item in value.flat)):
            return value
        raise InexactError(f"input {name!r} holds what is no text")
    if value.dtype != dtype or not value.dtype.isnative:
        raise InexactError(f"input {name!r} came with dtype {value.dtype}")
    return np.asarray(value)


def _from_list(name: str, value: list[Any], dtype: np.dtype[Any]) -> np.ndarray:
    """Convert a list whose numbers keep their kind: whole numbers that fit, or numbers for a floating-point input."""
    reason = f"input {name!r} is a list whose values are not plainly {dtype}"
    try:
        natural = np.array(value)
    except (ValueError, OverflowError) as error:
        raise InexactError(reason) from error
    allowed = _INTEGERS if dtype.kind in _INTEGERS else "fiu" if dtype.kind == "f" else "b" if dtype.kind == "b" else ""
    if natural.dtype.kind not in allowed or not natural.size:
        raise InexactError(reason)
    if dtype.kind in _INTEGERS and natural.dtype != dtype:
        bounds = np.iinfo(dtype)
        if natural.min() < bounds.min or natural.max() > bounds.max:
            raise InexactError(reason)
    with np.errstate(over="ignore"):
        return natural.astype(dtype, copy=False)
