"""What ``trtc doctor`` finds out about GPUs: which there are, what CUDA shows of them, and how they are doing."""

from __future__ import annotations

import os
import shutil
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from trtc.engines.cgroup import ROOT
from trtc.engines.gpu import GpuSurvey, survey_gpus
from trtc.engines.nvml import open_nvml
from trtc.tools.doctor_facts import Section, size_text
from trtc.tools.doctor_health import problems
from trtc.tools.doctor_libraries import installed_version
from trtc.tools.doctor_smi import ask_smi, driver_files

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from trtc.engines.nvml import GpuHealth

LIBRARIES = (
    *("cuda-core", "cuda-bindings", "onnxruntime-gpu"),
    *("tensorrt", "tensorrt-cu13", "tensorrt-cu12", "tensorrt-lean-cu13", "tensorrt-lean-cu12"),
    *("tensorrt-rtx-cu13", "tensorrt-rtx-cu12"),
    *("nvidia-cuda-runtime", "nvidia-cuda-runtime-cu12", "nvidia-cublas", "nvidia-cublas-cu12"),
    *("nvidia-cudnn-cu13", "nvidia-cudnn-cu12"),
)
"""Distributions that bring CUDA, and what runs on it."""

_ABOUT = ("index", "uuid", "name", "compute_capability", "total_bytes", "mig_uuids")


@dataclass(frozen=True, slots=True)
class _Found:
    """What one source told: version of the driver, GPUs for ``--json``, and their health where it is known."""

    driver: str | None
    gpus: list[dict[str, Any]]
    health: tuple[GpuHealth, ...] = ()
    hint: str = ""


def gpu_section(
    root: Path = ROOT,
    environ: Mapping[str, str] = os.environ,
    nvml: Any = None,
    survey: Callable[[], GpuSurvey] = survey_gpus,
) -> Section:
    """NVIDIA GPUs, their driver, their health, and what CUDA shows of them to this process; none is fine.

    Args:
        root: folder that holds ``proc``.
        environ: holds ``PATH`` and ``CUDA_VISIBLE_DEVICES``.
        nvml: instead of ``cuda.bindings.nvml``.
        survey: looks for the GPUs that CUDA shows.

    Raises:
        OSError, ValueError, subprocess.SubprocessError: ``nvidia-smi`` is there and fails, hangs or writes what it
            does not document.
    """
    found = _ask_nvml(nvml) or _ask_others(root, environ)
    seen = survey()
    visible = environ.get("CUDA_VISIBLE_DEVICES")
    libraries = {name: text for name in LIBRARIES if (text := installed_version(name))}
    hints = [hint for hint in (found.hint, *(text for gpu in found.health for text in problems(gpu))) if hint]
    if not seen.gpus and (found.gpus or seen.faulty):
        hints.append(f"CUDA shows no GPU to this process: {seen.reason}")
    lines = [("driver", found.driver or "none")] if found.gpus or found.driver else []
    lines += [(f"gpu {gpu['index']}", _gpu_text(gpu)) for gpu in found.gpus]
    lines += [(f"gpu {gpu.index} health", _health_text(gpu)) for gpu in found.health]
    lines += [(f"cuda device {gpu.index}", f"{gpu.uuid} {gpu.name}, {gpu.compute_capability}") for gpu in seen.gpus]
    if not seen.gpus:
        lines.append(("gpus", f"none that CUDA could use: {seen.reason}"))
    lines += [("CUDA_VISIBLE_DEVICES", repr(visible))] if visible is not None else []
    lines += [("libraries", ", ".join(f"{name} {text}" for name, text in libraries.items()) or "none installed")]
    facts = {
        "driver": found.driver,
        "visible": visible,
        "gpus": found.gpus,
        "cuda": {
            "gpus": [msgspec.structs.asdict(gpu) for gpu in seen.gpus],
            "reason": seen.reason,
            "faulty": seen.faulty,
        },
        "libraries": libraries,
    }
    return Section(facts, tuple(lines), tuple(hints))


def _ask_nvml(module: Any) -> _Found | None:
    """Ask NVIDIA's management library; None where it is not there."""
    with open_nvml(module) as nvml:
        if nvml is None:
            return None
        health, driver, cuda = nvml.health(), nvml.driver_version(), nvml.cuda_version()
    text = " ".join([driver, f"(CUDA {cuda})" if cuda else ""]).strip()
    return _Found(text or None, [_gpu_facts(gpu) for gpu in health], health)


def _ask_others(root: Path, environ: Mapping[str, str]) -> _Found:
    """Ask ``nvidia-smi``, else the kernel: they tell which GPUs there are, and little of how they are doing."""
    smi = shutil.which("nvidia-smi", path=environ.get("PATH"))
    unknown = "how the GPUs are doing is not known without NVML's bindings: pip install cuda-bindings"
    if smi:
        driver, gpus = ask_smi(smi)
        return _Found(driver, gpus, hint=unknown if gpus else "")
    driver, gpus = driver_files(root)
    missing = "the NVIDIA driver is loaded but its libraries are missing: start the container with --gpus all"
    return _Found(driver, gpus, hint=missing if driver else "")


def _gpu_facts(gpu: GpuHealth) -> dict[str, Any]:
    sm = gpu.compute_capability
    return {
        "index": gpu.index,
        "name": gpu.name,
        "compute_capability": None if sm is None else f"{sm[2:-1]}.{sm[-1]}",
        "memory_bytes": gpu.total_bytes,
        "uuid": gpu.uuid,
        "mig_uuids": list(gpu.mig_uuids),
        "health": {name: value for name, value in asdict(gpu).items() if name not in _ABOUT},
    }


def _gpu_text(gpu: dict[str, Any]) -> str:
    capability = gpu["compute_capability"]
    memory = gpu["memory_bytes"]
    parts = [str(gpu["name"]), f"compute capability {capability}" if capability else "", size_text(memory or 0)]
    return ", ".join(part for part in (parts if memory else parts[:2]) if part)


def _health_text(gpu: GpuHealth) -> str:
    if gpu.error:
        return f"unknown: {gpu.error}"
    switches = (("ECC", gpu.ecc), ("persistence", gpu.persistence), ("MIG", gpu.mig))
    parts = [f"{size_text(gpu.free_bytes)} free"] if gpu.free_bytes is not None else []
    parts += [f"{name} {'on' if value else 'off'}" for name, value in switches if value is not None]
    parts += [f"{gpu.uncorrected_errors} memory errors"] if gpu.uncorrected_errors is not None else []
    parts += [f"clocks held by {', '.join(_short(reason) for reason in gpu.slowed_by)}"] if gpu.slowed_by else []
    parts += [f"MIG instance {uuid}" for uuid in gpu.mig_uuids]
    return ", ".join(parts) or "not told"


def _short(reason: str) -> str:
    return reason.partition("REASON_")[2].lower().replace("_", " ") or reason
