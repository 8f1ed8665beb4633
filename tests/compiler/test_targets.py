"""Builds for a GPU target on a machine without one, beside the CPU and alone: what the bundle then holds and says."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from plan_file import profiles_in

from trtc.compiler import BuildOptions, ShapeOptions, build
from trtc.compiler import construct as construct_module
from trtc.compiler.analysis import read_declarations
from trtc.compiler.importer import load_model
from trtc.compiler.pipeline import build_key
from trtc.engines.builder_options import BuilderOptions
from trtc.profiles import HostError, ModelError, ProfileError, UsageError
from trtc.runtime import load

pytest.importorskip("tensorrt_rtx", reason="pip install 'trtc[rtx]'")
SHAPES = ShapeOptions(buckets=("rows=2,4",))


def options(*targets: str, **more) -> BuildOptions:
    quick = {"shapes": SHAPES, "measure_s": 0.0, "verify_s": 2.0, "threads": 1}
    return BuildOptions(targets=targets, **{**quick, **more})


@pytest.fixture(scope="module")
def model(tiny_model, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "double.onnx"
    onnx.save(tiny_model("rows", 4), path)
    return path


@pytest.fixture(scope="module")
def both(model, tmp_path_factory):
    """One bundle for the CPU and for two kinds of GPU."""
    padded = options("cpu", "rtx:sm120,sm89", pads=("rows:rows",))
    return build(model, tmp_path_factory.mktemp("out") / "both.trtc", padded)


@pytest.fixture(scope="module")
def rtx_only(model, tmp_path_factory):
    return build(model, tmp_path_factory.mktemp("out") / "rtx.trtc", options("rtx"))


def plan_of(report) -> bytes:
    record = next(r for r in report.manifest.engines if r.backend == "tensorrt_rtx")
    return (report.path / record.entry).read_bytes()


class TestTwoTargets:
    def test_share_one_bundle_and_its_facts(self, both):
        assert [(e.name, e.backend) for e in both.manifest.engines] == [
            ("cpu", "onnxruntime"),
            ("rtx:sm89,sm120", "tensorrt_rtx"),
        ]
        assert profiles_in(plan_of(both)) == [[((1, 4), (2, 4), (2, 4))], [((1, 4), (4, 4), (4, 4))]]
        assert both.manifest.build.libraries["tensorrt_rtx"] not in ("", "not installed")

    def test_an_engine_that_could_not_run_here_says_why_and_is_not_verified(self, both):
        record = both.manifest.engines[1]
        assert not record.verified
        assert [(v.ran, v.passed) for v in record.verification] == [(False, False)]
        assert "no GPU that can be used" in record.verification[0].detail
        assert any("was not verified" in note for note in both.notes)

    def test_each_engine_runs_in_its_own_way(self, both):
        record = both.manifest.engines[1]
        assert both.manifest.execution.mode == "exact"
        assert record.execution is not None
        assert record.execution.mode == "bucket"

    def test_the_cpu_engine_serves_where_there_is_no_gpu(self, both):
        with load(both.path) as session:
            assert np.array_equal(session.run({"x": np.ones((3, 4), np.float32)})["y"], np.full((3, 4), 2, np.float32))

    def test_the_other_is_refused_at_load_with_the_reason(self, both):
        with pytest.raises(HostError, match="rtx:sm89,sm120"):
            load(both.path, engine="rtx:sm89,sm120")

    def test_memory_of_each_profile_is_recorded(self, both):
        assert [m.profile for m in both.manifest.engines[1].memory] == ["p0", "p1"]
        assert all(m.slot_bytes > 0 and m.scratch_bytes >= 0 for m in both.manifest.engines[1].memory)


class TestOneTarget:
    def test_a_bundle_for_a_gpu_alone_has_its_facts_from_the_reference(self, rtx_only):
        manifest = rtx_only.manifest
        assert [e.name for e in manifest.engines] == ["rtx"]
        assert str(manifest.signature.outputs[0]) == "y: float [rows, 4]"
        assert manifest.execution.mode == "exact"
        assert manifest.ladder.cost_s == ()

    def test_loading_it_here_says_what_is_missing(self, rtx_only):
        with pytest.raises(HostError, match="no engine of this bundle can run here"):
            load(rtx_only.path)

    def test_the_cache_returns_the_stored_bytes(self, rtx_only, model, tmp_path):
        again = build(model, tmp_path / "again.trtc", options("rtx"))
        assert again.hit
        assert plan_of(again) == plan_of(rtx_only)

    def test_open_ranges_are_refused_with_the_ways_to_close_them(self, model, tmp_path):
        with pytest.raises(ProfileError, match="target rtx needs a range for every symbol"):
            build(model, tmp_path / "open.trtc", options("rtx", shapes=ShapeOptions()))


class TestKey:
    @pytest.fixture
    def key(self, model, tmp_path):
        loaded = load_model(model, work_folder=tmp_path / "model")

        def of(wanted: BuildOptions) -> str:
            return build_key(loaded, read_declarations(loaded, wanted), wanted)

        return of

    def test_one_spelling_of_a_target_is_one_key(self, key):
        assert key(options("rtx:sm89,sm120")) == key(options("rtx:sm120,sm89")) != key(options("rtx:sm89"))

    def test_the_version_of_the_library_counts_for_its_targets_only(self, key, monkeypatch):
        cpu, rtx = key(options("cpu")), key(options("rtx"))
        monkeypatch.setattr("trtc.compiler.pipeline._library_version", lambda module: f"another {module}")
        assert key(options("cpu")) == cpu
        assert key(options("rtx")) != rtx

    def test_a_timing_cache_counts_by_its_bytes(self, key, tmp_path):
        for name, data in (("a", b"1"), ("b", b"1"), ("c", b"2")):
            (tmp_path / name).write_bytes(data)
        a, b, c = (key(options("rtx", builder=BuilderOptions(timing_cache=tmp_path / name))) for name in "abc")
        assert a == b != c

    def test_a_timing_cache_that_is_not_there_is_wrong_use(self, key, tmp_path):
        with pytest.raises(UsageError, match="cannot be read"):
            key(options("rtx", builder=BuilderOptions(timing_cache=tmp_path / "none")))


def test_options_of_a_builder_need_a_target_that_has_one(model, tmp_path):
    with pytest.raises(UsageError, match="--workspace: only TensorRT's builder has it, and the targets are cpu"):
        build(model, tmp_path / "x.trtc", options("cpu", builder=BuilderOptions(workspace_bytes=2**20)))


def test_a_model_that_a_target_cannot_build_is_refused_before_it_is_analysed(tmp_path, monkeypatch):
    def never(*given):
        raise AssertionError(given)

    monkeypatch.setattr("trtc.compiler.pipeline.analyse", never)
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", 4])
    y = helper.make_tensor_value_info("y", TensorProto.INT64, [2, None])
    graph = helper.make_graph([helper.make_node("NonZero", ["x"], ["y"], name="ones")], "g", [x], [y])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), tmp_path / "ones.onnx")
    with pytest.raises(ModelError) as caught:
        build(tmp_path / "ones.onnx", tmp_path / "out.trtc", options("cpu", "rtx"))
    assert "node 'ones' (NonZero)" in str(caught.value)
    assert "--target cpu" in str(caught.value)
    assert not (tmp_path / "out.trtc").exists()


def test_an_engine_that_can_run_here_is_verified_and_measured_by_itself(model, tmp_path, monkeypatch):
    """A GPU in the building machine, played by the CPU engine: it demands a device and finds one."""
    from trtc.engines.onnxruntime import build as cpu_build

    build_engine = cpu_build.build_engine

    def demanding(request):
        built = build_engine(request)
        return replace(built, requirements=msgspec.structs.replace(built.requirements, device="cuda"))

    monkeypatch.setattr(cpu_build, "build_engine", demanding)
    monkeypatch.setattr(construct_module, "why_not_here", lambda _: "")
    record = build(model, tmp_path / "gpu.trtc", options("cpu", use_cache=False)).manifest.engines[0]
    assert record.verified
    assert record.execution is not None
