"""Which engine is loaded where GPUs come into it. The GPUs are handed in; nothing here needs one."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec
import numpy as np
import pytest

from trtc.engines import registry, shared_libraries
from trtc.engines.distributions import Distribution
from trtc.engines.gpu import Gpu, GpuSurvey
from trtc.engines.host import this_host
from trtc.engines.manifest import BlobFile, ProfileMemory, Requirements
from trtc.runtime import HostError, UsageError, load
from trtc.runtime import verdicts as judging
from trtc.runtime.choice import Wish, choose
from trtc.runtime.verdicts import Accelerators, judge, needed_device_bytes

GIB = 2**30
L4 = Gpu(0, "GPU-aaaa1111", "NVIDIA L4", "sm89", 24 * GIB, "580.65.06", "13.0")
H200 = Gpu(1, "GPU-bbbb2222", "NVIDIA H200", "sm90", 141 * GIB, "580.65.06", "13.0")
NONE = GpuSurvey(reason="no NVIDIA driver: libcuda.so.1 is not on this machine")
FAULTY = GpuSurvey(reason="the NVIDIA driver does not start (CUDA_ERROR_UNKNOWN)", faulty=True)
RTX = Requirements(
    library="tensorrt_rtx",
    library_version="1.7.1.116",
    exact_version=True,
    device="cuda",
    compute_capabilities=("sm89", "sm120"),
)
FEEDS = {"x": np.ones((2, 4), np.float32)}


@dataclass
class Machine:
    """GPUs of ours, and how often they were asked for."""

    found: GpuSurvey = NONE
    free: int | None = None
    asked: list[str] = field(default_factory=list)

    @property
    def accelerators(self) -> Accelerators:
        return Accelerators(self._survey, lambda _: self.free)

    def _survey(self) -> GpuSurvey:
        self.asked.append("survey")
        return self.found


@pytest.fixture(scope="module")
def path(make_bundle, double_model):
    return make_bundle(double_model, profiles=({"batch": (1, 4)},))


@pytest.fixture(scope="module")
def manifest(path):
    with load(path, slots=1) as session:
        return session.manifest


@pytest.fixture
def rtx(manifest, monkeypatch):
    """An engine for two kinds of GPU whose library is installed."""
    monkeypatch.setattr(registry, "find_spec", lambda name: name)
    monkeypatch.setattr(
        judging,
        "find_distribution",
        lambda library: Distribution(f"{library}-cu13", "1.7.1.116") if library == "tensorrt_rtx" else real(library),
    )
    return msgspec.structs.replace(
        manifest.engines[0], name="rtx", backend="tensorrt_rtx", target="rtx:sm89,sm120", requirements=RTX
    )


real = judging.find_distribution


def bundle_of(manifest, *engines):
    return msgspec.structs.replace(manifest, engines=engines)


@pytest.fixture
def both(manifest, rtx):
    """Make a bundle with an engine for the GPU and one for the CPU, in the given order."""
    engines = {"rtx": rtx, "cpu": manifest.engines[0]}
    return lambda order: bundle_of(manifest, *(engines[name] for name in order))


def changed(record, **changes):
    return msgspec.structs.replace(record, requirements=msgspec.structs.replace(record.requirements, **changes))


def test_an_engine_fits_the_first_gpu_that_it_has_kernels_for(rtx):
    verdict = judge(rtx, this_host(), "", Machine(GpuSurvey((H200, L4))).accelerators)
    assert (verdict.fits, verdict.device) == (True, "0")
    assert verdict.reason == "fits: rtx:sm89,sm120 with tensorrt_rtx on GPU 0 (NVIDIA L4, sm89)"


@pytest.mark.parametrize(
    ("machine", "device", "said"),
    [
        pytest.param(Machine(NONE), "", "no NVIDIA driver: libcuda.so.1", id="no-driver"),
        pytest.param(Machine(FAULTY), "", "does not start (CUDA_ERROR_UNKNOWN)", id="broken-driver"),
        pytest.param(
            Machine(GpuSurvey((H200,))),
            "",
            "GPU 1 (NVIDIA H200, sm90): the engine holds kernels for sm89, sm120 only; rebuild it for sm90",
            id="other-gpu",
        ),
        pytest.param(Machine(GpuSurvey((L4, H200))), "1", "holds kernels for sm89, sm120 only", id="asked-gpu"),
        pytest.param(Machine(GpuSurvey((L4,))), "cpu", "it needs a GPU, and the CPU was asked for", id="cpu-asked"),
    ],
)
def test_an_engine_for_a_gpu_that_cannot_be_used_says_why(rtx, machine, device, said):
    verdict = judge(rtx, this_host(), device, machine.accelerators)
    assert (verdict.fits, verdict.device) == (False, "")
    assert said in verdict.reason


def test_an_older_driver_than_the_library_needs_is_named(rtx):
    old = Gpu(0, "GPU-1", "NVIDIA L4", "sm89", GIB, "550.54", "12.4")
    verdict = judge(rtx, this_host(), "", Machine(GpuSurvey((old,))).accelerators)
    assert "driver 550.54 runs CUDA 12.4, and tensorrt_rtx-cu13 needs CUDA 13; update the driver" in verdict.reason


def test_every_part_of_a_version_counts_where_the_engine_says_so(rtx):
    machine = Machine(GpuSurvey((L4,))).accelerators
    other = changed(rtx, library_version="1.7.1.99")
    verdict = judge(other, this_host(), "", machine)
    assert not verdict.fits
    assert "built with tensorrt_rtx 1.7.1.99 (every part of the version counts), this host has 1.7.1.116" in (
        verdict.reason
    )
    assert "install tensorrt_rtx-cu13==1.7.1.99" in verdict.reason
    assert judge(changed(other, exact_version=False), this_host(), "", machine).fits


def test_bindings_whose_libraries_are_nowhere_are_a_reason_after_the_gpu(rtx, monkeypatch, tmp_path):
    """As in the standalone program, which holds the bindings only."""
    monkeypatch.setattr(shared_libraries, "find_spec", lambda _: None)
    monkeypatch.setattr(shared_libraries, "find_distribution", lambda name: Distribution(name, "99.0.0.1"))
    monkeypatch.setenv("TRTC_LIBRARY_PATH", str(tmp_path))
    shared_libraries.shared_library.cache_clear()
    verdict = judge(rtx, this_host(), "", Machine(GpuSurvey((L4,))).accelerators)
    assert not verdict.fits
    assert f"libtensorrt_rtx.so.99 of tensorrt_rtx 99.0.0.1 is not on this machine; looked in {tmp_path}" in (
        verdict.reason
    )
    assert "no NVIDIA driver" in judge(rtx, this_host(), "", Machine(NONE).accelerators).reason


def test_memory_that_is_not_free_is_counted_before_loading(rtx):
    big = msgspec.structs.replace(
        rtx,
        files=(BlobFile(path="blobs/a", size_bytes=2 * GIB, sha256="0" * 64),),
        memory=(
            ProfileMemory(profile="p0", slot_bytes=GIB, scratch_bytes=-1),
            ProfileMemory(profile="p1", slot_bytes=GIB, scratch_bytes=2 * GIB),
        ),
    )
    assert needed_device_bytes(big) == 5 * GIB
    verdict = judge(big, this_host(), "", Machine(GpuSurvey((L4,)), free=5 * GIB - 1).accelerators)
    assert "at least 5.00 GiB of device memory, 5.00 GiB are free" in verdict.reason
    assert judge(big, this_host(), "", Machine(GpuSurvey((L4,)), free=5 * GIB).accelerators).fits
    assert judge(big, this_host(), "", Machine(GpuSurvey((L4,)), free=None).accelerators).fits


def test_an_engine_that_was_never_verified_names_the_gpu_to_verify_it_on(rtx):
    unverified = msgspec.structs.replace(rtx, verified=False)
    machine = Machine(GpuSurvey((L4,))).accelerators
    assert "run `trtc verify` here, on GPU 0" in judge(unverified, this_host(), "", machine).reason
    assert "no NVIDIA driver" in judge(unverified, this_host(), "", Machine().accelerators).reason


def test_plugins_are_a_reason_until_they_are_allowed(both, rtx):
    library = BlobFile(path=f"blobs/{'a' * 64}.so", size_bytes=1, sha256="a" * 64)
    record = msgspec.structs.replace(rtx, files=(*rtx.files, library), plugins=(library.path,))
    machine = Machine(GpuSurvey((L4,))).accelerators
    verdict = judge(record, this_host(), "", machine)
    assert (verdict.fits, verdict.device) == (False, "")
    assert f"libraries of plug-ins (SHA-256 {'a' * 64}), which are code" in verdict.reason
    assert judge(record, this_host(), "", machine, allow_plugins=True).fits
    bundle = bundle_of(both(("rtx", "cpu")), record, both(("rtx", "cpu")).engines[1])
    with pytest.raises(HostError, match="--allow-plugins"):
        choose(bundle, this_host(), Wish(), machine)
    assert choose(bundle, this_host(), Wish(fallback="cpu"), machine).record.name == "cpu"
    assert choose(bundle, this_host(), Wish(allow_plugins=True), machine).record.name == "rtx"


class TestTheLeanRuntime:
    """It runs what full TensorRT built, where only the lean runtime is installed."""

    @pytest.fixture
    def lean(self, rtx, monkeypatch):
        monkeypatch.setattr(registry, "find_spec", lambda name: None if name == "tensorrt" else name)
        there = {"tensorrt_lean": Distribution("tensorrt-lean-cu13", "11.4.0.106")}
        monkeypatch.setattr(judging, "find_distribution", there.get)
        record = msgspec.structs.replace(rtx, name="tensorrt", backend="tensorrt", target="tensorrt")
        return changed(record, library="tensorrt_lean", library_version="11.4.0.106", compute_capabilities=()), there

    def test_is_all_that_its_engines_need(self, lean):
        record, _ = lean
        verdict = judge(record, this_host(), "", Machine(GpuSurvey((L4,))).accelerators)
        assert verdict.fits
        assert verdict.reason.startswith("fits: tensorrt with tensorrt_lean on GPU 0")

    def test_is_named_with_its_command_where_it_is_missing(self, lean):
        record, there = lean
        there.clear()
        said = judge(record, this_host(), "", Machine(GpuSurvey((L4,))).accelerators).reason
        assert said == "tensorrt_lean is not installed: pip install tensorrt-lean-cu13"

    def test_must_be_of_the_version_that_built(self, lean):
        record, there = lean
        there["tensorrt_lean"] = Distribution("tensorrt-lean-cu13", "11.5.0.1")
        said = judge(record, this_host(), "", Machine(GpuSurvey((L4,))).accelerators).reason
        assert "install tensorrt-lean-cu13==11.4.0.106" in said

    def test_does_not_stand_in_for_full_tensorrt(self, lean):
        record, _ = lean
        said = judge(changed(record, library="tensorrt"), this_host(), "", Machine().accelerators).reason
        assert said == "tensorrt is not installed: pip install 'trtc[tensorrt]'"


def test_a_device_of_another_kind_is_a_verdict_and_no_crash(rtx):
    verdict = judge(changed(rtx, device="rocm"), this_host(), "", Machine().accelerators)
    assert "a device of kind 'rocm', which this version of trtc does not know" in verdict.reason


def test_a_bundle_without_gpu_engines_never_asks_for_gpus(manifest):
    machine = Machine(GpuSurvey((L4,)))
    assert choose(manifest, this_host(), Wish(), machine.accelerators).record.name == "cpu"
    assert machine.asked == []


@pytest.mark.parametrize("order", [("rtx", "cpu"), ("cpu", "rtx")])
@pytest.mark.parametrize(
    ("found", "wish", "expected"),
    [
        pytest.param(GpuSurvey((H200, L4)), Wish(), ("rtx", "0"), id="gpu-fits"),
        pytest.param(GpuSurvey((L4,)), Wish("cpu"), ("cpu", ""), id="cpu-by-name"),
        pytest.param(GpuSurvey((L4,)), Wish(device="cpu"), ("cpu", ""), id="cpu-as-device"),
        pytest.param(GpuSurvey((L4,)), Wish(device="GPU-aaaa"), ("rtx", "0"), id="gpu-by-uuid"),
        pytest.param(GpuSurvey((L4,)), Wish(fallback="cpu"), ("rtx", "0"), id="fallback-not-needed"),
        pytest.param(NONE, Wish(), ("cpu", ""), id="no-gpu"),
        pytest.param(NONE, Wish(device="0", fallback="cpu"), ("cpu", ""), id="asked-gpu-missing-with-fallback"),
        pytest.param(GpuSurvey((H200,)), Wish(fallback="cpu"), ("cpu", ""), id="gpu-does-not-fit-with-fallback"),
        pytest.param(GpuSurvey((H200,)), Wish("rtx", fallback="cpu"), ("cpu", ""), id="by-name-with-fallback"),
        pytest.param(FAULTY, Wish(fallback="cpu"), ("cpu", ""), id="broken-driver-with-fallback"),
    ],
)
def test_the_engine_for_the_gpu_that_is_there_is_chosen(both, order, found, wish, expected):
    bundle = both(order)
    choice = choose(bundle, this_host(), wish, Machine(found).accelerators)
    assert (choice.record.name, choice.device) == expected
    assert [v.engine for v in choice.verdicts] == list(order)


@pytest.mark.parametrize("order", [("rtx", "cpu"), ("cpu", "rtx")])
@pytest.mark.parametrize("found", [GpuSurvey((H200,)), FAULTY], ids=["does-not-fit", "broken-driver"])
def test_a_gpu_that_stays_unused_fails_with_the_reason_unless_the_cpu_is_asked_for(both, order, found):
    bundle = both(order)
    with pytest.raises(HostError) as caught:
        choose(bundle, this_host(), Wish(), Machine(found).accelerators)
    assert "no engine for a GPU can be used here (rtx: " in str(caught.value)
    assert "fallback='cpu' (--fallback cpu): engine cpu fits" in str(caught.value)


def test_engines_for_the_gpu_keep_the_order_of_the_bundle(manifest, rtx):
    second = msgspec.structs.replace(rtx, name="second")
    for first, other in ((rtx, second), (second, rtx)):
        bundle = bundle_of(manifest, manifest.engines[0], first, other)
        found = choose(bundle, this_host(), Wish(), Machine(GpuSurvey((L4,))).accelerators)
        assert found.record.name == first.name
    unfit = changed(rtx, compute_capabilities=("sm75",))
    bundle = bundle_of(manifest, unfit, second)
    assert choose(bundle, this_host(), Wish(), Machine(GpuSurvey((L4,))).accelerators).record.name == "second"


@pytest.mark.parametrize(
    ("wish", "said"),
    [
        (Wish(device="7"), "device '7' names no GPU of this machine"),
        (Wish("cpu", device="0"), "device '0': engine cpu needs none; leave the device out"),
        (Wish(fallback="gpu"), "fallback='gpu'; give 'cpu'"),
        (Wish("rtz"), "unknown engine 'rtz'; did you mean 'rtx'"),
    ],
)
def test_wishes_that_mean_nothing_are_wrong_use(manifest, rtx, wish, said):
    bundle = bundle_of(manifest, rtx, manifest.engines[0])
    with pytest.raises(UsageError) as caught:
        choose(bundle, this_host(), wish, Machine(GpuSurvey((L4,))).accelerators)
    assert said in str(caught.value)


def test_a_gpu_that_was_asked_for_and_is_not_there_is_no_fit(manifest, rtx):
    bundle = bundle_of(manifest, rtx, manifest.engines[0])
    with pytest.raises(HostError, match="rtx: no NVIDIA driver"):
        choose(bundle, this_host(), Wish(device="0"), Machine().accelerators)


def test_a_device_for_a_bundle_without_gpu_engines_is_wrong_use(path):
    with pytest.raises(UsageError, match="device '0': this bundle holds no engine for a GPU"):
        load(path, device=0)


def test_the_cpu_can_be_asked_for_where_there_is_nothing_else(path):
    with load(path, device="cpu", fallback="cpu", slots=1) as session:
        assert session.run(FEEDS)["y"].sum() == 16


def test_a_session_opens_its_engine_on_the_chosen_gpu_and_pickles_with_its_wishes(
    make_bundle, double_model, monkeypatch
):
    import pickle

    from trtc.engines.onnxruntime import load as backend

    path = make_bundle(
        double_model, profiles=({"batch": (1, 4)},), engine={"requirements": Requirements(device="cuda")}
    )
    monkeypatch.setattr(judging, "survey_gpus", lambda: GpuSurvey((L4, H200)))
    monkeypatch.setattr(judging, "_free_bytes", lambda _: None)
    opened = []
    load_engine = backend.load_engine
    monkeypatch.setattr(backend, "load_engine", lambda opening: opened.append(opening.device) or load_engine(opening))
    with load(path, device="GPU-bbbb", slots=1) as session:
        again = pickle.loads(pickle.dumps(session))  # noqa: S301 (made one line above)
        again.close()
        assert "on GPU 1 (NVIDIA H200, sm90)" in str(session.explain())
    assert opened == ["1", "1"]
