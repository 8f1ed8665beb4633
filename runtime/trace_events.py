"""What a trace holds, and how it is written: Chrome's trace format, which Perfetto opens (ui.perfetto.dev).

Format: "Trace Event Format", Google, 2016; complete events (``X``), counters (``C``) and names (``M``).
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trtc.engines.profile import NodeRun

RUN, BORROW = "run", "borrow"
"""Whole calls."""
CALLS = (RUN, BORROW)
HELD = "views held"
EXECUTE, ENQUEUE, WAIT = "execute", "enqueue", "wait for the engine"
"""The second and third are the parts of the first; a CPU engine has finished when its enqueue returns."""
PHASES = ("check", "wait for a slot", "route", "copy in", EXECUTE, "copy out")
"""What a call does, in this order; a borrow leaves the last one out."""


@dataclass(frozen=True, slots=True)
class Span:
    """Something that took time.

    Attributes:
        name: ``run`` or ``borrow`` for a whole call, one of ``PHASES``, or a part of ``execute``.
        start_ns, end_ns: on the clock of ``time.perf_counter_ns``.
        thread: native id of the thread.
        args: shown beside it.
    """

    name: str
    start_ns: int
    end_ns: int
    thread: int
    args: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Count:
    """Values that hold from a moment on, drawn as a curve each."""

    name: str
    at_ns: int
    values: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Held:
    """For how long the views of a borrow could be used; ends in any order, on any thread."""

    start_ns: int
    end_ns: int


@dataclass(frozen=True, slots=True)
class Traced:
    """Everything that was noted, each in any order."""

    spans: Sequence[Span] = ()
    counts: Sequence[Count] = ()
    held: Sequence[Held] = ()
    nodes: Sequence[NodeRun] = ()


def chrome_trace(traced: Traced, about: Mapping[str, Any]) -> dict[str, Any]:
    """Write everything as one JSON object, times in microseconds from the first event.

    Args:
        traced: what was noted.
        about: facts about the session and the machine.
    """
    spans, counts, nodes = traced.spans, traced.counts, nested(traced.nodes, traced.spans)
    starts = [
        *(s.start_ns for s in spans), *(c.at_ns for c in counts), *(h.start_ns for h in traced.held),
        *(n.start_ns for n in nodes),
    ]  # fmt: skip
    zero = min(starts, default=0)
    process = {"pid": 1, "tid": 0, "ph": "M", "name": "process_name", "args": {"name": "trtc"}}
    events: list[dict[str, Any]] = [process]
    for span in spans:
        place = {"pid": 1, "tid": span.thread, "ts": (span.start_ns - zero) / 1e3}
        dur = (span.end_ns - span.start_ns) / 1e3
        events.append({"name": span.name, "cat": "call", "ph": "X", **place, "dur": dur, "args": dict(span.args)})
    for count in counts:
        place = {"pid": 1, "tid": 0, "ts": (count.at_ns - zero) / 1e3}
        events.append({"name": count.name, "ph": "C", **place, "args": dict(count.values)})
    for i, held in enumerate(traced.held):  # leases overlap as they like: a track of their own, and no nesting
        same = {"name": HELD, "cat": "lease", "pid": 1, "tid": 0, "id": i}
        events.append({**same, "ph": "b", "ts": (held.start_ns - zero) / 1e3})
        events.append({**same, "ph": "e", "ts": (held.end_ns - zero) / 1e3})
    for node in nodes:
        place = {"pid": 1, "tid": node.thread, "ts": (node.start_ns - zero) / 1e3}
        events.append(
            {"name": node.name or node.op, "cat": "node", "ph": "X", **place, "dur": node.duration_ns / 1e3,
             "args": _node_args(node)}
        )  # fmt: skip
        if node.held_bytes >= 0:
            at = {"pid": 1, "tid": 0, "ts": (node.start_ns + node.duration_ns - zero) / 1e3}
            events.append({"name": "inside the library", "ph": "C", **at, "args": {"bytes": node.held_bytes}})
    callers = dict.fromkeys(s.thread for s in spans)
    others = dict.fromkeys(n.thread for n in nodes if n.thread not in callers)
    for kind, threads in (("caller", callers), ("engine", others)):
        for i, thread in enumerate(threads):
            name = {"name": f"{kind} {i}"}
            events.append({"pid": 1, "tid": thread, "ph": "M", "name": "thread_name", "args": name})
    events.sort(key=lambda event: (event.get("ts", -1.0), -event.get("dur", 0.0)))
    return {"traceEvents": events, "displayTimeUnit": "ns", "otherData": dict(about)}


def nested(nodes: Sequence[NodeRun], spans: Sequence[Span]) -> list[NodeRun]:
    """Move nodes by what two clocks differ, so that what runs inside something else also lies inside it.

    Engines resolve microseconds and have a clock of their own, while viewers drop a slice that lies partly in another.
    A node is moved into the part of an execution that it overlaps most, on its thread; one that begins before its
    forerunner has ended lies in it, or behind it, whichever is nearer.
    """
    executed: dict[int, list[Span]] = {}
    for span in sorted(spans, key=lambda s: s.start_ns):
        if span.name in (ENQUEUE, WAIT):
            executed.setdefault(span.thread, []).append(span)
    by_thread: dict[int, list[NodeRun]] = {}
    for node in nodes:
        by_thread.setdefault(node.thread, []).append(_inside(node, executed.get(node.thread, ())))
    return [node for found in by_thread.values() for node in _untangled(found)]


def _inside(node: NodeRun, executed: Sequence[Span]) -> NodeRun:
    """Cut a node to the part of an execution that it overlaps most; those of a thread follow each other."""
    start, end = node.start_ns, node.start_ns + node.duration_ns
    at = bisect_right(executed, (start + end) // 2, key=lambda s: s.start_ns)
    near = executed[max(0, at - 2) : at + 1]
    best = max(near, key=lambda s: min(end, s.end_ns) - max(start, s.start_ns), default=None)
    if best is None or min(end, best.end_ns) < max(start, best.start_ns):
        return node
    return _placed(node, max(start, best.start_ns), min(end, best.end_ns))


def _untangled(nodes: Sequence[NodeRun]) -> list[NodeRun]:
    open_ends: list[int] = []
    found: list[NodeRun] = []
    for node in sorted(nodes, key=lambda n: (n.start_ns, -n.duration_ns)):
        start, end = node.start_ns, node.start_ns + node.duration_ns
        if found:
            start = max(start, found[-1].start_ns)
        while open_ends and open_ends[-1] <= start:
            open_ends.pop()
        while open_ends and end > open_ends[-1]:
            if open_ends[-1] - start > end - open_ends[-1]:
                end = open_ends[-1]
            else:
                start = open_ends.pop()
        end = max(start, end)
        open_ends.append(end)
        found.append(_placed(node, start, end))
    return found


def _placed(node: NodeRun, start_ns: int, end_ns: int) -> NodeRun:
    return replace(node, start_ns=start_ns, duration_ns=end_ns - start_ns)


def _node_args(node: NodeRun) -> dict[str, Any]:
    return {
        "op": node.op,
        "inputs": [f"{t.dtype}{list(t.shape)}" for t in node.inputs],
        "outputs": [f"{t.dtype}{list(t.shape)}" for t in node.outputs],
        "read_bytes": node.read_bytes,
        "weight_bytes": node.weight_bytes,
        "written_bytes": node.written_bytes,
    }
