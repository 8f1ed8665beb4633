"""``trtc doctor``: what this machine offers, what is missing, and what to change.

``--json`` prints one object; ``schema`` is ``trtc.doctor/1``. Fields are added within a version, never changed::

    schema      "trtc.doctor/1"
    trtc        version of trtc
    ok          true when a backend that computes can run here
    hints       list of what to change, one sentence each
    host        system, kernel, architecture, cpu, cpu_features [...],
                threads {usable, reason, machine, affinity | null, quota | null}
    memory      total_bytes, available_bytes, limit_bytes | null (of the cgroup)
    huge_pages  transparent "always" | "madvise" | "never" | null, pools [{page_bytes, total, free}]
    numa        nodes [{index, cpus [...], memory_bytes}]
    gpus        driver | null, visible | null (CUDA_VISIBLE_DEVICES),
                gpus [{index | null, name, compute_capability | null, memory_bytes | null, uuid | null}] of the machine;
                where NVML tells also {mig_uuids [...], health {free_bytes, ecc, ecc_pending, uncorrected_errors,
                rows_pending, rows_failed, recovery, slowed_by [...], persistence, mig, compute_mode, error}}: null for
                what is not told,
                cuda {gpus [{index, uuid, name, compute_capability, memory_bytes, driver_version, cuda_version, mig}]
                that CUDA shows to this process, reason (why none), faulty (a driver that cannot be used)},
                libraries {name: version} of CUDA and of what runs on it
    python      version, implementation, executable
    libraries   {name: version | null} of what trtc and its compiler import
    backends    backends [{name, target, computes, installed, usable, version | null, detail, install}]
    cache       path, exists, writable, private | null (a folder of this user that nobody else may write;
                null before it exists), files, size_bytes

A part that could not be found out is ``{"unknown": reason}`` instead.

Exit codes: 0 when a backend that computes can run here, 4 when none can.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

import click
import msgspec
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table
from rich.text import Text

from trtc.engines.registry import BACKENDS
from trtc.profiles import HostError
from trtc.tools.doctor_facts import (
    Section,
    cache_section,
    host_section,
    huge_page_section,
    memory_section,
    numa_section,
    python_section,
)
from trtc.tools.doctor_gpu import gpu_section
from trtc.tools.doctor_libraries import backend_section, library_section

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SCHEMA = "trtc.doctor/1"

PROBES: dict[str, Callable[[], Section]] = {
    "host": host_section,
    "memory": memory_section,
    "huge_pages": huge_page_section,
    "numa": numa_section,
    "gpus": gpu_section,
    "python": python_section,
    "libraries": library_section,
    "backends": backend_section,
    "cache": cache_section,
}


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object (schema trtc.doctor/1).")
def doctor(*, as_json: bool) -> None:
    """Show what this machine offers, what is missing, and what to change."""
    sections = {name: examine(probe) for name, probe in PROBES.items()}
    ok = any_backend_runs(sections["backends"])
    hints = [hint for section in sections.values() for hint in section.hints]
    if as_json:
        facts = {name: section.facts for name, section in sections.items()}
        report = {"schema": SCHEMA, "trtc": own_version(), "ok": ok, "hints": hints, **facts}
        click.echo(msgspec.json.format(msgspec.json.encode(report), indent=2))
    else:
        console = Console()
        show = show_tables if console.is_terminal else show_lines
        show(console, sections, hints)
    if not ok:
        commands = " or ".join(sorted({backend.install for backend in BACKENDS if backend.computes}))
        raise HostError(f"no backend can run here; see 'backends' above, then: {commands}")


def examine(probe: Callable[[], Section]) -> Section:
    """Run one probe; whatever goes wrong in it becomes a section that says why it is unknown."""
    try:
        return probe()
    except Exception as error:  # noqa: BLE001 (a doctor that stops at the first odd machine is of no use)
        reason = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        return Section({"unknown": reason}, (("unknown", reason),))


def any_backend_runs(backends: Section) -> bool:
    """Tell whether a backend that computes was found usable; False where the backends are unknown."""
    found = backends.facts.get("backends")
    return isinstance(found, list) and any(entry["usable"] and entry["computes"] for entry in found)


def own_version() -> str:
    """Return the version of the installed trtc."""
    try:
        return version("trtc")
    except PackageNotFoundError:
        return "unknown: trtc is imported from a folder, not installed"


def show_tables(console: Console, sections: dict[str, Section], hints: Sequence[str]) -> None:
    """Print one table with a part for each section, for people at a terminal."""
    table = Table(show_header=False, box=SIMPLE)
    for name, section in sections.items():
        titles = [name.replace("_", " "), *[""] * (len(section.lines) - 1)]
        for title, (label, text) in zip(titles, section.lines, strict=True):
            table.add_row(Text(title, style="bold"), Text(label), Text(text))
        table.add_section()
    console.print(table)
    for hint in hints:
        console.print(Text.assemble(("to do: ", "bold yellow"), hint))


def show_lines(console: Console, sections: dict[str, Section], hints: Sequence[str]) -> None:
    """Print one line a fact, for logs and pipes; lines are never wrapped."""
    for name, section in sections.items():
        for label, text in section.lines:
            console.print(Text(f"{name}: {label}: {text}"), soft_wrap=True)
    for hint in hints:
        console.print(Text(f"to do: {hint}"), soft_wrap=True)
