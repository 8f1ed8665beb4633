"""How long each tensor inside the engine lived: from the node that made it to the last one that read it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtc.engines.manifest_file import read_manifest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trtc.engines.profile import NodeRun
    from trtc.runtime.trace import Trace

_BYTES = {
    **dict.fromkeys(["float", "int32", "uint32"], 4),
    **dict.fromkeys(["double", "int64", "uint64", "complex64"], 8),
    **dict.fromkeys(["float16", "bfloat16", "int16", "uint16"], 2),
    "complex128": 16,
}


@dataclass(frozen=True, slots=True)
class Lifetime:
    """One tensor in the last traced call.

    Attributes:
        name: in the engine's graph.
        made_by, last_read_by: names of nodes; the end of the call where nobody inside reads it.
        size_bytes: of its elements.
        seconds: from the start of the first to the end of the second.
        share: of the sum of bytes times seconds.
    """

    name: str
    made_by: str
    last_read_by: str
    size_bytes: int
    seconds: float
    share: float


def lifetimes_of(trace: Trace, bundle: str) -> list[Lifetime] | str:
    """Join the trace with the graph of the engine; the largest share first.

    Returns:
        A sentence instead where the graph cannot be read: another kind of engine, or onnx is not installed.
    """
    manifest = read_manifest(Path(bundle))
    record = next(r for r in manifest.engines if r.name == trace.engine)
    if not record.entry.endswith(".onnx"):
        return f"lifetimes of tensors need an engine whose file is a graph; {record.entry} is none"
    try:
        import onnx
    except ImportError:
        return "lifetimes of tensors need onnx, which is not installed; pip install 'trtc[cpu]'"
    blob = next(file for file in record.files if file.path == record.entry)
    graph = onnx.load(Path(bundle) / blob.path, load_external_data=False).graph
    edges = {node.name: (list(node.input), list(node.output)) for node in graph.node}
    return lived(last_call(trace.nodes), edges)


def last_call(nodes: Sequence[NodeRun]) -> list[NodeRun]:
    """Return the nodes of the last call: they begin where the first node's name came for the last time."""
    if not nodes:
        return []
    start = max(i for i, node in enumerate(nodes) if node.name == nodes[0].name)
    return list(nodes[start:])


def lived(nodes: Sequence[NodeRun], edges: Mapping[str, tuple[list[str], list[str]]]) -> list[Lifetime]:
    """Follow each tensor from its node to its last reader.

    Args:
        nodes: of one call, in order.
        edges: names of the inputs and outputs of each node, by its name.
    """
    end_ns = max((n.start_ns + n.duration_ns for n in nodes), default=0)
    readers: dict[str, NodeRun] = {}
    for node in nodes:
        for name in edges.get(node.name, ([], []))[0]:
            readers[name] = node
    rows: list[tuple[str, str, str, int, int]] = []
    for node in nodes:
        for name, tensor in zip(edges.get(node.name, ([], []))[1], node.outputs, strict=False):
            reader = readers.get(name)
            until_ns = reader.start_ns + reader.duration_ns if reader is not None else end_ns
            size_bytes = _size_bytes(tensor)
            rows.append(
                (name, node.name, reader.name if reader else "the caller", size_bytes, until_ns - node.start_ns)
            )
    whole = sum(size * alive for *_, size, alive in rows) or 1
    found = [Lifetime(name, by, to, size, alive / 1e9, size * alive / whole) for name, by, to, size, alive in rows]
    return sorted(found, key=lambda tensor: -tensor.share)


def _size_bytes(tensor: Any) -> int:
    count = 1
    for size in tensor.shape:
        count *= size
    return count * _BYTES.get(tensor.dtype, 1)
