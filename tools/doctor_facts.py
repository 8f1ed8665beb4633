"""What ``trtc doctor`` finds out about the machine; each function is one section of its report."""

from __future__ import annotations

import dataclasses
import os
import platform
import shutil
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trtc.engines.cachedir import CACHE_VARIABLE, cache_dir, cache_fault
from trtc.engines.cgroup import ROOT
from trtc.engines.host import this_host, thread_limits
from trtc.engines.host_memory import host_memory, huge_pages, numa_nodes

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_SMI_FIELDS = ("index", "name", "compute_cap", "memory.total", "driver_version", "uuid")
_SMI_TIMEOUT_S = 30.0
_MIB = 2**20


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
    threads = {"usable": limits.usable, "reason": limits.reason, **dataclasses.asdict(limits)}
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


def gpu_section(root: Path = ROOT, environ: Mapping[str, str] = os.environ) -> Section:
    """NVIDIA GPUs and driver, from ``nvidia-smi`` where it is installed; none is fine.

    Raises:
        OSError, ValueError, subprocess.SubprocessError: ``nvidia-smi`` is there and fails, hangs or writes what it
            does not document.
    """
    smi = shutil.which("nvidia-smi", path=environ.get("PATH"))
    hints: tuple[str, ...] = ()
    if smi:
        driver, gpus = parse_smi(_run_smi(smi))
    else:
        driver, gpus = _driver_files(root)
        if driver:
            hints = ("the NVIDIA driver is loaded but nvidia-smi is missing: start the container with --gpus all",)
    visible = environ.get("CUDA_VISIBLE_DEVICES")
    lines = [("driver", driver or "none")] if gpus or driver else [("gpus", "none")]
    lines += [(f"gpu {gpu['index']}", _gpu_text(gpu)) for gpu in gpus]
    lines += [("CUDA_VISIBLE_DEVICES", repr(visible))] if visible is not None else []
    return Section({"driver": driver, "visible": visible, "gpus": gpus}, tuple(lines), hints)


def parse_smi(text: str) -> tuple[str | None, list[dict[str, Any]]]:
    """Read what ``nvidia-smi --query-gpu`` wrote as CSV: the driver's version and the GPUs.

    Raises:
        ValueError: a line does not have the fields that were asked for.
    """
    rows = [[word.strip() for word in line.split(",")] for line in text.splitlines() if line.strip()]
    rows = [[] if row == ["No devices were found"] else row for row in rows]
    gpus, driver = [], None
    for row in filter(None, rows):
        if len(row) != len(_SMI_FIELDS):
            raise ValueError(f"nvidia-smi wrote {len(row)} fields, {len(_SMI_FIELDS)} were asked for: {', '.join(row)}")
        index, name, capability, memory_mib, driver, uuid = (None if word.startswith("[") else word for word in row)
        memory_bytes = int(memory_mib) * _MIB if memory_mib else None
        number = int(index) if index else None
        gpus.append(
            {
                "index": number,
                "name": name,
                "compute_capability": capability,
                "memory_bytes": memory_bytes,
                "uuid": uuid,
            }
        )
    return driver, gpus


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
        ("size", f"{len(files)} files, {size_text(size_bytes)}"),
    )
    return Section(facts, lines, tuple(hints))


def _run_smi(smi: str) -> str:
    """Ask ``nvidia-smi`` for its GPUs; its own words are the error when it fails."""
    command = [smi, f"--query-gpu={','.join(_SMI_FIELDS)}", "--format=csv,noheader,nounits"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_SMI_TIMEOUT_S, check=False)  # noqa: S603 (fixed words)
    words = (done.stdout + done.stderr).strip()
    if done.returncode and "No devices were found" not in words:
        raise OSError(f"nvidia-smi exited {done.returncode}: {' '.join(words.split()) or 'without a word'}")
    return done.stdout


def _driver_files(root: Path) -> tuple[str | None, list[dict[str, Any]]]:
    """What the driver shows in ``proc`` where ``nvidia-smi`` is missing."""
    version = root / "proc/driver/nvidia/version"
    if not version.exists():
        return None, []
    gpus = []
    for index, file in enumerate(sorted((root / "proc/driver/nvidia/gpus").glob("*/information"))):
        pairs = (line.partition(":") for line in file.read_text().splitlines())
        found = {name.strip(): value.strip() for name, _, value in pairs}
        name = found.get("Model", "unknown model")
        more = {"compute_capability": None, "memory_bytes": None, "uuid": found.get("GPU UUID")}
        gpus.append({"index": index, "name": name, **more})
    return version.read_text().splitlines()[0], gpus


def _gpu_text(gpu: dict[str, Any]) -> str:
    capability = gpu["compute_capability"]
    memory = gpu["memory_bytes"]
    parts = [str(gpu["name"]), f"compute capability {capability}" if capability else "", size_text(memory or 0)]
    return ", ".join(part for part in (parts if memory else parts[:2]) if part)
