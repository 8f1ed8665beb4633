"""Values of ONNX Runtime on the host, as arrays and back."""

from __future__ import annotations

from typing import Any

from trtc.runtime.compat.exact import InexactError


def host_array(value: Any, kind: Any) -> Any:
    """Return the array that an ``OrtValue`` (the class is ``kind``) holds, as a copy.

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
    """Return an ``OrtValue`` (the class is ``kind``) that holds an array.

    Raises:
        InexactError: for anything but numbers.
    """
    if not hasattr(result, "dtype") or result.dtype.kind not in "biuf":
        raise InexactError("an output that is no tensor of numbers")
    return kind.ortvalue_from_numpy(result)
