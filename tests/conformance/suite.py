"""The node tests that come with onnx, as values: one model, its inputs, what must come out."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.case.node import collect_testcases

_EXPANDED = "_expanded"
"""A test of the same operator written as the nodes that its function stands for; it has the other test's name."""


@dataclass(frozen=True, slots=True)
class Case:
    """One test.

    Attributes:
        name: that onnx gives it.
        operator: that it tests, with its domain where that is not the standard one.
        model: of one node, or of the nodes that its function expands to.
        inputs: in the order of the graph's inputs.
        expected: in the order of its outputs.
        rtol, atol: that onnx compares with.
    """

    name: str
    operator: str
    model: onnx.ModelProto
    inputs: tuple[Any, ...]
    expected: tuple[Any, ...]
    rtol: float
    atol: float


def collect() -> tuple[Case, ...]:
    """Read every node test of the installed onnx, in onnx's order."""
    with warnings.catch_warnings():  # values that overflow on purpose
        warnings.simplefilter("ignore")
        found = collect_testcases(None)
    operators = {test.name: _operator(test.model.graph) for test in found if _EXPANDED not in test.name}
    return tuple(
        Case(
            name=test.name if len(test.data_sets) == 1 else f"{test.name}[{i}]",
            operator=operators.get(test.name.split(_EXPANDED)[0]) or _operator(test.model.graph),
            model=test.model,
            inputs=tuple(_value(value) for value in inputs),
            expected=tuple(_value(value) for value in outputs),
            rtol=test.rtol,
            atol=test.atol,
        )
        for test in found
        for i, (inputs, outputs) in enumerate(test.data_sets)
    )


def _value(given: Any) -> Any:
    if isinstance(given, onnx.TensorProto):
        return numpy_helper.to_array(given)
    if isinstance(given, np.generic):
        return np.asarray(given)
    return [_value(item) for item in given] if isinstance(given, list) else given


def _operator(graph: onnx.GraphProto) -> str:
    """Name what a test is about. The others of several nodes only prepare its inputs."""
    node = graph.node[-1]
    return f"{node.domain}.{node.op_type}" if node.domain else str(node.op_type)
