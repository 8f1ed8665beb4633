"""Run with ONNX Runtime on the CPU: one session serves all profiles, one binding a route.

The binding object of ONNX Runtime is not thread-safe, the session is: each prepared call owns its binding and is
used by the one thread that holds its slot.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import onnxruntime

from trtc.engines.errors import EngineError
from trtc.engines.memory import array_at
from trtc.engines.onnxruntime.errors import ORT_ERRORS, engine_error
from trtc.engines.signature import numpy_dtype

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from trtc.engines.layout import Layout, Place
    from trtc.engines.manifest import EngineRecord
    from trtc.engines.protocol import LateOutputs, Slot
    from trtc.engines.signature import Signature

RUNNING = "running the engine for target cpu"


class BoundCall:
    """A run whose inputs and outputs all lie in the slot.

    Attributes:
        enqueue: runs the engine. The first run also compares the real output shapes with the planned ones;
            later runs are a binding with ready addresses.
    """

    enqueue: Callable[[], None]

    def __init__(self, session: onnxruntime.InferenceSession, bucket: Layout, slot: Slot) -> None:
        self._session = session
        self._bucket = bucket
        self._slot = slot
        self._options = onnxruntime.RunOptions()
        # Element types that numpy does not know cannot pass through `run`; their binding checks the shape itself.
        foreign = any(_is_foreign(p) for p in (*bucket.inputs.values(), *bucket.outputs.values()))
        self.enqueue = self._bind() if foreign else self._first

    def wait(self) -> LateOutputs:
        """Return nothing: every output lies in the slot."""
        return {}

    def cancel(self) -> None:
        """Stop a run in progress; the next one starts with options of its own."""
        self.enqueue = self._renewed
        self._options.terminate = True

    def _renewed(self) -> None:
        self._options = onnxruntime.RunOptions()
        self.enqueue = self._bind()
        self.enqueue()

    def _first(self) -> None:
        feeds = {name: array_at(self._slot.buffer, place) for name, place in self._bucket.inputs.items()}
        _run_into(self._session, feeds, self._bucket, self._slot, self._options)
        if not self._options.terminate:
            self.enqueue = self._bind()

    def _bind(self) -> Callable[[], None]:
        """Bind every address once and return the run as a function without arguments."""
        binding = self._session.io_binding()
        for name, place in self._bucket.inputs.items():
            binding.bind_input(name, "cpu", 0, _element(place), place.shape, self._slot.address + place.offset_bytes)
        for name, place in self._bucket.outputs.items():
            binding.bind_output(name, "cpu", 0, _element(place), place.shape, self._slot.address + place.offset_bytes)
        # The inner objects save two wrapper calls; ready options save making them anew for every run (0.7 us).
        run, bound, options = self._session._sess.run_with_iobinding, binding._iobinding, self._options  # noqa: SLF001

        def enqueue() -> None:
            try:
                run(bound, options)
            except ORT_ERRORS as error:
                raise engine_error(error, RUNNING) from error

        return enqueue


class LateCall:
    """A run with inputs or outputs that cannot lie in the slot: strings, sequences, sizes that the data decides."""

    def __init__(self, session: onnxruntime.InferenceSession, bucket: Layout, slot: Slot) -> None:
        self._session = session
        self._bucket = bucket
        self._slot = slot
        self._options = onnxruntime.RunOptions()
        self._views = {name: array_at(slot.buffer, place) for name, place in bucket.inputs.items()}
        self._late: LateOutputs = {}

    def enqueue(self) -> None:
        """Run, place what has a place, keep the rest for ``wait``."""
        if self._options.terminate:
            self._options = onnxruntime.RunOptions()
        feeds = {**self._views, **self._slot.objects}
        self._late = _run_into(self._session, feeds, self._bucket, self._slot, self._options)

    def wait(self) -> LateOutputs:
        """Hand over the outputs that have no place."""
        late, self._late = self._late, {}
        return late

    def cancel(self) -> None:
        """Stop a run in progress; the next one starts with options of its own."""
        self._options.terminate = True


class OnnxRuntimeEngine:
    """One ONNX Runtime session, shared by all slots."""

    def __init__(self, session: onnxruntime.InferenceSession) -> None:
        self._session: onnxruntime.InferenceSession | None = session

    def prepare(self, bucket: Layout, slot: Slot) -> BoundCall | LateCall:
        """Bind one call.

        Raises:
            EngineError: when the engine was closed or refuses the binding.
        """
        if self._session is None:
            raise EngineError("the engine was closed; load the bundle again")
        if bucket.late or slot.objects:
            return LateCall(self._session, bucket, slot)
        try:
            return BoundCall(self._session, bucket, slot)
        except ORT_ERRORS as error:
            raise engine_error(error, "binding a call") from error

    def close(self) -> None:
        """Free the session."""
        self._session = None


def load_engine(files: dict[str, Path], record: EngineRecord, signature: Signature, threads: int) -> OnnxRuntimeEngine:
    """Open an engine whose files were checked.

    Raises:
        EngineError: when ONNX Runtime refuses it.
    """
    del signature
    return open_graph(files[record.entry], threads)


def open_graph(path: Path, threads: int) -> OnnxRuntimeEngine:
    """Open an optimised graph.

    Args:
        path: of the ``.onnx`` file; its weights lie beside it.
        threads: that one call uses.
    """
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    # A memory pattern is kept for every shape ever seen, and sizes vary here.
    options.enable_mem_pattern = False
    try:
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except ORT_ERRORS as error:
        raise engine_error(error, "opening the engine for target cpu") from error
    return OnnxRuntimeEngine(session)


def _run_into(
    session: onnxruntime.InferenceSession, feeds: dict[str, Any], bucket: Layout, slot: Slot, options: Any
) -> LateOutputs:
    """Run unbound, compare the shapes with the plan, copy the placed outputs into the slot, return the others."""
    names = [*bucket.outputs, *bucket.late]
    try:
        values = dict(zip(names, session.run(names, feeds, options), strict=True))
    except ORT_ERRORS as error:
        raise engine_error(error, RUNNING) from error
    for name, place in bucket.outputs.items():
        if values[name].shape != place.shape:
            raise EngineError(
                f"output {name!r} came back as {values[name].shape} where its relation to the input sizes says "
                f"{place.shape}; the bundle's relations do not hold for these sizes: rebuild it with samples of them"
            )
        array_at(slot.buffer, place)[...] = values[name]
    return {name: values[name] for name in bucket.late}


def _is_foreign(place: Place) -> bool:
    return place.dtype.kind == "V" or place.dtype.name not in np.sctypeDict


def _element(place: Place) -> Any:
    """Return the element type as ONNX Runtime's binding wants it."""
    if not _is_foreign(place):
        return place.dtype.type
    import onnx

    by_dtype = {
        numpy_dtype(name.lower()): number
        for name, number in onnx.TensorProto.DataType.items()
        if name.lower() in ("bfloat16", "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz")
    }
    return by_dtype[place.dtype]
