"""Drop what no inference needs and what can only contradict: types of inner values, training, sharding, annotations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import onnx

from trtc.compiler.passes.result import PassResult
from trtc.compiler.passes.walk import listed, model_graphs, model_nodes

if TYPE_CHECKING:
    from collections.abc import Iterator


def run(model: onnx.ModelProto) -> PassResult:
    """Drop ``value_info``, ``training_info``, quantization annotations and device configurations, everywhere.

    A wrong ``value_info`` is ignored by one library and refused by another; inference finds the types without it.
    """
    wrong = sorted(_contradictions(model.graph))
    notes = []
    if wrong:
        notes.append(f"declared types that contradict the graph's own were dropped: {listed(wrong)}")
    if model.training_info:
        notes.append("training_info was dropped; only inference is compiled")
    fields: list[tuple[object, str]] = [(model, "training_info"), (model, "configuration")]
    for graph in model_graphs(model):
        fields += [(graph, "value_info"), (graph, "quantization_annotation")]
    fields += [(function, "value_info") for function in model.functions]
    fields += [(node, "device_configurations") for node in model_nodes(model)]
    changed = False
    for owner, field in fields:
        if getattr(owner, field, ()):
            owner.ClearField(field)  # type: ignore[attr-defined]
            changed = True
    return PassResult(model, changed, tuple(notes))


def _contradictions(graph: onnx.GraphProto) -> Iterator[str]:
    """Name the entries whose element type differs from that of the input, output or initializer they describe."""
    real = {tensor.name: tensor.data_type for tensor in graph.initializer}
    for value in (*graph.input, *graph.output):
        if value.type.HasField("tensor_type") and value.type.tensor_type.elem_type:
            real[value.name] = value.type.tensor_type.elem_type
    for info in graph.value_info:
        declared = info.type.tensor_type.elem_type if info.type.HasField("tensor_type") else 0
        if declared and real.get(info.name, declared) != declared:
            yield f"{info.name!r} as {_type_name(declared)}"


def _type_name(number: int) -> str:
    known = onnx.TensorProto.DataType.DESCRIPTOR.values_by_number
    return known[number].name.lower() if number in known else f"type {number}"
