"""trtc behind onnx's backend interface."""

from __future__ import annotations

import gc
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.backend.base import Backend

import trtc.tools.onnx_backend as backend
from trtc.compiler import BuildOptions
from trtc.profiles import ModelError, RequestError, UsageError

F = np.float32


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """Where bundles are made; every test leaves it empty."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    yield tmp_path
    gc.collect()
    assert list(tmp_path.iterdir()) == []


def model_of(node, inputs, outputs, initializers=()):
    graph = helper.make_graph([node], "g", inputs, outputs, list(initializers))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def info(name, dims, dtype=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, dtype, dims)


@pytest.fixture
def weighted():
    """Give x * w, where w has a value of its own and is an input as well."""
    weight = numpy_helper.from_array(np.array([10], F), "w")
    node = helper.make_node("Mul", ["x", "w"], ["y"])
    return model_of(node, [info("w", [1]), info("x", ["n"])], [info("y", ["n"])], [weight])


def test_a_prepared_model_runs_again_and_again_at_any_size(tiny_model, folders):
    with backend.prepare(tiny_model("batch", 4)) as prepared:
        for batch in (1, 3, 2):
            x = np.arange(batch * 4, dtype=F).reshape(batch, 4)
            (y,) = prepared.run([x])
            np.testing.assert_array_equal(y, 2 * x)
        assert any(Path(folders).iterdir())


@pytest.mark.parametrize(
    "give",
    [
        pytest.param(lambda x: [x], id="list"),
        pytest.param(lambda x: (x,), id="tuple"),
        pytest.param(lambda x: x, id="the-only-array"),
        pytest.param(lambda x: {"x": x}, id="dict"),
        pytest.param(lambda x: [numpy_helper.from_array(x)], id="proto"),
    ],
)
@pytest.mark.usefixtures("folders")
def test_inputs_come_in_order_or_by_name(weighted, give):
    assert backend.run_model(weighted, give(np.array([1, 2], F)))[0].tolist() == [10, 20]


@pytest.mark.usefixtures("folders")
def test_outputs_can_be_selected(tiny_model):
    with backend.prepare(tiny_model("n")) as prepared:
        assert len(prepared.run([np.ones(2, F)], outputs=["y"])) == 1
        with pytest.raises(UsageError, match="has no option 'threads'"):
            prepared.run([np.ones(2, F)], threads=2)


@pytest.mark.usefixtures("folders")
def test_problems_of_a_request_are_those_of_a_session(tiny_model):
    with backend.prepare(tiny_model("n", 4)) as prepared:
        with pytest.raises(RequestError, match="axis 1 is 3"):
            prepared.run([np.ones((2, 3), F)])
        with pytest.raises(UsageError, match="2 inputs, but the model takes 1: x"):
            prepared.run([np.ones((2, 4), F)] * 2)


def test_what_cannot_be_built_leaves_nothing_behind(tiny_model, folders):
    broken = tiny_model("n")
    broken.graph.node[0].op_type = "NoSuchOperator"
    with pytest.raises(ModelError, match="NoSuchOperator"):
        backend.prepare(broken)
    assert list(folders.iterdir()) == []
    assert not backend.is_compatible(broken)
    assert backend.is_compatible(tiny_model("n"))


@pytest.mark.usefixtures("folders")
def test_real_values_go_into_the_build_where_made_up_ones_do_not_run():
    """Parts of a split must add up to its size: no made-up value does."""
    node = helper.make_node("Split", ["x", "parts"], ["a", "b"])
    model = model_of(node, [info("x", [6]), info("parts", [2], TensorProto.INT64)], [info("a", None), info("b", None)])
    inputs = [np.arange(6, dtype=F), np.array([2, 4])]
    with pytest.raises(ModelError, match="--samples"):
        backend.prepare(model)
    first, second = backend.run_model(model, inputs, samples=[inputs])
    assert (first.tolist(), second.tolist()) == ([0, 1], [2, 3, 4, 5])


@pytest.mark.usefixtures("folders")
def test_samples_that_files_cannot_hold_are_left_out():
    node = helper.make_node("SequenceLength", ["s"], ["k"])
    model = model_of(
        node, [helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, None)], [info("k", [], TensorProto.INT64)]
    )
    inputs = [[np.ones(2, F)] * 3]
    assert backend.run_model(model, inputs, samples=[inputs])[0] == 3


@pytest.mark.usefixtures("folders")
def test_options_of_the_build_are_the_callers(tiny_model):
    with backend.prepare(tiny_model("n"), options=BuildOptions(measure_s=0, use_cache=False, rtol=0.5)) as prepared:
        assert prepared.session.manifest.tolerance[1] == 0.5
    with pytest.raises(UsageError, match="has no option 'speed'"):
        backend.prepare(tiny_model("n"), speed="high")


@pytest.mark.usefixtures("folders")
def test_a_model_of_random_values_is_refused():
    node = helper.make_node("RandomUniformLike", ["x"], ["y"])
    with pytest.raises(ModelError, match="draws random numbers"):
        backend.prepare(model_of(node, [info("x", [64])], [info("y", [64])]))


@pytest.mark.usefixtures("folders")
def test_one_node_runs_with_the_types_of_its_inputs():
    node = helper.make_node("Add", ["a", "a"], ["y"])
    assert backend.run_node(node, [np.array([1, 2])])[0].tolist() == [2, 4]
    split = helper.make_node("Split", ["x"], ["p", "q"], num_outputs=2)
    p, q = backend.run_node(split, {"x": np.arange(4, dtype=F)}, opset_version=18)
    assert (p.tolist(), q.tolist()) == ([0, 1], [2, 3])


@pytest.mark.parametrize(
    ("device", "runs"), [("CPU", True), ("CPU:0", True), ("CUDA", False), ("CUDA:1", False), ("TPU", False)]
)
def test_only_the_processor_is_a_device(tiny_model, device, runs):
    assert backend.supports_device(device) is runs
    if not runs:
        assert not backend.is_compatible(tiny_model("n"), device)
        with pytest.raises(UsageError, match="runs on CPU"):
            backend.prepare(tiny_model("n"), device)


@pytest.mark.usefixtures("folders")
def test_onnx_drives_it_through_its_own_interface(tiny_model):
    driven: type[Backend] = backend.TrtcBackend
    assert issubclass(driven, Backend)
    assert isinstance(tiny_model("n"), onnx.ModelProto)
    prepared = driven.prepare(tiny_model("n"), "CPU")
    assert prepared.run([np.ones(2, F)])[0].tolist() == [2, 2]
    prepared.close()
