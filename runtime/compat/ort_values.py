"""Values of ONNX Runtime on the host, as arrays and back."""

from __future__ import annotations

from typing import Any

from trtc.runtime.compat.exact import InexactError


def host_array(value: Any, kind: Any) -> Any:
    """Return the array that an ``OrtValue`` (the class is ``kind``) holds.

    Raises:
        InexactError: for anything but a tensor on the host of a type that numpy has.
    """
    if not isinstance(value, kind) or not value.is_tensor() or value.device_name() != "cpu":
        raise InexactError("an OrtValue that is no tensor on the host")
    try:
        return value.numpy()
    except RuntimeError as error:
        raise InexactError("an OrtValue that numpy cannot hold") from error


def host_value(result: Any, kind: Any) -> Any:
    """Return an ``OrtValue`` (the class is ``kind``) that owns what an array holds; nobody else may own that array.

    One that is made with ``ortvalue_from_numpy`` owns nothing: what programs take from it, with ``numpy()`` or through
    DLPack, would lie in freed memory as soon as they drop the value itself.

    Raises:
        InexactError: for anything but numbers.
    """
    if not hasattr(result, "dtype") or result.dtype.kind not in "biuf":
        raise InexactError("an output that is no tensor of numbers")
    try:
        return kind.from_dlpack(result)
    except (AttributeError, BufferError, RuntimeError, TypeError):  # an older library, or memory that is not writable
        value = kind.ortvalue_from_shape_and_type(result.shape, result.dtype.type)
        value.update_inplace(result)
        return value
