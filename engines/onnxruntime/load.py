"""Run with ONNX Runtime: one session serves all profiles, one binding a route.

The binding object of ONNX Runtime is not thread-safe, the session is: each prepared call owns its binding and is
used by the one thread that holds its slot. Nothing that a call holds leads back to it, so that the last reference to
a call, and with it the session of ONNX Runtime, goes when the bundle is closed and not when Python looks for cycles.
"""

from __future__ import annotations

from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any
from weakref import proxy

from trtc.engines.errors import EngineError
from trtc.engines.memory import array_at, return_freed_memory
from trtc.engines.onnxruntime import onnxruntime
from trtc.engines.onnxruntime.errors import ORT_ERRORS, engine_error
from trtc.engines.onnxruntime.providers import wanted_provider
from trtc.engines.onnxruntime.raw import element_number, foreign_types, run_raw
from trtc.engines.protocol import HOST_TRAITS
from trtc.engines.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from trtc.engines.layout import Layout, Place
    from trtc.engines.opening import Opening
    from trtc.engines.protocol import LateOutputs, Slot


class Opened(Value, frozen=True):
    """A session, and what its calls need to know of it.

    Attributes:
        session: of ONNX Runtime.
        target: that it runs, for messages.
        run_options: makes the options of a run that is not captured into a CUDA graph.
    """

    session: onnxruntime.InferenceSession
    target: str = "cpu"
    run_options: Callable[[], Any] = onnxruntime.RunOptions

    @property
    def running(self) -> str:
        """What a run is doing, for the start of a message."""
        return f"running the engine for target {self.target}"


class BoundCall:
    """A run whose inputs and outputs all lie in the slot.

    Attributes:
        enqueue: runs the engine. The first run also compares the real output shapes with the planned ones;
            later runs are a binding with ready addresses.
    """

    enqueue: Callable[[], None]

    def __init__(self, opened: Opened, bucket: Layout, slot: Slot) -> None:
        self._opened = opened
        self._session = opened.session
        self._bucket = bucket
        self._slot = slot
        self._lock = Lock()
        self._options = opened.run_options()
        # Element types that numpy does not know cannot pass through `run`; their binding checks the shape itself.
        self._foreign = any(element_number(p.dtype) for p in (*bucket.inputs.values(), *bucket.outputs.values()))
        self.enqueue = self._fresh(self._options)

    def wait(self) -> LateOutputs:
        """Return nothing: every output lies in the slot."""
        return {}

    def cancel(self) -> None:
        """Stop the run in progress; the next one starts with options of its own.

        A run must have read ``enqueue`` before this is called, else it is the next one.
        """
        with self._lock:
            stopped, self._options = self._options, self._opened.run_options()
            self.enqueue = self._fresh(self._options)
        stopped.terminate = True

    def _fresh(self, options: onnxruntime.RunOptions) -> Callable[[], None]:
        return self._bind(options) if self._foreign else partial(type(self)._first, proxy(self), options)  # noqa: SLF001 (its own)

    def _compare_shapes(self, options: onnxruntime.RunOptions) -> None:
        """Run unbound once: the real output shapes must be the planned ones."""
        feeds = {name: array_at(self._slot.buffer, place) for name, place in self._bucket.inputs.items()}
        run_into(partial(_run_plain, self._session, feeds, options), self._bucket, self._slot, self._opened.running)

    def _first(self, options: onnxruntime.RunOptions) -> None:
        self._compare_shapes(options)
        bound = self._bind(options)
        with self._lock:
            if self._options is options:
                self.enqueue = bound

    def _bind(self, options: onnxruntime.RunOptions) -> Callable[[], None]:
        """Bind every address once and return the run as a function without arguments."""
        try:
            binding = self._session.io_binding()
            for name, place in self._bucket.inputs.items():
                address = self._slot.address + place.offset_bytes
                binding.bind_input(name, "cpu", 0, _element(place), place.shape, address)
            for name, place in self._bucket.outputs.items():
                address = self._slot.address + place.offset_bytes
                binding.bind_output(name, "cpu", 0, _element(place), place.shape, address)
        except ORT_ERRORS as error:
            raise engine_error(error, "binding a call") from error
        # The inner objects save two wrapper calls; ready options save making them anew for every run (0.7 us).
        run, bound = self._session._sess.run_with_iobinding, binding._iobinding  # noqa: SLF001
        running = self._opened.running

        def enqueue() -> None:
            try:
                run(bound, options)
            except ORT_ERRORS as error:
                raise engine_error(error, running) from error

        return enqueue


class LateCall:
    """A run with inputs or outputs that cannot lie in the slot.

    Those are strings, sequences, elements that share a byte, and sizes that the data decides.

    Attributes:
        enqueue: runs, places what has a place, keeps the rest for ``wait``.
    """

    enqueue: Callable[[], None]

    def __init__(self, opened: Opened, bucket: Layout, slot: Slot) -> None:
        self._opened = opened
        self._session = opened.session
        self._bucket = bucket
        self._slot = slot
        self._types = foreign_types(self._session)
        self._views = {name: array_at(slot.buffer, place) for name, place in bucket.inputs.items()}
        self._late: LateOutputs = {}
        self._options = opened.run_options()
        self.enqueue = self._fresh(self._options)

    def wait(self) -> LateOutputs:
        """Hand over the outputs that have no place."""
        late, self._late = self._late, {}
        return late

    def cancel(self) -> None:
        """Stop the run in progress; the next one starts with options of its own."""
        stopped, self._options = self._options, self._opened.run_options()
        self.enqueue = self._fresh(self._options)
        stopped.terminate = True

    def _fresh(self, options: onnxruntime.RunOptions) -> Callable[[], None]:
        return partial(type(self)._run, proxy(self), options)  # noqa: SLF001 (its own)

    def _run(self, options: onnxruntime.RunOptions) -> None:
        feeds = {**self._views, **self._slot.objects}
        run = (
            partial(run_raw, self._session, feeds, self._types, options)
            if self._types
            else partial(_run_plain, self._session, feeds, options)
        )
        self._late = run_into(run, self._bucket, self._slot, self._opened.running)


class OnnxRuntimeEngine:
    """One ONNX Runtime session, shared by all slots."""

    traits = HOST_TRAITS

    def __init__(self, opened: Opened) -> None:
        self._opened: Opened | None = opened

    def prepare(self, bucket: Layout, slot: Slot) -> BoundCall | LateCall:
        """Bind one call.

        Raises:
            EngineError: when the engine was closed or refuses the binding.
        """
        if self._opened is None:
            raise EngineError("the engine was closed; load the bundle again")
        if bucket.late or slot.objects:
            return self._late(self._opened, bucket, slot)
        return self._bound(self._opened, bucket, slot)

    def _bound(self, opened: Opened, bucket: Layout, slot: Slot) -> BoundCall:
        """Bind a call whose tensors all lie in the slot."""
        return BoundCall(opened, bucket, slot)

    def _late(self, opened: Opened, bucket: Layout, slot: Slot) -> LateCall:
        """Make a call with something that cannot lie in the slot."""
        return LateCall(opened, bucket, slot)

    def close(self) -> None:
        """Free the session, and give what it held back to the system."""
        self._opened = None
        return_freed_memory()

    def reserve(self, calls: int) -> None:
        """Do nothing: a call needs its slot only."""
        del calls

    def device_stats(self) -> None:
        """Return nothing: nothing lies on a device."""


def load_engine(opening: Opening) -> OnnxRuntimeEngine:
    """Open an engine whose files were checked.

    Raises:
        EngineError: when ONNX Runtime refuses it.
    """
    if wanted_provider(opening.record.options) != "cpu":
        # Imported here: a bundle for the CPU needs nothing of it.
        from trtc.engines.onnxruntime.gpu import open_on_gpu

        return open_on_gpu(opening)
    return open_graph(opening.files[opening.record.entry], opening.threads, spinning=opening.spinning)


def open_graph(path: Path, threads: int, *, spinning: bool = True) -> OnnxRuntimeEngine:
    """Open an optimised graph.

    Args:
        path: of the ``.onnx`` file; its weights lie beside it.
        threads: that one call uses.
        spinning: let idle threads wait actively for more work.
    """
    return OnnxRuntimeEngine(Opened(open_session(path, session_options(threads, spinning=spinning))))


def session_options(threads: int, *, spinning: bool = True) -> onnxruntime.SessionOptions:
    """Return how engines are opened (see ``open_graph``)."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "1" if spinning else "0")
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    # A memory pattern is kept for every shape ever seen, and sizes vary here.
    options.enable_mem_pattern = False
    return options


def open_session(path: Path, options: onnxruntime.SessionOptions) -> onnxruntime.InferenceSession:
    """Open an optimised graph.

    Raises:
        EngineError: when ONNX Runtime refuses it.
    """
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except ORT_ERRORS as error:
        raise engine_error(error, "opening the engine for target cpu") from error


def _run_plain(
    session: onnxruntime.InferenceSession, feeds: dict[str, Any], options: Any, names: list[str]
) -> dict[str, Any]:
    return dict(zip(names, session.run(names, feeds, options), strict=True))


def run_into(run: Callable[[list[str]], dict[str, Any]], bucket: Layout, slot: Slot, running: str) -> LateOutputs:
    """Run unbound, compare the shapes with the plan, copy the placed outputs into the slot, return the others."""
    try:
        values = run([*bucket.outputs, *bucket.late])
    except ORT_ERRORS as error:
        raise engine_error(error, running) from error
    for name, place in bucket.outputs.items():
        bucket.check_output(name, values[name].shape)
        array_at(slot.buffer, place)[...] = values[name]
    return {name: values[name] for name in bucket.late}


def _element(place: Place) -> Any:
    """Return the element type as ONNX Runtime's binding wants it."""
    return element_number(place.dtype) or place.dtype.type
