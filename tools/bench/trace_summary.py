"""Where time and allocations went, from a trace: by part of a call, by node, and by how long tensors lived."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from trtc.runtime.trace_events import CALLS, ENQUEUE, PHASES, WAIT
from trtc.tools.bench.lifetimes import lifetimes_of
from trtc.tools.bench.node_work import node_flop
from trtc.tools.durations import seconds_text
from trtc.tools.output import print_line, print_note, print_table, size_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trtc.engines.profile import NodeRun
    from trtc.runtime.trace import Trace

NODES_SHOWN = 15


@dataclass(frozen=True, slots=True)
class NodeTotal:
    """One node over all traced calls.

    Attributes:
        name, op: of the node.
        runs: how often it ran.
        seconds: in all.
        share: of the time of all nodes.
        flop: of all its runs.
        written_bytes: its outputs, of one run at the most.
    """

    name: str
    op: str
    runs: int
    seconds: float
    share: float
    flop: int
    written_bytes: int


def nodes_by_time(nodes: Sequence[NodeRun]) -> list[NodeTotal]:
    """Add up the runs of each node; the longest first."""
    found: dict[tuple[str, str], list[NodeRun]] = {}
    for node in nodes:
        found.setdefault((node.name, node.op), []).append(node)
    whole = sum(node.duration_ns for node in nodes) or 1
    totals = []
    for (name, op), runs in found.items():
        spent = sum(run.duration_ns for run in runs)
        written = max(run.written_bytes for run in runs)
        flop = sum(node_flop(run) for run in runs)
        totals.append(NodeTotal(name, op, len(runs), spent / 1e9, spent / whole, flop, written))
    return sorted(totals, key=lambda total: -total.seconds)


def show_trace(trace: Trace, bundle: str) -> None:
    """Print the summary."""
    taken: dict[str, list[int]] = {}
    for span in trace.spans:
        taken.setdefault(span.name, []).append(span.end_ns - span.start_ns)
    whole = sum(spent for name in CALLS for spent in taken.get(name, ())) or 1
    print_line()
    print_table(
        "traced calls",
        ("part", "median", "share"),
        [
            (name, seconds_text(median(taken[name]) / 1e9), f"{sum(taken[name]) / whole:.1%}")
            for name in (*PHASES, ENQUEUE, WAIT)
            if name in taken
        ],
    )
    if not trace.nodes:
        print_note("the backend of this engine has no profiler, so the trace ends at the engine's door")
        return
    totals = nodes_by_time(trace.nodes)
    rows = [
        (t.name or "-", t.op, t.runs, seconds_text(t.seconds / t.runs), f"{t.share:.1%}", size_text(t.written_bytes))
        for t in totals[:NODES_SHOWN]
    ]
    print_line()
    print_table(f"nodes by time ({len(totals)} in all)", ("node", "op", "runs", "one run", "share", "writes"), rows)
    held = max(node.held_bytes for node in trace.nodes)
    if held >= 0:
        print_line(f"inside the library at most {size_text(held)} were held at once")
    show_lifetimes(trace, bundle)


def show_lifetimes(trace: Trace, bundle: str) -> None:
    """Print which tensors held the most memory for the longest time."""
    found = lifetimes_of(trace, bundle)
    if isinstance(found, str):
        print_note(found)
        return
    rows = [
        (t.name, t.made_by, t.last_read_by, size_text(t.size_bytes), seconds_text(t.seconds), f"{t.share:.1%}")
        for t in found[:NODES_SHOWN]
    ]
    print_line()
    print_table(
        f"tensors by size and lifetime ({len(found)} in all)",
        ("tensor", "made by", "last read by", "size", "alive for", "share of bytes x time"),
        rows,
    )
