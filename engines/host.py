"""Facts about this host that decide what fits: processors, their features, threads."""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING

from trtc.engines.cgroup import ROOT, cgroup_cpu_quota
from trtc.engines.value import Value

if TYPE_CHECKING:
    from pathlib import Path

CPU_FEATURES = (
    *("avx", "avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512_vnni", "avx512_bf16"),
    *("avx_vnni", "amx_tile", "amx_int8", "amx_bf16", "asimd", "asimddp", "i8mm", "bf16", "sve"),
)
"""Processor features that libraries choose their kernels by, as ``/proc/cpuinfo`` spells them."""


class Host(Value, frozen=True):
    """What an engine may demand of a machine.

    Attributes:
        system: such as ``Linux``.
        architecture: such as ``x86_64``.
        cpu_features: features that kernels are chosen by, in a fixed order.
        cpu: the processor's name.
        threads: processors that this process may really use.
    """

    system: str
    architecture: str
    cpu_features: tuple[str, ...]
    cpu: str
    threads: int


class ThreadLimits(Value, frozen=True):
    """What bounds the threads of this process.

    Attributes:
        machine: processors of the machine.
        affinity: processors that the affinity mask (and a cpuset) allows; None where the system has no masks.
        quota: processors' worth of time that the cgroup allows; None without a limit.
    """

    machine: int
    affinity: int | None
    quota: float | None

    @property
    def usable(self) -> int:
        """Threads worth starting: the least limit, at least one. A quota of 1.5 gives one: two would be throttled."""
        limits = [self.machine, self.affinity, None if self.quota is None else int(self.quota)]
        return max(1, min(limit for limit in limits if limit is not None))

    @property
    def reason(self) -> str:
        """Which limit decides, in words."""
        if self.quota is not None and int(self.quota) < min(self.machine, self.affinity or self.machine):
            return f"cgroup quota of {self.quota:g} processors"
        if self.affinity is not None and self.affinity < self.machine:
            return "affinity mask"
        return "all processors of the machine"


@cache
def this_host() -> Host:
    """Read the facts of this machine once for each process."""
    info = cpu_info()
    system = os.uname()
    flags = frozenset((info.get("flags") or info.get("Features") or "").split())
    return Host(
        system=system.sysname,
        architecture=system.machine,
        cpu_features=tuple(f for f in CPU_FEATURES if f in flags),
        cpu=info.get("model name", "unknown"),
        threads=usable_threads(),
    )


def thread_limits(root: Path = ROOT) -> ThreadLimits:
    """Read what bounds the threads of this process.

    Args:
        root: folder that holds ``proc`` and ``sys``, for the cgroup; the affinity mask is always this process's.
    """
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
    return ThreadLimits(os.cpu_count() or affinity or 1, affinity, cgroup_cpu_quota(root))


def usable_threads(root: Path = ROOT) -> int:
    """Count the processors that this process may use: its affinity mask and its cgroup quota, whichever is less."""
    return thread_limits(root).usable


def cpu_info(root: Path = ROOT) -> dict[str, str]:
    """Read the first processor's entry of ``proc/cpuinfo`` under ``root``; empty where there is none."""
    try:
        text = (root / "proc/cpuinfo").read_text(errors="replace").split("\n\n", 1)[0]
    except OSError:
        return {}
    return {k.strip(): v.strip() for k, _, v in (line.partition(":") for line in text.splitlines())}
