"""What is wrong with a GPU, in one sentence each, with what to change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtc.tools.doctor_facts import size_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trtc.engines.nvml import GpuHealth

LOW_MEMORY = 0.1
"""A GPU with less than this part of its memory free is reported."""

_SLOWED = {
    "THROTTLE_REASON_HW_SLOWDOWN": "is slowed down by its hardware: look at its temperature and its power supply",
    "THROTTLE_REASON_HW_THERMAL_SLOWDOWN": "is too hot and slowed down by its hardware: look at fans and air flow",
    "EVENT_REASON_SW_THERMAL_SLOWDOWN": "is too hot and slowed down by its driver: look at fans and air flow",
    "THROTTLE_REASON_HW_POWER_BRAKE_SLOWDOWN": "is slowed down by the machine's power brake: look at its power supply",
    "EVENT_REASON_RELIABILITY": "is slowed down by its voltage limit: reset its clocks with nvidia-smi -rgc",
}
"""Clock reasons that are faults, by their names in NVML. A power cap under load, or an idle GPU, is none."""


def problems(gpu: GpuHealth) -> Iterator[str]:
    """Say what is wrong with one GPU.

    Args:
        gpu: as NVML told; what it did not tell is no problem.
    """
    name = f"GPU {gpu.index}" + (f" ({gpu.name})" if gpu.name else "")
    if gpu.error:
        yield f"{name} cannot be asked ({gpu.error}): look at the kernel's messages for Xid, then reset it or reboot"
        return
    yield from (f"{name} {text}" for text in (*_memory(gpu), *_state(gpu)))


def _memory(gpu: GpuHealth) -> Iterator[str]:
    reset = f"reset it when it is idle: nvidia-smi --gpu-reset -i {gpu.index}"
    if gpu.rows_failed:
        yield "has memory that could not be repaired: take it out of service"
    if gpu.rows_pending:
        yield f"has memory that waits to be repaired; {reset}"
    if gpu.uncorrected_errors:
        errors = "error" if gpu.uncorrected_errors == 1 else "errors"
        yield f"had {gpu.uncorrected_errors} memory {errors} beyond correction since the driver was loaded; {reset}"
    if gpu.ecc is not None and gpu.ecc != gpu.ecc_pending:
        change = "correct" if gpu.ecc_pending else "no longer correct"
        yield f"will {change} memory errors after its next reset; {reset}"
    elif gpu.ecc is False:
        yield f"does not correct memory errors: as root, nvidia-smi -e 1 -i {gpu.index}, then reset it"
    if gpu.total_bytes and gpu.free_bytes is not None and gpu.free_bytes < gpu.total_bytes * LOW_MEMORY:
        free, total = size_text(gpu.free_bytes), size_text(gpu.total_bytes)
        yield f"has {free} of {total} free: nvidia-smi names the processes that hold the rest"


def _state(gpu: GpuHealth) -> Iterator[str]:
    if gpu.recovery not in (None, "NONE"):
        yield (
            f"had an error (an Xid in the kernel's messages) after which its driver asks for {gpu.recovery}: "
            "do that before anything runs on it"
        )
    yield from (_SLOWED[reason] for reason in gpu.slowed_by or () if reason in _SLOWED)
    if gpu.compute_mode == "PROHIBITED":
        yield f"refuses every program (compute mode PROHIBITED): as root, nvidia-smi -c 0 -i {gpu.index}"
    if gpu.mig and not gpu.mig_uuids:
        yield (
            "is in MIG mode and has no instance that could be used: make one (nvidia-smi mig -cgi ... -C), "
            f"or leave the mode: nvidia-smi -mig 0 -i {gpu.index}"
        )
    if gpu.persistence is False:
        yield (
            "is started anew for every program that finds it unused (persistence is off): "
            f"as root, nvidia-smi -pm 1 -i {gpu.index}"
        )
