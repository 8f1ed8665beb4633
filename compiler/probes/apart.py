"""Graphs whose rows cannot meet, whatever the values: every operator works element by element."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnx

    from trtc.compiler.probes.subject import Subject

# fmt: off
_ELEMENTWISE = frozenset((
    "Abs", "Acos", "Acosh", "Add", "And", "Asin", "Asinh", "Atan", "Atanh", "Cast", "Ceil", "Celu", "Clip",
    "Cos", "Cosh", "Div", "Elu", "Equal", "Erf", "Exp", "Floor", "Gelu", "Greater", "GreaterOrEqual",
    "HardSigmoid", "HardSwish", "Identity", "IsInf", "IsNaN", "LeakyRelu", "Less", "LessOrEqual", "Log", "Max",
    "Mean", "Min", "Mish", "Mod", "Mul", "Neg", "Not", "Or", "Pow", "PRelu", "Reciprocal", "Relu", "Round",
    "Selu", "Sigmoid", "Sign", "Sin", "Sinh", "Softplus", "Softsign", "Sqrt", "Sub", "Sum", "Tan", "Tanh",
    "ThresholdedRelu", "Where", "Xor",
))
# fmt: on
"""Operators of the standard domain whose output at an index depends on their inputs at that index alone, broadcast."""


def rows_stay_apart(subject: Subject, symbol: str) -> bool:
    """Tell whether the graph's structure alone keeps rows along ``symbol`` from influencing each other.

    True only for graphs of element-wise operators in which every input has the symbol on one and the same axis of one
    rank, and no constant has more than one element along it. False says nothing.
    """
    graph = subject.graph
    shapes = [spec.dims for spec in subject.signature.inputs if spec.used]
    if not shapes or any(dims is None or len(dims) != len(shapes[0] or ()) for dims in shapes):
        return False
    axes = {tuple(i for i, dim in enumerate(dims or ()) if dim == symbol) for dims in shapes}
    if len(axes) != 1 or len(axis := next(iter(axes))) != 1:
        return False
    if any(node.domain not in ("", "ai.onnx") or node.op_type not in _ELEMENTWISE for node in graph.node):
        return False
    from_the_right = len(shapes[0] or ()) - axis[0]
    return not graph.sparse_initializer and all(
        _spans_one(tensor, from_the_right, len(shapes[0] or ())) for tensor in graph.initializer
    )


def _spans_one(tensor: onnx.TensorProto, from_the_right: int, rank: int) -> bool:
    """Whether a constant broadcasts along the row axis, and adds no axis of its own."""
    dims = list(tensor.dims)
    return len(dims) <= rank and (len(dims) < from_the_right or dims[-from_the_right] == 1)
