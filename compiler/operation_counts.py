"""How much work a graph does at given sizes: operations and bytes, node by node, and a cost made of them.

For targets that cannot be measured here. Such a cost has the right shape over sizes (what is quadratic grows so) and
nominal units: it ranks ladders, it promises no seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import onnx
from onnx import helper

from trtc.compiler.onnx_types import tensor_dims
from trtc.engines.errors import EngineError
from trtc.profiles import HostError, ModelError, sizes_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from trtc.compiler.model import Model
    from trtc.compiler.probes.subject import ValueSource
    from trtc.profiles import Sizes

    Shape: TypeAlias = tuple[int, ...]

NOMINAL_OPERATIONS_PER_S = 50e9
NOMINAL_BYTES_PER_S = 10e9
NOMINAL_NODE_S = 2e-6
"""Of one core of a server processor, to the nearest round number; only their proportions matter here."""
_FREE = frozenset(["Identity", "Reshape", "Squeeze", "Unsqueeze", "Flatten", "Shape", "Constant", "Size"])
"""Operators that move nothing."""
_COSTLY = dict.fromkeys(["Exp", "Pow", "Log", "LayerNormalization", "Sin", "Cos"], 8)
_COSTLY |= dict.fromkeys(["Erf", "Tanh", "Sigmoid", "Softmax", "LogSoftmax", "Gelu"], 12)
_COSTLY |= dict.fromkeys(["Sqrt", "Div", "HardSwish"], 4)
"""Operations for one element of the output; 1 for any other."""


@dataclass(frozen=True, slots=True)
class OperationCounts:
    """The work of one run.

    Attributes:
        operations: arithmetic, a multiplication and an addition counting two.
        moved_bytes: read and written by all nodes, weights included.
        nodes: that do any work.
        unknown_nodes: whose sizes nobody could tell; they are not in the other figures.
    """

    operations: float
    moved_bytes: float
    nodes: int
    unknown_nodes: int = 0

    @property
    def nominal_s(self) -> float:
        """Seconds on a nominal processor that computes and moves at the same time."""
        work_s = max(self.operations / NOMINAL_OPERATIONS_PER_S, self.moved_bytes / NOMINAL_BYTES_PER_S)
        return work_s + self.nodes * NOMINAL_NODE_S


def count_operations(model: Model, values: ValueSource, sizes: Sizes) -> OperationCounts:
    """Count the work of one run.

    Shapes come from onnx's inference at these sizes; where it knows none, from a run that keeps those values.

    Args:
        model: to look at.
        values: of the inputs, for that run.
        sizes: of every symbol.

    Raises:
        ModelError: when the model does not run at these sizes.
    """
    shapes = _inferred(model, sizes)
    names = [name for node in model.proto.graph.node for name in node.output if name and name not in shapes]
    if names:
        shapes |= _observed(model, values, sizes, names)
    weights = {tensor.name: tuple(tensor.dims) for tensor in model.proto.graph.initializer}
    return _sum(model.proto.graph.node, shapes | weights)


def _sum(nodes: Sequence[onnx.NodeProto], shapes: Mapping[str, Shape]) -> OperationCounts:
    operations = moved = 0.0
    working = unknown = 0
    for node in nodes:
        if node.op_type in _FREE:
            continue
        outputs = [shapes.get(name) for name in node.output if name]
        if not outputs or any(shape is None for shape in outputs):
            unknown += 1
            continue
        inputs = [shapes[name] for name in node.input if name in shapes]
        working += 1
        operations += _operations(node, inputs, [shape for shape in outputs if shape is not None])
        moved += 4.0 * sum(prod(shape) for shape in (*inputs, *outputs) if shape is not None)
    return OperationCounts(operations, moved, working, unknown)


def _operations(node: onnx.NodeProto, inputs: Sequence[Shape], outputs: Sequence[Shape]) -> float:
    """Count the arithmetic of one node; a product sums over the axes that its output does not have."""
    made = float(sum(prod(shape) for shape in outputs))
    kind = node.op_type
    if kind in ("MatMul", "Gemm", "MatMulInteger", "QLinearMatMul") and inputs and inputs[0]:
        flipped = kind == "Gemm" and any(a.name == "transA" and a.i for a in node.attribute)
        return 2.0 * made * inputs[0][0 if flipped else -1]
    if kind in ("Conv", "ConvInteger", "QLinearConv") and len(inputs) > 1:
        weight = max(inputs[1:], key=len)
        return 2.0 * made * prod(weight[1:])
    if kind == "ConvTranspose" and len(inputs) > 1:
        return 2.0 * prod(inputs[0]) * prod(inputs[1][1:])
    if kind in ("LSTM", "GRU", "RNN") and len(inputs) > 2:  # noqa: PLR2004 (X, W and R)
        steps, batch, _ = inputs[0]
        return 2.0 * steps * batch * (prod(inputs[1]) + prod(inputs[2]))
    if kind.startswith("Reduce") or kind.endswith("Pool") or kind in ("Softmax", "ArgMax", "TopK"):
        made = max(made, float(prod(inputs[0]))) if inputs else made
    return made * _COSTLY.get(kind, 1)


def _inferred(model: Model, sizes: Sizes) -> dict[str, Shape]:
    """Whole shapes that onnx's inference finds with these sizes put in."""
    proto = onnx.ModelProto()
    proto.CopyFrom(model.proto)
    del proto.graph.value_info[:]
    for value in proto.graph.output:
        if value.type.WhichOneof("value") == "tensor_type":
            value.type.tensor_type.ClearField("shape")
    for value in proto.graph.input:
        for dim in value.type.tensor_type.shape.dim if value.type.HasField("tensor_type") else ():
            if dim.dim_param in sizes:
                dim.dim_value = sizes[dim.dim_param]
    try:
        graph = onnx.shape_inference.infer_shapes(proto, data_prop=True).graph
    except Exception:  # noqa: BLE001 (inference is a short cut; a run tells what it does not)
        graph = proto.graph
    found: dict[str, Shape] = {}
    for value in (*graph.input, *graph.value_info, *graph.output):
        dims = tensor_dims(value.type)
        if dims is not None and all(isinstance(dim, int) for dim in dims):
            found[value.name] = tuple(dim for dim in dims if isinstance(dim, int))
    return found


def _observed(model: Model, values: ValueSource, sizes: Sizes, names: Sequence[str]) -> dict[str, Shape]:
    """Shapes of these values in one run of the model."""
    from trtc.engines.onnxruntime import onnxruntime

    proto = onnx.ModelProto()
    proto.CopyFrom(model.proto)
    known = {value.name for value in proto.graph.output}
    proto.graph.output.extend(helper.make_empty_tensor_value_info(name) for name in names if name not in known)
    path = model.folder / "counted.onnx"
    path.write_bytes(proto.SerializeToString())
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        made = session.run(list(names), values.feeds(sizes, np.random.default_rng(0)))
    except (EngineError, HostError):
        raise
    except Exception as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise ModelError(
            f"the work of this model at {sizes_text(sizes)} cannot be counted, it does not run there: {reason}; "
            "leave these sizes out of the traffic, or give --dim"
        ) from error
    finally:
        path.unlink(missing_ok=True)
    return {name: np.shape(value) for name, value in zip(names, made, strict=True) if hasattr(value, "shape")}


def analytic_seconds(model: Model, values: ValueSource, fixed: Sizes) -> Callable[[Sizes], float]:
    """Return a function from sizes of some symbols to nominal seconds.

    Args:
        model: to count in.
        values: of its inputs.
        fixed: sizes of the symbols that will not be asked about.
    """
    return lambda sizes: count_operations(model, values, {**fixed, **sizes}).nominal_s
