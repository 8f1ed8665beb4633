"""Reshapes to a constant size along an axis that is declared symbolic: what exports from one example get wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnx import TensorProto, numpy_helper

from trtc.compiler.onnx_types import all_nodes, tensor_dims

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    import onnx

    from trtc.compiler.model import Model
    from trtc.profiles import Dim


def constant_batch_notes(
    model: Model, found: Mapping[str, tuple[Dim, ...] | None], moving: Collection[str]
) -> Iterator[str]:
    """Name the Reshapes behind outputs that do not follow a symbol that they declare.

    Such a model runs at any size, but gives its rows merged into one: nothing fails, and nothing tells them apart.

    Args:
        model: checked model.
        found: dims of the outputs, by runs.
        moving: symbols that may have more than one size.
    """
    graph = model.proto.graph
    for output in graph.output:
        declared, dims = tensor_dims(output.type) or (), found.get(output.name) or ()
        for axis, (claim, dim) in enumerate(zip(declared, dims, strict=False)):
            if claim not in moving or not isinstance(dim, int):
                continue
            for node, constant in _reshapes(graph):
                if axis < len(constant) and constant[axis] == dim:
                    yield (
                        f"output {output.name!r} axis {axis} stays {dim} whatever {claim} is, and Reshape node "
                        f"{node.name!r} has the constant shape {constant}: rows may be merged there; build with "
                        f"--dim {claim}={dim}, or export the model again with {claim} left open"
                    )


def _reshapes(graph: onnx.GraphProto) -> Iterator[tuple[onnx.NodeProto, list[int]]]:
    constants = {tensor.name: tensor for tensor in graph.initializer}
    for node in all_nodes(graph):
        if node.op_type == "Constant" and node.attribute and node.attribute[0].HasField("t"):
            constants[node.output[0]] = node.attribute[0].t
    for node in all_nodes(graph):
        if node.op_type == "Reshape" and not node.domain and len(node.input) > 1:
            tensor = constants.get(node.input[1])
            if tensor is not None and tensor.data_location != TensorProto.EXTERNAL:
                yield node, numpy_helper.to_array(tensor).tolist()
