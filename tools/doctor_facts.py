"""What ``trtc doctor`` finds out about the machine; each function is one section of its report."""

from __future__ import annotations

import dataclasses
import os
import platform
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from trtc.engines.cachedir import CACHE_VARIABLE, cache_dir, cache_fault
from trtc.engines.cgroup import ROOT
from trtc.engines.host import this_host, thread_limits
from trtc.engines.host_memory import host_memory, huge_pages, numa_nodes
from trtc.tools.output import counted

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Section:
    """One part of the report.

    Attributes:
        facts: for ``--json``.
        lines: label and text, for people.
        hints: what to change, one sentence each.
    """

    facts: dict[str, Any]
    lines: tuple[tuple[str, str], ...]
    hints: tuple[str, ...] = ()


def size_text(size_bytes: int) -> str:
    """Write an amount of memory for people."""
    amount, unit = float(size_bytes), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if amount < 1024:  # noqa: PLR2004 (the step between the units)
            break
        amount, unit = amount / 1024, larger
    return f"{size_bytes} B" if unit == "B" else f"{amount:.1f} {unit}"


def host_section(root: Path = ROOT) -> Section:
    """Processor, the features that matter, and how many threads may run and why."""
    host, limits = this_host(), thread_limits(root)
    threads = {"usable": limits.usable, "reason": limits.reason, **msgspec.structs.asdict(limits)}
    kernel = platform.release()
    of_machine = "" if limits.usable == limits.machine else f"; the machine has {limits.machine}"
    return Section(
        {
            "system": host.system,
            "kernel": kernel,
            "architecture": host.architecture,
            "cpu": host.cpu,
            "cpu_features": list(host.cpu_features),
            "threads": threads,
        },
        (
            ("system", f"{host.system} {kernel}, {host.architecture}"),
            ("cpu", host.cpu),
            ("features", " ".join(host.cpu_features) or "none of those that libraries look for"),
            ("threads", f"{limits.usable} ({limits.reason}{of_machine})"),
        ),
    )


def memory_section(root: Path = ROOT) -> Section:
    """Memory of the machine and the cgroup's limit on it."""
    memory = host_memory(root)
    limit = "none" if memory.limit_bytes is None else size_text(memory.limit_bytes)
    lines = (
        ("total", size_text(memory.total_bytes)),
        ("available", size_text(memory.available_bytes)),
        ("cgroup limit", limit),
    )
    return Section(dataclasses.asdict(memory), lines)


def huge_page_section(root: Path = ROOT) -> Section:
    """Transparent and reserved huge pages."""
    pages = huge_pages(root)
    lines = [("transparent", pages.transparent or "not offered by this kernel, or hidden by the container")]
    lines += [
        (f"reserved {size_text(pool.page_bytes)}", f"{pool.total} pages, {pool.free} free") for pool in pages.pools
    ]
    hints = []
    if pages.transparent == "never":
        hints.append(
            "transparent huge pages are off: as root on the host (not in the container), "
            "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled"
        )
    return Section(dataclasses.asdict(pages), tuple(lines), tuple(hints))


def numa_section(root: Path = ROOT) -> Section:
    """NUMA nodes, and whether the allowed processors lie on more than one."""
    nodes = numa_nodes(root)
    allowed = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()
    lines = [(f"node {n.index}", f"{len(n.cpus)} processors, {size_text(n.memory_bytes)}") for n in nodes]
    spanned = [node.index for node in nodes if allowed.intersection(node.cpus)]
    hints = []
    if len(spanned) > 1:
        hints.append(
            f"the allowed processors lie on NUMA nodes {', '.join(map(str, spanned))}: one process a node is faster, "
            f"such as numactl --cpunodebind={spanned[0]} --membind={spanned[0]} trtc ..."
        )
    facts = {"nodes": [dataclasses.asdict(node) for node in nodes]}
    return Section(facts, tuple(lines) or (("nodes", "the kernel knows none"),), tuple(hints))


def python_section() -> Section:
    """The interpreter that runs this command."""
    name, version = platform.python_implementation(), platform.python_version()
    facts = {"version": version, "implementation": name, "executable": sys.executable}
    return Section(facts, (("version", f"{name} {version}"), ("executable", sys.executable)))


def cache_section(environ: Mapping[str, str] = os.environ) -> Section:
    """The cache folder: where, how large, may it be written, may it be trusted.

    Raises:
        OSError: the folder is there and cannot be looked at.
    """
    path = cache_dir(environ)
    exists = os.path.lexists(path)
    fault = cache_fault(path) if exists else ""
    nearest = next((folder for folder in (path, *path.parents) if folder.exists()), path)
    writable = nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK)
    files = [entry.lstat() for entry in path.rglob("*") if not entry.is_dir()] if exists else []
    size_bytes = sum(file.st_size for file in files)
    hints = []
    if fault:
        hints.append(f"the cache {path} {fault}, so it is not used; or set {CACHE_VARIABLE} to a folder of your own")
    elif not writable:
        hints.append(f"the cache {path} cannot be written: set {CACHE_VARIABLE} to a folder that can")
    facts = {
        "path": str(path),
        "exists": exists,
        "writable": writable,
        "private": not fault if exists else None,
        "files": len(files),
        "size_bytes": size_bytes,
    }
    state = fault or ("writable" if writable else "not writable")
    lines = (
        ("path", str(path)),
        ("state", state if exists else f"{state}, not there yet"),
        ("size", f"{counted(len(files), 'file')}, {size_text(size_bytes)}"),
    )
    return Section(facts, lines, tuple(hints))
