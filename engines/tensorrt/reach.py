"""Which inputs of a model have values that reach its outputs: the library must not lose any of those."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnx import AttributeProto

if TYPE_CHECKING:
    from collections.abc import Iterable

    import onnx

_SHAPE_ONLY = {"Shape": (0,), "Size": (0,), "EyeLike": (0,), "RandomNormalLike": (0,), "RandomUniformLike": (0,)}
_TYPE_ONLY = {"CastLike": (1,)}
_BLIND = _SHAPE_ONLY | _TYPE_ONLY
"""Operators that look at shape or type of some of their inputs, and never at values; by their indexes."""


def reaching(graph: onnx.GraphProto, names: Iterable[str]) -> tuple[str, ...]:
    """Return those of the named inputs whose values reach an output.

    A node with inner graphs counts as reading everything that those read.
    """
    needed = {value.name for value in graph.output}
    for node in reversed(graph.node):
        if needed.intersection(node.output):
            needed.update(_read(node))
    return tuple(name for name in names if name in needed)


def _read(node: onnx.NodeProto) -> set[str]:
    """Return the tensors whose values a node reads, also through its inner graphs."""
    blind = _BLIND.get(node.op_type, ())
    read = {name for i, name in enumerate(node.input) if i not in blind}
    for attribute in node.attribute:
        if attribute.type == AttributeProto.GRAPH:
            read.update(*(_read(inner) for inner in attribute.g.node), (out.name for out in attribute.g.output))
    return read
