"""Values that cannot lie in planned memory, and the odd ones that can."""

from __future__ import annotations

import weakref

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from trtc.runtime import EngineError, RequestError

F = np.float32


def test_an_output_that_depends_on_the_data_has_its_real_size_in_every_call(open_bundle, graphs):
    model = graphs.model(
        [graphs.node("NonZero", ["x"], ["where"]), graphs.node("Identity", ["x"], ["same"])],
        [graphs.value("x", ("n", 3))],
        [graphs.value("where", (2, None), TensorProto.INT64), graphs.value("same", ("n", 3))],
    )
    session = open_bundle(model, profiles=({"n": (0, None)},), slots=1)
    for x in ([[0, 1, 0], [2, 0, 3]], [[0, 0, 0], [0, 0, 0]], [[1, 1, 1], [1, 1, 1]], np.zeros((0, 3))):
        array = np.array(x, F)
        found = session.run({"x": array})
        assert list(found) == ["where", "same"]
        assert found["where"].tolist() == [list(axis) for axis in np.nonzero(array)]
        assert found["same"].tolist() == array.tolist()
        assert list(session.run({"x": array}, ["same"])) == ["same"]
        with session.borrow({"x": array}) as views:
            assert list(views) == ["where", "same"]
            assert views["where"].tolist() == found["where"].tolist()
            assert views["same"].tolist() == found["same"].tolist()


def test_a_late_result_is_owned_by_the_caller(open_bundle, graphs):
    model = graphs.model(
        [graphs.node("NonZero", ["x"], ["y"])], [graphs.value("x", ("n",))], [graphs.value("y", (1, None), 7)]
    )
    session = open_bundle(model, profiles=({"n": (1, 9)},), slots=1)
    first = session.run({"x": np.array([0, 1], F)})["y"]
    session.run({"x": np.array([1, 1], F)})
    assert first.tolist() == [[1]]


@pytest.mark.parametrize(
    "x", [np.array(3, F), np.ones((2, 3), F)[:, ::2], np.array([[1, 2]], ">f4"), np.zeros((0, 4), F), 2.5, [1, 2]]
)
def test_an_input_of_unknown_rank_takes_any_shape(open_bundle, identity_model, x):
    session = open_bundle(identity_model(dims=None), slots=1)
    for _ in range(2):
        y = session.run({"x": x})["y"]
        assert isinstance(y, np.ndarray)
        assert y.shape == np.shape(x)
        np.testing.assert_array_equal(y, np.asarray(x))


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        (["a", "héé", ""], ["a", "héé", ""]),
        (np.array(["a", "bc", "d", "e"])[::2], ["a", "d"]),
        (np.array(["a", "b"], object)[::-1], ["b", "a"]),
        ([b"a", "h\u00e9".encode()], ["a", "h\u00e9"]),
        (np.array([b"ab"]), ["ab"]),
        (np.array(["x", "yy"], np.dtypes.StringDType()), ["x", "yy"]),
        (np.array(["a"]).astype(">U1"), ["a"]),
        (np.empty(0, object), []),
    ],
)
def test_strings_go_in_and_come_out(open_bundle, identity_model, x, expected):
    session = open_bundle(identity_model(TensorProto.STRING, ("n",)), profiles=({"n": (0, 4)},), slots=1)
    for _ in range(2):
        y = session.run({"x": x})["y"]
        assert y.tolist() == expected
        with session.borrow({"x": x}) as views:
            assert views["y"].tolist() == expected
    with pytest.raises(RequestError, match=r"n=5, but this bundle serves n 0\.\.4"):
        session.run({"x": ["a"] * 5})


def test_strings_beside_numbers_keep_their_own_values_between_calls(open_bundle, graphs):
    default = helper.make_tensor("t", TensorProto.STRING, [1], [b"default"])
    nodes = [graphs.node("Concat", ["s", "t"], ["y"], axis=0), graphs.node("Add", ["x", "x"], ["z"])]
    model = graphs.model(
        nodes,
        [
            graphs.value("s", ("n",), TensorProto.STRING),
            graphs.value("t", (1,), TensorProto.STRING),
            graphs.value("x", ("m",)),
        ],
        [graphs.value("y", (None,), TensorProto.STRING), graphs.value("z", ("m",))],
        initializers=(default,),
    )
    session = open_bundle(model, profiles=({"n": (1, 4), "m": (1, 4)},), slots=1)
    x = np.ones(2, F)
    for i in range(3):
        found = session.run({"s": [f"a{i}"], "x": x * i})
        assert found["y"].tolist() == [f"a{i}", "default"]
        assert found["z"].tolist() == [2 * i, 2 * i]
        assert session.run({"s": [f"b{i}"], "t": ["mine"], "x": x})["y"].tolist() == [f"b{i}", "mine"]


def test_no_reference_to_an_unplaced_input_outlives_its_call(open_bundle, identity_model):
    session = open_bundle(identity_model(dims=None), slots=1)
    x = np.ones(3, F)
    alive = weakref.ref(x)
    session.run({"x": x})
    del x
    assert alive() is None


def test_bfloat16_goes_in_and_comes_out(open_bundle, graphs):
    node = graphs.node("Cast", ["x"], ["t"], to=TensorProto.FLOAT)
    back = graphs.node("Cast", ["t"], ["y"], to=TensorProto.BFLOAT16)
    bf16 = TensorProto.BFLOAT16
    model = graphs.model([node, back], [graphs.value("x", ("n", 2), bf16)], [graphs.value("y", ("n", 2), bf16)])
    session = open_bundle(model, profiles=({"n": (1, 4)},), slots=1)
    for n in (1, 3, 1):
        x = np.arange(2 * n).reshape(n, 2).astype(ml_dtypes.bfloat16)
        y = session.run({"x": x})["y"]
        assert y.dtype == ml_dtypes.bfloat16
        assert y.astype(F).tolist() == x.astype(F).tolist()
    with pytest.raises(RequestError, match="dtype float32, but the model takes bfloat16"):
        session.run({"x": np.ones((1, 2), F)})


def test_a_sequence_goes_in_and_comes_out(open_bundle):
    seq = helper.make_tensor_sequence_value_info
    graph = helper.make_graph(
        [helper.make_node("SequenceInsert", ["s", "x"], ["t"]), helper.make_node("SequenceLength", ["s"], ["k"])],
        "g",
        [seq("s", TensorProto.FLOAT, None), helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n"])],
        [seq("t", TensorProto.FLOAT, None), helper.make_tensor_value_info("k", TensorProto.INT64, [])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    session = open_bundle(model, profiles=({"n": (1, 4)},), slots=1)
    for items in ([[1.0, 2.0]], [[1.0], [2.0], [3.0]], [[5.0, 6.0]]):
        arrays = [np.array(item, ">f4") for item in items]
        found = session.run({"s": arrays, "x": np.array([9], F)})
        assert [item.tolist() for item in found["t"]] == [*items, [9.0]]
        assert found["k"] == len(items)


def at_opset(opset: int, model: onnx.ModelProto) -> onnx.ModelProto:
    """The same graph in a newer operator set, which has more element types."""
    return helper.make_model(model.graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=13)


def casts(graphs, source: int, target: int) -> onnx.ModelProto:
    """Take x of one element type, give it as another."""
    node = graphs.node("Cast", ["x"], ["y"], to=target)
    return at_opset(25, graphs.model([node], [graphs.value("x", ("n",), source)], [graphs.value("y", ("n",), target)]))


@pytest.mark.parametrize(
    ("element", "dtype", "values"),
    [
        pytest.param(TensorProto.INT4, ml_dtypes.int4, [-8, 7, 3], id="int4"),
        pytest.param(TensorProto.UINT4, ml_dtypes.uint4, [0, 15, 9], id="uint4"),
        pytest.param(TensorProto.INT2, ml_dtypes.int2, [-2, 1, -1], id="int2"),
        pytest.param(TensorProto.UINT2, ml_dtypes.uint2, [0, 3, 2], id="uint2"),
        pytest.param(TensorProto.FLOAT8E8M0, ml_dtypes.float8_e8m0fnu, [0.5, 1, 64], id="float8e8m0"),
        pytest.param(TensorProto.FLOAT8E5M2, ml_dtypes.float8_e5m2, [0.5, -1, 64], id="float8e5m2"),
    ],
)
def test_elements_that_numpy_lacks_go_in_and_come_out(open_bundle, graphs, element, dtype, values):
    into = open_bundle(casts(graphs, TensorProto.FLOAT, element), profiles=({"n": (1, 4)},), slots=1)
    back = open_bundle(casts(graphs, element, TensorProto.FLOAT), profiles=({"n": (1, 4)},), slots=1)
    for count in (3, 1, 2, 3):
        narrow = into.run({"x": np.array(values[:count], F)})["y"]
        assert narrow.dtype == dtype
        assert narrow.astype(F).tolist() == values[:count]
        assert back.run({"x": narrow})["y"].tolist() == values[:count]


def test_elements_that_numpy_lacks_may_have_a_size_that_the_data_decides(open_bundle, graphs):
    bf16 = TensorProto.BFLOAT16
    model = graphs.model(
        [graphs.node("Compress", ["x", "keep"], ["y"])],
        [graphs.value("x", ("n",), bf16), graphs.value("keep", ("n",), TensorProto.BOOL)],
        [graphs.value("y", (None,), bf16)],
    )
    session = open_bundle(at_opset(28, model), profiles=({"n": (1, 4)},), slots=1)
    for keep in ([True, False, True], [False, False, True], [False, False, False]):
        x = np.array([1, 2, 3], ml_dtypes.bfloat16)
        assert session.run({"x": x, "keep": np.array(keep)})["y"].tolist() == x[keep].tolist()


def test_strings_beside_elements_that_numpy_lacks_are_refused_with_advice(open_bundle, graphs):
    model = graphs.model(
        [graphs.node("Identity", ["s"], ["t"]), graphs.node("Identity", ["x"], ["y"])],
        [graphs.value("s", ("n",), TensorProto.STRING), graphs.value("x", ("n",), TensorProto.BFLOAT16)],
        [graphs.value("t", ("n",), TensorProto.STRING), graphs.value("y", ("n",), TensorProto.BFLOAT16)],
    )
    session = open_bundle(model, profiles=({"n": (1, 4)},), slots=1)
    with pytest.raises(EngineError, match=r"input 's' is no array of numbers.*bfloat16.*cast at the model's edge"):
        session.run({"s": np.array(["a"], object), "x": np.ones(1, ml_dtypes.bfloat16)})


@pytest.mark.parametrize("shape", [(0, 4), (3, 0), (0, 0)])
def test_tensors_without_elements_work(open_bundle, graphs, shape):
    node = graphs.node("Add", ["x", "x"], ["y"])
    model = graphs.model([node], [graphs.value("x", ("n", "m"))], [graphs.value("y", ("n", "m"))])
    session = open_bundle(model, profiles=({"n": (0, None), "m": (0, None)},), slots=1)
    for _ in range(3):
        assert session.run({"x": np.ones(shape, F)})["y"].shape == shape
        assert session.run({"x": np.ones((1, 2), F)})["y"].tolist() == [[2, 2]]
        with session.borrow({"x": np.ones(shape, F)}) as views:
            assert views["y"].shape == shape


def test_an_output_shape_that_contradicts_its_relation_is_named_and_never_returned(open_bundle, graphs):
    node = graphs.node("Concat", ["x", "x"], ["y"], axis=0)
    model = graphs.model([node], [graphs.value("x", ("n",))], [graphs.value("y", (None,))])
    session = open_bundle(model, profiles=({"n": (1, 4)},), outputs={"y": ("n",)}, slots=1)
    for _ in range(2):
        with pytest.raises(
            EngineError, match=r"output 'y' came back as \(4,\) where .* says \(2,\).* at n=2: .*--dim SYMBOL=1..MAX"
        ):
            session.run({"x": np.ones(2, F)})


@pytest.mark.parametrize("name", ["a/b:0.π é", "../../x", "file", "class", "0"])
def test_names_are_any_text(open_bundle, graphs, name):
    model = graphs.model(
        [graphs.node("Identity", [name], ["out:0"])], [graphs.value(name, ("n",))], [graphs.value("out:0", ("n",))]
    )
    session = open_bundle(model, profiles=({"n": (1, 4)},), slots=1)
    for _ in range(3):
        assert session.run({name: np.array([1, 2], F)})["out:0"].tolist() == [1, 2]
