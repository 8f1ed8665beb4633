"""One value of a request, brought into the model's type without ever changing what it says."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from trtc.engines.signature import PACKED, numpy_dtype
from trtc.profiles import RequestError

if TYPE_CHECKING:
    from trtc.engines.signature import TensorSpec

_SEQUENCE = re.compile(r"seq\(tensor\((\w+)\)\)\Z")
_FOREIGN = (AttributeError, BufferError, RuntimeError, TypeError, ValueError)
"""What exports of other libraries raise."""


def as_value(spec: TensorSpec, value: Any) -> Any:
    """Return one value as the model takes it.

    Numbers and lists take the model's type when they fit it exactly; arrays keep theirs, which must be the model's.
    Any strides and byte order are accepted, masked arrays only when nothing is masked.

    Returns:
        For inputs that have a place in planned memory the caller's own array (writing it into its place settles
        strides and byte order); for others a native array in C order; sequences as lists of such arrays.

    Raises:
        RequestError: naming the input, what came and what is allowed.
    """
    if not spec.is_tensor:
        return _as_other(spec, value)
    array = _as_tensor(spec, f"input {spec.name!r}", spec.dtype, value)
    return array if spec.in_memory else _settled(array)


def _as_tensor(spec: TensorSpec, where: str, dtype: str, value: Any) -> np.ndarray:
    want = numpy_dtype(dtype)
    array = _to_array(where, value, want)
    if dtype == "string":
        return _as_strings(where, array)
    if array.dtype.newbyteorder("=") != want:
        raise RequestError(
            f"{where}: dtype {array.dtype}, but the model takes {want}; convert it with .astype({want.name!r})"
        )
    if spec.in_memory or array.dtype is want:
        return array
    return np.ascontiguousarray(array, dtype=want).reshape(array.shape).view(want)


def _settled(array: np.ndarray) -> np.ndarray:
    """Return a native array in C order; ``ascontiguousarray`` alone would make a scalar one-dimensional."""
    return np.ascontiguousarray(array).reshape(array.shape)


def _as_other(spec: TensorSpec, value: Any) -> Any:
    """Check the items of a sequence of tensors; optionals and maps go to the engine as they are."""
    found = _SEQUENCE.match(spec.dtype)
    if found is None:
        return value
    if not isinstance(value, list | tuple):
        raise RequestError(
            f"input {spec.name!r}: {type(value).__name__}, but the model takes {spec.dtype}; give a list"
        )
    return [
        _settled(_as_tensor(spec, f"input {spec.name!r}, item {i}", found[1], item)) for i, item in enumerate(value)
    ]


def _to_array(where: str, value: Any, want: np.dtype[Any]) -> np.ndarray:
    masked = sys.modules.get("numpy.ma")  # where nobody imported it, there is no masked array
    if masked is not None and isinstance(value, masked.MaskedArray):
        if masked.is_masked(value):
            raise RequestError(f"{where}: a masked array with masked items; fill them with .filled(value)")
        return np.asarray(value)
    if isinstance(value, np.ndarray | np.generic):
        return np.asarray(value)
    try:
        if hasattr(value, "__dlpack__"):
            return np.from_dlpack(value)
        if hasattr(value, "__array__"):
            return np.asarray(value)
    except _FOREIGN as error:
        raise RequestError(
            f"{where}: {type(value).__name__} cannot be read as an array on the host ({error}); give a numpy array"
        ) from error
    if want.kind == "O":
        try:
            return np.array(value, dtype=object)
        except ValueError as error:
            raise RequestError(f"{where}: no regular list of strings ({error}); give an array") from error
    return _from_python(where, value, want)


def _from_python(where: str, value: Any, want: np.dtype[Any]) -> np.ndarray:
    """Convert numbers and lists; a value that the type cannot hold is an error, never rounded to an integer."""
    try:
        natural = np.asarray(value)
        if natural.size == 0:
            return natural.astype(want)
        cast = _cast(value, natural, want)
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise RequestError(f"{where}: no regular {want} values ({error}); give an array") from error
    if cast is None:
        raise RequestError(f"{where}: {_brief(value)} does not fit {want} without loss; give {want} values")
    return cast


def _cast(value: Any, natural: np.ndarray, want: np.dtype[Any]) -> np.ndarray | None:
    """Convert numbers; None where that would change one. ``natural`` is what numpy makes of ``value`` by itself."""
    if want.kind in "iu" and natural.dtype.kind in "fO":
        # Item by item: of integers beyond 63 bits, or mixed with fractions, numpy makes doubles.
        items = np.array(value, dtype=object)
        return items.astype(want) if all(int(item) == item for item in items.flat) else None
    allowed = "b" if want.kind == "b" else "iufc" if want.kind == "c" else "iuf"
    if natural.dtype.kind not in allowed:
        return None
    with np.errstate(all="ignore"):
        cast = natural.astype(want)
    return cast if _same_numbers(natural, cast, want) else None


def _same_numbers(natural: np.ndarray, cast: np.ndarray, want: np.dtype[Any]) -> bool:
    """Tell whether a cast kept every number: integers exactly, others up to rounding but never to an infinity."""
    if want.kind in "biu" or want.name in PACKED:
        return np.array_equal(cast.astype(natural.dtype), natural) and bool(np.all((cast < 0) == (natural < 0)))
    with np.errstate(all="ignore"):
        return bool(np.all(np.isfinite(cast) | ~np.isfinite(natural)))


def _as_strings(where: str, array: np.ndarray) -> np.ndarray:
    """Return an object array of str. The engine would write bytes as ``b'...'``, so they are decoded here."""
    if array.dtype.kind in "UST":
        array = array.astype(object)
    if array.dtype.kind != "O" or not all(isinstance(item, str | bytes) for item in array.flat):
        raise RequestError(f"{where}: {array.dtype} values, but the model takes strings")
    try:
        items = [item.decode() if isinstance(item, bytes) else str(item) for item in array.flat]
    except UnicodeDecodeError as error:
        raise RequestError(f"{where}: bytes that are not UTF-8 ({error}); give str values") from error
    strings = np.empty(array.size, dtype=object)
    strings[:] = items
    return strings.reshape(array.shape)


def _brief(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."  # noqa: PLR2004 (one line of a terminal, with room)
