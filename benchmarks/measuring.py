"""What all benchmarks share: the machine, timing side by side, tables, and one JSON file.

Ratios are taken between runs that alternate in one process, so that whatever the machine is doing meets both sides.
Each figure is a median with the spread of the middle half; nothing here is asserted in tests.
"""

from __future__ import annotations

import json
import platform
import statistics
import time
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from trtc.engines.host import this_host

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the report.

    Attributes:
        name: what was measured.
        ours, peer: with units, as text.
        ratio: ours over peer, or the figure itself where there is no peer.
        bar: what it must not exceed; None for information.
        spread: of the ratio, low and high quartile.
        note: count, warm-up, percentiles.
    """

    name: str
    ours: str
    peer: str
    ratio: float
    bar: float | None = None
    spread: tuple[float, float] | None = None
    note: str = ""

    @property
    def met(self) -> str:
        """Whether the bar is met."""
        return "" if self.bar is None else ("met" if self.ratio <= self.bar else "NOT MET")


@dataclass(slots=True)
class Report:
    """Collects figures, prints them, writes them."""

    figures: list[Figure] = field(default_factory=list)

    def add(self, figure: Figure) -> None:
        """Note a figure and say it at once: a benchmark takes minutes."""
        self.figures.append(figure)
        Console(highlight=False, markup=False, stderr=True).print(f"{figure.name}: {figure.ratio:.3f} {figure.met}")

    def show(self) -> None:
        """Print the machine and the table."""
        console = Console(highlight=False, markup=False)
        if not console.is_terminal:
            console = Console(highlight=False, markup=False, width=200)
        console.print(" ".join(f"{k}={v}" for k, v in machine().items()))
        table = Table(box=SIMPLE_HEAD, pad_edge=False)
        for name in ("figure", "trtc", "peer", "ratio", "middle half", "bar", "", "how"):
            table.add_column(name, overflow="fold", justify="right" if name in ("ratio", "bar") else "left")
        for f in self.figures:
            spread = f"{f.spread[0]:.3f}..{f.spread[1]:.3f}" if f.spread else ""
            table.add_row(
                f.name, f.ours, f.peer, f"{f.ratio:.3f}", spread, "" if f.bar is None else f"{f.bar:g}", f.met, f.note
            )
        console.print(table)

    def write(self, path: Path) -> None:
        """Write everything as JSON."""
        path.parent.mkdir(parents=True, exist_ok=True)
        data = {"machine": machine(), "figures": [asdict(f) | {"met": f.met} for f in self.figures]}
        path.write_text(json.dumps(data, indent=2) + "\n")


def machine() -> dict[str, Any]:
    """Facts that a figure means nothing without."""
    host = this_host()
    return {
        "cpu": host.cpu.replace(" ", "_"),
        "threads": host.threads,
        "system": platform.release(),
        "python": platform.python_version(),
        **{name: version(name) for name in ("trtc", "onnxruntime", "numpy")},
    }


def time_s(call: Callable[[], object], count: int) -> float:
    """Seconds of one call, over a loop of ``count``."""
    start = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - start) / count


@dataclass(frozen=True, slots=True)
class Pair:
    """Two ways to do one thing, timed in turns.

    Attributes:
        ours_s, peer_s: median seconds of one call.
        ratio: median over the rounds of ours over peer.
        spread: quartiles of that ratio.
    """

    ours_s: float
    peer_s: float
    ratio: float
    spread: tuple[float, float]


def alternate(
    ours: Callable[[], object], peer: Callable[[], object], *, count: int, rounds: int, rest_s: float = 0.0
) -> Pair:
    """Time two calls in turns; who goes first changes with each round. One round is thrown away.

    Args:
        ours: one side.
        peer: the other side.
        count: calls of one turn.
        rounds: turns of each side that count.
        rest_s: pause before each turn, in which threads of the other side stop waiting actively.
    """
    a: list[float] = []
    b: list[float] = []
    for i in range(rounds + 1):
        for which in ("ours", "peer") if i % 2 else ("peer", "ours"):
            time.sleep(rest_s)
            taken = time_s(ours if which == "ours" else peer, count)
            if i:
                (a if which == "ours" else b).append(taken)
    ratios = sorted(x / y for x, y in zip(a, b, strict=True))
    return Pair(statistics.median(a), statistics.median(b), statistics.median(ratios), quartiles(ratios))


def quartiles(values: Sequence[float]) -> tuple[float, float]:
    """Low and high quartile."""
    low, _, high = statistics.quantiles(values, n=4)
    return low, high


def us(seconds: float) -> str:
    """Microseconds, or milliseconds from one on."""
    return f"{seconds * 1e6:.2f} us" if seconds < 1e-3 else f"{seconds * 1e3:.2f} ms"


def status_kib(name: str) -> int:
    """A memory figure of this process, in KiB, such as ``VmRSS``."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1])
    raise OSError(f"{name} is not in /proc/self/status")
