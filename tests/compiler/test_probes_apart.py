"""Graphs whose structure keeps rows apart need no domain; all others keep theirs."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from trtc.compiler.probes.apart import rows_stay_apart
from trtc.compiler.probes.subject import Subject
from trtc.engines.signature import Signature, TensorSpec
from trtc.profiles import Ladder, Profile, Range


def subject(nodes, inputs, constants=()):
    """A subject of ``inputs`` (name to dims) whose output is ``y``."""
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, dims) for name, dims in inputs.items()]
    y = helper.make_empty_tensor_value_info("y")
    tensors = [numpy_helper.from_array(np.ones(shape, np.float32), name) for name, shape in constants]
    graph = helper.make_graph(nodes, "g", values, [y], tensors)
    specs = tuple(TensorSpec(name, "float", tuple(dims)) for name, dims in inputs.items())
    return Subject(graph, Signature(specs, ()), Ladder((Profile("p0", {"b": Range(1, 4, 4)}),)), values=None)


@pytest.mark.parametrize(
    ("nodes", "inputs", "constants", "apart"),
    [
        pytest.param(["Relu x y"], {"x": ["b", 4]}, [], True, id="one-input"),
        pytest.param(["Add x z y"], {"x": ["b", 4], "z": ["b", 1]}, [], True, id="two-inputs"),
        pytest.param(["Mul x c y"], {"x": ["b", 4]}, [("c", (4,))], True, id="a-constant-for-every-row"),
        pytest.param(["Mul x c y"], {"x": ["b", 4]}, [("c", (4, 1))], False, id="a-constant-with-rows"),
        pytest.param(["Mul x c y"], {"x": ["b", 4]}, [("c", (2, 1, 1))], False, id="a-constant-that-adds-an-axis"),
        pytest.param(["ReduceSum x y"], {"x": ["b", 4]}, [], False, id="a-reduction"),
        pytest.param(["Add x z y"], {"x": ["b", 4], "z": ["s", "b"]}, [], False, id="another-axis"),
        pytest.param(["Add x z y"], {"x": ["b", 4], "z": [4]}, [], False, id="another-rank"),
        pytest.param(["Add x x y"], {"x": ["b", "b"]}, [], False, id="two-axes-of-one-symbol"),
    ],
)
def test_only_element_wise_graphs_over_one_row_axis_keep_rows_apart(nodes, inputs, constants, apart):
    made = []
    for text in nodes:
        op, *names = text.split()
        made.append(helper.make_node(op, names[:-1], names[-1:]))
    assert rows_stay_apart(subject(made, inputs, constants), "b") is apart
