"""NVIDIA's management library, through ``cuda.bindings.nvml``: what the driver knows without starting CUDA.

Nothing here needs a context, none of it disturbs a running process, and a child may be forked afterwards. Values that a
GPU, a driver or a container does not tell are None.
"""

from __future__ import annotations

import contextlib
import ctypes
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LIBRARY = "libnvidia-ml.so.1"


@dataclass(frozen=True, slots=True)
class GpuHealth:
    """How one GPU is doing; None for what cannot be told.

    Attributes:
        index: as NVML counts: every GPU of the machine, whatever ``CUDA_VISIBLE_DEVICES`` says.
        uuid, name: as in ``Gpu``.
        compute_capability: such as ``sm90``.
        total_bytes, free_bytes: of device memory.
        ecc: whether memory errors are corrected; ``ecc_pending`` after the next reset.
        uncorrected_errors: of memory, since the driver was loaded.
        rows_pending: remapped memory rows, or retired pages, wait for a reset.
        rows_failed: a row could not be remapped.
        recovery: what the driver asks for after an error (an Xid), such as ``GPU_RESET``; ``NONE`` when all is well.
        slowed_by: names of ``ClocksEventReasons`` in force now.
        persistence: the driver stays loaded when nobody uses the GPU.
        mig: whether the GPU is divided into instances.
        mig_uuids: of its instances.
        compute_mode: name of ``ComputeMode``, such as ``DEFAULT``.
        error: why nothing could be asked; empty when something could.
    """

    index: int
    uuid: str | None = None
    name: str | None = None
    compute_capability: str | None = None
    total_bytes: int | None = None
    free_bytes: int | None = None
    ecc: bool | None = None
    ecc_pending: bool | None = None
    uncorrected_errors: int | None = None
    rows_pending: bool | None = None
    rows_failed: bool | None = None
    recovery: str | None = None
    slowed_by: tuple[str, ...] | None = None
    persistence: bool | None = None
    mig: bool | None = None
    mig_uuids: tuple[str, ...] = ()
    compute_mode: str | None = None
    error: str = ""


class Nvml:
    """The library, started. Use ``open_nvml``.

    Args:
        module: ``cuda.bindings.nvml``.
    """

    def __init__(self, module: Any) -> None:
        self._nvml = module

    def driver_version(self) -> str:
        """Return the driver's version, such as ``580.65.06``; empty where it cannot be told."""
        return str(self._told(self._nvml.system_get_driver_version) or "")

    def cuda_version(self) -> str:
        """Return the newest CUDA that the driver runs, such as ``13.0``; empty where it cannot be told."""
        number = self._told(self._nvml.system_get_cuda_driver_version_v2)
        return f"{number // 1000}.{number % 1000 // 10}" if number else ""

    def free_bytes(self, uuid: str) -> int | None:
        """Return the free memory of a GPU or a MIG instance; None where it cannot be told."""
        handle = self._told(self._nvml.device_get_handle_by_uuid, uuid)
        memory = None if handle is None else self._told(self._nvml.device_get_memory_info_v2, handle)
        return None if memory is None else int(memory.free)

    def health(self) -> tuple[GpuHealth, ...]:
        """Look at every GPU of the machine."""
        count = self._told(self._nvml.device_get_count_v2) or 0
        return tuple(self._health_of(index) for index in range(count))

    def _health_of(self, index: int) -> GpuHealth:
        nvml = self._nvml
        try:
            gpu = nvml.device_get_handle_by_index_v2(index)
        except nvml.NvmlError as error:
            return GpuHealth(index, error=str(error))
        memory = self._told(nvml.device_get_memory_info_v2, gpu)
        ecc = self._told(nvml.device_get_ecc_mode, gpu)
        capability = self._told(nvml.device_get_cuda_compute_capability, gpu)
        mode = self._told(nvml.device_get_compute_mode, gpu)
        mig = self._told(nvml.device_get_mig_mode, gpu)
        pending, failed = self._rows(gpu)
        on = int(nvml.EnableState.ENABLED)
        return GpuHealth(
            index=index,
            uuid=self._told(nvml.device_get_uuid, gpu),
            name=self._told(nvml.device_get_name, gpu),
            compute_capability=None if capability is None else f"sm{capability[0]}{capability[1]}",
            total_bytes=None if memory is None else int(memory.total),
            free_bytes=None if memory is None else int(memory.free),
            ecc=None if ecc is None else int(ecc[0]) == on,
            ecc_pending=None if ecc is None else int(ecc[1]) == on,
            uncorrected_errors=self._told(
                nvml.device_get_total_ecc_errors,
                gpu,
                int(nvml.MemoryErrorType.UNCORRECTED),
                int(nvml.EccCounterType.VOLATILE_ECC),
            ),
            rows_pending=pending,
            rows_failed=failed,
            recovery=self._recovery(gpu),
            slowed_by=self._slowed_by(gpu),
            persistence=self._is(on, nvml.device_get_persistence_mode, gpu),
            mig=None if mig is None else int(mig[0]) == int(nvml.DeviceMig.ENABLE),
            mig_uuids=self._instances(gpu) if mig and int(mig[0]) == int(nvml.DeviceMig.ENABLE) else (),
            compute_mode=None if mode is None else _named(nvml.ComputeMode, mode),
        )

    def _rows(self, gpu: Any) -> tuple[bool | None, bool | None]:
        """Whether memory waits for a reset, and whether a repair failed. GPUs before Ampere retire pages instead."""
        rows = self._told(self._nvml.device_get_remapped_rows, gpu)
        if rows is not None:
            return bool(rows[2]), bool(rows[3])
        return self._is(
            int(self._nvml.EnableState.ENABLED), self._nvml.device_get_retired_pages_pending_status, gpu
        ), None

    def _recovery(self, gpu: Any) -> str | None:
        nvml = self._nvml
        fields = nvml.FieldValue(1)
        fields.field_id = int(nvml.FieldId.DEV_GET_GPU_RECOVERY_ACTION)
        try:
            nvml.device_get_field_values(gpu, fields)
        except nvml.NvmlError:
            return None
        if int(fields.nvml_return):
            return None
        return _named(nvml.DeviceGpuRecoveryAction, int(fields.value["ui_val"][0]))

    def _slowed_by(self, gpu: Any) -> tuple[str, ...] | None:
        bits = self._told(self._nvml.device_get_current_clocks_event_reasons, gpu)
        if bits is None:
            return None
        return tuple(reason.name for reason in self._nvml.ClocksEventReasons if int(reason) and int(reason) & bits)

    def _instances(self, gpu: Any) -> tuple[str, ...]:
        found = []
        for index in range(self._told(self._nvml.device_get_max_mig_device_count, gpu) or 0):
            instance = self._told(self._nvml.device_get_mig_device_handle_by_index, gpu, index)
            if instance is not None and (uuid := self._told(self._nvml.device_get_uuid, instance)):
                found.append(str(uuid))
        return tuple(found)

    def _is(self, wanted: int, ask: Callable[..., Any], *arguments: Any) -> bool | None:
        value = self._told(ask, *arguments)
        return None if value is None else int(value) == wanted

    def _told(self, ask: Callable[..., Any], *arguments: Any) -> Any:
        """Ask; None for what is not supported, not allowed, or gone."""
        try:
            return ask(*arguments)
        except self._nvml.NvmlError:
            return None


@contextlib.contextmanager
def open_nvml(module: Any = None) -> Iterator[Nvml | None]:
    """Start NVML for the block; None where neither the driver nor its bindings are there.

    Args:
        module: instead of ``cuda.bindings.nvml``.
    """
    module = module or _bindings()
    started = False
    if module is not None:
        # A driver that is missing, or older than NVML's bindings, raises errors of several kinds.
        with contextlib.suppress(Exception):
            module.init_v2()
            started = True
    try:
        yield Nvml(module) if started else None
    finally:
        if started:
            with contextlib.suppress(Exception):
                module.shutdown()


def _bindings() -> Any:
    try:
        ctypes.CDLL(LIBRARY)  # first: without a driver the bindings are not worth importing
        from cuda.bindings import nvml
    except (OSError, ImportError):  # no driver; not installed, or a version without NVML
        return None
    return nvml


def _named(kind: Any, value: int) -> str:
    try:
        return str(kind(int(value)).name)
    except ValueError:  # newer than the bindings
        return str(value)
