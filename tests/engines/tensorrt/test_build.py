"""Engines of small models, built by the real library: what goes in, what stands in the file, what is refused."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import msgspec
import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from plan_file import profiles_in

from trtc.engines.build import ValueBounds, unheard
from trtc.engines.builder_options import BuilderOptions
from trtc.engines.errors import EngineError
from trtc.engines.tensorrt import process
from trtc.engines.tensorrt.build import build_engine, build_job
from trtc.engines.tensorrt.job import Bounds
from trtc.engines.tensorrt.process import run_job
from trtc.profiles import HostError, ModelError, ProfileError, UsageError

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
SMALL, LARGE = {"n": (1, 3, 4)}, {"n": (5, 7, 9)}


def plan_of(built) -> bytes:
    return built.files[built.entry].read_bytes()


def test_an_engine_holds_every_profile_of_the_ladder_in_its_order(request_for, relu):
    built = build_engine(request_for(relu, SMALL, LARGE))
    assert profiles_in(plan_of(built)) == [[((1, 4), (3, 4), (4, 4))], [((5, 4), (7, 4), (9, 4))]]


def test_a_blob_is_named_by_its_digest(request_for, relu):
    built = build_engine(request_for(relu, SMALL))
    assert built.entry == f"blobs/{hashlib.sha256(plan_of(built)).hexdigest()}.plan"


def test_the_record_says_what_a_host_needs_and_which_model_went_in(request_for, relu):
    trt = pytest.importorskip("tensorrt_rtx")
    request = request_for(relu, SMALL, target="rtx:sm120,sm89")
    built = build_engine(request)
    needs = built.requirements
    assert (needs.library, needs.library_version, needs.exact_version) == ("tensorrt_rtx", trt.__version__, True)
    assert (needs.device, needs.compute_capabilities) == ("cuda", ("sm89", "sm120"))
    assert built.options["onnx_sha256"] == hashlib.sha256(request.model_path.read_bytes()).hexdigest()
    assert built.options["network"] == "trtc"


def test_equal_requests_give_equal_profiles_and_tensors(request_for, relu):
    first, second = (build_engine(request_for(relu, SMALL, LARGE)) for _ in range(2))
    assert profiles_in(plan_of(first)) == profiles_in(plan_of(second))
    assert first.options == second.options
    assert first.scratch_bytes == second.scratch_bytes


def test_an_input_that_no_node_reads_is_not_asked_for(request_for, graph):
    node = helper.make_node("Relu", ["x"], ["y"], name="relu")
    model = graph([node], {"x": (FLOAT, ["n", 4]), "u": (FLOAT, ["m"])}, {"y": (FLOAT, ["n", 4])})
    request = request_for(model, {"n": (1, 2, 4), "m": (1, 1, 1)}, unused=("u",))
    assert profiles_in(plan_of(build_engine(request))) == [[((1, 4), (2, 4), (4, 4))]]


def test_an_input_that_only_the_library_does_not_use_is_an_error(request_for, graph):
    """The lengths of Attention: the parser passes over them, also behind a Cast, and the builder only warns."""
    half, heads = TensorProto.FLOAT16, {"q": 4, "k": 2, "v": 2}
    nodes = [
        helper.make_node("Cast", ["given"], ["lengths"], name="as_int64", to=INT64),
        helper.make_node("Attention", ["q", "k", "v", "", "", "", "lengths"], ["y"], name="attention"),
    ]
    inputs = {name: (half, ["b", count, 1 if name == "q" else "s", 32]) for name, count in heads.items()}
    model = graph(nodes, inputs | {"given": (TensorProto.INT32, ["b"])}, {"y": (half, ["b", 4, 1, 32])}, opset=24)
    with pytest.raises(ModelError, match="input 'given': the library does not use it"):
        build_engine(request_for(model, {"b": (1, 1, 2), "s": (1, 8, 16)}))


def test_an_input_that_is_read_for_its_shape_only_is_none(request_for, graph):
    nodes = [
        helper.make_node("Shape", ["like"], ["s"], name="shape"),
        helper.make_node("Expand", ["x", "s"], ["y"], name="spread"),
    ]
    inputs = {"x": (FLOAT, [1, 4]), "like": (FLOAT, ["n", 4])}
    assert build_engine(request_for(graph(nodes, inputs, {"y": (FLOAT, ["n", 4])}), SMALL)).entry


def test_an_input_with_a_default_is_an_error_because_it_would_become_a_constant(request_for, graph):
    node = helper.make_node("Add", ["x", "w"], ["y"], name="add")
    weight = numpy_helper.from_array(np.ones(4, np.float32), "w")
    model = graph([node], {"x": (FLOAT, ["n", 4]), "w": (FLOAT, [4])}, {"y": (FLOAT, ["n", 4])}, (weight,))
    with pytest.raises(ModelError, match="input 'w': the library makes it a constant of the engine"):
        build_engine(request_for(model, SMALL))


def test_double_would_become_float_without_a_word_and_is_an_error(request_for, graph):
    node = helper.make_node("Relu", ["x"], ["y"], name="relu")
    model = graph([node], {"x": (TensorProto.DOUBLE, ["n", 4])}, {"y": (TensorProto.DOUBLE, ["n", 4])})
    with pytest.raises(ModelError, match="input 'x': it is double in the model, and would be float in the engine"):
        build_engine(request_for(model, SMALL))


@pytest.mark.parametrize("name", ["FLOAT", "FLOAT16", "BFLOAT16", "INT64", "INT32", "INT8", "BOOL"])
def test_types_that_the_library_has_stay_as_they_are(request_for, graph, name):
    dtype = getattr(TensorProto, name)
    node = helper.make_node("Concat", ["x", "x"], ["y"], name="twice", axis=1)
    model = graph([node], {"x": (dtype, ["n", 4])}, {"y": (dtype, ["n", 8])})
    assert build_engine(request_for(model, SMALL)).entry


class TestShapeTensors:
    @pytest.fixture
    def model(self, graph):
        """Y = x spread to n rows of s columns, s read from an input."""
        nodes = [helper.make_node("Expand", ["x", "s"], ["y"], name="spread")]
        return graph(nodes, {"x": (FLOAT, ["n", 1]), "s": (INT64, [2])}, {"y": (FLOAT, [None, None])})

    def test_without_a_range_of_values_nothing_is_invented(self, request_for, model):
        with pytest.raises(UsageError) as caught:
            build_engine(request_for(model, {"n": (1, 1, 1)}))
        assert "the values of input 's' decide shapes" in str(caught.value)
        assert "--val-range" in str(caught.value)

    def test_ranges_of_values_go_in_with_the_profile(self, request_for, model):
        values = ({"s": ValueBounds((1, 2), (1, 5), (1, 11))},)
        built = build_engine(request_for(model, {"n": (1, 1, 1)}, shape_values=values))
        assert built.options["shape_inputs"] == "s"

    def test_values_that_contradict_themselves_are_an_error_of_that_profile(self, request_for, model):
        values = ({"s": ValueBounds((1, 9), (1, 5), (1, 11))},)
        with pytest.raises(ModelError, match="profile p0"):
            build_engine(request_for(model, {"n": (1, 1, 1)}, shape_values=values))


class TestProfilesThatTheLibraryTurnsDown:
    """The ladder cannot make these; asked directly, the library gives an index of -1 or passes over names."""

    def failure(self, request, **shapes):
        job = build_job(request)
        wrong = msgspec.structs.replace(job.profiles[0], shapes=shapes)
        job = msgspec.structs.replace(job, profiles=(wrong,))
        found = run_job(job, request.folder / "log", unheard).failure
        assert found is not None
        assert found.stage == "profiles"
        return str(found.problems[0])

    def test_a_smallest_size_above_the_largest(self, request_for, relu):
        said = self.failure(request_for(relu, SMALL), x=Bounds((4, 4), (2, 4), (1, 4)))
        assert said.startswith("profile p0: ")
        assert "MIN<=OPT<=MAX" in said

    def test_a_range_for_an_input_that_is_not_there(self, request_for, relu):
        fine = Bounds((1, 4), (2, 4), (4, 4))
        assert "not of the same names: 'y'" in self.failure(request_for(relu, SMALL), x=fine, y=fine)

    def test_an_input_without_a_range(self, request_for, relu):
        assert "not of the same names: 'x'" in self.failure(request_for(relu, SMALL))


def test_a_symbol_without_an_upper_end_is_refused_with_the_ways_to_give_one(request_for, relu):
    with pytest.raises(ProfileError, match="--dim n=MIN:OPT:MAX"):
        build_engine(request_for(relu, {"n": (1, None, None)}))


def test_the_profile_that_fails_alone_is_named(request_for, graph):
    shape = numpy_helper.from_array(np.array([-1, 4]), "shape")
    nodes = [helper.make_node("Reshape", ["x", "shape"], ["y"], name="fold")]
    model = graph(nodes, {"x": (FLOAT, ["n"])}, {"y": (FLOAT, [None, 4])}, (shape,))
    with pytest.raises(ModelError) as caught:
        build_engine(request_for(model, {"n": (4, 8, 8)}, {"n": (6, 6, 6)}, {"n": (4, 12, 12)}))
    assert "(profile p1: it fails alone, the others build)" in str(caught.value)
    assert "node 'fold' (Reshape)" in str(caught.value)


def test_the_compute_capability_that_fails_alone_is_named(request_for, graph):
    weight = numpy_helper.from_array(np.ones((4, 4), np.float32), "w")
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"], name="product")]
    model = graph(nodes, {"x": (FLOAT, ["n", 4])}, {"y": (FLOAT, ["n", 4])}, (weight,))
    with pytest.raises(ModelError) as caught:
        build_engine(request_for(model, SMALL, LARGE, target="rtx:sm75,sm86"))
    said = str(caught.value)
    assert "(compute capability sm75: it fails alone, the others build)" in said
    assert "node 'product' (MatMul)" in said
    assert "leave sm75 out of --target" in said


class TestOptions:
    def test_a_workspace_that_is_too_small_says_so(self, request_for, graph):
        nodes = [helper.make_node("Softmax", ["x"], ["s"], name="a"), helper.make_node("MatMul", ["s", "x"], ["y"])]
        model = graph(nodes, {"x": (FLOAT, ["n", "n"])}, {"y": (FLOAT, ["n", "n"])})
        request = request_for(model, {"n": (1, 512, 1024)}, builder=BuilderOptions(workspace_bytes=1024))
        with pytest.raises(UsageError, match="--workspace is smaller than one layer needs"):
            build_engine(request)

    def test_what_was_asked_for_is_recorded(self, request_for, relu):
        options = BuilderOptions(workspace_bytes=2**28, optimization_level=4)
        built = build_engine(request_for(relu, SMALL, builder=options))
        assert (built.options["workspace_bytes"], built.options["optimization_level"]) == (str(2**28), "4")

    @pytest.mark.parametrize("tf32", [False, True])
    def test_float32_stays_float32_unless_asked(self, request_for, relu, tf32):
        assert build_engine(request_for(relu, SMALL, builder=BuilderOptions(tf32=tf32))).options["tf32"] == (
            "true" if tf32 else "false"
        )

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            ({"version_compatible": True}, "no lean runtime"),
            ({"hardware_compatibility": "ampere+"}, "name the GPUs instead"),
            ({"strip_weights": True}, "could not be shown to work with several profiles"),
        ],
    )
    def test_what_the_library_lacks_is_refused_before_the_build(self, request_for, relu, options, said):
        with pytest.raises(UsageError, match=said):
            build_engine(request_for(relu, SMALL, builder=BuilderOptions(**options)))

    def test_a_timing_cache_is_refused_where_nothing_is_timed(self, request_for, relu, tmp_path):
        with pytest.raises(UsageError, match="measures nothing while it builds"):
            build_engine(request_for(relu, SMALL, builder=BuilderOptions(timing_cache=tmp_path / "cache")))

    def test_the_library_itself_warns_about_hardware_compatibility(self, request_for, relu):
        """The reason for the refusal above: asked directly, the builder would only warn."""
        request = request_for(relu, SMALL)
        job = msgspec.structs.replace(build_job(request), hardware_compatibility="ampere+")
        failure = run_job(job, request.folder / "log", unheard).failure
        assert failure is not None
        assert "unsupported in TensorRT-RTX" in str(failure.problems)


class TestProcess:
    def test_a_builder_that_crashes_is_an_error_that_says_how_and_at_what(self, request_for, relu, monkeypatch):
        child = (
            "import os, signal\n"
            "from trtc.engines.tensorrt import worker\n"
            "def die(*given):\n"
            "    os.write(2, b'a last word')\n"
            "    os.kill(os.getpid(), signal.SIGSEGV)\n"
            "worker._build = die\n"
            "worker.main()\n"
        )
        monkeypatch.setattr(
            "trtc.engines.tensorrt.build.run_job",
            lambda job, log, tell: process.run_job(job, log, tell, child),
        )
        with pytest.raises(EngineError) as caught:
            build_engine(request_for(relu, SMALL))
        said = str(caught.value)
        assert "signal SIGSEGV, while reading the model" in said
        assert "a last word" in said
        assert "--target cpu" in said

    def test_a_missing_library_is_named_with_the_way_to_get_it(self, request_for, relu):
        pytest.importorskip("tensorrt_rtx")
        request = request_for(relu, SMALL)
        with pytest.raises(HostError, match="tensorrt cannot be imported"):
            build_engine(replace(request, target=replace(request.target, backend="tensorrt", compute_capabilities=())))

    def test_progress_counts_the_profiles(self, request_for, relu):
        told = []
        build_engine(request_for(relu, SMALL, LARGE, tell=told.append))
        assert [text for text in told if text.startswith("profile")] == ["profile 1 of 2", "profile 2 of 2"]


def test_the_log_tells_the_memory_of_each_profile(request_for, graph):
    nodes = [helper.make_node("Softmax", ["x"], ["s"], name="a"), helper.make_node("MatMul", ["s", "x"], ["y"])]
    model = graph(nodes, {"x": (FLOAT, ["n", "n"])}, {"y": (FLOAT, ["n", "n"])})
    scratch = build_engine(request_for(model, {"n": (1, 64, 64)}, {"n": (1, 512, 512)})).scratch_bytes
    assert scratch["p1"] > scratch["p0"] > 0
