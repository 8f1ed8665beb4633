"""Options of TensorRT's builder in our spelling and in trtexec's, and what build and check print about GPU targets."""

from __future__ import annotations

import json

import onnx
import pytest
from onnx import TensorProto, helper

from trtc.engines.builder_options import BuilderOptions

RTX_MISSING = "pip install 'trtc[rtx]'"


@pytest.fixture
def model(tiny_model, tmp_path):
    path = tmp_path / "model.onnx"
    onnx.save(tiny_model("rows", 4), path)
    return path


@pytest.fixture
def asked(monkeypatch, trtc, model):
    """Return what a build is asked for; nothing is built."""

    class StopError(Exception):
        pass

    def run(*words: str) -> BuilderOptions:
        seen = []

        def build(*given):
            seen.append(given[2])
            raise StopError

        monkeypatch.setattr("trtc.compiler.pipeline.build", build)
        said = trtc("build", model, *words)
        assert seen, said.err
        return seen[0]

    return run


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((), BuilderOptions()),
        (("--workspace", "512M"), BuilderOptions(workspace_bytes=2**29)),
        (("--memPoolSize=workspace:512",), BuilderOptions(workspace_bytes=2**29)),
        (("--mem-pool-size", "workspace:1G"), BuilderOptions(workspace_bytes=2**30)),
        (("--builderOptimizationLevel=4",), BuilderOptions(optimization_level=4)),
        (("--optimization-level", "0"), BuilderOptions(optimization_level=0)),
        (("--versionCompatible",), BuilderOptions(version_compatible=True)),
        (("--vc",), BuilderOptions(version_compatible=True)),
        (("--hardwareCompatibilityLevel=ampere+",), BuilderOptions(hardware_compatibility="ampere+")),
        (
            ("--hardwareCompatibilityLevel=sameComputeCapability",),
            BuilderOptions(hardware_compatibility="same-compute-capability"),
        ),
        (("--tf32",), BuilderOptions(tf32=True)),
        (("--noTF32",), BuilderOptions()),
        (("--stripWeights",), BuilderOptions(strip_weights=True)),
    ],
)
def test_both_spellings_mean_the_same(asked, words, expected):
    assert asked(*words).builder == expected


def test_a_timing_cache_is_a_file(asked, tmp_path):
    assert asked(f"--timingCacheFile={tmp_path / 'c'}").builder.timing_cache == tmp_path / "c"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--memPoolSize=tacticDram:1",), "trtc sets the workspace only"),
        (("--memPoolSize=workspace:much",), "no memory size"),
        (("--workspace=1G", "--memPoolSize=workspace:1"), "one option in two spellings"),
        (("--builderOptimizationLevel=6",), "0<=x<=5"),
        (("--workspace=1G",), "--workspace: only TensorRT's builder has it, and the targets are cpu"),
        (("--target", "rtx:sm90"), "rtx is built for sm75, sm80, sm86, sm89, sm120, sm121"),
        (("--target", "tensorrt:sm90"), "write --target tensorrt"),
        (("--target", "rtx", "--target", "rtx"), "rtx was given twice"),
    ],
)
def test_wrong_use_says_what_is_right(trtc, model, words, said):
    found = trtc("build", model, "--dim", "rows=1..4", *words)
    assert (found.code, found.out) == (2, "")
    assert said in found.err


class TestWithTheLibrary:
    @pytest.fixture(autouse=True)
    def library(self):
        pytest.importorskip("tensorrt_rtx", reason=RTX_MISSING)

    def test_a_build_says_where_to_verify_what_could_not_run_here(self, trtc, model, tmp_path):
        words = ("--dim", "rows=1..4", "--target", "rtx:sm89", "--measure-seconds", "0")
        said = trtc("build", model, "-o", tmp_path / "m.trtc", *words)
        assert said.code == 0, said.err
        assert "engine rtx:sm89" in said.out
        assert "built, not verified: the building machine has no GPU" in said.out
        assert f"trtc verify {tmp_path / 'm.trtc'} --model MODEL.onnx" in said.out
        assert "trtc run" not in said.out

    @pytest.mark.parametrize("flag", ["--vc", "--hardwareCompatibilityLevel=ampere+", "--stripWeights"])
    def test_what_rtx_lacks_is_refused_by_name(self, trtc, model, flag):
        said = trtc("build", model, "--dim", "rows=1..4", "--target", "rtx", flag)
        assert said.code == 2
        assert said.err.startswith("trtc: error: --") or said.err.startswith("--")

    @pytest.fixture
    def sequences(self, tmp_path):
        x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["rows"]) for name in "xy")
        nodes = [
            helper.make_node("SequenceConstruct", ["x"], ["s"], name="pack"),
            helper.make_node("ConcatFromSequence", ["s"], ["y"], name="unpack", axis=0),
        ]
        graph = helper.make_graph(nodes, "g", [x], [y])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), tmp_path / "sequences.onnx")
        return tmp_path / "sequences.onnx"

    def test_check_lists_every_node_that_a_target_cannot_build(self, trtc, sequences):
        said = trtc("check", sequences, "--dim", "rows=1..4", "--target", "cpu", "--target", "rtx", "--json")
        assert said.code == 3
        cpu, rtx = json.loads(said.out)["targets"]
        assert (cpu["supported"], cpu["nodes"]) == (True, [])
        assert [(node["node"], node["operator"]) for node in rtx["nodes"]] == [
            ("pack", "SequenceConstruct"),
            ("unpack", "ConcatFromSequence"),
        ]
        assert "--target cpu" in rtx["reason"]

    def test_check_looks_no_further_when_no_target_can_build_the_model(self, trtc, sequences):
        said = trtc("check", sequences, "--dim", "rows=1..4", "--target", "rtx")
        assert said.code == 3
        assert "what rtx cannot build" in said.out
        assert "nothing else was looked at" in said.err
