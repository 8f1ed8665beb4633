"""Tracing a session: while it lasts, another function takes the calls and notes what each of their parts takes.

The hot path is not touched: it is put aside, and put back afterwards.
"""

from __future__ import annotations

from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any, Self

import msgspec

from trtc.engines.bundle import open_engine
from trtc.engines.files import host_error, write_file
from trtc.engines.opening import Opening
from trtc.engines.profile import open_profiler
from trtc.profiles import UsageError
from trtc.runtime.core import Core
from trtc.runtime.routes import RouteMaker
from trtc.runtime.trace_calls import Notes, TracedBorrow, run_while_traced
from trtc.runtime.trace_events import Traced, chrome_trace

if TYPE_CHECKING:
    import os
    from types import TracebackType

    from trtc.engines.profile import NodeRun, Profiler
    from trtc.runtime.borrow import Borrow
    from trtc.runtime.session import Loaded, Session
    from trtc.runtime.trace_events import Count, Held, Span

_TRACED: set[int] = set()
"""Sessions that are being traced, by ``id``; each adds itself and takes itself off."""
_TRACED_LOCK = Lock()


class Trace:
    """What the calls of a session did inside the ``with`` block; read it after the block.

    Attributes:
        spans: of calls and of their parts.
        counts: arena and memory, after each call.
        held: how long the views of borrows were held.
        nodes: runs of nodes, inside the engine; empty where its backend has no profiler.
    """

    def __init__(self, session: Session, *, nodes: bool, whole_shapes: bool = False) -> None:
        self._notes = Notes(session.parts[0].arena)
        self.spans: list[Span] = self._notes.spans
        self.counts: list[Count] = self._notes.counts
        self.held: list[Held] = self._notes.held
        self.nodes: tuple[NodeRun, ...] = ()
        self._session = session
        self._wants_nodes = nodes
        self._whole_shapes = whole_shapes
        self._profiler: Profiler | None = None
        self._core: Core | None = None

    def __enter__(self) -> Self:
        """Begin to note.

        Raises:
            UsageError: when the session is traced already.
            SessionClosedError: for a closed one.
            EngineError, MemoryBudgetError: when the copy of the engine cannot be opened.
        """
        loaded, core = self._session.parts
        core.pool.check_open()
        with _TRACED_LOCK:
            if id(self._session) in _TRACED:
                raise UsageError("this session is traced already; end that trace first, or read both from one")
            _TRACED.add(id(self._session))
        try:
            self._profiler = _open_profiler(loaded, self._whole_shapes) if self._wants_nodes else None
            if self._profiler is not None:
                maker = RouteMaker(loaded.manifest, self._profiler.engine, loaded.execution.mode)
                core = self._core = Core(
                    loaded.manifest, maker, loaded.arena, loaded.execution.slots, self._profiler.engine.traits
                )
            run = partial(run_while_traced, self._notes, core, self._session.parts[1])
            self._session.swap_calls(run, partial(_lend, self._notes, core))
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        """Stop, and collect what the engine's profiler noted; calls in flight are waited for."""
        self._end()

    @property
    def engine(self) -> str:
        """Name of the engine that was traced."""
        return self._session.parts[0].record.name

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write a file that Perfetto and chrome://tracing open.

        Raises:
            HostError: when it cannot be written.
        """
        from pathlib import Path

        loaded, _ = self._session.parts
        about = {"bundle": loaded.path, "engine": loaded.record.name, "threads": loaded.execution.threads}
        data = msgspec.json.encode(chrome_trace(Traced(self.spans, self.counts, self.held, self.nodes), about))
        try:
            write_file(Path(path), data)
        except OSError as failed:
            raise host_error(failed, Path(path), len(data)) from failed

    def _end(self) -> None:
        self._session.swap_calls()
        if self._core is not None:
            self._core.drain("the trace ended while this call waited for a slot")
            self._core = None
        if self._profiler is not None:
            self.nodes = self._profiler.finish()
            self._profiler = None
        with _TRACED_LOCK:
            _TRACED.discard(id(self._session))


def _lend(notes: Notes, traced: Core, core: Core, *given: Any) -> Borrow:
    """Make a borrow that is noted; it runs in ``traced``, not in the session's own slots."""
    return TracedBorrow(traced, *given).noted_in(notes, core)


def _open_profiler(loaded: Loaded, whole_shapes: bool) -> Profiler | None:  # noqa: FBT001 (used once)
    """Open the engine of a session once more, from files that were checked again."""

    def same(manifest: Any) -> Any:
        found = [r for r in manifest.engines if r.name == loaded.record.name and r.files == loaded.record.files]
        if not found:
            raise UsageError(f"{loaded.path} was replaced since it was loaded; load it again and trace that session")
        return found[0]

    from pathlib import Path

    with open_engine(Path(loaded.path), same, verify=bool(loaded.options.get("verify", True))) as reader:
        return open_profiler(
            reader.record.backend,
            Opening(
                files=reader.files,
                record=reader.record,
                signature=reader.manifest.signature,
                ladder=reader.manifest.ladder,
                threads=loaded.execution.threads,
                spinning=False,
            ),
            whole_shapes=whole_shapes,
        )
