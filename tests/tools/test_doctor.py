"""``trtc doctor`` tells what is there, what is missing, and what to change; odd machines do not stop it."""

from __future__ import annotations

import io
import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from rich.console import Console

from trtc.engines.gpu import Gpu, GpuSurvey
from trtc.engines.registry import Backend
from trtc.profiles import HostError
from trtc.tools import doctor as command
from trtc.tools.doctor_facts import (
    Section,
    cache_section,
    huge_page_section,
    memory_section,
    numa_section,
    size_text,
)
from trtc.tools.doctor_gpu import gpu_section
from trtc.tools.doctor_libraries import backend_section, overlaps, try_import
from trtc.tools.doctor_smi import parse_smi

if TYPE_CHECKING:
    from pathlib import Path

SMI = "0, NVIDIA H200, 9.0, 143771, 570.86.15, GPU-1\n1, NVIDIA L4, 8.9, [N/A], 570.86.15, GPU-2\n"
NO_GPU = GpuSurvey(reason="no NVIDIA driver: none here")
SEEN = GpuSurvey((Gpu(0, "GPU-1", "NVIDIA H200", "sm90", 2**37, "580.65.06", "13.0"),))
NEEDS_NOTHING = Backend("own", "trtc.engines.null", "", "", "own")
MISSING = Backend("missing", "trtc.engines.null", "no_such_library", "pip install 'no-such-library'", "cpu")


def run(*arguments: str) -> Any:
    return CliRunner().invoke(command.doctor, arguments)


def backends(monkeypatch: pytest.MonkeyPatch, *found: Backend) -> None:
    monkeypatch.setitem(command.PROBES, "backends", lambda: backend_section(found))
    monkeypatch.setattr(command, "BACKENDS", found)


def look(root: Path, environ: dict[str, str]) -> Section:
    """Look for GPUs where NVIDIA's management library is not there, whatever this machine has."""
    return gpu_section(root, environ, SimpleNamespace(), lambda: NO_GPU)


@pytest.fixture
def smi(tmp_path: Path):
    """Put a script named ``nvidia-smi`` on a path of its own; returns that environment."""

    def install(script: str) -> dict[str, str]:
        tool = tmp_path / "nvidia-smi"
        tool.write_text(f"#!/bin/sh\n{script}\n")
        tool.chmod(0o755)
        return {"PATH": str(tmp_path)}

    return install


def test_the_report_has_the_documented_keys(monkeypatch):
    backends(monkeypatch, NEEDS_NOTHING)
    report = json.loads(run("--json").stdout)
    assert list(report) == ["schema", "trtc", "ok", "hints", *command.PROBES]
    assert report["schema"] == "trtc.doctor/1"
    assert report["host"]["threads"]["usable"] >= 1
    assert {"name", "target", "computes", "installed", "usable", "version", "detail", "install"} == set(
        report["backends"]["backends"][0]
    )


def test_a_host_that_can_run_the_default_backend_is_fine():
    pytest.importorskip("onnxruntime")
    result = run("--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["ok"] is True


@pytest.mark.parametrize("arguments", [("--json",), ()])
def test_without_a_backend_that_computes_the_environment_does_not_fit(monkeypatch, arguments):
    null = Backend("null", "trtc.engines.null", "", "", "null", computes=False)
    backends(monkeypatch, MISSING, null)
    result = run(*arguments)
    assert isinstance(result.exception, HostError)
    assert result.exception.exit_code == 4
    assert "pip install 'no-such-library'" in str(result.exception)


def test_the_report_is_printed_before_the_verdict(monkeypatch):
    backends(monkeypatch, MISSING)
    assert json.loads(run("--json").stdout)["ok"] is False


@pytest.mark.parametrize("name", list(command.PROBES))
def test_a_probe_that_fails_is_unknown_with_its_reason_and_the_others_go_on(monkeypatch, name):
    def broken() -> Section:
        raise PermissionError(13, "Permission denied", "/proc/x")

    backends(monkeypatch, NEEDS_NOTHING)
    monkeypatch.setitem(command.PROBES, name, broken)
    report = json.loads(run("--json").stdout)
    assert report[name] == {"unknown": "PermissionError: [Errno 13] Permission denied: '/proc/x'"}
    assert [other for other in command.PROBES if "unknown" in report[other]] == [name]


def test_without_a_terminal_each_fact_is_one_plain_line(monkeypatch):
    backends(monkeypatch, NEEDS_NOTHING)
    monkeypatch.setenv("COLUMNS", "20")
    lines = run().stdout.splitlines()
    assert any(line.startswith("host: threads: ") for line in lines)
    assert all(line.split(":")[0] in {*command.PROBES, "to do"} for line in lines)


def test_a_terminal_gets_a_table_with_text_taken_literally():
    out = io.StringIO()
    section = Section({}, (("[red]label", "[N/A]"),))
    command.show_tables(Console(file=out, force_terminal=True, width=100), {"gpus": section}, ["do [this]"])
    assert "[red]label" in out.getvalue()
    assert "[N/A]" in out.getvalue()
    assert "do [this]" in out.getvalue()


def test_denied_huge_pages_come_with_the_line_that_allows_them(tmp_path):
    switch = tmp_path / "sys/kernel/mm/transparent_hugepage/enabled"
    switch.parent.mkdir(parents=True)
    switch.write_text("always madvise [never]\n")
    (hint,) = huge_page_section(tmp_path).hints
    assert "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled" in hint


def test_allowed_or_absent_huge_pages_need_no_hint(tmp_path):
    assert huge_page_section(tmp_path).hints == ()
    assert "not offered" in huge_page_section(tmp_path).lines[0][1]


def test_processors_on_two_numa_nodes_get_a_hint(tmp_path, monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 5})
    for node, cpus in enumerate(("0-3", "4-7", "8-11")):
        folder = tmp_path / f"sys/devices/system/node/node{node}"
        folder.mkdir(parents=True)
        (folder / "cpulist").write_text(cpus)
        (folder / "meminfo").write_text(f"Node {node} MemTotal: 1024 kB\n")
    section = numa_section(tmp_path)
    assert [node["cpus"] for node in section.facts["nodes"]] == [(0, 1, 2, 3), (4, 5, 6, 7), (8, 9, 10, 11)]
    assert "NUMA nodes 0, 1:" in section.hints[0]


def test_memory_that_cannot_be_read_is_unknown(tmp_path):
    section = command.examine(lambda: memory_section(tmp_path))
    assert section.facts["unknown"].startswith("FileNotFoundError")


def test_gpus_are_read_from_the_drivers_tool(smi, tmp_path):
    section = look(tmp_path, smi(f"printf '%s' '{SMI}'"))
    assert section.facts["driver"] == "570.86.15"
    assert [gpu["memory_bytes"] for gpu in section.facts["gpus"]] == [143771 * 2**20, None]
    assert section.lines[1] == ("gpu 0", "NVIDIA H200, compute capability 9.0, 140.4 GiB")
    assert section.lines[2] == ("gpu 1", "NVIDIA L4, compute capability 8.9")


def test_a_machine_without_gpus_is_fine(tmp_path):
    section = look(tmp_path, {"PATH": str(tmp_path)})
    assert (section.facts["driver"], section.facts["visible"], section.facts["gpus"]) == (None, None, [])
    assert section.facts["cuda"] == {"gpus": [], "reason": "no NVIDIA driver: none here", "faulty": False}
    assert section.lines[0] == ("gpus", "none that CUDA could use: no NVIDIA driver: none here")
    assert section.hints == ()


def test_a_tool_that_finds_no_gpu_is_fine(smi, tmp_path):
    assert look(tmp_path, smi("echo No devices were found; exit 6")).facts["gpus"] == []


def test_a_tool_that_cannot_reach_its_driver_is_unknown_in_its_own_words(smi, tmp_path):
    environ = smi("echo NVIDIA-SMI has failed; exit 9")
    section = command.examine(lambda: look(tmp_path, environ))
    assert section.facts["unknown"] == "OSError: nvidia-smi exited 9: NVIDIA-SMI has failed"


def test_a_driver_without_its_tool_is_seen_and_hinted_at(tmp_path):
    folder = tmp_path / "proc/driver/nvidia"
    (folder / "gpus/0000:01:00.0").mkdir(parents=True)
    (folder / "version").write_text("NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86.15\nGCC\n")
    (folder / "gpus/0000:01:00.0/information").write_text("Model: \t\t NVIDIA L4\nGPU UUID: \t GPU-9\n")
    section = look(tmp_path, {"PATH": "", "CUDA_VISIBLE_DEVICES": ""})
    assert section.facts["gpus"][0]["name"] == "NVIDIA L4"
    assert section.facts["visible"] == ""
    assert "--gpus all" in section.hints[0]


def with_nvml(gpu_fakes, survey: GpuSurvey = SEEN, **answers: Any) -> Section:
    return gpu_section(environ={}, nvml=gpu_fakes.FakeNvml(**answers), survey=lambda: survey)


def test_a_healthy_gpu_is_shown_with_its_driver_and_needs_nothing(gpu_fakes):
    section = with_nvml(gpu_fakes)
    assert section.hints == ()
    assert section.lines[:4] == (
        ("driver", "580.65.06 (CUDA 13.0)"),
        ("gpu 0", "NVIDIA H200, compute capability 9.0, 100.0 GiB"),
        ("gpu 0 health", "90.0 GiB free, ECC on, persistence on, MIG off, 0 memory errors, clocks held by gpu idle"),
        ("cuda device 0", "GPU-1 NVIDIA H200, sm90"),
    )
    (gpu,) = section.facts["gpus"]
    assert {"index", "name", "compute_capability", "memory_bytes", "uuid", "mig_uuids", "health"} == set(gpu)
    assert gpu["health"]["free_bytes"] == 90 * 2**30
    assert gpu["health"]["slowed_by"] == ("EVENT_REASON_GPU_IDLE",)
    json.dumps(section.facts)


def reason(gpu_fakes, name: str) -> int:
    return int(getattr(gpu_fakes.real_nvml.ClocksEventReasons, name))


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ({"device_get_total_ecc_errors": 2}, "GPU 0 (NVIDIA H200) had 2 memory errors beyond correction"),
        ({"device_get_remapped_rows": (0, 1, 1, 0)}, "has memory that waits to be repaired; reset it when it is idle"),
        ({"device_get_remapped_rows": (0, 1, 0, 1)}, "could not be repaired: take it out of service"),
        ({"device_get_ecc_mode": (0, 0)}, "does not correct memory errors: as root, nvidia-smi -e 1 -i 0"),
        ({"device_get_ecc_mode": (0, 1)}, "will correct memory errors after its next reset"),
        ({"device_get_persistence_mode": 0}, "persistence is off): as root, nvidia-smi -pm 1 -i 0"),
        ({"device_get_mig_mode": (1, 1)}, "is in MIG mode and has no instance"),
        ({"device_get_compute_mode": 2}, "compute mode PROHIBITED"),
        ({"recovery": 1}, "had an error (an Xid in the kernel's messages) after which its driver asks for GPU_RESET"),
        (
            {"device_get_memory_info_v2": SimpleNamespace(total=100 * 2**30, free=9 * 2**30)},
            "has 9.0 GiB of 100.0 GiB free: nvidia-smi names the processes",
        ),
        ({"clocks": "THROTTLE_REASON_HW_THERMAL_SLOWDOWN"}, "is too hot and slowed down by its hardware"),
        ({"clocks": "EVENT_REASON_SW_THERMAL_SLOWDOWN"}, "is too hot and slowed down by its driver"),
        ({"clocks": "THROTTLE_REASON_HW_POWER_BRAKE_SLOWDOWN"}, "slowed down by the machine's power brake"),
        ({"clocks": "THROTTLE_REASON_HW_SLOWDOWN"}, "is slowed down by its hardware"),
        ({"clocks": "EVENT_REASON_RELIABILITY"}, "is slowed down by its voltage limit"),
    ],
)
def test_each_problem_of_a_gpu_is_one_line_with_what_to_change(gpu_fakes, answers, said):
    if "clocks" in answers:
        answers = {"device_get_current_clocks_event_reasons": reason(gpu_fakes, answers["clocks"])}
    (hint,) = with_nvml(gpu_fakes, **answers).hints
    assert said in hint
    assert "\n" not in hint


@pytest.mark.parametrize("name", ["EVENT_REASON_SW_POWER_CAP", "EVENT_REASON_GPU_IDLE", "EVENT_REASON_NONE"])
def test_clocks_that_work_as_meant_are_no_problem(gpu_fakes, name):
    assert with_nvml(gpu_fakes, device_get_current_clocks_event_reasons=reason(gpu_fakes, name)).hints == ()


def test_a_lost_gpu_does_not_hide_the_others(gpu_fakes):
    lost = gpu_fakes.Refusal("GPU is lost")
    section = with_nvml(gpu_fakes, count=2, device_get_handle_by_index_v2=lost)
    assert [gpu["index"] for gpu in section.facts["gpus"]] == [0, 1]
    assert "GPU 1 cannot be asked (GPU is lost): look at the kernel's messages for Xid" in section.hints[1]


def test_instances_of_a_divided_gpu_are_named(gpu_fakes):
    section = with_nvml(gpu_fakes, device_get_mig_mode=(1, 1), device_get_max_mig_device_count=1)
    assert section.hints == ()
    assert f"MIG instance {gpu_fakes.UUIDS[0]}" in dict(section.lines)["gpu 0 health"]


@pytest.mark.parametrize(
    "survey",
    [GpuSurvey(reason="CUDA_VISIBLE_DEVICES='' hides every GPU"), GpuSurvey(reason="it does not start", faulty=True)],
)
def test_a_gpu_that_cuda_does_not_show_comes_with_the_reason(gpu_fakes, survey):
    (hint,) = with_nvml(gpu_fakes, survey=survey).hints
    assert hint == f"CUDA shows no GPU to this process: {survey.reason}"


def test_versions_of_cuda_and_of_what_runs_on_it_are_listed(gpu_fakes):
    assert with_nvml(gpu_fakes).facts["libraries"]["cuda-bindings"]


def test_a_line_with_other_fields_is_refused():
    with pytest.raises(ValueError, match="wrote 2 fields, 6 were asked for"):
        parse_smi("0, NVIDIA H200\n")


def test_a_backend_without_its_library_says_how_to_get_it():
    section = backend_section([MISSING])
    assert section.facts["backends"][0]["usable"] is False
    assert section.lines == (("missing", "not installed; pip install 'no-such-library'"),)


@pytest.mark.parametrize(("survey", "usable"), [(NO_GPU, False), (SEEN, True)])
def test_a_backend_for_gpus_is_usable_where_there_is_one(monkeypatch, survey, usable):
    monkeypatch.setattr("trtc.tools.doctor_libraries.survey_gpus", lambda: survey)
    section = backend_section([Backend("gpu", "trtc.engines.null", "msgspec", "", "gpu", device="cuda")])
    assert section.facts["backends"][0]["usable"] is usable
    assert section.facts["backends"][0]["version"]
    assert ("builds here, and runs where there is a GPU" in section.lines[0][1]) is not usable


def test_a_backend_that_needs_no_library_is_usable():
    assert backend_section([NEEDS_NOTHING]).facts["backends"][0]["usable"] is True


@pytest.mark.parametrize(
    ("code", "version", "words"),
    [
        pytest.param("__version__ = '1.2'", "1.2", "can be imported", id="fine"),
        pytest.param("print('hello')", "unknown", "can be imported", id="prints-and-has-no-version"),
        pytest.param("raise ImportError('libx.so is missing')", None, "ImportError: libx.so is missing", id="broken"),
        pytest.param("import os, signal\nos.kill(os.getpid(), signal.SIGILL)", None, "SIGILL", id="crashes"),
        pytest.param("raise SystemExit(3)", None, "without a word", id="exits"),
    ],
)
def test_a_library_is_tried_where_a_crash_does_no_harm(tmp_path, monkeypatch, code, version, words):
    (tmp_path / "odd_library.py").write_text(code)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    found, detail = try_import("odd_library")
    assert found == version
    assert words in detail


def test_a_folder_in_the_working_directory_is_not_taken_for_the_library(tmp_path, monkeypatch):
    (tmp_path / "odd_library.py").write_text("")
    monkeypatch.chdir(tmp_path)
    assert try_import("odd_library")[0] is None


def test_two_packages_that_overwrite_each_other_are_named():
    installed = {"onnxruntime": ["onnxruntime-gpu", "onnxruntime", "onnxruntime"], "numpy": ["numpy"]}
    (hint,) = overlaps(["onnxruntime", "numpy", "absent"], installed)
    assert hint.startswith("onnxruntime and onnxruntime-gpu overwrite each other's files")


def test_a_cache_that_is_not_there_yet_can_be_made(tmp_path):
    section = cache_section({"TRTC_CACHE_DIR": str(tmp_path / "deep/cache")})
    assert section.facts["exists"] is False
    assert section.facts["writable"] is True
    assert section.facts["private"] is None
    assert not (tmp_path / "deep").exists()


def test_a_caches_files_are_counted(tmp_path):
    (tmp_path / "a").mkdir(mode=0o700)
    (tmp_path / "a/x").write_bytes(b"123")
    (tmp_path / "a/link").symlink_to("/nowhere")
    tmp_path.chmod(0o700)
    facts = cache_section({"TRTC_CACHE_DIR": str(tmp_path)}).facts
    assert (facts["files"], facts["private"]) == (2, True)
    assert facts["size_bytes"] == 3 + len("/nowhere")


def test_a_cache_that_others_may_write_is_not_trusted(tmp_path):
    tmp_path.chmod(0o777)
    section = cache_section({"TRTC_CACHE_DIR": str(tmp_path)})
    assert section.facts["private"] is False
    assert "can be written by others (mode 0777)" in section.hints[0]


@pytest.mark.parametrize("target", ["there", "nowhere"])
def test_a_cache_that_is_a_symlink_is_not_trusted(tmp_path, target):
    (tmp_path / "there").mkdir(mode=0o700)
    (tmp_path / "cache").symlink_to(tmp_path / target)
    section = cache_section({"TRTC_CACHE_DIR": str(tmp_path / "cache")})
    assert section.facts["private"] is False
    assert "is a symlink" in section.hints[0]


def test_a_cache_path_that_is_a_file_is_named_as_one(tmp_path):
    (tmp_path / "file").write_text("")
    section = cache_section({"TRTC_CACHE_DIR": str(tmp_path / "file")})
    assert section.facts["writable"] is False
    assert "is not a folder" in section.hints[0]


def test_a_cache_below_a_file_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    section = cache_section({"TRTC_CACHE_DIR": str(tmp_path / "file/cache")})
    assert section.facts["writable"] is False
    assert "set TRTC_CACHE_DIR to a folder that can" in section.hints[0]


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (143771 * 2**20, "140.4 GiB"), (3 * 2**50, "3072.0 TiB")],
)
def test_amounts_of_memory_are_written_for_people(size_bytes, text):
    assert size_text(size_bytes) == text
