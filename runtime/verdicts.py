"""Whether this host can run an engine, and why not. No engine is opened to find out."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from trtc.engines.distributions import find_distribution
from trtc.engines.gpu import DEVICE_KIND, GpuSurvey, choose_gpu, survey_gpus
from trtc.engines.opening import plugins_refused
from trtc.engines.registry import BACKENDS
from trtc.engines.value import Value
from trtc.profiles import HostError, TrtcError

if TYPE_CHECKING:
    from collections.abc import Callable

    from trtc.engines.distributions import Distribution
    from trtc.engines.gpu import Gpu
    from trtc.engines.host import Host
    from trtc.engines.manifest import EngineRecord, Requirements

CPU = "cpu"
"""What ``device`` and ``fallback`` say to run without a GPU."""

_GIB = 2**30
_INSTALL = {"onnxruntime-gpu": ": pip install 'trtc[gpu]'", "tensorrt_lean": ": pip install tensorrt-lean-cu13"}
"""How to get libraries that are not the one that builds for their backend."""


class Verdict(Value, frozen=True):
    """Whether one engine fits this host.

    Attributes:
        engine: name of the engine.
        fits: whether it can be loaded.
        reason: why, or why not and what to do.
        device: index of the GPU that it would run on, as CUDA counts; empty without one.
    """

    engine: str
    fits: bool
    reason: str
    device: str = ""


class Accelerators(Value, frozen=True):
    """How verdicts learn about GPUs; asked only for an engine that needs one.

    Attributes:
        survey: looks for GPUs.
        free_bytes: free memory of one; None where it cannot be told.
    """

    survey: Callable[[], GpuSurvey]
    free_bytes: Callable[[Gpu], int | None]


def this_machine() -> Accelerators:
    """Return the GPUs of this machine, which are looked for once a process."""
    return Accelerators(survey_gpus, _free_bytes)


def judge(
    record: EngineRecord,
    host: Host,
    device: str = "",
    accelerators: Accelerators | None = None,
    *,
    allow_plugins: bool = False,
) -> Verdict:
    """Compare what an engine needs with what the host has.

    Args:
        record: the engine.
        host: this host.
        device: the GPU that was asked for, ``cpu`` for none, or empty for any.
        accelerators: the GPUs; None for those of this machine.
        allow_plugins: libraries of plug-ins may run.
    """
    try:
        gpu = _fitting(record, host, device, accelerators or this_machine())
        if record.plugins and not allow_plugins:
            raise HostError(plugins_refused(record))
    except TrtcError as error:
        return Verdict(record.name, fits=False, reason=str(error))
    reason = f"fits: {record.target} with {record.requirements.library or 'no library'}"
    if gpu is None:
        return Verdict(record.name, fits=True, reason=reason)
    return Verdict(record.name, fits=True, reason=f"{reason} on {gpu}", device=str(gpu.index))


def needed_device_bytes(record: EngineRecord) -> int:
    """Return the least device memory that one call at a time takes: the engine, and its largest profile."""
    largest = max((m.slot_bytes + max(m.scratch_bytes, 0) for m in record.memory), default=0)
    return sum(blob.size_bytes for blob in record.files) + largest


def _fitting(record: EngineRecord, host: Host, device: str, accelerators: Accelerators) -> Gpu | None:
    """Return the GPU that an engine would run on; None for one that needs none.

    Raises:
        TrtcError: when it does not fit; the text is the reason.
    """
    needs = record.requirements
    backend = next((b for b in BACKENDS if b.name == record.backend), None)
    if backend is None:
        raise HostError(f"this version of trtc has no backend {record.backend!r}")
    for built, here, verb in ((needs.system, host.system, "runs"), (needs.architecture, host.architecture, "is")):
        if built and built != here:
            raise HostError(f"it was built for {built}, this host {verb} {here}; build it again here")
    if needs.device not in ("", DEVICE_KIND):
        raise HostError(f"it needs a device of kind {needs.device!r}, which this version of trtc does not know")
    if needs.device and device == CPU:
        raise HostError("it needs a GPU, and the CPU was asked for")
    if not backend.installed and needs.library in ("", backend.needs):
        raise HostError(f"{backend.needs} is not installed: {backend.install}")
    library = _library(needs)
    if missing := [f for f in needs.cpu_features if f not in host.cpu_features]:
        raise HostError(f"it uses {', '.join(missing)}, which this processor lacks; rebuild the bundle on this host")
    gpu = _fitting_gpu(record, device, accelerators, library) if needs.device else None
    if gpu is not None:
        from trtc.engines.shared_libraries import shared_library

        shared_library(needs.library)
    if not record.verified and backend.computes:
        raise HostError(
            "it was never compared with its model; run `trtc verify` "
            + ("on a host that can run it" if gpu is None else f"here, on {gpu}")
        )
    return gpu


def _library(needs: Requirements) -> Distribution | None:
    """Find the engine's library in the version that it needs: major and minor, or every part of it."""
    if not needs.library or _is_loaded(needs):
        return None
    found, wanted = find_distribution(needs.library), needs.library_version
    if found is None:
        raise HostError(f"{needs.library} is not installed{_INSTALL.get(needs.library, '')}")
    parts = None if needs.exact_version else 2
    if wanted and found.version.split(".")[:parts] != wanted.split(".")[:parts]:
        exactly = " (every part of the version counts)" if needs.exact_version else ""
        raise HostError(
            f"it was built with {needs.library} {wanted}{exactly}, this host has {found.version}; "
            f"install {found.name}=={wanted}, or rebuild the bundle here"
        )
    return found


def _is_loaded(needs: Requirements) -> bool:
    """Whether a program has imported the right version: then installed packages are not read, which takes 3 ms."""
    loaded = None if needs.device or needs.exact_version else sys.modules.get(needs.library)
    version = getattr(loaded, "__version__", "")
    return bool(version) and version.split(".")[:2] == needs.library_version.split(".")[:2]


def _fitting_gpu(record: EngineRecord, device: str, accelerators: Accelerators, library: Distribution | None) -> Gpu:
    """Return the first GPU that an engine fits, or the one that was asked for.

    Raises:
        TrtcError: when there is none; the text says why of each.
    """
    survey = accelerators.survey()
    if not survey.gpus:
        raise HostError(survey.reason)
    problems = []
    for gpu in (choose_gpu(device, survey),) if device else survey.gpus:
        problem = _gpu_problem(record, gpu, accelerators, library)
        if not problem:
            return gpu
        problems.append(f"{gpu}: {problem}")
    raise HostError("; ".join(problems))


def _gpu_problem(record: EngineRecord, gpu: Gpu, accelerators: Accelerators, library: Distribution | None) -> str:
    """Say why an engine does not fit a GPU; empty when it does."""
    capabilities = record.requirements.compute_capabilities
    if capabilities and gpu.compute_capability not in capabilities:
        return f"the engine holds kernels for {', '.join(capabilities)} only; rebuild it for {gpu.compute_capability}"
    if library is not None and _too_old(gpu, library):
        driver = f"driver {gpu.driver_version}".strip()
        return (
            f"{driver} runs CUDA {gpu.cuda_version}, and {library.name} needs CUDA {library.cuda_major}; "
            "update the driver"
        )
    free_bytes, needed_bytes = accelerators.free_bytes(gpu), needed_device_bytes(record)
    if free_bytes is not None and needed_bytes > free_bytes:
        return (
            f"the engine takes at least {needed_bytes / _GIB:.2f} GiB of device memory, {free_bytes / _GIB:.2f} GiB "
            "are free; end other work on that GPU, choose another with device=, or build smaller buckets"
        )
    return ""


def _too_old(gpu: Gpu, library: Distribution) -> bool:
    major, newest = library.cuda_major, gpu.cuda_version.partition(".")[0]
    return major is not None and newest.isdigit() and int(newest) < major


def _free_bytes(gpu: Gpu) -> int | None:
    from trtc.engines.nvml import open_nvml

    with open_nvml() as nvml:
        return None if nvml is None else nvml.free_bytes(gpu.uuid)
