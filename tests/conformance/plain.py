"""The peer: plain ONNX Runtime on the CPU with its defaults, called as its own documentation says."""

from __future__ import annotations

import ctypes
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

if TYPE_CHECKING:
    from suite import Case

_TYPES = {f"tensor({name.lower()})": number for name, number in onnx.TensorProto.DataType.items()}


class NotSupportedError(Exception):
    """ONNX Runtime does not open the model."""


def run(case: Case) -> list[Any]:
    """Run one test.

    Raises:
        NotSupportedError: when the model is not opened.
        Exception: whatever ONNX Runtime raises while it runs.
    """
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(
            case.model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:
        raise NotSupportedError(str(error)) from error
    feeds = {value.name: given for value, given in zip(case.model.graph.input, case.inputs, strict=True)}
    quiet = onnxruntime.RunOptions()
    quiet.log_severity_level = 4
    types = [value.type for value in (*session.get_inputs(), *session.get_outputs())]
    if any(_foreign(text) for text in types):
        return _run_bound(session, feeds, quiet)
    results: list[Any] = session.run(None, feeds, quiet)
    return results


def _foreign(text: str) -> bool:
    """Tell whether numpy lacks the element type, so that values go in and out by their address only."""
    return any(f"({name}" in text for name in ("bfloat16", "float8", "float4", "int4", "uint4", "int2)", "uint2"))


def _run_bound(session: Any, feeds: dict[str, np.ndarray], options: Any) -> list[Any]:
    binding = session.io_binding()
    types = {value.name: value.type for value in session.get_inputs()}
    alive = []
    for name, array in feeds.items():
        stored = np.frombuffer(numpy_helper.from_array(array).raw_data or b"\0", np.uint8).copy()
        alive.append(stored)
        binding.bind_input(name, "cpu", 0, _TYPES[types[name]], array.shape, stored.ctypes.data)
    for output in session.get_outputs():
        binding.bind_output(output.name, "cpu")
    session.run_with_iobinding(binding, options)
    return [_value(value) for value in binding.get_outputs()]


def _value(value: Any) -> Any:
    text = value.data_type()
    if not _foreign(text):
        return value.numpy()
    tensor = onnx.TensorProto(data_type=_TYPES[text], dims=value.shape())
    size_bytes = value.tensor_size_in_bytes() if prod(value.shape()) else 0
    tensor.raw_data = ctypes.string_at(value.data_ptr(), size_bytes)
    return numpy_helper.to_array(tensor)
