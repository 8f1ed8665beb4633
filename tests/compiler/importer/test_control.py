"""Loops and Ifs that are steered by a value without elements."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from trtc.profiles import ModelError

INT64, BOOL = TensorProto.INT64, TensorProto.BOOL


@pytest.fixture
def looped(model, value):
    """Build ``y``: x doubled by a Loop; ``steered(count, condition)`` by nodes, initializers or inputs."""

    def make(count=(), condition=(), nodes=(), inputs=()):
        body = helper.make_graph(
            [helper.make_node("Identity", ["go"], ["go_on"]), helper.make_node("Add", ["v", "v"], ["w"])],
            "body",
            [value("i", [], INT64), value("go", [], BOOL), value("v")],
            [value("go_on", [], BOOL), value("w")],
        )
        loop = helper.make_node("Loop", ["n" if count or nodes or inputs else "", "c" if condition else "", "x"], ["y"])
        loop.attribute.append(helper.make_attribute("body", body))
        initializers = [numpy_helper.from_array(array, name) for name, array in (*count, *condition)]
        return model([*nodes, loop], ["x", *inputs], initializers=initializers)

    return make


EMPTY = np.zeros(0, np.int64)


@pytest.mark.parametrize(
    "steered",
    [
        pytest.param({"count": [("n", EMPTY)]}, id="initializer"),
        pytest.param({"count": [("n", np.zeros((2, 0), np.int64))]}, id="initializer-of-rank-2"),
        pytest.param({"count": [("n", np.array(2))], "condition": [("c", np.zeros(0, np.bool_))]}, id="condition"),
        pytest.param(
            {"nodes": [helper.make_node("Constant", [], ["n"], value=numpy_helper.from_array(EMPTY))]}, id="constant"
        ),
        pytest.param(
            {"inputs": [helper.make_tensor_value_info("n", INT64, [0])]},
            id="input",
        ),
    ],
)
def test_a_loop_whose_count_or_condition_holds_nothing_is_refused(imported, looped, steered):
    with pytest.raises(ModelError, match=r"Loop.*(trip count|condition), which holds nothing"):
        imported(looped(**steered))


def test_a_branch_on_a_condition_that_holds_nothing_is_refused(imported, model, value):
    branches = [
        helper.make_graph([helper.make_node("Neg", ["x"], [name])], name, [], [value(name)]) for name in ("a", "b")
    ]
    node = helper.make_node("If", ["c"], ["y"], then_branch=branches[0], else_branch=branches[1])
    none = numpy_helper.from_array(np.zeros(0, np.bool_), "c")
    with pytest.raises(ModelError, match="condition, which holds nothing"):
        imported(model([node], initializers=[none]))


@pytest.mark.parametrize("count", [np.array(2), np.array([2])], ids=["scalar", "one-element"])
def test_a_loop_that_is_steered_by_one_number_runs(imported, looped, run, count):
    x = np.ones((1, 4), np.float32)
    loaded = imported(looped(count=[("n", count)]))
    assert run(loaded, {"x": x})["y"].tolist() == (4 * x).tolist()
