"""What the graph does with the values of each input: table index, mask, shape, compared with constants.

One walk over the graph, subgraphs included, follows every input through operators that keep its values (or shift and
scale them) to the operators that give the values a meaning. The same walk finds the values whose *shape* follows
from input values. Pure: nothing is run.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from onnx import numpy_helper

from trtc.compiler.affine import Affine
from trtc.compiler.onnx_types import item_dims, subgraphs, tensor_dims
from trtc.compiler.operator_meanings import (
    COMPARES,
    DATA_SHAPED,
    INDEX_OPERANDS,
    INDEX_TUPLES,
    KEEPS_ALL,
    KEEPS_FIRST,
    LOGIC,
    SHAPE_OPERANDS,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trtc.compiler.inference import Dims
    from trtc.compiler.model import Model

_CONSTANT_LIMIT = 4096
"""Elements of a constant that is still read; larger ones are weights."""
_HINT_LIMIT = 12
_MASK_SCALE = 1000.0
"""Attention masks are scaled to a large negative bias; ordinary data is not."""


@dataclass(frozen=True, slots=True)
class Table:
    """An axis that the input indexes: ``mul * x + add`` must stay in ``0..size-1``.

    Attributes:
        size: elements of the axis: a number, a symbol, or None when unknown.
        mul, add_low, add_high: what the graph does to a value on its way.
        share: how many unknown parts the index is the sum of.
    """

    size: int | str | None
    mul: float
    add_low: float
    add_high: float
    share: int


@dataclass(frozen=True, slots=True)
class ShapeUse:
    """An operand that decides a shape.

    Attributes:
        op_type, operand, node: who reads it, and where.
        dims: of the operator's first operand, as far as inferred.
    """

    op_type: str
    operand: int
    node: str
    dims: Dims | None


@dataclass(slots=True)
class InputRole:
    """What is known about the values of one input; filled by the walk, read afterwards.

    Attributes:
        tables: axes that it indexes.
        compared: constants that it is compared with, as values of the input.
        mask: it takes part in mask arithmetic, which says something for integers and bools only.
        bias: ``1 - x`` is scaled to a large negative number: a mask, whatever its type.
        shapes: operands where it decides a shape.
        item: dims of one item, where the input is a sequence or an optional that tells them.
    """

    tables: list[Table] = field(default_factory=list)
    compared: set[float] = field(default_factory=set)
    mask: bool = False
    bias: bool = False
    shapes: list[ShapeUse] = field(default_factory=list)
    item: Dims | None = None


@dataclass(frozen=True, slots=True)
class Flow:
    """The result of the walk.

    Attributes:
        roles: by input name.
        data_shaped: names of values whose shape follows from input *values*.
        shapes: inferred dims by value name; empty where inference failed.
        hints: numbers above one that the graph reshapes to; sizes may have to be multiples of them.
    """

    roles: dict[str, InputRole]
    data_shaped: frozenset[str]
    shapes: dict[str, Dims]
    hints: tuple[int, ...] = ()


def trace_inputs(model: Model, shapes: Mapping[str, Dims]) -> Flow:
    """Walk the graph.

    Args:
        model: checked model.
        shapes: inferred dims by value name, as :func:`~trtc.compiler.inference.inferred_shapes` gives them.
    """
    walk = _Walk(str(model.folder), dict(shapes))
    defaults = {t.name for t in model.proto.graph.initializer}
    for value in model.proto.graph.input:
        walk.roles[value.name] = InputRole(item=item_dims(value.type))
        walk.tracked[value.name] = {value.name: Affine()}
        if value.name not in defaults:
            walk.valued.add(value.name)
        if tensor_dims(value.type) is None:
            walk.data_shaped.add(value.name)  # unknown rank, sequences: any shape may come
    walk.graph(model.proto.graph)
    hints = tuple(sorted(walk.hints))[:_HINT_LIMIT]
    return Flow(walk.roles, frozenset(walk.data_shaped), walk.shapes, hints)


class _Walk:
    """State of one walk; names are unique over all scopes of an ONNX graph, so one table serves them all."""

    def __init__(self, folder: str, shapes: dict[str, Dims]) -> None:
        self.folder = folder
        self.shapes = shapes
        self.roles: dict[str, InputRole] = {}
        self.tracked: dict[str, dict[str, Affine]] = {}
        self.constants: dict[str, np.ndarray] = {}
        self.valued: set[str] = set()
        self.data_shaped: set[str] = set()
        self.hints: set[int] = set()

    def graph(self, graph: onnx.GraphProto) -> None:
        for tensor in graph.initializer:
            if tensor.name not in self.roles:
                self._constant(tensor.name, tensor)
        for node in graph.node:
            self._node(node)

    def _constant(self, name: str, tensor: onnx.TensorProto) -> None:
        self.shapes.setdefault(name, tuple(tensor.dims))
        if prod(tensor.dims) <= _CONSTANT_LIMIT and tensor.data_type != onnx.TensorProto.STRING:
            self.constants[name] = numpy_helper.to_array(tensor, self.folder)

    def _node(self, node: onnx.NodeProto) -> None:
        if node.op_type == "Constant":
            self._constant_node(node)
            return
        self._fold(node)
        self._note_indices(node)
        self._note_shapes(node)
        self._note_compares(node)
        self._note_masks(node)
        if any(True for _ in subgraphs(node)):
            self._enter(node)
        else:
            self._spread(node)
        self._spread_taint(node)

    def _constant_node(self, node: onnx.NodeProto) -> None:
        for attribute in node.attribute:
            if attribute.name == "value":
                self._constant(node.output[0], attribute.t)
            elif attribute.name in ("value_int", "value_float", "value_ints", "value_floats"):
                array = np.asarray(onnx.helper.get_attribute_value(attribute))
                self.constants[node.output[0]] = array
                self.shapes.setdefault(node.output[0], array.shape)

    def _fold(self, node: onnx.NodeProto) -> None:
        """Carry small constants through operators that keep values; their layout does not matter here."""
        if node.op_type in ("Cast", "Identity", "Unsqueeze", "Squeeze", "Reshape", "Flatten", "Transpose"):
            array = self.constants.get(node.input[0])
            if array is not None:
                self.constants[node.output[0]] = array

    def _note_indices(self, node: onnx.NodeProto) -> None:
        for operand, indexed, attribute in INDEX_OPERANDS.get(node.op_type, ()):
            if operand >= len(node.input):
                continue
            dims = self.shapes.get(node.input[indexed])
            axis = attribute if isinstance(attribute, int) else _int_attribute(node, attribute, 0)
            size = dims[axis] if dims and -len(dims) <= axis < len(dims) else None
            self._note_table(node.input[operand], size)
        if node.op_type in INDEX_TUPLES:
            dims = self.shapes.get(node.input[0])
            depth = (self.shapes.get(node.input[1]) or (None,))[-1]
            known = dims[_int_attribute(node, "batch_dims", 0) :] if dims else ()
            known = known[:depth] if isinstance(depth, int) else known
            sizes = [d for d in known if isinstance(d, int)]
            self._note_table(node.input[1], min(sizes) if sizes and len(sizes) == len(known) else None)

    def _note_table(self, name: str, size: int | str | None) -> None:
        for source, a in self.tracked.get(name, {}).items():
            self.roles[source].tables.append(Table(size, a.mul, a.add_low, a.add_high, a.share))

    def _note_shapes(self, node: onnx.NodeProto) -> None:
        for operand in SHAPE_OPERANDS.get(node.op_type, ()):
            if operand >= len(node.input) or not node.input[operand]:
                continue
            constant = self.constants.get(node.input[operand])
            if node.op_type == "Reshape" and constant is not None:
                self.hints.update(int(n) for n in constant.reshape(-1) if n > 1)
            for source in self.tracked.get(node.input[operand], {}):
                use = ShapeUse(node.op_type, operand, node.name, self.shapes.get(node.input[0]))
                self.roles[source].shapes.append(use)

    def _note_compares(self, node: onnx.NodeProto) -> None:
        if node.op_type not in COMPARES:
            return
        for mine, other in ((0, 1), (1, 0)):
            constant = self.constants.get(node.input[other])
            if constant is None or constant.dtype.kind not in "iuf":
                continue
            values = np.unique(constant.astype(np.float64))
            if node.op_type != "Equal":
                values = np.unique(np.concatenate([values - 1, values, values + 1]))
            for source, a in self.tracked.get(node.input[mine], {}).items():
                if a.add_low == a.add_high and a.mul and a.share == 1:
                    self.roles[source].compared.update(float(v) for v in (values - a.add_low) / a.mul)

    def _note_masks(self, node: onnx.NodeProto) -> None:
        op, reads = node.op_type, list(node.input)
        masks: list[str] = []
        if op == "Sub" and reads[0] in self.constants:
            masks = reads[1:]
        elif op == "Mul" and not any(name in self.constants for name in reads):
            masks = [n for n in reads if not any(self.tracked.get(o) for o in reads if o != n)]
        elif op == "Where":
            masks = reads[:1]
        elif op in LOGIC or op in ("ReduceSum", "CumSum"):
            masks = reads[:1] if op in ("ReduceSum", "CumSum") else reads
        elif op == "Cast" and _int_attribute(node, "to", 0) == onnx.TensorProto.BOOL:
            masks = reads
        elif op == "Attention" and node.domain == "com.microsoft":
            masks = reads[3:4]
        for name in masks:
            for source in self.tracked.get(name, {}):
                self.roles[source].mask = True

    def _spread(self, node: onnx.NodeProto) -> None:
        """Follow tracked values into the outputs."""
        op, reads = node.op_type, list(node.input)
        carried: dict[str, Affine] = {}
        if op in KEEPS_FIRST and reads:
            carried = dict(self.tracked.get(reads[0], {}))
        elif op in KEEPS_ALL:
            for name in reads[1:] if op == "Where" else reads:
                carried.update(self.tracked.get(name, {}))
        elif op in ("Add", "Sub", "Mul"):
            carried = self._combined(op, reads)
        elif op == "Neg":
            carried = {source: a.negated() for source, a in self.tracked.get(reads[0], {}).items()}
        for name in filter(None, node.output if carried else ()):
            self.tracked[name] = dict(carried)

    def _combined(self, op: str, reads: list[str]) -> dict[str, Affine]:
        carried = {}
        for i, name in enumerate(reads):
            for source, affine in self.tracked.get(name, {}).items():
                moved = affine.combined(op, self.constants.get(reads[1 - i]), first=i == 0)
                if moved is not None:
                    carried[source] = moved
                    # 1 - x scaled to a large bias: x is a mask, also when it is a float
                    self.roles[source].bias |= op == "Mul" and affine.mul < 0 and abs(moved.mul) >= _MASK_SCALE
        return carried

    def _enter(self, node: onnx.NodeProto) -> None:
        """Walk subgraphs: operands become the body's inputs, the body's outputs become the node's."""
        before = len(self.data_shaped)
        for inner in subgraphs(node):
            for value, name in _body_inputs(node, inner):
                self._alias(name, value)
            self.graph(inner)
            results = inner.output[1:] if node.op_type == "Loop" else inner.output
            for result, name in zip(results, node.output, strict=False):
                self._alias(result.name, name)
        if node.op_type == "Loop" and len(self.data_shaped) > before:
            self.data_shaped.update(node.output)

    def _alias(self, name: str, other: str) -> None:
        """What is known of ``name`` holds for ``other`` as well."""
        if name in self.tracked:
            self.tracked.setdefault(other, {}).update(self.tracked[name])
        for known in (self.valued, self.data_shaped):
            if name in known:
                known.add(other)

    def _spread_taint(self, node: onnx.NodeProto) -> None:
        """Values that follow from input values, and shapes that do."""
        op, reads = node.op_type, [name for name in node.input if name]
        inner_reads = {name for inner in subgraphs(node) for n in inner.node for name in n.input}
        shaped = any(name in self.data_shaped for name in reads)
        valued = any(name in self.valued for name in (*reads, *inner_reads))
        if op in ("Shape", "Size"):
            valued, shaped = shaped, False
        deciding = [node.input[i] for i in SHAPE_OPERANDS.get(op, ()) if i < len(node.input)]
        if op == "Loop":
            deciding = [*node.input[:2], *(out.name for inner in subgraphs(node) for out in inner.output[:1])]
        shaped |= any(name in self.valued for name in deciding)
        shaped |= op in DATA_SHAPED and valued
        for name in node.output:
            if valued or shaped:
                self.valued.add(name)
            if shaped:
                self.data_shaped.add(name)


def _int_attribute(node: onnx.NodeProto, name: str, default: int) -> int:
    found: Any = next((a.i for a in node.attribute if a.name == name), default)
    return int(found)


def _body_inputs(node: onnx.NodeProto, inner: onnx.GraphProto) -> list[tuple[str, str]]:
    """Pair the inputs of a body with the operands that they take."""
    skipped = {"Loop": 2, "Scan": 0, "SequenceMap": 0}.get(node.op_type)
    if skipped is None:
        return []
    return list(zip([value.name for value in inner.input[skipped:]], node.input[skipped:], strict=False))
