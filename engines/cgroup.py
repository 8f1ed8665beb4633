"""Limits that control groups (version 1 and 2) set on this process: processors and memory.

A limit binds everything below it, so the least one on the way from the process up to the root counts. Inside a
container the way may be visible in part only; what is visible is used.
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath

ROOT = Path("/")
_MOUNT = "sys/fs/cgroup"
_OWN = "proc/self/cgroup"
_UNLIMITED_BYTES = 2**60
"""Version 1 writes "no limit" as the largest multiple of a page; nothing this large is a limit."""


def cgroup_cpu_quota(root: Path = ROOT) -> float | None:
    """Return how many processors' worth of time this process may use, or None without a limit.

    Args:
        root: folder that holds ``proc`` and ``sys``.
    """
    quotas = [_cpus(folder) for folder in _folders(root, "cpu")]
    return min((quota for quota in quotas if quota is not None), default=None)


def cgroup_memory_limit(root: Path = ROOT) -> int | None:
    """Return the bytes of memory that this process's group may use in all, or None without a limit.

    Args:
        root: folder that holds ``proc`` and ``sys``.
    """
    limits = [
        _number(folder / name)
        for folder in _folders(root, "memory")
        for name in ("memory.max", "memory.limit_in_bytes")
    ]
    return min((limit for limit in limits if limit is not None and limit < _UNLIMITED_BYTES), default=None)


def _cpus(folder: Path) -> float | None:
    """Quota over period of one group: ``cpu.max`` (version 2) or ``cpu.cfs_*_us`` (version 1)."""
    words = _text(folder / "cpu.max").split()
    if len(words) == 2 and words[0].isdecimal() and words[1].isdecimal():  # noqa: PLR2004 (quota and period)
        quota_us, period_us = int(words[0]), int(words[1])
    else:
        quota_us, period_us = (_number(folder / f"cpu.cfs_{name}_us") or 0 for name in ("quota", "period"))
    return quota_us / period_us if quota_us > 0 and period_us > 0 else None


def _folders(root: Path, controller: str) -> list[Path]:
    """Folders that may hold a limit: every group on the way from the mount down to the process's own."""
    mount = root / _MOUNT
    ways: list[tuple[Path, str]] = [(mount, "/"), (mount / "unified", "/"), (mount / controller, "/")]
    for line in _text(root / _OWN).splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number == "0" and not controllers:
            ways += [(mount, path), (mount / "unified", path)]
        elif controller in controllers.split(","):
            ways += [(mount / controller, path), (mount / controllers, path)]
    folders: dict[Path, None] = {}
    for base, path in ways:
        parts = PurePosixPath(path).parts[1:]
        if ".." in parts:  # the process was moved out of its namespace: the path leads nowhere that is visible
            parts = ()
        folders |= dict.fromkeys(base.joinpath(*parts[:depth]) for depth in range(len(parts) + 1))
    return list(folders)


def _number(file: Path) -> int | None:
    text = _text(file).strip()
    return int(text) if text.isdecimal() else None


def _text(file: Path) -> str:
    """Read a file; empty where it cannot be read."""
    try:
        return file.read_text(errors="replace")
    except OSError:
        return ""
