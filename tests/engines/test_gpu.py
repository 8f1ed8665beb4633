"""Which GPUs there are, why there are none, and which one a user means."""

from __future__ import annotations

import subprocess
import sys

import pytest

from trtc.engines.gpu import Gpu, GpuSurvey, choose_gpu
from trtc.engines.gpu_driver import LIBRARY, ask_driver
from trtc.profiles import HostError, UsageError

ONE = "11111111-2222-3333-4444-555555555555"
SURVEY = GpuSurvey(
    (
        Gpu(0, f"GPU-{ONE}", "NVIDIA L4", "sm89", 24 * 2**30),
        Gpu(1, "MIG-11111111-aaaa-bbbb-cccc-dddddddddddd", "NVIDIA H200 MIG 1g.18gb", "sm90", 16 * 2**30, mig=True),
        Gpu(2, "GPU-99999999-2222-3333-4444-555555555555", "NVIDIA L4", "sm89", 24 * 2**30),
    )
)


def there(_: str) -> None:
    """Stand for a driver's library that opens."""


def not_there(name: str) -> None:
    raise OSError(f"{name}: cannot open shared object file")


def test_gpus_are_read_with_what_an_engine_may_demand_of_them(gpu_fakes):
    driver = gpu_fakes.FakeDriver(("NVIDIA L4", "NVIDIA A100-SXM4-40GB MIG 1g.5gb"), version=12090)
    survey = ask_driver({}, there, lambda: driver)
    assert survey.gpus == (
        Gpu(0, f"GPU-{ONE}", "NVIDIA L4", "sm89", 24 * 2**30, "", "12.9"),
        Gpu(
            1,
            "MIG-11111111-aaaa-bbbb-cccc-dddddddddddd",
            "NVIDIA A100-SXM4-40GB MIG 1g.5gb",
            *("sm89", 24 * 2**30, "", "12.9"),
            mig=True,
        ),
    )
    assert (survey.reason, survey.faulty, survey.expected) == ("", False, True)


def test_without_a_driver_its_bindings_are_not_even_imported():
    survey = ask_driver({}, not_there, lambda: pytest.fail("the bindings were imported"))
    assert survey.gpus == ()
    assert survey.reason.startswith(f"no NVIDIA driver: {LIBRARY} is not on this machine")
    assert not survey.expected


def test_looking_for_gpus_where_there_are_none_imports_nothing_heavy():
    code = (
        "import sys; from trtc.engines.gpu import survey_gpus; s = survey_gpus(); "
        "print(bool(s.gpus or s.faulty), [m for m in sys.modules if m.split('.')[0] in ('cuda', 'onnx')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    if done.stdout.startswith("True"):
        pytest.skip("this machine has an NVIDIA driver")
    assert done.stdout == "False []\n"


@pytest.mark.parametrize(
    ("status", "environ", "said", "faulty"),
    [
        pytest.param("CUDA_ERROR_NO_DEVICE", {}, "finds no GPU", False, id="no-gpu"),
        pytest.param(
            "CUDA_ERROR_NO_DEVICE",
            {"CUDA_VISIBLE_DEVICES": ""},
            "CUDA_VISIBLE_DEVICES='' hides every GPU",
            False,
            id="hidden",
        ),
        pytest.param("CUDA_ERROR_STUB_LIBRARY", {}, "is the stub of a CUDA toolkit", False, id="stub"),
        pytest.param("CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", {}, "different versions: reboot", True, id="mismatch"),
        pytest.param("CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER", {}, "too old", True, id="old"),
        pytest.param("CUDA_ERROR_SYSTEM_NOT_READY", {}, "nvidia-fabricmanager", True, id="fabric"),
        pytest.param("CUDA_ERROR_UNKNOWN", {}, "does not start (CUDA_ERROR_UNKNOWN): run nvidia-smi", True, id="other"),
    ],
)
def test_a_driver_that_shows_no_gpu_says_why_and_whether_there_may_be_one(gpu_fakes, status, environ, said, faulty):
    driver = gpu_fakes.FakeDriver(status=getattr(gpu_fakes.real_driver.CUresult, status))
    survey = ask_driver(environ, there, lambda: driver)
    assert said in survey.reason
    assert (survey.gpus, survey.faulty, survey.expected) == ((), faulty, faulty)


def test_a_driver_without_gpus_that_starts_is_no_fault(gpu_fakes):
    survey = ask_driver({}, there, lambda: gpu_fakes.FakeDriver(()))
    assert (survey.gpus, survey.faulty) == ((), False)


def test_a_driver_whose_bindings_are_missing_or_break_is_a_fault_with_a_way_out():
    def missing() -> None:
        raise ImportError("No module named 'cuda'")

    assert "pip install cuda-bindings" in ask_driver({}, there, missing).reason
    assert ask_driver({}, there, missing).faulty
    survey = ask_driver({}, there, object)
    assert survey.faulty
    assert "cannot be asked (AttributeError" in survey.reason


@pytest.mark.parametrize(
    ("text", "index"),
    [
        ("", 0),
        ("0", 0),
        ("2", 2),
        ("cuda:1", 1),
        (f"GPU-{ONE}", 0),
        (f"gpu-{ONE}".upper(), 0),
        ("GPU-9", 2),
        ("MIG-11111111", 1),
    ],
)
def test_a_gpu_is_meant_by_index_or_by_uuid(text, index):
    assert choose_gpu(text, SURVEY).index == index


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("3", "'3' names no GPU of this machine; give an index or a UUID of: 0 = GPU-11111111-2222"),
        ("-1", "names no GPU"),
        ("GPU-", "names no GPU"),
        ("GPU-1234", "names no GPU"),
        ("NVIDIA L4", "names no GPU"),
        ("\u0661", "names no GPU"),
        ("cuda:", "names no GPU"),
    ],
)
def test_a_text_that_names_no_gpu_lists_those_that_are_there(text, said):
    with pytest.raises(UsageError) as caught:
        choose_gpu(text, SURVEY)
    assert said in str(caught.value)
    assert "1 = MIG-11111111-aaaa-bbbb-cccc-dddddddddddd (NVIDIA H200 MIG 1g.18gb)" in str(caught.value)


def test_a_start_that_two_gpus_share_is_refused():
    twins = GpuSurvey(tuple(Gpu(i, f"GPU-1111111{i}-2222", "L4", "sm89", 1) for i in range(2)))
    with pytest.raises(UsageError, match="'GPU-1' names several GPUs"):
        choose_gpu("GPU-1", twins)


def test_without_gpus_the_reason_is_the_error():
    with pytest.raises(HostError, match="no GPU can be used here: the driver is asleep"):
        choose_gpu("0", GpuSurvey(reason="the driver is asleep"))
