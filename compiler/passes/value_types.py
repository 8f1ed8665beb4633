"""Inputs and outputs are tensors, sequences, optionals or maps of known element types."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnx import TensorProto

from trtc.compiler.passes.result import PassResult
from trtc.compiler.passes.walk import refuse

if TYPE_CHECKING:
    import onnx


def run(model: onnx.ModelProto) -> PassResult:
    """Refuse inputs without a type, and sparse or opaque values; nothing is changed.

    An output may have no type: inference knows it.

    Raises:
        ModelError: all problems at once.
    """
    problems = []
    for kind, values in (("input", model.graph.input), ("output", model.graph.output)):
        for value in values:
            if not value.name:
                problems.append(f"an {kind} has no name; export the model again")
            elif kind == "output" and value.type.WhichOneof("value") is None:
                continue
            elif (fault := _fault(value.type)) is not None:
                problems.append(f"{kind} {value.name!r}: {fault}")
    refuse(problems, "types:")
    return PassResult(model, changed=False)


def _fault(value: onnx.TypeProto) -> str | None:
    """Say what is wrong with a type, or None."""
    match value.WhichOneof("value"):
        case "tensor_type":
            return _element_fault(value.tensor_type.elem_type)
        case "sequence_type":
            return _fault(value.sequence_type.elem_type)
        case "optional_type":
            return _fault(value.optional_type.elem_type)
        case "map_type":
            return _element_fault(value.map_type.key_type) or _fault(value.map_type.value_type)
        case "sparse_tensor_type":
            return "sparse tensors are not supported; export it dense"
        case "opaque_type":
            return "opaque types are not supported; export it as a tensor"
    return "declared without a type; export the model again"


def _element_fault(number: int) -> str | None:
    if number != TensorProto.UNDEFINED and number in TensorProto.DataType.values():
        return None
    return f"element type {number} is unknown; export the model again"
