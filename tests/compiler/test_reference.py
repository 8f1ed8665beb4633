"""The references: every element type goes in and out, and failures name the node."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper

from trtc.compiler.reference import Unavailable, onnx_evaluator, open_reference
from trtc.engines.errors import EngineError
from trtc.engines.packed import pack, unpack
from trtc.profiles import ModelError

if TYPE_CHECKING:
    from collections.abc import Callable

    from trtc.compiler.model import Model

FLOAT = TensorProto.FLOAT


def identity(model_of: Callable[..., Model], element: int, opset: int = 17) -> Model:
    node = helper.make_node("Identity", ["x"], ["y"], name="same")
    return model_of([node], {"x": (element, ["N"])}, {"y": (element, ["N"])}, opset=opset)


@pytest.mark.parametrize(
    ("element", "values"),
    [
        pytest.param(FLOAT, np.array([1, -2.5], np.float32), id="float"),
        pytest.param(TensorProto.FLOAT16, np.array([1, -2.5], np.float16), id="float16"),
        pytest.param(TensorProto.INT64, np.array([2**60, -1]), id="int64"),
        pytest.param(TensorProto.BOOL, np.array([True, False]), id="bool"),
        pytest.param(TensorProto.STRING, np.array(["a", "héé"], object), id="string"),
        pytest.param(TensorProto.BFLOAT16, np.array([1, -2.5], ml_dtypes.bfloat16), id="bfloat16"),
        pytest.param(TensorProto.FLOAT8E4M3FN, np.array([1, -2.5], ml_dtypes.float8_e4m3fn), id="float8"),
    ],
)
def test_every_element_type_comes_out_as_it_went_in(model_of, element, values):
    reference = open_reference(identity(model_of, element, 23), threads=1)
    for array in (values, values[:0]):
        found = reference.run({"x": array})["y"]
        assert found.dtype == array.dtype
        assert found.shape == array.shape
        assert found.tolist() == array.tolist()


def test_answers_stay_as_they_are_when_the_reference_runs_again(model_of):
    reference = open_reference(identity(model_of, TensorProto.BFLOAT16, 23), threads=1)
    first = reference.run({"x": np.array([1, 2], ml_dtypes.bfloat16)})["y"]
    reference.run({"x": np.array([5, 5], ml_dtypes.bfloat16)})
    assert first.tolist() == [1, 2]


def test_sequences_come_out_as_lists(model_of):
    node = helper.make_node("SplitToSequence", ["x"], ["y"], name="split")
    model = model_of([node], {"x": (FLOAT, ["N"])}, {})
    model.proto.graph.output.append(helper.make_tensor_sequence_value_info("y", FLOAT, None))
    model.path.write_bytes(model.proto.SerializeToString())
    found = open_reference(model, threads=1).run({"x": np.array([1, 2], np.float32)})
    assert [item.tolist() for item in found["y"]] == [[1], [2]]


def test_a_failing_run_names_the_node_its_operator_and_its_constant(model_of):
    node = helper.make_node("Reshape", ["x", "shape"], ["y"], name="flatten/batch")
    model = model_of([node], {"x": (FLOAT, ["B", 2, 3])}, {"y": (FLOAT, ["B", 6])}, {"shape": np.array([1, 6])})
    with pytest.raises(EngineError, match=r"Reshape node 'flatten/batch' \(reads x, shape=\[1, 6\]\)") as caught:
        open_reference(model, threads=1).run({"x": np.ones((2, 2, 3), np.float32)})
    assert caught.value.__cause__ is not None


def test_a_failing_run_names_the_innermost_node(model_of):
    def branch(name: str) -> object:
        node = helper.make_node("Reshape", ["x", "shape"], [name], name=f"inner-{name}")
        return helper.make_graph([node], name, [], [helper.make_tensor_value_info(name, FLOAT, None)])

    node = helper.make_node("If", ["c"], ["y"], name="outer", then_branch=branch("t"), else_branch=branch("e"))
    inputs = {"x": (FLOAT, ["N"]), "c": (TensorProto.BOOL, [])}
    model = model_of([node], inputs, {"y": (FLOAT, None)}, {"shape": np.array([5])})
    with pytest.raises(EngineError, match="Reshape node 'inner-e'"):
        open_reference(model, threads=1).run({"x": np.ones(3, np.float32), "c": np.zeros((), bool)})


def test_a_model_that_does_not_open_is_a_model_error(model_of):
    node = helper.make_node("Identity", ["x"], ["y"], name="odd", domain="acme")
    with pytest.raises(ModelError, match=r"cannot open the model: .*acme"):
        open_reference(model_of([node], {"x": (FLOAT, ["N"])}, {"y": (FLOAT, ["N"])}), threads=1)


def test_the_second_reference_shares_no_kernel_and_agrees(model_of):
    node = helper.make_node("Softmax", ["x"], ["y"], name="s")
    model = model_of([node], {"x": (FLOAT, ["N", 3])}, {"y": (FLOAT, ["N", 3])})
    feeds = {"x": np.array([[1, 2, 3]], np.float32)}
    second = onnx_evaluator(model, feeds)
    assert not isinstance(second, Unavailable)
    np.testing.assert_allclose(second.run(feeds)["y"], open_reference(model, 1).run(feeds)["y"], rtol=1e-6)


def test_the_second_reference_says_which_operator_it_lacks(model_of):
    node = helper.make_node("FastGelu", ["x"], ["y"], name="g", domain="com.microsoft")
    model = model_of([node], {"x": (FLOAT, ["N"])}, {"y": (FLOAT, ["N"])})
    model.proto.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    model.path.write_bytes(model.proto.SerializeToString())
    found = onnx_evaluator(model, {"x": np.ones(2, np.float32)})
    assert isinstance(found, Unavailable)
    assert "FastGelu" in found.reason


@pytest.mark.parametrize(("opset", "serves"), [(9, False), (13, False), (14, True)])
def test_the_second_reference_never_normalizes_with_the_statistics_of_the_request(model_of, opset, serves):
    node = helper.make_node("BatchNormalization", ["x", "one", "zero", "zero", "one"], ["y"], name="norm")
    constants = {"one": np.ones(2, np.float32), "zero": np.zeros(2, np.float32)}
    model = model_of([node], {"x": (FLOAT, ["N", 2])}, {"y": (FLOAT, ["N", 2])}, constants, opset=opset)
    feeds = {"x": np.array([[5, 6], [7, 9]], np.float32)}
    second = onnx_evaluator(model, feeds)
    assert isinstance(second, Unavailable) != serves
    if not isinstance(second, Unavailable):
        np.testing.assert_allclose(second.run(feeds)["y"], feeds["x"], rtol=1e-4)


def test_the_second_reference_is_refused_beyond_its_seconds(model_of):
    nodes = [helper.make_node("Relu", [f"v{i}"], [f"v{i + 1}"]) for i in range(50)]
    model = model_of(nodes, {"v0": (FLOAT, ["N"])}, {"v50": (FLOAT, ["N"])})
    found = onnx_evaluator(model, {"v0": np.ones(2, np.float32)}, budget_s=0.0)
    assert isinstance(found, Unavailable)
    assert "more than 0 s" in found.reason


def test_the_second_reference_is_refused_when_its_only_node_takes_too_long(model_of):
    model = model_of([helper.make_node("Relu", ["x"], ["y"])], {"x": (FLOAT, ["N"])}, {"y": (FLOAT, ["N"])})
    feeds = {"x": np.ones(2, np.float32)}
    second = onnx_evaluator(model, feeds)
    assert not isinstance(second, Unavailable)
    second._check_time = late_after(second._check_time, calls=1)
    with pytest.raises(EngineError, match="more than 2 s"):
        second.run(feeds)


def late_after(check, calls):
    """Time is over once it was looked at so often."""
    from trtc.compiler.reference import _TooSlowError

    seen = []

    def look():
        seen.append(check())
        if len(seen) >= calls:
            raise _TooSlowError

    return look


def loop(*, scans: bool):
    """Carry v, and return it from each turn where ``scans``."""
    info = helper.make_tensor_value_info
    nodes = [helper.make_node("Identity", [n], [f"{n}_out"]) for n in ("keep", "v", *(["v_copy"] if scans else []))]
    if scans:
        nodes.insert(0, helper.make_node("Identity", ["v"], ["v_copy"]))
    results = [info("keep_out", TensorProto.BOOL, []), info("v_out", FLOAT, [])]
    body = helper.make_graph(
        nodes,
        "body",
        [info("i", TensorProto.INT64, []), info("keep", TensorProto.BOOL, []), info("v", FLOAT, [])],
        [*results, *([info("v_copy_out", FLOAT, [])] if scans else [])],
    )
    return helper.make_node("Loop", ["turns", "", "x"], ["y", *(["all"] if scans else [])], body=body)


@pytest.mark.parametrize("scans", [False, True])
def test_the_second_reference_is_not_asked_what_the_turns_of_a_loop_return(model_of, scans):
    inputs = {"turns": (TensorProto.INT64, []), "x": (FLOAT, [])}
    outputs = {"y": (FLOAT, []), **({"all": (FLOAT, ["K"])} if scans else {})}
    model = model_of([loop(scans=scans)], inputs, outputs)
    feeds = {"turns": np.array(3), "x": np.array(2, np.float32)}
    second = onnx_evaluator(model, feeds)
    assert isinstance(second, Unavailable) == scans
    if isinstance(second, Unavailable):
        assert "scan outputs of a Loop" in second.reason
    assert open_reference(model, 1).run(feeds)["y"] == 2


@pytest.mark.parametrize("dtype", ["int4", "uint4", "int2", "uint2", "float4e2m1"])
@pytest.mark.parametrize("count", [0, 1, 4, 7])
def test_small_elements_survive_packing(dtype, count):
    from trtc.engines.signature import numpy_dtype

    values = np.array([0, 1, 1, 0, 1, 0, 1][:count]).astype(numpy_dtype(dtype))
    if dtype in ("int4", "int2"):
        values = (-np.array([0, 1, 2, 0, 1, 2, 1][:count])).astype(numpy_dtype(dtype))
    packed = pack(values, dtype)
    assert packed.nbytes == -(-count * (2 if dtype.endswith("2") and "int" in dtype else 4) // 8)
    assert unpack(packed, dtype, (count,)).tolist() == values.tolist()


def test_the_evaluator_keeps_the_warnings_of_its_libraries_to_itself(model_of):
    nodes = [
        helper.make_node("Slice", ["x", "none", "none"], ["empty"]),
        helper.make_node("ReduceMean", ["empty"], ["y"], axes=[0], keepdims=0),
    ]
    model = model_of(nodes, {"x": (FLOAT, ["N"])}, {"y": (FLOAT, [])}, {"none": np.array([0])})
    feeds = {"x": np.ones(2, np.float32)}
    second = onnx_evaluator(model, feeds)
    assert not isinstance(second, Unavailable)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        assert np.isnan(second.run(feeds)["y"])
    assert heard == []


def test_the_evaluator_is_not_asked_about_empty_inputs(model_of):
    node = helper.make_node("ReduceMean", ["x"], ["y"], axes=[0], keepdims=0)
    model = model_of([node], {"x": (FLOAT, ["N"])}, {"y": (FLOAT, [])})
    second = onnx_evaluator(model, {"x": np.ones(2, np.float32)})
    assert not isinstance(second, Unavailable)
    with pytest.raises(EngineError, match="not asked about empty inputs"):
        second.run({"x": np.ones(0, np.float32)})
