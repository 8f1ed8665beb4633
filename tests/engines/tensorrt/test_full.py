"""Engines of full TensorRT and for its lean runtime: what a build sets and records. The builder itself is not here."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
import tensorrt_lean
import tensorrt_rtx

from trtc.engines.builder_options import BuilderOptions
from trtc.engines.gpu import Gpu, GpuSurvey
from trtc.engines.target import parse_target
from trtc.engines.tensorrt import build as building
from trtc.engines.tensorrt.config import set_options
from trtc.engines.tensorrt.job import BuildOutcome
from trtc.engines.tensorrt.log import new_logger
from trtc.engines.tensorrt.network import new_network
from trtc.engines.tensorrt.options import refuse_options
from trtc.engines.tensorrt.toolkit import open_toolkit, runtime_library
from trtc.profiles import UsageError

SMALL = {"n": (1, 3, 4)}
LEAN = BuilderOptions(version_compatible=True, runtime="lean")


@pytest.fixture
def built(request_for, relu, monkeypatch):
    """Build with full TensorRT, but for the builder itself: a file stands for its engine."""

    def build(options):
        def run(job, _log, _tell):
            Path(job.output).write_bytes(b"an engine")
            return BuildOutcome("11.4.0.106")

        monkeypatch.setattr(building, "run_job", run)
        target = parse_target("tensorrt")
        return building.build_engine(replace(request_for(relu, SMALL), target=target, builder=options))

    return build


def test_the_record_names_the_lean_runtime_of_the_version_that_built(built):
    found = built(LEAN)
    needs = found.requirements
    assert (needs.library, needs.library_version, needs.exact_version) == ("tensorrt_lean", "11.4.0.106", True)
    assert (found.options["runtime"], found.options["version_compatible"]) == ("lean", "true")
    assert runtime_library("tensorrt", found.options) == "tensorrt_lean"
    assert open_toolkit("tensorrt_lean").trt is tensorrt_lean


@pytest.mark.parametrize("options", [BuilderOptions(), BuilderOptions(version_compatible=True)])
def test_any_other_engine_names_full_tensorrt(built, options):
    found = built(options)
    assert (found.requirements.library, found.requirements.exact_version) == ("tensorrt", True)
    assert "runtime" not in found.options
    assert runtime_library("tensorrt", found.options) == "tensorrt"


class TestTheGpuThatBuilds:
    """Full TensorRT builds for the GPU of the machine that builds, which the record has to name."""

    @pytest.fixture(autouse=True)
    def gpus(self, monkeypatch):
        found = tuple(Gpu(i, f"GPU-{i}", "NVIDIA", name, 2**30) for i, name in enumerate(("sm90", "sm89")))
        monkeypatch.setattr(building, "survey_gpus", lambda: GpuSurvey(found))

    @pytest.mark.parametrize(
        ("level", "expected"), [("none", ("sm90",)), ("same-compute-capability", ("sm90",)), ("ampere+", ())]
    )
    def test_is_recorded_unless_the_engine_runs_on_others(self, built, level, expected):
        found = built(BuilderOptions(hardware_compatibility=level))
        assert found.requirements.compute_capabilities == expected


@pytest.mark.parametrize(
    ("kinds", "flags"),
    [
        pytest.param(tensorrt_rtx.NetworkDefinitionCreationFlag, 1, id="that-of-the-library"),
        pytest.param(SimpleNamespace(EXPLICIT_BATCH=0, STRONGLY_TYPED=1), 2, id="as-in-version-10"),
        pytest.param(SimpleNamespace(), 0, id="once-it-is-gone"),
    ],
)
def test_a_network_keeps_the_types_of_its_model(kinds, flags):
    asked = []
    new_network(SimpleNamespace(NetworkDefinitionCreationFlag=kinds), SimpleNamespace(create_network=asked.append))
    assert asked == [flags]


def test_it_needs_an_engine_of_its_operators():
    with pytest.raises(UsageError, match=r"--runtime lean: .*add --version-compatible"):
        refuse_options(parse_target("tensorrt"), BuilderOptions(runtime="lean"))
    refuse_options(parse_target("tensorrt"), LEAN)


def test_tensorrt_for_rtx_has_none():
    with pytest.raises(UsageError, match="--runtime with target rtx: TensorRT for RTX has no lean runtime"):
        refuse_options(parse_target("rtx"), BuilderOptions(runtime="lean"))


@pytest.mark.parametrize("library", [tensorrt_rtx, tensorrt_lean], ids=["rtx", "lean"])
def test_the_flags_are_members_of_the_real_enumerations(library):
    assert {"VERSION_COMPATIBLE", "EXCLUDE_LEAN_RUNTIME"} <= library.BuilderFlag.__members__.keys()


def test_the_lean_runtime_stays_outside_of_a_version_compatible_engine(request_for, relu):
    """On the builder's configuration of TensorRT for RTX, which takes the flags and says that it does not have them."""
    logger = new_logger(tensorrt_rtx)
    builder = tensorrt_rtx.Builder(logger)
    config = builder.create_builder_config()
    job = msgspec.structs.replace(building.build_job(request_for(relu, SMALL)), version_compatible=True)
    set_options(tensorrt_rtx, builder, config, msgspec.structs.replace(job, compute_capabilities=()), logger)
    flags = tensorrt_rtx.BuilderFlag
    assert config.get_flag(flags.VERSION_COMPATIBLE)
    assert config.get_flag(flags.EXCLUDE_LEAN_RUNTIME)
