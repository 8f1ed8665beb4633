"""Asking NVIDIA's driver which GPUs there are. Nothing here raises: whatever is wrong becomes the survey's reason."""

from __future__ import annotations

import ctypes
import os
import uuid
from typing import TYPE_CHECKING, Any

from trtc.engines.gpu import Gpu, GpuSurvey

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

LIBRARY = "libcuda.so.1"
INSTALL = "pip install cuda-bindings"

_NO_DEVICE, _STUB = "CUDA_ERROR_NO_DEVICE", "CUDA_ERROR_STUB_LIBRARY"
_ADVICE = {
    "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH": "the driver's library and its kernel module are of different versions: "
    "reboot, or start the container again after a driver update",
    "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE": "CUDA's forward compatibility does not serve this GPU: "
    "update the driver, or take the compat libraries off LD_LIBRARY_PATH",
    "CUDA_ERROR_SYSTEM_NOT_READY": "the GPUs of this machine need nvidia-fabricmanager: start it",
    "CUDA_ERROR_MPS_CONNECTION_FAILED": "the MPS server cannot be reached: start it, or unset CUDA_MPS_PIPE_DIRECTORY",
    "CUDA_ERROR_INSUFFICIENT_DRIVER": "the driver is too old for CUDA: update it",
    "CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER": "the driver is too old for the installed CUDA libraries: update it",
    "CUDA_ERROR_DEVICE_UNAVAILABLE": "the GPU is in exclusive use by another process: end that one",
}
"""What to do about failures that have one remedy. Names are those of ``CUresult`` in CUDA's driver API."""


class _DriverError(Exception):
    """A call of the driver failed; the text is the name of its ``CUresult``."""


def ask_driver(
    environ: Mapping[str, str] = os.environ,
    open_library: Callable[[str], Any] = ctypes.CDLL,
    import_bindings: Callable[[], Any] | None = None,
) -> GpuSurvey:
    """Find the GPUs that CUDA shows to this process.

    Args:
        environ: holds ``CUDA_VISIBLE_DEVICES``.
        open_library: opens the driver's library by name; raises OSError where it is missing.
        import_bindings: returns ``cuda.bindings.driver``; called only when the library is there.
    """
    try:
        open_library(LIBRARY)
    except OSError:
        return GpuSurvey(
            reason=f"no NVIDIA driver: {LIBRARY} is not on this machine (in a container, start it with --gpus all)"
        )
    try:
        driver = (import_bindings or _bindings)()
    except ImportError as error:
        return GpuSurvey(
            reason=f"an NVIDIA driver is here, but cuda-bindings, which asks it, cannot be imported ({error}): "
            + INSTALL,
            faulty=True,
        )
    try:
        return _survey(driver, environ)
    except _DriverError as error:
        return _refused(str(error), environ)
    except Exception as error:  # noqa: BLE001 (a broken driver must not take down a program that can do without)
        return GpuSurvey(reason=f"the NVIDIA driver cannot be asked ({type(error).__name__}: {error})", faulty=True)


def _bindings() -> Any:
    from cuda.bindings import driver

    return driver


def _survey(driver: Any, environ: Mapping[str, str]) -> GpuSurvey:
    _call(driver.cuInit, 0)
    cuda = _call(driver.cuDriverGetVersion)
    cuda_version = f"{cuda // 1000}.{cuda % 1000 // 10}"
    release = _release()
    count = _call(driver.cuDeviceGetCount)
    gpus = tuple(_gpu(driver, index, release, cuda_version) for index in range(count))
    return GpuSurvey(gpus) if gpus else _refused(_NO_DEVICE, environ)


def _gpu(driver: Any, index: int, release: str, cuda_version: str) -> Gpu:
    device = _call(driver.cuDeviceGet, index)
    name = _call(driver.cuDeviceGetName, 96, device).split(b"\0")[0].decode(errors="replace").strip()
    which = driver.CUdevice_attribute
    major = _call(driver.cuDeviceGetAttribute, which.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device)
    minor = _call(driver.cuDeviceGetAttribute, which.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device)
    # CUDA 12 has a second version of this call, which knows MIG instances; CUDA 13 kept that one only.
    ask_uuid = getattr(driver, "cuDeviceGetUuid_v2", None) or driver.cuDeviceGetUuid
    # The driver names an instance after its GPU and its size: "NVIDIA A100-SXM4-40GB MIG 1g.5gb".
    mig = " MIG " in name
    return Gpu(
        index=index,
        uuid=("MIG-" if mig else "GPU-") + str(uuid.UUID(bytes=bytes(_call(ask_uuid, device).bytes[:16]))),
        name=name,
        compute_capability=f"sm{major}{minor}",
        memory_bytes=_call(driver.cuDeviceTotalMem, device),
        driver_version=release,
        cuda_version=cuda_version,
        mig=mig,
    )


def _call(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call the driver; its bindings return the status first."""
    status, *values = function(*arguments)
    if int(status):
        raise _DriverError(getattr(status, "name", str(status)))
    return values[0] if values else None


def _refused(status: str, environ: Mapping[str, str]) -> GpuSurvey:
    """Say what a failed start of CUDA means."""
    visible = environ.get("CUDA_VISIBLE_DEVICES")
    if status == _STUB:
        return GpuSurvey(reason=f"no NVIDIA driver: {LIBRARY} is the stub of a CUDA toolkit; take it off the path")
    if status == _NO_DEVICE and visible is not None:
        return GpuSurvey(
            reason=f"CUDA_VISIBLE_DEVICES={visible!r} hides every GPU, or there is none; unset it to see them all"
        )
    if status == _NO_DEVICE:
        return GpuSurvey(reason="the NVIDIA driver finds no GPU (in a container, start it with --gpus all)")
    advice = _ADVICE.get(status, "run nvidia-smi, and look at the kernel's messages for NVRM")
    return GpuSurvey(reason=f"the NVIDIA driver does not start ({status}): {advice}", faulty=True)


def _release() -> str:
    """Return the driver's own version, such as ``580.65.06``; empty where NVML does not tell."""
    from trtc.engines.nvml import open_nvml

    with open_nvml() as nvml:
        return "" if nvml is None else nvml.driver_version()
