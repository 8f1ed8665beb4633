"""Work counted from graphs whose work is known."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from trtc.compiler.importer import load_model
from trtc.compiler.operation_counts import analytic_seconds, count_operations
from trtc.engines.signature import Signature, TensorSpec
from trtc.profiles import ModelError


def value(name, dims, dtype=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, dtype, dims)


class Values:
    """Normal floats for the inputs of a model."""

    carries_shape = ()

    def __init__(self, signature):
        self.signature = signature

    def feeds(self, sizes, rng):
        return {
            spec.name: rng.standard_normal([sizes.get(d, d) for d in spec.dims]).astype("f4")
            for spec in self.signature.inputs
        }

    def describe(self):
        return "made here"


@pytest.fixture
def loaded(tmp_path):
    """Load a model of these nodes, and values for it."""

    def load(nodes, inputs, outputs, weights=None):
        tensors = [numpy_helper.from_array(array, name) for name, array in (weights or {}).items()]
        graph = helper.make_graph(nodes, "g", inputs, outputs, tensors)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
        path = tmp_path / "model.onnx"
        onnx.save(model, path)
        work = tmp_path / "work"
        specs = tuple(
            TensorSpec(i.name, "float", tuple(d.dim_param or d.dim_value for d in i.type.tensor_type.shape.dim))
            for i in inputs
        )
        return load_model(path, work_folder=work), Values(Signature(specs, ()))

    return load


def test_a_product_costs_two_operations_for_each_multiplication(loaded):
    weights = {"w": np.ones((8, 5), np.float32)}
    model, values = loaded(
        [helper.make_node("MatMul", ["x", "w"], ["y"])], [value("x", ["n", 8])], [value("y", ["n", 5])], weights
    )
    found = count_operations(model, values, {"n": 3})
    assert found.operations == 2 * 3 * 8 * 5
    assert found.moved_bytes == 4 * (3 * 8 + 8 * 5 + 3 * 5)
    assert (found.nodes, found.unknown_nodes) == (1, 0)


def test_a_product_of_two_inputs_grows_with_both(loaded):
    nodes = [
        helper.make_node("Transpose", ["x"], ["xt"], perm=[1, 0]),
        helper.make_node("MatMul", ["x", "xt"], ["y"]),
    ]
    model, values = loaded(nodes, [value("x", ["n", 4])], [value("y", ["n", "n"])])
    small, large = (count_operations(model, values, {"n": n}).operations for n in (10, 100))
    assert small == 2 * 10 * 10 * 4 + 10 * 4
    assert large / small > 90


def test_a_convolution_counts_its_window(loaded):
    weights = {"w": np.ones((6, 2, 3, 3), np.float32)}  # 4 channels in 2 groups
    model, values = loaded(
        [helper.make_node("Conv", ["x", "w"], ["y"], group=2, pads=[1, 1, 1, 1])],
        [value("x", [1, 4, 8, "w_px"])],
        [value("y", [1, 6, 8, "w_px"])],
        weights,
    )
    assert count_operations(model, values, {"w_px": 10}).operations == 2 * (6 * 8 * 10) * (2 * 3 * 3)


def test_where_inference_knows_no_shape_a_run_tells_it(loaded):
    nodes = [
        helper.make_node("NonZero", ["x"], ["where"]),
        helper.make_node("Cast", ["where"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("Exp", ["f"], ["y"]),
    ]
    model, values = loaded(nodes, [value("x", ["n", 2])], [value("y", [2, None])])
    found = count_operations(model, values, {"n": 7})
    assert found.unknown_nodes == 0
    assert found.operations >= 8 * 2 * 14  # Exp over [2, 14]: no draw from a normal distribution is zero


def test_sizes_that_do_not_run_are_named(loaded):
    nodes = [
        helper.make_node("Reshape", ["x", "to"], ["r"]),
        helper.make_node("NonZero", ["r"], ["where"]),
        helper.make_node("Cast", ["where"], ["y"], to=TensorProto.FLOAT),
    ]
    weights = {"to": np.array([4, -1])}
    model, values = loaded(nodes, [value("x", ["n"])], [value("y", [2, None])], weights)
    with pytest.raises(ModelError, match="n=6 cannot be counted, it does not run there"):
        count_operations(model, values, {"n": 6})


def test_seconds_grow_with_sizes(loaded):
    model, values = loaded([helper.make_node("Exp", ["x"], ["y"])], [value("x", ["b", "n"])], [value("y", ["b", "n"])])
    seconds = analytic_seconds(model, values, {"b": 4})
    assert seconds({"n": 1000}) > seconds({"n": 10}) > 0
