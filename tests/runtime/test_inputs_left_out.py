"""Inputs that a caller may leave out: derived ones, unused ones, and those that the model has a value for."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import onnx
import pytest
from onnx import TensorProto

from trtc.profiles import Derived, PadRule
from trtc.runtime import RequestError

F = np.float32
PROFILES = ({"batch": (1, 4), "seq": (1, 8)},)


@pytest.fixture
def derivable(graphs):
    """Hands its inputs through, so that what trtc made can be read."""
    names = ("ids", "mask", "types", "pos")
    nodes = [graphs.node("Identity", [name], [f"{name}_out"]) for name in names]
    inputs = [graphs.value(name, ("batch", "seq"), TensorProto.INT64) for name in names]
    outputs = [graphs.value(f"{name}_out", ("batch", "seq"), TensorProto.INT64) for name in names]
    return graphs.model(nodes, inputs, outputs)


DERIVED = (Derived("mask", "ones"), Derived("types", "zeros"), Derived("pos", "positions", "seq"))
FILLS = PadRule("seq", "right", {"ids": 9, "mask": 0, "types": 0, "pos": 0})


@pytest.mark.parametrize("padding", [(), (FILLS,), (FILLS, PadRule("batch", "rows", {}))], ids=["exact", "seq", "both"])
def test_derived_inputs_are_made_unless_they_are_given(open_bundle, derivable, padding):
    session = open_bundle(derivable, profiles=PROFILES, mode="bucket", padding=padding, derived=DERIVED, slots=1)
    for batch, seq in [(2, 3), (1, 8), (4, 5), (2, 3)] * 2:
        ids = np.arange(batch * seq).reshape(batch, seq)
        found = session.run({"ids": ids})
        assert found["ids_out"].tolist() == ids.tolist()
        assert found["mask_out"].tolist() == [[1] * seq] * batch
        assert found["types_out"].tolist() == [[0] * seq] * batch
        assert found["pos_out"].tolist() == [list(range(seq))] * batch
        given = {"ids": ids, "mask": ids + 1, "types": ids + 2, "pos": ids + 3}
        for name, array in session.run(given).items():
            assert array.tolist() == given[name.removesuffix("_out")].tolist()
        some = session.run({"ids": ids, "pos": ids + 3})
        assert some["pos_out"].tolist() == (ids + 3).tolist()
        assert some["mask_out"].tolist() == [[1] * seq] * batch
        with session.borrow({"ids": ids}) as views:
            assert views["mask_out"].tolist() == [[1] * seq] * batch


def test_requests_of_equal_shapes_that_give_other_inputs_never_share_a_route(open_bundle, derivable):
    session = open_bundle(derivable, profiles=PROFILES, derived=DERIVED, slots=1)
    ids = np.full((1, 2), 5)
    for given in list(permutations(["mask", "types", "pos"], 1)) + list(permutations(["mask", "types", "pos"], 2)):
        found = session.run({"ids": ids, **{name: np.full((1, 2), 7) for name in given}})
        for name, made in {"mask": [1, 1], "types": [0, 0], "pos": [0, 1]}.items():
            assert found[f"{name}_out"].tolist() == [[7, 7] if name in given else made]


def test_the_padded_part_of_a_derived_input_is_its_fill(open_bundle, graphs):
    names = ("ids", "mask")
    nodes = [graphs.node("Identity", [name], [f"{name}_out"]) for name in names]
    inputs = [graphs.value(name, (1, "seq"), TensorProto.INT64) for name in names]
    outputs = [graphs.value(f"{name}_out", (1, 8), TensorProto.INT64) for name in names]
    session = open_bundle(
        graphs.model(nodes, inputs, outputs),
        profiles=({"seq": (1, 8)},),
        mode="bucket",
        padding=(PadRule("seq", "right", {"ids": 9, "mask": 0}),),
        derived=(Derived("mask", "ones"),),
        slots=1,
    )
    for size in (2, 8, 3, 2):
        found = session.run({"ids": np.full((1, size), 4)})
        assert found["ids_out"].tolist() == [[4] * size + [9] * (8 - size)]
        assert found["mask_out"].tolist() == [[1] * size + [0] * (8 - size)]


def test_positions_count_along_any_axis_and_to_any_length(open_bundle, graphs):
    nodes = [graphs.node("Identity", ["x"], ["y"]), graphs.node("Identity", ["p"], ["q"])]
    inputs = [graphs.value("x", ("n", "m")), graphs.value("p", ("n", "m"), TensorProto.INT32)]
    model = graphs.model(
        nodes, inputs, [graphs.value("y", ("n", "m")), graphs.value("q", ("n", "m"), TensorProto.INT32)]
    )
    session = open_bundle(model, profiles=({"n": (0, None), "m": (1, 4)},), derived=(Derived("p", "positions", "n"),))
    for n in (3, 500, 0, 64, 65):
        found = session.run({"x": np.zeros((n, 2), F)})["q"]
        assert found.dtype == np.int32
        assert found.tolist() == [[i, i] for i in range(n)]


@pytest.fixture
def with_unused(graphs):
    node = graphs.node("Identity", ["x"], ["y"])
    return graphs.model(
        [node], [graphs.value("x", ("n", 2)), graphs.value("u", ("k", 3))], [graphs.value("y", ("n", 2))]
    )


@pytest.mark.parametrize("profile", [{"n": (1, 4)}, {"n": (1, 4), "k": (2, 5)}])
def test_an_input_that_no_node_uses_may_be_left_out_or_given(open_bundle, with_unused, profile):
    session = open_bundle(with_unused, profiles=(profile,), unused=frozenset("u"), slots=1)
    x = np.array([[1, 2]], F)
    for _ in range(3):
        assert session.run({"x": x})["y"].tolist() == [[1, 2]]
        assert session.run({"x": x, "u": np.ones((2, 3), F)})["y"].tolist() == [[1, 2]]
    with pytest.raises(RequestError, match="'u': dtype float64"):
        session.run({"x": x, "u": np.ones((2, 3))})


@pytest.fixture
def with_default(graphs):
    w = onnx.numpy_helper.from_array(np.array([2], F), "w")
    node = graphs.node("Add", ["x", "w"], ["y"])
    inputs = [graphs.value("x", ("n",)), graphs.value("w", (1,))]
    return graphs.model([node], inputs, [graphs.value("y", ("n",))], initializers=(w,))


def test_an_input_with_a_value_in_the_model_takes_it_unless_another_is_given(open_bundle, with_default):
    session = open_bundle(with_default, profiles=({"n": (1, 4)},), slots=1)
    x = np.array([3], F)
    for _ in range(3):
        assert session.run({"x": x})["y"].tolist() == [5]
        assert session.run({"x": x, "w": np.array([6], F)})["y"].tolist() == [9]
        with session.borrow({"x": x}) as views:
            assert views["y"].tolist() == [5]


def test_a_large_default_survives_optimisation_and_stays_overridable(open_bundle, graphs):
    w = np.arange(64 * 64, dtype=F).reshape(64, 64)
    nodes = [graphs.node("MatMul", ["x", "w"], ["xw"]), graphs.node("Relu", ["xw"], ["y"])]
    inputs = [graphs.value("x", ("n", 64)), graphs.value("w", (64, 64))]
    model = graphs.model(
        nodes, inputs, [graphs.value("y", ("n", 64))], initializers=(onnx.numpy_helper.from_array(w, "w"),)
    )
    session = open_bundle(model, profiles=({"n": (1, 4)},), slots=1)
    x = np.eye(64, dtype=F)[:2]
    for _ in range(3):
        np.testing.assert_array_equal(session.run({"x": x})["y"], w[:2])
        np.testing.assert_array_equal(session.run({"x": x, "w": w + 1})["y"], w[:2] + 1)


def test_optional_inputs_of_rank_zero_do_not_collide_with_leaving_everything_out(open_bundle, graphs):
    v, w = (onnx.numpy_helper.from_array(np.array(n, F), name) for name, n in (("v", 10), ("w", 2)))
    node = graphs.node("Sub", ["v", "w"], ["y"])
    inputs = [graphs.value("v", ()), graphs.value("w", ())]
    session = open_bundle(graphs.model([node], inputs, [graphs.value("y", ())], initializers=(v, w)), slots=1)
    for _ in range(2):
        assert session.run({})["y"] == 8
        assert session.run({"v": np.array(5, F)})["y"] == 3
        assert session.run({"w": np.array(5, F)})["y"] == 5
        assert session.run({"v": 1, "w": 1})["y"] == 0


def test_a_symbol_that_nothing_given_shows_is_an_error_that_names_it(open_bundle, graphs):
    node = graphs.node("Concat", ["x", "pos"], ["y"], axis=0)
    inputs = [graphs.value("x", ("n",)), graphs.value("pos", ("k",))]
    model = graphs.model([node], inputs, [graphs.value("y", (None,))])
    session = open_bundle(model, profiles=({"n": (1, 4), "k": (1, 4)},), derived=(Derived("pos", "positions", "k"),))
    with pytest.raises(RequestError, match=r"the size of k does not follow .* pos: float \[k\]"):
        session.run({"x": np.ones(2, F)})
    assert session.run({"x": np.ones(2, F), "pos": np.zeros(1, F)})["y"].tolist() == [1, 1, 0]
