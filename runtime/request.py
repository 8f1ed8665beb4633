"""Checking a request: everything that is wrong with it, in one error; and arrays of the model's types.

This is the careful path. A request whose arrays and shapes were seen before does not come here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from trtc.engines.signature import numpy_dtype
from trtc.profiles import RequestError, nearest_name, shape_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trtc.engines.signature import Signature, TensorSpec


def check_request(
    signature: Signature, feeds: Mapping[str, Any], optional: frozenset[str]
) -> tuple[dict[str, Any], dict[str, int]]:
    """Check a request and bring its values into the model's types.

    Args:
        signature: of the bundle.
        feeds: what the caller gave, by input name.
        optional: inputs that may be left out.

    Returns:
        The values by name in the signature's order, C-ordered native arrays for tensors; and the size of each symbol
        that they show.

    Raises:
        RequestError: listing every problem: missing, extra, type, rank, fixed sizes, contradictory symbols.
    """
    problems: list[str] = []
    if not hasattr(feeds, "keys"):
        raise RequestError(f"inputs came as {type(feeds).__name__}; give a dict of input name to array")
    specs = {spec.name: spec for spec in signature.inputs}
    _check_names(specs, feeds, optional, problems)
    values: dict[str, Any] = {}
    sizes: dict[str, int] = {}
    seen: dict[str, str] = {}
    for name, spec in specs.items():
        if name not in feeds:
            continue
        try:
            value = values[name] = as_value(spec, feeds[name])
        except RequestError as error:
            problems.append(str(error))
            continue
        if spec.is_tensor:
            _check_shape(spec, value.shape, sizes, seen, problems)
    if problems:
        raise RequestError("; ".join(problems))
    return values, sizes


def as_value(spec: TensorSpec, value: Any) -> Any:
    """Return one value as the model takes it.

    Numbers and lists take the model's type when they fit it exactly; arrays keep theirs, which must be the model's.
    Any strides and byte order are accepted, masked arrays only when nothing is masked.

    Raises:
        RequestError: naming the input, what came and what is allowed.
    """
    if not spec.is_tensor:
        return value
    want = numpy_dtype(spec.dtype)
    array = _to_array(spec, value, want)
    if spec.dtype == "string":
        return _as_strings(spec, array)
    if array.dtype.newbyteorder("=") != want:
        raise RequestError(
            f"input {spec.name!r}: dtype {array.dtype}, but the model takes {want}; convert it with .astype({want.name!r})"
        )
    # An exact ndarray of the native type, in C order: what the fast path expects.
    return np.ascontiguousarray(array, dtype=want).reshape(array.shape)


def _to_array(spec: TensorSpec, value: Any, want: np.dtype[Any]) -> np.ndarray:
    if isinstance(value, np.ma.MaskedArray):
        if np.ma.is_masked(value):
            raise RequestError(f"input {spec.name!r}: a masked array with masked items; fill them with .filled(value)")
        return np.asarray(value)
    if isinstance(value, np.ndarray | np.generic):
        return np.asarray(value)
    if hasattr(value, "__dlpack__"):
        try:
            return np.from_dlpack(value)
        except (BufferError, RuntimeError, TypeError, ValueError) as error:
            raise RequestError(f"input {spec.name!r}: its DLPack export cannot be read on the host ({error})") from error
    if hasattr(value, "__array__"):
        return np.asarray(value)
    if want.kind == "O":
        return np.array(value, dtype=object)
    return _from_python(spec, value, want)


def _from_python(spec: TensorSpec, value: Any, want: np.dtype[Any]) -> np.ndarray:
    """Convert numbers and lists; a value that the type cannot hold is an error, never rounded to an integer."""
    try:
        natural = np.asarray(value)
        with np.errstate(all="ignore"):
            cast = natural.astype(want)
    except (ValueError, TypeError, OverflowError) as error:
        raise RequestError(f"input {spec.name!r}: no regular {want} values ({error}); give an array") from error
    numbers = natural.dtype.kind in "biufc" or natural.size == 0
    exact = want.kind not in "biu" or (
        np.array_equal(cast, natural) and (want.kind != "b" or natural.dtype.kind == "b" or natural.size == 0)
    )
    overflow = want.kind in "fV" and numbers and bool(np.any(np.isinf(cast) & np.isfinite(natural)))
    if not numbers or not exact or overflow or (natural.dtype.kind == "b" and want.kind != "b"):
        raise RequestError(f"input {spec.name!r}: {_brief(value)} does not fit {want} without loss; give {want} values")
    return cast


def _as_strings(spec: TensorSpec, array: np.ndarray) -> np.ndarray:
    if array.dtype.kind in "US":
        array = array.astype("U").astype(object)
    if array.dtype.kind != "O" or not all(isinstance(item, str | bytes) for item in array.flat):
        raise RequestError(f"input {spec.name!r}: {array.dtype} values, but the model takes strings")
    return array


def _check_names(
    specs: Mapping[str, TensorSpec], feeds: Mapping[str, Any], optional: frozenset[str], problems: list[str]
) -> None:
    for name in specs:
        if name not in feeds and name not in optional:
            problems.append(f"input {name!r} is missing: {specs[name]}")
    for name in feeds:
        if name not in specs:
            near = nearest_name(str(name), specs)
            hint = f", did you mean {near!r}?" if near else ""
            problems.append(f"there is no input {name!r}{hint} (inputs: {', '.join(map(repr, specs))})")


def _check_shape(
    spec: TensorSpec, shape: tuple[int, ...], sizes: dict[str, int], seen: dict[str, str], problems: list[str]
) -> None:
    if spec.dims is None:
        return
    if len(shape) != len(spec.dims):
        problems.append(f"input {spec.name!r}: shape {list(shape)}, but the model takes {shape_text(spec.dims)}")
        return
    for axis, (dim, size) in enumerate(zip(spec.dims, shape, strict=True)):
        if isinstance(dim, int) and dim != size:
            problems.append(f"input {spec.name!r}: axis {axis} is {size}, but the model takes exactly {dim}")
        elif isinstance(dim, str):
            if sizes.setdefault(dim, size) != size:
                problems.append(
                    f"input {spec.name!r}: axis {axis} ({dim}) is {size}, but input {seen[dim]!r} has {dim}={sizes[dim]}; "
                    "they must be equal"
                )
            seen.setdefault(dim, spec.name)


def _brief(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."  # noqa: PLR2004 (one line of a terminal, with room)
