"""Shapes by onnx's inference, as candidates: runs decide."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import onnx

from trtc.compiler.onnx_types import subgraphs, tensor_dims

if TYPE_CHECKING:
    from trtc.compiler.model import Model

Dims: TypeAlias = "tuple[int | str | None, ...]"


def inferred_shapes(model: Model) -> dict[str, Dims]:
    """Infer dims of every value that onnx's shape inference can tell, subgraphs included; empty when it fails.

    The declared output shapes are not trusted: they are removed before inference.
    """
    copy = onnx.ModelProto()
    copy.CopyFrom(model.proto)
    del copy.graph.value_info[:]
    for out in copy.graph.output:
        if out.type.WhichOneof("value") == "tensor_type":
            out.type.tensor_type.ClearField("shape")
    try:
        inferred = onnx.shape_inference.infer_shapes(copy, data_prop=True)
    except Exception:  # noqa: BLE001 (inference is a source of candidates; without it the runs decide alone)
        inferred = copy
    shapes: dict[str, Dims] = {}
    _collect_shapes(inferred.graph, shapes)
    return shapes


def _collect_shapes(graph: onnx.GraphProto, shapes: dict[str, Dims]) -> None:
    for tensor in graph.initializer:
        shapes[tensor.name] = tuple(tensor.dims)
    for value in (*graph.input, *graph.value_info, *graph.output):
        dims = tensor_dims(value.type)
        if dims is not None:
            shapes[value.name] = dims
    for node in graph.node:
        for inner in subgraphs(node):
            _collect_shapes(inner, shapes)
