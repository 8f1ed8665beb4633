"""What an engine's own profiler tells about each node, whatever the library calls it."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Protocol

from trtc.engines.registry import backend_named

if TYPE_CHECKING:
    from trtc.engines.opening import Opening
    from trtc.engines.protocol import Engine


@dataclass(frozen=True, slots=True)
class TensorShape:
    """One tensor of a node: ONNX element type in lower case, and sizes."""

    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class NodeRun:
    """One run of one node.

    Attributes:
        name, op: of the node.
        start_ns, duration_ns: on the clock of ``time.perf_counter_ns``; the engine may resolve microseconds only.
        thread: native id of the thread that ran it.
        inputs, outputs: tensors, in the node's order; those that the engine does not tell are left out.
        read_bytes: of inputs that other nodes made.
        weight_bytes: of inputs that are constants of the model.
        written_bytes: of outputs.
        held_bytes: what the engine's allocator had handed out when the node ended; -1 where it does not tell.
    """

    name: str
    op: str
    start_ns: int
    duration_ns: int
    thread: int
    inputs: tuple[TensorShape, ...]
    outputs: tuple[TensorShape, ...]
    read_bytes: int
    weight_bytes: int
    written_bytes: int
    held_bytes: int = -1


class Profiler(Protocol):
    """An engine that was opened with its profiler on."""

    engine: Engine

    def finish(self) -> tuple[NodeRun, ...]:
        """Close the engine, and return every node that ran, in order of their starts."""


def open_profiler(backend: str, opening: Opening, *, whole_shapes: bool = False) -> Profiler | None:
    """Open an engine with its profiler on; None where the backend has none.

    Args:
        backend: its name; a backend with a profiler has a file ``profile.py`` with a function like this one.
        opening: as for ``load_engine``.
        whole_shapes: tell the shapes of all inputs, also where the engine then has to run slower.

    Raises:
        EngineError: when the library refuses it.
    """
    module = f"{backend_named(backend).module}.profile"
    if find_spec(module) is None:
        return None
    found: Profiler | None = import_module(module).open_profiler(opening, whole_shapes=whole_shapes)
    return found
