"""Facts about this host's memory: what there is, what the cgroup allows, huge pages, NUMA nodes.

Everything is read from ``proc`` and ``sys`` under a root folder; nothing is changed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trtc.engines.cgroup import ROOT, cgroup_memory_limit

if TYPE_CHECKING:
    from pathlib import Path

_KIB = 1024


@dataclass(frozen=True, slots=True)
class HostMemory:
    """Memory of the host, in bytes.

    Attributes:
        total_bytes: of the machine.
        available_bytes: that new work can take without swapping, as the kernel estimates it.
        limit_bytes: that this process's cgroup may use in all; None without a limit.
    """

    total_bytes: int
    available_bytes: int
    limit_bytes: int | None


@dataclass(frozen=True, slots=True)
class HugePagePool:
    """Reserved huge pages (hugetlb) of one size: bytes of a page, and how many there are and are free."""

    page_bytes: int
    total: int
    free: int


@dataclass(frozen=True, slots=True)
class HugePages:
    """What the system offers in huge pages.

    Attributes:
        transparent: ``always``, ``madvise`` or ``never``; None where the kernel has none or hides them.
        pools: reserved pages, the smallest size first.
    """

    transparent: str | None
    pools: tuple[HugePagePool, ...]


@dataclass(frozen=True, slots=True)
class NumaNode:
    """One NUMA node: its number, its processors, and its memory in bytes (0 for a node without memory)."""

    index: int
    cpus: tuple[int, ...]
    memory_bytes: int


def host_memory(root: Path = ROOT) -> HostMemory:
    """Read how much memory there is.

    Raises:
        OSError: ``proc/meminfo`` cannot be read.
        KeyError, ValueError: it does not have the lines that Linux writes.
    """
    amounts = _amounts((root / "proc/meminfo").read_text())
    return HostMemory(amounts["MemTotal"], amounts["MemAvailable"], cgroup_memory_limit(root))


def huge_pages(root: Path = ROOT) -> HugePages:
    """Read what the system offers in huge pages; empty where it offers none.

    Raises:
        OSError, ValueError: a file that is there cannot be read, or holds something else.
    """
    folder = root / "sys/kernel/mm"
    switch = folder / "transparent_hugepage/enabled"
    words = switch.read_text().split() if switch.exists() else []
    chosen = [word.strip("[]") for word in words if word.startswith("[")]
    pools = [
        HugePagePool(
            int(pool.name.removeprefix("hugepages-").removesuffix("kB")) * _KIB,
            int((pool / "nr_hugepages").read_text()),
            int((pool / "free_hugepages").read_text()),
        )
        for pool in folder.glob("hugepages/hugepages-*kB")
    ]
    return HugePages(chosen[0] if chosen else None, tuple(sorted(pools, key=lambda pool: pool.page_bytes)))


def numa_nodes(root: Path = ROOT) -> tuple[NumaNode, ...]:
    """Read the NUMA nodes in order of their numbers; empty where the kernel knows none.

    Raises:
        OSError, ValueError: a file that is there cannot be read, or holds something else.
    """
    nodes = [
        NumaNode(int(folder.name[len("node") :]), parse_cpu_list((folder / "cpulist").read_text()), _node_bytes(folder))
        for folder in (root / "sys/devices/system/node").glob("node[0-9]*")
    ]
    return tuple(sorted(nodes, key=lambda node: node.index))


def parse_cpu_list(text: str) -> tuple[int, ...]:
    """Read the kernel's list format, such as ``0-3,8,10-11``.

    Raises:
        ValueError: for anything else.
    """
    cpus: list[int] = []
    for part in text.strip().split(",") if text.strip() else []:
        first, dash, last = part.partition("-")
        cpus += range(int(first), int(last if dash else first) + 1)
    return tuple(cpus)


def _node_bytes(folder: Path) -> int:
    lines = (line.partition("MemTotal:")[2].split() for line in (folder / "meminfo").read_text().splitlines())
    return next((int(words[0]) * _KIB for words in lines if words), 0)


def _amounts(meminfo: str) -> dict[str, int]:
    """Bytes by name; lines that are not amounts in kB are left out."""
    found = {}
    for line in meminfo.splitlines():
        name, _, rest = line.partition(":")
        words = rest.split()
        if len(words) == 2 and words[1] == "kB":  # noqa: PLR2004 (number and unit)
            found[name] = int(words[0]) * _KIB
    return found
