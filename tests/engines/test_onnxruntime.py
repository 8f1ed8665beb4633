"""ONNX Runtime as a backend: what is built, what is bound, and how its failures read."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from trtc.engines.build import EngineRequest
from trtc.engines.errors import CancelledError, EngineError
from trtc.engines.layout import plan_layout
from trtc.engines.memory import array_at, host_slot
from trtc.engines.onnxruntime.build import build_engine
from trtc.engines.onnxruntime.errors import ORT_ERRORS, engine_error
from trtc.engines.onnxruntime.load import BoundCall, LateCall, open_graph
from trtc.engines.signature import Signature, TensorSpec
from trtc.profiles import Ladder, Profile, Range

if TYPE_CHECKING:
    from pathlib import Path

F = np.float32
LADDER = Ladder((Profile("p0", {"n": Range(1, 4, 4)}),))


def model_of(nodes, inputs, outputs, initializers=()):
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(initializers))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def info(name, *dims, dtype=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, dtype, dims)


def request(tmp_path, model, signature):
    (tmp_path / "model").mkdir()
    (tmp_path / "engine").mkdir()
    path = tmp_path / "model" / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return EngineRequest(path, tmp_path / "engine", signature, LADDER)


def placed(built, folder) -> Path:
    """Put the files of an engine where a bundle would, and return the one to open."""
    (folder / "blobs").mkdir(parents=True)
    for name, file in built.files.items():
        (folder / name).write_bytes(file.read_bytes())
    return folder / built.entry


def run(path, signature, sizes, feeds):
    layout = plan_layout(signature, sizes)
    slot = host_slot(layout.size_bytes)
    engine = open_graph(path, 1)
    call = engine.prepare(layout, slot)
    for name, place in layout.inputs.items():
        array_at(slot.buffer, place)[...] = feeds[name]
    for _ in range(2):
        call.enqueue()
        late = call.wait()
    found = {name: array_at(slot.buffer, place).copy() for name, place in layout.outputs.items()}
    engine.close()
    return found | late


WEIGHTS = np.arange(64 * 64, dtype=F).reshape(64, 64) % 7
MATMUL = Signature((TensorSpec("x", "float", ("n", 64)),), (TensorSpec("y", "float", ("n", 64)),))


@pytest.fixture
def matmul():
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    return model_of([node], [info("x", "n", 64)], [info("y", "n", 64)], [numpy_helper.from_array(WEIGHTS, "w")])


def test_files_are_named_by_their_bytes_and_open_from_any_folder(tmp_path, matmul):
    import hashlib

    built = build_engine(request(tmp_path, matmul, MATMUL))
    for name, path in built.files.items():
        match = re.fullmatch(r"blobs/([0-9a-f]{64})\.(onnx|weights)", name)
        assert match
        assert hashlib.sha256(path.read_bytes()).hexdigest() == match[1]
    assert len(built.files) == 2
    assert built.entry in built.files
    x = np.ones((2, 64), F)
    found = run(placed(built, tmp_path / "elsewhere"), MATMUL, {"n": 2}, {"x": x})
    np.testing.assert_array_equal(found["y"], x @ WEIGHTS)


def test_the_same_model_gives_the_same_files(tmp_path, matmul):
    names = []
    for i in range(2):
        (tmp_path / str(i)).mkdir()
        names.append(sorted(build_engine(request(tmp_path / str(i), matmul, MATMUL)).files))
    assert names[0] == names[1]


def test_requirements_name_the_library_and_the_processor(tmp_path, matmul):
    from trtc.engines.host import this_host

    needs = build_engine(request(tmp_path, matmul, MATMUL)).requirements
    host = this_host()
    assert (needs.library, needs.library_version) == ("onnxruntime", onnxruntime.__version__)
    assert (needs.system, needs.architecture) == (host.system, host.architecture)
    assert needs.cpu_features == host.cpu_features


def test_a_model_that_the_library_refuses_is_an_error_without_paths_of_its_sources(tmp_path):
    node = helper.make_node("NoSuchOperator", ["x"], ["y"])
    model = model_of([node], [info("x", "n")], [info("y", "n")])
    with pytest.raises(EngineError, match=r"building the engine for target cpu: ONNX Runtime says: .*NoSuchOperator"):
        build_engine(request(tmp_path, model, MATMUL))


def test_inputs_that_no_node_reads_are_dropped_from_the_engine(tmp_path):
    node = helper.make_node("Add", ["x", "x"], ["y"])
    model = model_of([node], [info("x", "n"), info("u", "k", 3)], [info("y", "n")])
    signature = Signature(
        (TensorSpec("x", "float", ("n",)), TensorSpec("u", "float", ("k", 3), used=False)),
        (TensorSpec("y", "float", ("n",)),),
    )
    built = build_engine(request(tmp_path, model, signature))
    assert [i.name for i in onnx.load(built.files[built.entry], load_external_data=False).graph.input] == ["x"]


def tensors_of(graph):
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            for inner in [attribute.g, *attribute.graphs]:
                yield from tensors_of(inner)


def test_weights_inside_branches_are_found_in_the_bundle(tmp_path):
    def branch(name, factor):
        weights = numpy_helper.from_array(WEIGHTS * factor, f"w_{name}")
        node = helper.make_node("MatMul", ["x", f"w_{name}"], [f"y_{name}"])
        return helper.make_graph([node], name, [], [info(f"y_{name}", None, 64)], [weights])

    node = helper.make_node("If", ["flag"], ["y"], then_branch=branch("yes", 1), else_branch=branch("no", 2))
    model = model_of([node], [info("x", "n", 64), info("flag", dtype=TensorProto.BOOL)], [info("y", "n", 64)])
    signature = Signature((*MATMUL.inputs, TensorSpec("flag", "bool", ())), MATMUL.outputs)
    built = build_engine(request(tmp_path, model, signature))
    path = placed(built, tmp_path / "bundle")
    x = np.ones((1, 64), F)
    for flag, factor in ((True, 1), (False, 2)):
        found = run(path, signature, {"n": 1}, {"x": x, "flag": flag})
        np.testing.assert_array_equal(found["y"], factor * (x @ WEIGHTS))


def test_a_model_that_cannot_be_saved_with_its_weights_apart_is_saved_in_one_file(tmp_path):
    """A constant in a branch inside a loop: saved beside a weights file, it would be defined twice."""
    node, boolean, integer = helper.make_node, TensorProto.BOOL, TensorProto.INT64
    one = node("Constant", [], ["one"], value=numpy_helper.from_array(F(1), "one_value"))
    more = helper.make_graph([one, node("Add", ["v", "one"], ["more"])], "more", [], [info("more")])
    same = helper.make_graph([node("Identity", ["v"], ["same"])], "same", [], [info("same")])
    body = helper.make_graph(
        [
            node("Identity", ["go"], ["go_out"]),
            node("If", ["flag"], ["v_out"], then_branch=more, else_branch=same),
        ],
        "body",
        [info("i", dtype=integer), info("go", dtype=boolean), info("v")],
        [info("go_out", dtype=boolean), info("v_out")],
    )
    loop = node("Loop", ["turns", "", "x"], ["y"], body=body)
    inputs = [info("turns", dtype=integer), info("flag", dtype=boolean), info("x")]
    signature = Signature(
        (TensorSpec("turns", "int64", ()), TensorSpec("flag", "bool", ()), TensorSpec("x", "float", ())),
        (TensorSpec("y", "float", ()),),
    )
    built = build_engine(request(tmp_path, model_of([loop], inputs, [info("y")]), signature))
    path = placed(built, tmp_path / "bundle")
    for flag, expected in ((True, 7), (False, 4)):
        assert run(path, signature, {}, {"turns": 3, "flag": flag, "x": 4})["y"] == expected


def test_a_real_model_with_weights_in_nested_branches_runs_from_its_files(tmp_path, silero_path):
    state = TensorSpec("state", "float", (2, "n", 128))
    signature = Signature(
        (TensorSpec("input", "float", ("n", 576)), state, TensorSpec("sr", "int64", ())),
        (TensorSpec("output", "float", ("n", 1)), TensorSpec("stateN", "float", (2, "n", 128))),
    )
    (tmp_path / "engine").mkdir()
    built = build_engine(EngineRequest(silero_path, tmp_path / "engine", signature, LADDER))
    path = placed(built, tmp_path / "bundle")
    graph = onnx.load(path, load_external_data=False).graph
    external = [t for t in tensors_of(graph) if t.data_location == TensorProto.EXTERNAL]
    assert external, "this model must have weights outside of its graph"
    top = {tensor.name for tensor in graph.initializer}
    assert any(tensor.name not in top for tensor in external), "and some of them inside of a branch"
    for tensor in external:
        (location,) = [entry.value for entry in tensor.external_data if entry.key == "location"]
        assert (path.parent / location).is_file()
    rng = np.random.default_rng(0)
    plain = onnxruntime.InferenceSession(str(silero_path), providers=["CPUExecutionProvider"])
    for rate in (16000, 8000):
        feeds = {
            "input": rng.standard_normal((2, 576 if rate == 16000 else 288), dtype=F) / 10,
            "state": rng.standard_normal((2, 2, 128), dtype=F) / 10,
            "sr": np.array(rate),
        }
        expected = dict(zip(["output", "stateN"], plain.run(["output", "stateN"], feeds), strict=True))
        if rate == 16000:
            found = run(path, signature, {"n": 2}, feeds)
        else:
            narrow = Signature((TensorSpec("input", "float", ("n", 288)), *signature.inputs[1:]), signature.outputs)
            found = run(path, narrow, {"n": 2}, feeds)
        for name, array in expected.items():
            np.testing.assert_allclose(found[name], array, rtol=1e-4, atol=1e-5)


@pytest.fixture
def double(tmp_path):
    """An engine for ``y = x + x`` that was opened, and its signature."""
    model = model_of([helper.make_node("Add", ["x", "x"], ["y"])], [info("x", "n")], [info("y", "n")])
    signature = Signature((TensorSpec("x", "float", ("n",)),), (TensorSpec("y", "float", ("n",)),))
    path = placed(build_engine(request(tmp_path, model, signature)), tmp_path / "bundle")
    engine = open_graph(path, 1)
    yield engine, signature
    engine.close()


def test_an_output_that_contradicts_its_relation_is_named_on_every_run(double):
    engine, signature = double
    wrong = Signature(signature.inputs, (TensorSpec("y", "float", (7,)),))
    layout = plan_layout(wrong, {"n": 3})
    call = engine.prepare(layout, host_slot(layout.size_bytes))
    for _ in range(3):
        with pytest.raises(
            EngineError, match=r"output 'y' came back as \(3,\) where its relation .* says \(7,\).*rebuild"
        ):
            call.enqueue()


def test_calls_of_different_sizes_and_slots_are_independent(double):
    engine, signature = double
    calls = []
    for n in (1, 3, 2):
        layout = plan_layout(signature, {"n": n})
        slot = host_slot(layout.size_bytes)
        calls.append((engine.prepare(layout, slot), slot, layout))
    for _ in range(3):
        for number, (call, slot, layout) in enumerate(calls):
            array_at(slot.buffer, layout.inputs["x"])[...] = number
            call.enqueue()
            assert call.wait() == {}
        for number, (_, slot, layout) in enumerate(calls):
            assert (array_at(slot.buffer, layout.outputs["y"]) == 2 * number).all()


def test_an_engine_that_was_closed_prepares_nothing(double):
    engine, signature = double
    engine.close()
    layout = plan_layout(signature, {"n": 1})
    with pytest.raises(EngineError, match="closed; load the bundle again"):
        engine.prepare(layout, host_slot(layout.size_bytes))


def test_an_output_that_the_model_does_not_have_is_an_error_of_ours(double):
    engine, signature = double
    layout = plan_layout(Signature(signature.inputs, (TensorSpec("nope", "float", ("n",)),)), {"n": 1})
    call = engine.prepare(layout, host_slot(layout.size_bytes))
    with pytest.raises(EngineError, match="ONNX Runtime says"):
        call.enqueue()


def test_a_call_is_bound_when_everything_has_a_place_and_late_otherwise(double):
    engine, signature = double
    layout = plan_layout(signature, {"n": 1})
    slot = host_slot(layout.size_bytes)
    assert isinstance(engine.prepare(layout, slot), BoundCall)
    unknown = plan_layout(Signature(signature.inputs, (TensorSpec("y", "float", (None,)),)), {"n": 1})
    late = engine.prepare(unknown, slot)
    assert isinstance(late, LateCall)
    array_at(slot.buffer, unknown.inputs["x"])[...] = 4
    late.enqueue()
    assert late.wait()["y"].tolist() == [8]
    assert late.wait() == {}


@pytest.mark.parametrize("runs", [0, 1, 2])
def test_a_cancel_stops_the_run_that_was_read_and_not_the_next(double, runs):
    engine, signature = double
    layout = plan_layout(signature, {"n": 1})
    slot = host_slot(layout.size_bytes)
    call = engine.prepare(layout, slot)
    for _ in range(runs):
        call.enqueue()
    running = call.enqueue
    call.cancel()
    for _ in range(2):
        with pytest.raises(CancelledError, match="running the engine for target cpu: the call was cancelled"):
            running()
    array_at(slot.buffer, layout.inputs["x"])[...] = 3
    for _ in range(3):
        call.enqueue()
        assert array_at(slot.buffer, layout.outputs["y"]).tolist() == [6]


def test_a_cancel_during_the_first_run_does_not_leave_the_stopped_binding_behind(double, monkeypatch):
    """The first run ends by putting its binding in place; a cancel in that moment must win."""
    engine, signature = double
    layout = plan_layout(signature, {"n": 1})
    call = engine.prepare(layout, host_slot(layout.size_bytes))
    bind = BoundCall._bind

    def cancelled_meanwhile(self, options):
        bound = bind(self, options)
        self.cancel()
        return bound

    monkeypatch.setattr(BoundCall, "_bind", cancelled_meanwhile)
    call.enqueue()
    monkeypatch.undo()
    for _ in range(3):
        call.enqueue()


@pytest.mark.parametrize("content", [b"", b"no model", b"\x08\x09"])
def test_a_file_that_is_no_model_is_an_error_of_ours(tmp_path, content):
    path = tmp_path / "engine.onnx"
    path.write_bytes(content)
    with pytest.raises(EngineError, match="opening the engine for target cpu: ONNX Runtime says: "):
        open_graph(path, 1)


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (
            "FAIL : /src/core/op_kernel.cc:12 virtual void ort::Kernel::Compute(const OrtValue&) Non-zero status",
            "FAIL : [op_kernel.cc:12] Non-zero status",
        ),
        (
            "Message: /src/reshape_helper.h:47 ns::Helper(std::function<void(int)>, bool) const size == 3 was false.",
            "Message: [reshape_helper.h:47] size == 3 was false.",
        ),
        (
            "A /a/b.cc:1 void f(T) [with T = float] one. B /a/c.h:2 g() two.",
            "A [b.cc:1] one. B [c.h:2] two.",
        ),
        ("/a/b.cc:1 no function here", "[b.cc:1] no function here"),
        ("no source at all (really)", "no source at all (really)"),
    ],
)
def test_messages_lose_the_source_paths_of_the_library_and_keep_what_it_says(raw, said):
    assert str(engine_error(RuntimeError(raw), "running")) == f"running: ONNX Runtime says: {said}"


def test_a_real_failure_names_no_source_path_and_keeps_the_numbers():
    node = helper.make_node("Reshape", ["x", "s"], ["y"])
    model = model_of([node], [info("x", "n"), info("s", 2, dtype=TensorProto.INT64)], [info("y", None, None)])
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    with pytest.raises(ORT_ERRORS) as caught:
        session.run(None, {"x": np.ones(4, F), "s": np.array([3, 3])})
    assert "onnxruntime_src" in str(caught.value), "this library shows its paths; that is what is taken away"
    said = str(engine_error(caught.value, "running"))
    assert "onnxruntime_src" not in said
    assert "onnxruntime::" not in said
    assert "{3,3}" in said


def test_opening_the_backend_starts_no_usage_events(tmp_path):
    program = "import trtc.engines.onnxruntime.load, os; print(os.listdir(os.environ['TMPDIR']))"
    environ = {k: v for k, v in os.environ.items() if k != "ORT_DISABLE_TELEMETRY"} | {"TMPDIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", program], env=environ, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_user_who_wants_usage_events_decides(tmp_path):
    program = "import os, trtc.engines.onnxruntime; print(os.environ['ORT_DISABLE_TELEMETRY'])"
    environ = {**os.environ, "ORT_DISABLE_TELEMETRY": "0", "TMPDIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", program], env=environ, capture_output=True, text=True, check=True)
    assert done.stdout == "0\n"
