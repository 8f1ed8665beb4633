"""What a call ends with, and whether that is the same: for calls on plain ONNX Runtime and on a bundle."""

from __future__ import annotations

from typing import Any

import numpy as np


def outcome(call: Any, *arguments: Any) -> Any:
    """What a call ends with; exceptions by class and text, addresses of objects left out."""
    try:
        return "value", call(*arguments)
    except Exception as error:  # noqa: BLE001 (whichever it is)
        return "error", type(error), str(error).partition("\n")[0].partition(" object at 0x")[0]


def assert_same(found: Any, wanted: Any) -> None:
    assert type(found) is type(wanted)
    if isinstance(wanted, np.ndarray):
        assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
        np.testing.assert_array_equal(found, wanted)
    elif isinstance(wanted, list | tuple):
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted, strict=True):
            assert_same(one, other)
    else:
        assert found == wanted
