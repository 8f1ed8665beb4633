"""ONNX Runtime's profiler: a second session that notes every node, for as long as a trace lasts."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from trtc.engines.onnxruntime.load import OnnxRuntimeEngine, Opened, open_session, session_options
from trtc.engines.onnxruntime.providers import wanted_provider
from trtc.engines.profile import NodeRun, TensorShape

if TYPE_CHECKING:
    from trtc.engines.onnxruntime import onnxruntime
    from trtc.engines.opening import Opening

_SUFFIX = "_kernel_time"


class OnnxRuntimeProfiler:
    """Owns a session with the profiler on, and the folder of its notes until ``finish``.

    Attributes:
        engine: prepares calls as any other does.
    """

    def __init__(self, session: onnxruntime.InferenceSession, folder: tempfile.TemporaryDirectory[str]) -> None:
        self.engine = OnnxRuntimeEngine(Opened(session))
        self._session = session
        self._folder = folder
        # The profiler notes the time of day when it starts, and microseconds from there.
        self._offset_ns = session.get_profiling_start_time_ns() - time.time_ns() + time.perf_counter_ns()

    def finish(self) -> tuple[NodeRun, ...]:
        """Close the engine, and return every node that ran."""
        path = Path(self._session.end_profiling())
        self.engine.close()
        events = msgspec.json.decode(path.read_bytes(), type=list[dict[str, Any]])
        self._folder.cleanup()
        nodes = (e for e in events if e.get("cat") == "Node" and e["name"].endswith(_SUFFIX))
        return tuple(sorted((_node_run(e, self._offset_ns) for e in nodes), key=lambda run: run.start_ns))


def open_profiler(opening: Opening, *, whole_shapes: bool = False) -> OnnxRuntimeProfiler | None:
    """Open an engine whose files were checked, with the profiler on; None for an engine that runs on a GPU.

    Args:
        opening: as for ``load_engine``.
        whole_shapes: leave weights as they are in the file: the shapes of repacked ones are not told.

    Raises:
        EngineError: when ONNX Runtime refuses it.
    """
    if wanted_provider(opening.record.options) != "cpu":
        return None
    folder = tempfile.TemporaryDirectory(prefix="trtc-profile-")
    options = session_options(opening.threads, spinning=opening.spinning)
    options.enable_profiling = True
    if whole_shapes:
        options.add_session_config_entry("session.disable_prepacking", "1")
    options.profile_file_prefix = str(Path(folder.name) / "nodes")
    return OnnxRuntimeProfiler(open_session(opening.files[opening.record.entry], options), folder)


def _node_run(event: dict[str, Any], offset_ns: int) -> NodeRun:
    args = event["args"]
    return NodeRun(
        name=event["name"].removesuffix(_SUFFIX),
        op=args.get("op_name", ""),
        start_ns=offset_ns + event["ts"] * 1000,
        duration_ns=event["dur"] * 1000,
        thread=event["tid"],
        inputs=_shapes(args.get("input_type_shape", [])),
        outputs=_shapes(args.get("output_type_shape", [])),
        read_bytes=int(args.get("activation_size", 0)),
        weight_bytes=int(args.get("parameter_size", 0)),
        written_bytes=int(args.get("output_size", 0)),
        held_bytes=int(args.get("mem_bytes_in_use", -1)),
    )


def _shapes(entries: list[dict[str, list[int]]]) -> tuple[TensorShape, ...]:
    return tuple(TensorShape(dtype, tuple(shape)) for entry in entries for dtype, shape in entry.items())
