"""Every output is made by a node for itself alone; names stay."""

import numpy as np
import pytest
from onnx import TensorProto, helper

X = np.array([[1, -2, 3, -4]], np.float32)


def test_a_graph_without_nodes_returns_its_input_under_a_recorded_name(imported, run, model):
    loaded = imported(model([], ["x"], ["x"]))
    assert loaded.public_outputs == {"x_output": "x"}
    assert [node.op_type for node in loaded.proto.graph.node] == ["Identity"]
    assert [i.name for i in loaded.proto.graph.input] == ["x"]
    assert run(loaded, {"x": X})["x_output"].tolist() == X.tolist()


def test_an_initializer_that_is_an_output_keeps_its_name(imported, run, model, value, weight):
    proto = model(
        [helper.make_node("Add", ["x", "w"], ["y"])], outputs=[value("w", [1]), "y"], initializers=[weight("w", [3])]
    )
    loaded = imported(proto)
    results = run(loaded, {"x": X})
    assert results["w"].tolist() == [3]
    assert results["y"].tolist() == (X + 3).tolist()
    assert "w" not in {tensor.name for tensor in loaded.proto.graph.initializer}
    assert loaded.public_outputs == {}


def test_a_constant_only_graph_has_no_inputs_and_its_value(imported, run, model, value, weight):
    node = helper.make_node("Constant", [], ["y"], value=weight("v", [1, 2]))
    loaded = imported(model([node], [], [value("y", [2])]))
    assert [n.op_type for n in loaded.proto.graph.node] == ["Constant", "Identity"]
    assert run(loaded, {})["y"].tolist() == [1, 2]


def test_a_value_listed_as_two_outputs_is_answered_once(imported, run, model):
    loaded = imported(model([helper.make_node("Relu", ["x"], ["y"])], outputs=["y", "y"]))
    assert [o.name for o in loaded.proto.graph.output] == ["y"]
    assert any("'y'" in note for note in loaded.notes)
    assert run(loaded, {"x": X})["y"].tolist() == [[1, 0, 3, 0]]


def test_a_generated_name_avoids_those_that_exist(imported, run, model):
    loaded = imported(model([helper.make_node("Neg", ["x"], ["x_output"])], outputs=["x_output", "x"]))
    assert loaded.public_outputs == {"x_output_2": "x"}
    results = run(loaded, {"x": X})
    assert results["x_output"].tolist() == (-X).tolist()
    assert results["x_output_2"].tolist() == X.tolist()


@pytest.mark.parametrize("outer", ["x", "w", "t"])
def test_a_branch_may_return_an_outer_value_directly(*, imported, run, model, value, weight, outer):
    then = helper.make_graph([], "then", [], [value(outer)])
    other = helper.make_graph([helper.make_node("Neg", ["x"], ["e"])], "else", [], [value("e")])
    nodes = [
        helper.make_node("Abs", ["x"], ["t"]),
        helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=other),
    ]
    inputs = ["x", value("c", [], TensorProto.BOOL)]
    loaded = imported(model(nodes, inputs, initializers=[weight("w", [[5, 5, 5, 5]])]))
    expected = {"x": X, "w": np.full((1, 4), 5, np.float32), "t": np.abs(X)}[outer]
    assert run(loaded, {"x": X, "c": np.bool_(1)})["y"].tolist() == expected.tolist()
    assert run(loaded, {"x": X, "c": np.bool_(0)})["y"].tolist() == (-X).tolist()


def test_a_branch_that_returns_one_value_twice_returns_it_twice(imported, run, model, value):
    then = helper.make_graph([helper.make_node("Neg", ["x"], ["a"])], "then", [], [value("a"), value("a")])
    two = [helper.make_node("Abs", ["x"], ["p"]), helper.make_node("Relu", ["x"], ["q"])]
    other = helper.make_graph(two, "else", [], [value("p"), value("q")])
    node = helper.make_node("If", ["c"], ["y", "z"], then_branch=then, else_branch=other)
    loaded = imported(model([node], ["x", value("c", [], TensorProto.BOOL)], ["y", "z"]))
    results = run(loaded, {"x": X, "c": np.bool_(1)})
    assert results["y"].tolist() == results["z"].tolist() == (-X).tolist()


@pytest.mark.parametrize("trips", [3, 0])
def test_a_loop_that_reads_an_outer_input_keeps_its_meaning(imported, run, model, value, trips):
    body = helper.make_graph(
        [helper.make_node("Identity", ["on"], ["on2"]), helper.make_node("Add", ["s", "x"], ["s2"])],
        "body",
        [value("i", [], TensorProto.INT64), value("on", [], TensorProto.BOOL), value("s", None)],
        [value("on2", [], TensorProto.BOOL), value("s2", None)],
    )
    node = helper.make_node("Loop", ["n", "", "zero"], ["y"], body=body)
    loaded = imported(
        model([node], [value("x", [2]), value("n", [], TensorProto.INT64), value("zero", [2])], [value("y", [2])])
    )
    ones = np.ones(2, np.float32)
    assert run(loaded, {"x": ones, "n": np.array(trips), "zero": 0 * ones})["y"].tolist() == [trips, trips]
