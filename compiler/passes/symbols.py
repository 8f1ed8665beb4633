"""Write a symbol into every dynamic axis of every input."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from trtc.compiler.passes.result import PassResult
from trtc.compiler.passes.walk import FreshNames, walk_graphs
from trtc.compiler.symbols import axis_name, is_nameless, is_typable, look_alikes, typable_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import onnx


@dataclass(slots=True)
class _Changes:
    """What one run changed, and what people should know of it."""

    count: int = 0
    notes: list[str] = field(default_factory=list)


def run(model: onnx.ModelProto) -> PassResult:
    """Name the dynamic axes: shared names stay shared, nameless axes become distinct symbols.

    Names that cannot be typed are replaced, in outputs and subgraphs too. Dims of outputs stay as declared, but for
    texts such as ``-1`` and ``?``, which would read as symbols.
    """
    changes = _Changes()
    originals = _input_names(model)
    everywhere = {dim.dim_param for graph in walk_graphs(model.graph) for _, _, dim in _axes(graph) if dim.dim_param}
    fresh = FreshNames(everywhere)
    aliases = {}
    for name in originals:
        if not is_typable(name):
            aliases[name] = fresh.make(typable_name(name))
            changes.notes.append(f"dim name {name!r} cannot be typed in --dim; the symbol is called {aliases[name]!r}")
    _name_inputs(model.graph, aliases, fresh, changes)
    for graph in walk_graphs(model.graph):
        values = graph.output if graph is model.graph else (*graph.input, *graph.output)
        for _, _, dim in _value_axes(values):
            if dim.dim_param in aliases:
                dim.dim_param = aliases[dim.dim_param]
                changes.count += 1
            elif _is_any(dim) and dim.WhichOneof("value") is not None:
                dim.ClearField("dim_param")
                dim.ClearField("dim_value")
                changes.count += 1
    for group in look_alikes(originals):
        listing = ", ".join(map(repr, group))
        changes.notes.append(
            f"dim names {listing} differ only in blanks or case; they are symbols of their own unless proven equal"
        )
    return PassResult(model, bool(changes.count), tuple(changes.notes))


def _name_inputs(graph: onnx.GraphProto, aliases: dict[str, str], fresh: FreshNames, changes: _Changes) -> None:
    for value, axis, dim in _value_axes(graph.input):
        if _is_any(dim):
            symbol = fresh.make(axis_name(value.name, axis))
            if dim.HasField("dim_value"):
                changes.notes.append(f"input {value.name!r} axis {axis}: dim {dim.dim_value} is read as any size")
            dim.dim_param = symbol
            changes.count += 1
        elif dim.dim_param in aliases:
            dim.dim_param = aliases[dim.dim_param]
            changes.count += 1
        elif dim.HasField("dim_value") and dim.dim_value == 0:
            changes.notes.append(f"input {value.name!r} axis {axis}: the model says 0, so only empty arrays fit")


def _is_any(dim: onnx.TensorShapeProto.Dimension) -> bool:
    """Whether a dim has neither a size nor a name."""
    if dim.HasField("dim_value"):
        return dim.dim_value < 0
    return is_nameless(dim.dim_param)


def _input_names(model: onnx.ModelProto) -> list[str]:
    names = (dim.dim_param for _, _, dim in _value_axes(model.graph.input) if dim.HasField("dim_param"))
    return list(dict.fromkeys(name for name in names if not is_nameless(name)))


def _axes(graph: onnx.GraphProto) -> Iterator[tuple[onnx.ValueInfoProto, int, onnx.TensorShapeProto.Dimension]]:
    yield from _value_axes((*graph.input, *graph.output))


def _value_axes(
    values: Iterable[onnx.ValueInfoProto],
) -> Iterator[tuple[onnx.ValueInfoProto, int, onnx.TensorShapeProto.Dimension]]:
    """Yield every axis of values that are tensors of known rank."""
    for value in values:
        if value.type.HasField("tensor_type") and value.type.tensor_type.HasField("shape"):
            for axis, dim in enumerate(value.type.tensor_type.shape.dim):
                yield value, axis, dim
