"""A driver and an NVML that answer as told. Their enumerations are the real ones, and every name is checked."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from cuda.bindings import driver as real_driver
from cuda.bindings import nvml as real_nvml

UUIDS = ("GPU-11111111-2222-3333-4444-555555555555", "GPU-11111111-aaaa-bbbb-cccc-dddddddddddd")
CALLS = ("cuInit", "cuDriverGetVersion", "cuDeviceGetCount", "cuDeviceGet", "cuDeviceGetName", "cuDeviceGetAttribute")
CALLS += ("cuDeviceGetUuid", "cuDeviceTotalMem")


@dataclass
class FakeDriver:
    """``cuda.bindings.driver`` with GPUs of ours.

    Attributes:
        names: of the GPUs.
        status: what ``cuInit`` answers.
        version: what ``cuDriverGetVersion`` answers.
    """

    names: tuple[str, ...] = ("NVIDIA L4",)
    status: Any = real_driver.CUresult.CUDA_SUCCESS
    version: int = 13000
    CUdevice_attribute: Any = field(default=real_driver.CUdevice_attribute)

    def __getattr__(self, name: str) -> Any:
        if name not in CALLS:
            raise AttributeError(name)
        assert callable(getattr(real_driver, name)), f"the real driver has no {name}"
        return getattr(self, f"_{name}")

    def _ok(self, *values: Any) -> tuple[Any, ...]:
        return (real_driver.CUresult.CUDA_SUCCESS, *values)

    def _cuInit(self, flags: int) -> tuple[Any, ...]:  # noqa: N802 (names of the real module)
        assert flags == 0
        return (self.status,)

    def _cuDriverGetVersion(self) -> tuple[Any, ...]:  # noqa: N802
        return self._ok(self.version)

    def _cuDeviceGetCount(self) -> tuple[Any, ...]:  # noqa: N802
        return self._ok(len(self.names))

    def _cuDeviceGet(self, index: int) -> tuple[Any, ...]:  # noqa: N802
        return self._ok(index)

    def _cuDeviceGetName(self, length: int, device: int) -> tuple[Any, ...]:  # noqa: N802
        return self._ok(self.names[device].encode().ljust(length, b"\0"))

    def _cuDeviceGetAttribute(self, attribute: Any, device: int) -> tuple[Any, ...]:  # noqa: N802
        del device
        kinds = real_driver.CUdevice_attribute
        values = {
            kinds.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: 8,
            kinds.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: 9,
        }
        return self._ok(values[attribute])

    def _cuDeviceGetUuid(self, device: int) -> tuple[Any, ...]:  # noqa: N802
        return self._ok(SimpleNamespace(bytes=uuid.UUID(UUIDS[device].removeprefix("GPU-")).bytes))

    def _cuDeviceTotalMem(self, device: int) -> tuple[Any, ...]:  # noqa: N802
        del device
        return self._ok(24 * 2**30)


class Refusal(real_nvml.NotSupportedError):
    """The real error asks the library for its text, which is not here."""

    def __init__(self, text: str) -> None:
        Exception.__init__(self, text)


class FakeNvml:
    """``cuda.bindings.nvml`` with answers of ours: ``FakeNvml(device_get_mig_mode=(1, 1))``; the rest is healthy.

    An answer that is an exception is raised; ``ABSENT`` is what a GPU without that feature says. Recovery is the value
    of its field.
    """

    ABSENT = Refusal("Not Supported")

    def __init__(self, count: int = 1, recovery: int = 0, **answers: Any) -> None:
        self.started = 0
        self._recovery = recovery
        self._answers = {
            "system_get_driver_version": "580.65.06",
            "system_get_cuda_driver_version_v2": 13000,
            "device_get_count_v2": count,
            "device_get_handle_by_uuid": 7,
            "device_get_name": "NVIDIA H200",
            "device_get_uuid": UUIDS[0],
            "device_get_cuda_compute_capability": (9, 0),
            "device_get_memory_info_v2": SimpleNamespace(total=100 * 2**30, free=90 * 2**30),
            "device_get_ecc_mode": (1, 1),
            "device_get_total_ecc_errors": 0,
            "device_get_remapped_rows": (0, 0, 0, 0),
            "device_get_retired_pages_pending_status": 0,
            "device_get_current_clocks_event_reasons": int(real_nvml.ClocksEventReasons.EVENT_REASON_GPU_IDLE),
            "device_get_persistence_mode": 1,
            "device_get_mig_mode": (0, 0),
            "device_get_max_mig_device_count": 0,
            "device_get_mig_device_handle_by_index": 9,
            "device_get_compute_mode": 0,
            "device_get_handle_by_index_v2": 5,
        } | answers
        for name in self._answers:
            assert callable(getattr(real_nvml, name)), f"the real NVML has no {name}"

    def __getattr__(self, name: str) -> Any:
        if name in self._answers:
            return lambda *_: self._answer(self._answers[name])
        kind = getattr(real_nvml, name)
        assert isinstance(kind, type), f"{name} was not told what to answer"
        return kind

    def init_v2(self) -> None:
        assert callable(real_nvml.init_v2)
        self.started += 1

    def shutdown(self) -> None:
        assert callable(real_nvml.shutdown)
        self.started -= 1

    def device_get_field_values(self, device: int, values: Any) -> None:
        del device
        assert callable(real_nvml.device_get_field_values)
        assert int(values.field_id) == int(real_nvml.FieldId.DEV_GET_GPU_RECOVERY_ACTION)
        self._answer(self._recovery)
        values.value["ui_val"] = self._recovery

    def _answer(self, value: Any) -> Any:
        if isinstance(value, Exception):
            raise value
        return value
