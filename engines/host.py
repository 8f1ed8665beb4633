"""Facts about this host that decide what fits: processors, their features, threads."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_RELEVANT = ("avx", "avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512_vnni", "avx512_bf16")
_RELEVANT_MORE = ("avx_vnni", "amx_tile", "amx_int8", "amx_bf16", "asimd", "asimddp", "i8mm", "bf16", "sve")


@dataclass(frozen=True, slots=True)
class Host:
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


@cache
def this_host() -> Host:
    """Read the facts of this machine once for each process."""
    info = _cpuinfo()
    flags = frozenset((info.get("flags") or info.get("Features") or "").split())
    return Host(
        system=platform.system(),
        architecture=platform.machine(),
        cpu_features=tuple(f for f in (*_RELEVANT, *_RELEVANT_MORE) if f in flags),
        cpu=info.get("model name", platform.processor() or "unknown"),
        threads=usable_threads(),
    )


def usable_threads() -> int:
    """Count the processors that this process may use: its affinity mask and its cgroup quota, whichever is less."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
    quota = cgroup_cpu_quota()
    return max(1, min(allowed, int(quota) if quota is not None and quota >= 1 else allowed if quota is None else 1))


def cgroup_cpu_quota(root: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")) -> float | None:
    """Return the processors that the cgroup allows (v2 ``cpu.max``, v1 quota over period), or None without a limit."""
    for folder in _cgroup_folders(root, own):
        try:
            quota, period = (folder / "cpu.max").read_text().split()
            if quota != "max":
                return int(quota) / int(period)
        except (OSError, ValueError):
            pass
        try:
            micros = int((folder / "cpu.cfs_quota_us").read_text())
            if micros > 0:
                return micros / int((folder / "cpu.cfs_period_us").read_text())
        except (OSError, ValueError):
            pass
    return None


def _cgroup_folders(root: Path, own: Path) -> list[Path]:
    """Folders that may hold a limit for this process, the nearest first."""
    folders = []
    try:
        for line in own.read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            base = root / "cpu" if "cpu" in controllers.split(",") else root
            here = base / path.lstrip("/")
            folders += [here, *(p for p in here.parents if p.is_relative_to(base))]
    except (OSError, ValueError):
        pass
    return [*folders, root, root / "cpu"]


def _cpuinfo() -> dict[str, str]:
    """Read the first processor's entry of ``/proc/cpuinfo``; empty where there is none."""
    try:
        text = Path("/proc/cpuinfo").read_text(errors="replace").split("\n\n", 1)[0]
    except OSError:
        return {}
    return {k.strip(): v.strip() for k, _, v in (line.partition(":") for line in text.splitlines())}
