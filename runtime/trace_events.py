"""What a trace holds, and how it is written: Chrome's trace format, which Perfetto opens (ui.perfetto.dev).

Format: "Trace Event Format", Google, 2016; complete events (``X``), counters (``C``) and names (``M``).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trtc.engines.profile import NodeRun

CALL = "run"
EXECUTE, ENQUEUE, WAIT = "execute", "enqueue", "wait for the engine"
"""The second and third are the parts of the first; a CPU engine has finished when its enqueue returns."""
PHASES = ("check", "wait for a slot", "route", "copy in", EXECUTE, "copy out")
"""What a call does, in this order."""


@dataclass(frozen=True, slots=True)
class Span:
    """Something that took time.

    Attributes:
        name: ``run`` for a whole call, one of ``PHASES``, or a part of ``execute``.
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


def chrome_trace(
    spans: Sequence[Span], counts: Sequence[Count], nodes: Sequence[NodeRun], about: Mapping[str, Any]
) -> dict[str, Any]:
    """Write everything as one JSON object, times in microseconds from the first event.

    Args:
        spans: in any order; likewise the next two.
        counts: of memory.
        nodes: of the engine.
        about: facts about the session and the machine.
    """
    starts = [*(s.start_ns for s in spans), *(c.at_ns for c in counts), *(n.start_ns for n in nodes)]
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
    for node in nodes:
        place = {"pid": 1, "tid": node.thread, "ts": (node.start_ns - zero) / 1e3}
        events.append(
            {"name": node.name or node.op, "cat": "node", "ph": "X", **place, "dur": node.duration_ns / 1e3,
             "args": _node_args(node)}
        )  # fmt: skip
        if node.held_bytes >= 0:
            at = {"pid": 1, "tid": 0, "ts": (node.start_ns + node.duration_ns - zero) / 1e3}
            events.append({"name": "inside the library", "ph": "C", **at, "args": {"bytes": node.held_bytes}})
    threads = dict.fromkeys([*(s.thread for s in spans), *(n.thread for n in nodes)])
    for i, thread in enumerate(threads):
        events.append({"pid": 1, "tid": thread, "ph": "M", "name": "thread_name", "args": {"name": f"caller {i}"}})
    events.sort(key=lambda event: (event.get("ts", -1.0), -event.get("dur", 0.0)))
    return {"traceEvents": events, "displayTimeUnit": "ns", "otherData": dict(about)}


def _node_args(node: NodeRun) -> dict[str, Any]:
    return {
        "op": node.op,
        "inputs": [f"{t.dtype}{list(t.shape)}" for t in node.inputs],
        "outputs": [f"{t.dtype}{list(t.shape)}" for t in node.outputs],
        "read_bytes": node.read_bytes,
        "weight_bytes": node.weight_bytes,
        "written_bytes": node.written_bytes,
    }
