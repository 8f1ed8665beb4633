"""Types of graph inputs and outputs, read from the proto as the signature writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import onnx

if TYPE_CHECKING:
    from collections.abc import Iterator

_SUBGRAPH_KINDS = (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS)


def dtype_text(value: onnx.TypeProto) -> str:
    """Write an ONNX type: ``float``, ``int64``, ``string``; ``seq(tensor(float))`` for values that are no tensors."""
    kind = value.WhichOneof("value")
    if kind == "tensor_type":
        return _element(value.tensor_type.elem_type)
    return _whole(value)


def tensor_dims(value: onnx.TypeProto) -> tuple[int | str | None, ...] | None:
    """Read the axes of a tensor type: a number, a symbol, or None for an unnamed axis.

    Returns:
        None when the type is no tensor or does not even tell its rank.
    """
    if value.WhichOneof("value") != "tensor_type" or not value.tensor_type.HasField("shape"):
        return None
    return tuple(_dim(dim) for dim in value.tensor_type.shape.dim)


def item_dims(value: onnx.TypeProto) -> tuple[int | str | None, ...] | None:
    """Read the axes of one item of a sequence, or of what an optional holds; None for tensors, and where not told."""
    kind = value.WhichOneof("value")
    if kind == "sequence_type":
        inner = value.sequence_type.elem_type
    elif kind == "optional_type":
        inner = value.optional_type.elem_type
    else:
        return None
    return tensor_dims(inner) if inner.HasField("tensor_type") else item_dims(inner)


def subgraphs(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """Yield the graphs that a node carries as attributes (branches of If, bodies of Loop and Scan)."""
    for attribute in node.attribute:
        if attribute.type in _SUBGRAPH_KINDS:
            yield from ([attribute.g] if attribute.type == onnx.AttributeProto.GRAPH else attribute.graphs)


def all_nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    """Yield every node, those of subgraphs included."""
    for node in graph.node:
        yield node
        for inner in subgraphs(node):
            yield from all_nodes(inner)


def read_names(graph: onnx.GraphProto) -> frozenset[str]:
    """Name every value that any node reads, or that a graph returns, subgraphs included."""
    names = {out.name for out in graph.output}
    for node in all_nodes(graph):
        names.update(node.input)
        for inner in subgraphs(node):
            names.update(out.name for out in inner.output)
    return frozenset(names)


def _dim(dim: onnx.TensorShapeProto.Dimension) -> int | str | None:
    kind = dim.WhichOneof("value")
    if kind == "dim_value":
        return int(dim.dim_value) if dim.dim_value >= 0 else None
    return dim.dim_param or None


def _element(number: int) -> str:
    return str(onnx.TensorProto.DataType.Name(number)).lower()  # type: ignore[arg-type,unused-ignore]


def _whole(value: onnx.TypeProto) -> str:
    kind = value.WhichOneof("value")
    if kind == "tensor_type":
        return f"tensor({_element(value.tensor_type.elem_type)})"
    if kind == "sequence_type":
        return f"seq({_whole(value.sequence_type.elem_type)})"
    if kind == "optional_type":
        return f"optional({_whole(value.optional_type.elem_type)})"
    if kind == "map_type":
        return f"map({_element(value.map_type.key_type)},{_whole(value.map_type.value_type)})"
    if kind == "sparse_tensor_type":
        return f"sparse_tensor({_element(value.sparse_tensor_type.elem_type)})"
    return "unknown()"
