"""ONNX Runtime's GPU providers, as far as a machine without a GPU decides: what they are told, that none is missing.

Calls run for real: the memory that would lie on the GPU is taken on the CPU here.
"""

from __future__ import annotations

import gc
import hashlib
import threading
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from trtc.engines.build import EngineRequest
from trtc.engines.errors import CancelledError, EngineError
from trtc.engines.host import this_host
from trtc.engines.layout import plan_layout
from trtc.engines.manifest import EngineRecord, Execution
from trtc.engines.memory import array_at, host_slot
from trtc.engines.onnxruntime import gpu_session
from trtc.engines.onnxruntime.build import build_engine
from trtc.engines.onnxruntime.gpu import DeviceCall, GpuEngine, GpuLateCall, _plain_options, device_of, open_on_gpu
from trtc.engines.onnxruntime.gpu_session import engine_cache, open_session
from trtc.engines.onnxruntime.load import Opened
from trtc.engines.onnxruntime.providers import GpuSetting, provider_list, shapes_text, wanted_provider
from trtc.engines.opening import Opening
from trtc.engines.signature import Signature, TensorSpec
from trtc.engines.target import parse_target
from trtc.profiles import Ladder, Profile, Range, UsageError
from trtc.runtime.verdicts import judge

F = np.float32
LADDER = Ladder((Profile("p0", {"n": Range(1, 2, 4)}), Profile("p1", {"n": Range(5, 6, 8)})))
WEIGHTS = np.arange(64 * 64, dtype=F).reshape(64, 64) % 7
MATMUL = Signature((TensorSpec("x", "float", ("n", 64)),), (TensorSpec("y", "float", ("n", 64)),))


def info(name, *dims, dtype=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, dtype, dims)


def model_of(nodes, inputs, outputs, initializers=()):
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(initializers))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


@pytest.fixture(scope="module")
def matmul() -> onnx.ModelProto:
    """``y = Relu(x @ w)``: the CPU fuses these two into an operator of its own."""
    nodes = [helper.make_node("Gemm", ["x", "w", "b"], ["h"]), helper.make_node("Relu", ["h"], ["y"])]
    weights = [numpy_helper.from_array(WEIGHTS, "w"), numpy_helper.from_array(np.zeros(64, F), "b")]
    return model_of(nodes, [info("x", "n", 64)], [info("y", "n", 64)], weights)


def request(folder: Path, model: onnx.ModelProto, target: str, *, external: bool = False) -> EngineRequest:
    for name in ("model", "engine"):
        (folder / name).mkdir(parents=True)
    path = folder / "model" / "model.onnx"
    onnx.save(
        onnx.ModelProto.FromString(model.SerializeToString()),
        path,
        save_as_external_data=external,
        location="weights.bin",
        size_threshold=0,
    )
    return EngineRequest(path, folder / "engine", MATMUL, LADDER, target=parse_target(target))


def plain_session(model: bytes | str) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


# What the providers are told.


def test_one_profile_covers_the_whole_ladder_and_is_tuned_for_the_largest():
    signature = Signature(
        (
            TensorSpec("ids", "int64", ("batch", "seq")),
            TensorSpec("scale", "float", (1,)),
            TensorSpec("image", "float", ("batch", 3, "seq")),
        ),
        (TensorSpec("y", "float", ("batch",)),),
    )
    ladder = Ladder(
        tuple(
            Profile(f"p{i}", {"batch": Range(1, 4, 8), "seq": Range(low, high, high)})
            for i, (low, high) in enumerate([(2, 16), (17, 32), (33, 64)])
        )
    )
    assert shapes_text(signature, ladder) == {
        "trt_profile_min_shapes": "ids:1x2,image:1x3x2",
        "trt_profile_opt_shapes": "ids:4x64,image:4x3x64",
        "trt_profile_max_shapes": "ids:8x64,image:8x3x64",
    }


def test_a_model_of_fixed_shapes_needs_no_profile():
    fixed = Signature((TensorSpec("x", "float", (2, 3)),), (TensorSpec("y", "float", (2, 3)),))
    assert shapes_text(fixed, Ladder((Profile("p0", {}),))) == {}


def test_open_ranges_are_refused_by_name():
    with pytest.raises(UsageError, match=r"needs a range for n; such as --dim n=1\.\.64"):
        shapes_text(MATMUL, Ladder((Profile("p0", {"n": Range(1, None, None)}),)))


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (TensorSpec("a:0", "float", ("n",)), "input 'a:0' cannot be named to the provider"),
        (TensorSpec("a,b", "float", ("n",)), "input 'a,b' cannot be named to the provider"),
        (TensorSpec("s", "string", ("n",)), "input 's' has no shape that could be stated"),
    ],
)
def test_an_input_that_the_provider_could_misread_is_refused(spec, said):
    with pytest.raises(EngineError) as caught:
        shapes_text(Signature((spec,), MATMUL.outputs), LADDER)
    assert said in str(caught.value)
    assert "build for --target cuda" in str(caught.value)


def test_the_cuda_provider_keeps_float32_and_stands_before_the_cpu():
    found = provider_list({"provider": "cuda"}, GpuSetting(device=3))
    assert [name for name, _ in found] == ["CUDAExecutionProvider", "CPUExecutionProvider"]
    assert found[0][1] == {
        "device_id": "3",
        "arena_extend_strategy": "kSameAsRequested",
        "cudnn_conv_algo_search": "HEURISTIC",
        "use_tf32": "0",
    }
    captured = provider_list({"provider": "cuda"}, GpuSetting(graphs=True))
    assert captured[0][1]["enable_cuda_graph"] == "1"


def test_the_tensorrt_provider_gets_profile_cache_and_shared_memory(tmp_path):
    shapes = shapes_text(MATMUL, LADDER)
    found = provider_list({"provider": "tensorrt", **shapes}, GpuSetting(1, graphs=True, cache=tmp_path))
    names = [name for name, _ in found]
    assert names == ["TensorrtExecutionProvider", "CUDAExecutionProvider", "CPUExecutionProvider"]
    assert found[0][1] == {
        "device_id": "1",
        "trt_context_memory_sharing_enable": "1",
        "trt_fp16_enable": "0",
        "trt_profile_min_shapes": "x:1x64",
        "trt_profile_opt_shapes": "x:6x64",
        "trt_profile_max_shapes": "x:8x64",
        "trt_engine_cache_enable": "1",
        "trt_engine_cache_path": str(tmp_path),
        "trt_timing_cache_enable": "1",
        "trt_timing_cache_path": str(tmp_path),
        "trt_cuda_graph_enable": "1",
    }
    without = provider_list({"provider": "tensorrt"}, GpuSetting())[0][1]
    assert not {name for name in without if "cache" in name or "graph" in name}
    assert found[1][1]["device_id"] == "1"


def test_a_provider_of_a_newer_version_is_an_error():
    assert wanted_provider({}) == "cpu"
    with pytest.raises(EngineError, match="provider 'migraphx' of ONNX Runtime, this version of trtc knows cuda"):
        wanted_provider({"provider": "migraphx"})


# What is built.


@pytest.mark.parametrize("external", [False, True])
@pytest.mark.parametrize("target", ["cuda", "ort-tensorrt"])
def test_the_engine_is_the_model_as_it_is_with_files_named_by_their_bytes(tmp_path, matmul, target, external):
    built = build_engine(request(tmp_path, matmul, target, external=external))
    assert len(built.files) == 1 + external
    for name, path in built.files.items():
        assert path.name == Path(name).name
        assert hashlib.sha256(path.read_bytes()).hexdigest() == path.stem
    proto = onnx.load(built.files[built.entry])
    assert [node.op_type for node in proto.graph.node] == ["Gemm", "Relu"]
    assert {node.domain for node in proto.graph.node} == {""}
    x = np.ones((2, 64), F)
    (found,) = plain_session(str(built.files[built.entry])).run(None, {"x": x})
    np.testing.assert_array_equal(found, x @ WEIGHTS)
    needs = built.requirements
    assert (needs.library, needs.library_version, needs.device) == ("onnxruntime-gpu", "", "cuda")
    assert (needs.system, needs.architecture, needs.cpu_features) == ("", "", ())
    assert built.options["provider"] == {"cuda": "cuda", "ort-tensorrt": "tensorrt"}[target]


def test_the_engine_of_the_cpu_holds_what_no_gpu_provider_has(tmp_path, matmul):
    built = build_engine(request(tmp_path, matmul, "cpu"))
    proto = onnx.load(built.files[built.entry], load_external_data=False)
    assert {node.domain for node in proto.graph.node} == {"com.microsoft"}
    assert "provider" not in built.options


# That no provider is missing, silently.


@pytest.fixture
def model_path(tmp_path, matmul) -> Path:
    path = tmp_path / "model.onnx"
    path.write_bytes(matmul.SerializeToString())
    return path


@pytest.fixture
def claims_cuda(monkeypatch):
    """Let the library say that it has the CUDA provider, as onnxruntime-gpu does where CUDA itself is missing."""
    monkeypatch.setattr(
        onnxruntime, "get_available_providers", lambda: ["CUDAExecutionProvider", "CPUExecutionProvider"]
    )


CUDA = provider_list({"provider": "cuda"}, GpuSetting())


def test_a_build_of_the_library_without_the_provider_is_an_error_that_prints_nothing(model_path, capfd):
    with pytest.raises(EngineError) as caught:
        open_session(model_path, "cuda", CUDA, 1)
    assert f"this build of ONNX Runtime ({onnxruntime.__version__}) has no CUDAExecutionProvider" in str(caught.value)
    assert "pip install 'trtc[gpu]'" in str(caught.value)
    assert capfd.readouterr() == ("", "")


@pytest.mark.usefixtures("claims_cuda")
def test_the_fallback_to_the_cpu_is_real_and_is_an_error_here(model_path, capfd):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session = onnxruntime.InferenceSession(str(model_path), providers=CUDA)
        assert session.get_providers() == ["CPUExecutionProvider"], "ONNX Runtime no longer falls back: simplify"
        with pytest.raises(EngineError) as caught:
            open_session(model_path, "cuda", CUDA, 1)
    assert "CUDAExecutionProvider did not load, and ONNX Runtime would run on the CPU instead, silently" in (
        str(caught.value)
    )
    assert "libonnxruntime_providers_cuda.so: cannot open shared object file" in str(caught.value)
    assert capfd.readouterr().out == ""


def test_a_provider_that_takes_no_node_is_an_error(model_path):
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    session = onnxruntime.InferenceSession(str(model_path), options, providers=["CPUExecutionProvider"])
    with pytest.raises(EngineError, match="CUDAExecutionProvider takes no node of this model"):
        gpu_session._refuse_idle_gpu(session, "CUDAExecutionProvider")
    mixed = SimpleNamespace(
        get_provider_graph_assignment_info=lambda: [
            SimpleNamespace(ep_name=name) for name in ("CUDAExecutionProvider", "CPUExecutionProvider")
        ]
    )
    gpu_session._refuse_idle_gpu(mixed, "CUDAExecutionProvider")


def test_a_session_of_ours_never_falls_back_while_it_runs(model_path, monkeypatch):
    opened = plain_session(str(model_path))
    monkeypatch.setattr(gpu_session, "PROVIDERS", {"cuda": "CPUExecutionProvider"})
    monkeypatch.setattr(gpu_session, "CPU", "another")
    assert opened._enable_fallback
    assert not open_session(model_path, "cuda", [("CPUExecutionProvider", {})], 1)._enable_fallback


def test_such_an_engine_is_refused_at_load_on_this_machine_with_the_reason(tmp_path, matmul):
    built = build_engine(request(tmp_path, matmul, "cuda"))
    record = EngineRecord(
        name="cuda",
        backend="onnxruntime",
        target="cuda",
        precision=built.precision,
        entry=built.entry,
        files=(),
        requirements=built.requirements,
        verified=True,
        options=built.options,
    )
    verdict = judge(record, this_host())
    assert not verdict.fits
    assert verdict.reason == "onnxruntime-gpu is not installed: pip install 'trtc[gpu]'"


def opening(model_path: Path, mode: str | None, provider: str = "cuda") -> Opening:
    record = EngineRecord(
        name="cuda",
        backend="onnxruntime",
        target="cuda",
        precision="model",
        entry="blobs/abc.onnx",
        files=(),
        requirements=SimpleNamespace(),
        verified=True,
        options={"provider": provider},
        execution=None if mode is None else Execution(mode=mode),
    )
    return Opening(files={"blobs/abc.onnx": model_path}, record=record, signature=MATMUL, ladder=LADDER, device="2")


@pytest.mark.parametrize(
    ("mode", "refuse", "tried"),
    [
        (None, False, ["0"]),
        ("exact", False, ["0"]),
        ("bucket", False, ["1"]),
        ("bucket", True, ["1", "0"]),
    ],
)
def test_graphs_are_captured_for_buckets_and_where_the_library_can(model_path, monkeypatch, mode, refuse, tried):
    from trtc.engines.onnxruntime import gpu

    asked = []

    def session_of(path, provider, providers, threads):
        del provider, threads
        asked.append(providers[0][1].get("enable_cuda_graph", "0"))
        assert providers[0][1]["device_id"] == "2"
        if refuse and asked[-1] == "1":
            raise EngineError("this session cannot use the graph capture feature")
        return plain_session(str(path))

    monkeypatch.setattr(gpu, "open_session", session_of)
    engine = open_on_gpu(opening(model_path, mode))
    assert asked == tried
    assert (engine._device.graphs, engine._device.kind, engine._device.index) == (tried[-1] == "1", "cuda", 2)


def test_engines_of_tensorrt_are_kept_in_a_folder_of_this_user_alone(model_path, tmp_path, monkeypatch):
    monkeypatch.setenv("TRTC_CACHE_DIR", str(tmp_path / "cache"))
    folder = engine_cache(opening(model_path, None, "tensorrt"))
    assert folder == tmp_path / "cache" / "ort-tensorrt" / "abc"
    assert folder.stat().st_mode & 0o077 == 0
    folder.parent.chmod(0o777)
    assert engine_cache(opening(model_path, None, "tensorrt")) is None
    monkeypatch.setenv("TRTC_CACHE_DIR", str(model_path / "file"))
    assert engine_cache(opening(model_path, None, "tensorrt")) is None


# Calls, run for real with the device's memory on the CPU.


def engine_of(model: onnx.ModelProto, *, graphs: bool) -> GpuEngine:
    options = _plain_options if graphs else onnxruntime.RunOptions
    return GpuEngine(
        Opened(plain_session(model.SerializeToString()), "cuda", options), device_of("cpu", 0, graphs=graphs)
    )


def prepare(engine: GpuEngine, rows: int, signature: Signature = MATMUL):
    layout = plan_layout(signature, {"n": rows})
    slot = host_slot(layout.size_bytes)
    return engine.prepare(layout, slot), layout, slot


def filled(layout, slot, value: float) -> np.ndarray:
    view = array_at(slot.buffer, layout.inputs["x"])
    view[...] = value
    return view.copy()


@pytest.mark.parametrize("graphs", [False, True])
def test_a_call_gives_the_answer_of_every_run_in_its_slot(matmul, graphs):
    call, layout, slot = prepare(engine_of(matmul, graphs=graphs), 3)
    assert isinstance(call, DeviceCall)
    for value in (1.0, 2.0, 3.0, 0.5):
        x = filled(layout, slot, value)
        call.enqueue()
        assert call.wait() == {}
        np.testing.assert_array_equal(array_at(slot.buffer, layout.outputs["y"]), x @ WEIGHTS)


def test_every_binding_has_a_graph_of_its_own_that_is_freed_after_its_call(matmul):
    engine = engine_of(matmul, graphs=True)
    released = []
    engine._opened.session.release_captured_graph = released.append
    calls = [prepare(engine, rows) for rows in (1, 2)]
    for call, _, _ in calls:
        call.enqueue()
    ids = [call._options.get_run_config_entry("gpu_graph_id") for call, _, _ in calls]
    assert ids == ["1", "2"]
    assert _plain_options().get_run_config_entry("gpu_graph_id") == "-1"
    del call, calls
    gc.collect()
    assert released == []
    prepare(engine, 3)
    assert sorted(released) == [1, 2]


def test_a_cancelled_call_binds_anew_and_is_captured_anew(matmul):
    call, layout, slot = prepare(engine_of(matmul, graphs=True), 2)
    call.enqueue()
    stopped = call.enqueue
    call.cancel()
    with pytest.raises(CancelledError):
        stopped()
    x = filled(layout, slot, 4.0)
    for _ in range(2):
        call.enqueue()
    np.testing.assert_array_equal(array_at(slot.buffer, layout.outputs["y"]), x @ WEIGHTS)
    assert call._options.get_run_config_entry("gpu_graph_id") == "2", "a replay would work on addresses of before"


def test_calls_of_several_threads_do_not_meet_where_graphs_are_captured(matmul):
    engine = engine_of(matmul, graphs=True)
    inside, most = [], []

    class Turn:
        def __init__(self, lock) -> None:
            self.lock = lock

        def __enter__(self) -> None:
            self.lock.acquire()
            inside.append(threading.get_ident())
            most.append(len(set(inside)))

        def __exit__(self, *_: object) -> None:
            inside.pop()
            self.lock.release()

    engine._device.turn = Turn(engine._device.turn)
    wrong = []

    def work(rows: int) -> None:
        call, layout, slot = prepare(engine, rows)
        for value in range(1, 20):
            x = filled(layout, slot, value)
            call.enqueue()
            if not np.array_equal(array_at(slot.buffer, layout.outputs["y"]), x @ WEIGHTS):
                wrong.append((rows, value))

    threads = [threading.Thread(target=work, args=(rows,)) for rows in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert set(most) == {1}
    assert len(most) >= 4 * 19


def test_an_empty_request_runs(matmul):
    call, layout, slot = prepare(engine_of(matmul, graphs=False), 0)
    for _ in range(2):
        call.enqueue()
    assert array_at(slot.buffer, layout.outputs["y"]).shape == (0, 64)


@pytest.mark.parametrize("graphs", [False, True])
def test_outputs_sized_by_the_data_run_unbound(graphs):
    model = model_of(
        [helper.make_node("NonZero", ["x"], ["y"])], [info("x", "n")], [info("y", 1, "k", dtype=TensorProto.INT64)]
    )
    signature = Signature((TensorSpec("x", "float", ("n",)),), (TensorSpec("y", "int64", (1, None)),))
    call, layout, slot = prepare(engine_of(model, graphs=graphs), 3, signature)
    assert isinstance(call, GpuLateCall)
    array_at(slot.buffer, layout.inputs["x"])[...] = [0, 1, 1]
    call.enqueue()
    np.testing.assert_array_equal(call.wait()["y"], [[1, 2]])


@pytest.mark.parametrize("graphs", [False, True])
def test_types_that_numpy_lacks_are_bound_on_the_host(graphs):
    import ml_dtypes

    dtype = TensorProto.BFLOAT16
    model = model_of(
        [helper.make_node("Identity", ["x"], ["y"])], [info("x", "n", dtype=dtype)], [info("y", "n", dtype=dtype)]
    )
    signature = Signature((TensorSpec("x", "bfloat16", ("n",)),), (TensorSpec("y", "bfloat16", ("n",)),))
    call, layout, slot = prepare(engine_of(model, graphs=graphs), 3, signature)
    for value in (1.5, 2.5):
        array_at(slot.buffer, layout.inputs["x"])[...] = np.array([value] * 3, ml_dtypes.bfloat16)
        call.enqueue()
        assert (array_at(slot.buffer, layout.outputs["y"]).astype(F) == value).all()


def test_a_relation_that_does_not_hold_is_found_in_the_first_run(matmul):
    wrong = Signature(MATMUL.inputs, (TensorSpec("y", "float", ("n", 32)),))
    model = onnx.ModelProto.FromString(matmul.SerializeToString())
    model.graph.output[0].type.tensor_type.ClearField("shape")
    call, _, _ = prepare(engine_of(model, graphs=True), 2, wrong)
    with pytest.raises(EngineError, match=r"output 'y' came back as \(2, 64\)"):
        call.enqueue()


def test_a_closed_engine_prepares_nothing(matmul):
    engine = engine_of(matmul, graphs=True)
    engine.close()
    with pytest.raises(EngineError, match="was closed"):
        prepare(engine, 1)
