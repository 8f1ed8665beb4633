"""A session: a loaded bundle, ready to run."""

from __future__ import annotations

import warnings
import weakref
from threading import Lock
from typing import TYPE_CHECKING, Any, Self, cast

from trtc.engines.value import Value
from trtc.profiles import RequestError, UsageError, unknown_name
from trtc.runtime.borrow import Borrow
from trtc.runtime.core import Core
from trtc.runtime.fit import pick_profile
from trtc.runtime.hot_path import fast_run
from trtc.runtime.routes import RouteMaker
from trtc.runtime.session_facts import Explanation, SessionStats, counted

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType

    import numpy as np

    from trtc.engines.manifest import EngineRecord, Execution, Manifest
    from trtc.engines.protocol import DeviceEngine, Engine
    from trtc.engines.signature import Signature
    from trtc.runtime.arena import Arena
    from trtc.runtime.cancel import CancelToken
    from trtc.runtime.trace import Trace
    from trtc.runtime.traffic_log import TrafficLog
    from trtc.runtime.verdicts import Verdict


class Loaded(Value, frozen=True):
    """What ``load`` hands to a session."""

    path: str
    options: dict[str, Any]
    manifest: Manifest
    record: EngineRecord
    verdicts: tuple[Verdict, ...]
    execution: Execution
    engine: Engine
    arena: Arena


class Session:
    """A loaded bundle. Make one with ``trtc.runtime.load``; use it from any number of threads; close it once.

    A session pickles by its path: unpickling loads the bundle again. After ``fork`` the child must load its own.
    """

    def __init__(self, loaded: Loaded) -> None:
        self._loaded = loaded
        self._engine: Engine | None = loaded.engine
        loaded.engine.reserve(loaded.execution.slots)
        maker = RouteMaker(loaded.manifest, loaded.engine, loaded.execution.mode)
        self._maker = maker
        self._core = Core(loaded.manifest, maker, loaded.arena, loaded.execution.slots, loaded.engine.traits)
        self._warned = False
        self._closing = Lock()
        # A session that is dropped without `close` still gives its memory back.
        self._dropped = weakref.finalize(self, self._core.give_back)
        self._dropped.atexit = False
        self._run = self._fast = fast_run(self._core)
        self._full: Callable[..., dict[str, np.ndarray]] = self._core.run
        self._lend: Callable[..., Borrow] = Borrow
        self._traffic: TrafficLog | None = None
        self._traffic_end = weakref.finalize(self, _nothing)

    def __repr__(self) -> str:
        execution = self._loaded.execution
        state = "closed" if self._core.pool.closed else f"engine {self._loaded.record.name}"
        return (
            f"<trtc session of {self._loaded.path}: {state}, {execution.mode} sizes, "
            f"{counted(execution.slots, 'slot')}, {counted(execution.threads, 'thread')} each>"
        )

    @property
    def signature(self) -> Signature:
        """Inputs and outputs, every axis with its symbol or relation."""
        return self._loaded.manifest.signature

    @property
    def manifest(self) -> Manifest:
        """Everything that the bundle says about itself."""
        return self._loaded.manifest

    def run(
        self,
        feeds: Mapping[str, Any],
        outputs: Sequence[str] | None = None,
        *,
        timeout_s: float | None = None,
        cancel: CancelToken | None = None,
    ) -> dict[str, np.ndarray]:
        """Run one request; the caller owns the results.

        Args:
            feeds: arrays by input name. Any strides and byte order; numpy, DLPack, numbers or lists. Nobody may change
                them until the call returns.
            outputs: names of the outputs to return, in that order; all of them for None or an empty list.
            timeout_s: seconds to wait for a free slot; None waits without end.
            cancel: a token that another thread may cancel.

        Raises:
            RequestError: listing everything that is wrong with the request.
            SlotTimeoutError: when all slots stayed busy.
            CancelledError: when ``cancel`` stopped the call.
            EngineError: when the engine failed.
            SessionClosedError: after ``close``, or in a forked child.
        """
        if outputs is None and timeout_s is None and cancel is None:
            return self._run(feeds)
        if self._traffic is not None:
            self._traffic.note(feeds)
        return self._full(feeds, outputs, timeout_s, cancel)

    def borrow(
        self,
        feeds: Mapping[str, Any],
        outputs: Sequence[str] | None = None,
        *,
        timeout_s: float | None = None,
        device: bool = False,
    ) -> Borrow:
        """Run one request and read the results in place: ``with session.borrow(feeds) as views: ...``.

        The views are valid inside the block. One that is kept longer keeps its values, at a price: see ``Borrow``.
        Arguments and errors are those of ``run``; most are raised when the block is entered. Inside the block a slot is
        in use: a thread that calls again there needs another one, so load with more slots or give a timeout.

        With ``device=True`` the outputs stay on the engine's device, as objects with DLPack (for
        ``torch.from_dlpack(view)``), and inputs may be tensors there: contiguous, at the sizes that the call runs at.

        Raises:
            UsageError: for ``device=True`` where the engine is on no device.
        """
        core = self._core
        if core.pool.closed:
            core.pool.check_open()
        if self._traffic is not None:
            self._traffic.note(feeds)
        if device:
            engine = self._loaded.engine
            if not engine.traits.on_device:
                raise UsageError(
                    f"device=True, but engine {self._loaded.record.name} of this session computes on no device of its "
                    "own; leave it out, or load an engine for TensorRT"
                )
            from trtc.runtime.device_borrow import DeviceBorrow

            borrow = DeviceBorrow(core, feeds, outputs, timeout_s, self._warn_once)
            return borrow.on(cast("DeviceEngine", engine))
        return self._lend(core, feeds, outputs, timeout_s, self._warn_once)

    def explain(self, sizes: Mapping[str, int] | None = None) -> Explanation:
        """Say which engine was chosen and why, and how a request of these sizes would run.

        Args:
            sizes: size of every symbol; None to ask about the engine only.

        Raises:
            RequestError: when no profile takes the sizes.
        """
        loaded = self._loaded
        if sizes is None:
            return Explanation(loaded.record.name, loaded.verdicts, loaded.execution)
        for symbol, size in sizes.items():
            if symbol not in self.signature.symbols:
                raise RequestError(unknown_name("symbol", symbol, self.signature.symbols))
            if size < 0:
                raise RequestError(f"{symbol}={size}; give a size of 0 or more")
        plan = self._maker.plan([spec.name for spec in self.signature.inputs], sizes)
        index = pick_profile(loaded.manifest.ladder, sizes, loaded.manifest.padded)
        name = loaded.manifest.ladder.profiles[index].name
        return Explanation(loaded.record.name, loaded.verdicts, loaded.execution, name, plan.layout.sizes)

    def record_traffic(self, path: str | os.PathLike[str] | None) -> None:
        """Count the sizes of all requests from now on in a file that ``trtc plan --traffic`` reads.

        Sizes of the symbols and how often they came; no values. Requests that are refused count as well: what was
        asked for is what a plan is made of. A file that is there is continued, so restarts and several sessions may
        share one. At most the last five seconds before a kill are missing. Memory is bounded, any thread may call.

        Args:
            path: of the JSON lines; None writes what is counted and stops.

        Raises:
            UsageError: for a folder, or a bundle that has one size only.
            HostError: when the file cannot be written. Later failures are a ``TrafficWarning``; requests go on.
            SessionClosedError: after ``close``, or in a forked child.
        """
        from trtc.runtime.traffic_log import TrafficLog  # few programs record, and all wait for imports

        self._core.pool.check_open()
        log = None if path is None else TrafficLog(path, self.signature)
        with self._closing:
            self._traffic_end()
            self._traffic = log
            self._run = self._fast if log is None else log.recorded(self._fast)
            # A session that is dropped without `close`, and one that is open when the program ends, write as well.
            self._traffic_end = weakref.finalize(self, _nothing if log is None else log.flush)

    @property
    def stats(self) -> SessionStats:
        """Memory and counters of this moment."""
        core, counters = self._core, self._core.counters
        last = [slot.last for slot in core.pool.slots]
        used = sum(route.plan.layout.used_bytes for route in last if route is not None)
        held = sum(
            slot.block.size_bytes for slot, route in zip(core.pool.slots, last, strict=True) if route is not None
        )
        return SessionStats(
            arena=self._loaded.arena.stats,
            slots=len(core.pool.slots),
            slot_bytes=core.slot_bytes,
            slot_used_bytes=used,
            fragmentation=1 - used / held if held else 0.0,
            routes_prepared=counters.routes_prepared,
            routes_forgotten=counters.routes_forgotten,
            slot_growths=counters.slot_growths,
            kept_views=counters.kept_views,
            lost_leases=counters.lost_leases,
            device=None if self._engine is None else self._engine.device_stats(),
        )

    def trace(self, *, nodes: bool = True, whole_shapes: bool = False) -> Trace:
        """Note what calls do: ``with session.trace() as trace: ...``, then ``trace.write("out.json")`` for Perfetto.

        Every ``run`` and ``borrow`` that begins in the block and ends well is noted, from any thread; a borrow with
        ``device=True`` runs as ever. A session that is not traced pays nothing. Leave the blocks of borrows before the
        block of the trace: it waits for them.

        Args:
            nodes: also note each node, where the engine's profiler tells them. For that a second copy of the engine is
                opened, with slots of its own, while the block lasts.
            whole_shapes: have the shapes of all inputs of nodes told, also where the engine then runs slower.
        """
        from trtc.runtime.trace import Trace

        return Trace(self, nodes=nodes, whole_shapes=whole_shapes)

    def swap_calls(
        self, run: Callable[..., dict[str, Any]] | None = None, lend: Callable[..., Borrow] | None = None
    ) -> None:
        """Let other functions take the calls, for a trace; without any the session's own come back.

        Args:
            run: takes what ``Core.run`` takes.
            lend: takes what ``Borrow`` takes.
        """
        if self._core.pool.closed:
            return
        log = self._traffic
        self._fast = run or fast_run(self._core)
        self._run = self._fast if log is None else log.recorded(self._fast)
        self._full, self._lend = run or self._core.run, lend or Borrow

    @property
    def parts(self) -> tuple[Loaded, Core]:
        """What the session is made of, for tools that look inside; treat it as read-only."""
        return self._loaded, self._core

    def withhold(self) -> list[int]:
        """Let no further call begin, for good; callers wait. Return the states of the slots that are still out."""
        self._careful_only()  # the fast path takes slots by itself
        return [] if self._engine is None else self._core.pool.withhold()

    def close(self) -> None:
        """Wait for the calls in flight, then free the engine and the memory. Closing twice is fine.

        Calls that still wait for a slot raise SessionClosedError. A thread that closes a session inside its own
        borrow block waits for itself: leave the block first.
        """
        with self._closing:
            if self._engine is None:
                return
            self._careful_only()  # which looks whether the session is open; the fast path does not
            self._core.drain(self._closed_text)
            self._traffic_end()
            self._dropped.detach()
            engine, self._engine = self._engine, None
            engine.close()

    def abandon(self) -> object:
        """Make this session unusable without touching anything native; return what must stay alive.

        For a forked child: threads of the parent do not exist there, and freeing what they served can crash.
        """
        self._closing = Lock()
        self._traffic = None  # its locks may be held by threads that do not exist here
        self._careful_only()
        self._core.pool.abandon(self._closed_text)
        self._dropped.detach()
        engine, self._engine = self._engine, None
        return engine, self._core, self._loaded

    @property
    def _closed_text(self) -> str:
        return (
            f"the session of {self._loaded.path} is closed, or was loaded before this process was forked; "
            "load the bundle again in this process"
        )

    def _careful_only(self) -> None:
        log = self._traffic
        self._fast = self._full = self._core.run
        self._lend = Borrow
        self._run = self._fast if log is None else log.recorded(self._fast)

    def _warn_once(self, message: str, category: type[Warning]) -> None:
        if not self._warned:
            self._warned = True
            warnings.warn(message, category, stacklevel=3)

    def __reduce__(self) -> tuple[Any, ...]:
        from trtc.runtime.loader import load_again

        return load_again, (self._loaded.path, self._loaded.options)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()


def _nothing() -> None:
    """Stand for the end of what never began."""
