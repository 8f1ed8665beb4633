"""Streams, work, and graphs. Work is executed when somebody waits for its stream, in order."""

from __future__ import annotations

import threading
import zlib
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from simulator.world import POISON, BreachError, bytes_at

if TYPE_CHECKING:
    from collections.abc import Callable

    from simulator.world import Extent, World


@dataclass(eq=False)
class Work:
    """One thing to be done.

    Attributes:
        label: for messages.
        reads, writes: the memory that it touches.
        run: does it.
        host: the part of that memory which the host can touch; it must stay as it is until the work is done.
        still_right: raises when what was captured in a graph does not hold any more.
    """

    label: str
    reads: tuple[Extent, ...]
    writes: tuple[Extent, ...]
    run: Callable[[], None]
    host: tuple[Extent, ...] = ()
    still_right: Callable[[], None] = lambda: None
    seen: list[int] = field(default_factory=list)

    def submitted(self) -> None:
        """Poison what will be written, and remember what the host could change meanwhile."""
        for extent in self.writes:
            if extent in self.host:
                bytes_at(extent)[:] = POISON
        self.seen = [zlib.crc32(bytes_at(extent)) for extent in self.host]

    def execute(self) -> None:
        """Do it."""
        if self.seen != [zlib.crc32(bytes_at(extent)) for extent in self.host]:
            raise BreachError(f"host memory was written while {self.label} was pending")
        self.run()


class Stream:
    """As ``cuda.core.Stream``; made by ``Device.create_stream``."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._handle = world.new_handle()
        self.pending: deque[Work] = deque()
        self.recorded: list[Work] | None = None
        world.streams[self._handle] = self

    @property
    def handle(self) -> int:
        """The driver's handle."""
        if self._handle not in self._world.streams:
            raise BreachError("a stream was used after it was closed")
        return self._handle

    def sync(self) -> None:
        """Wait: everything pending is done when this returns."""
        with self._world.lock:
            self._world.need_current("waiting for a stream")
            if self.recorded is not None:
                raise BreachError("a stream was waited for while it is captured")
            _ = self.handle
            while self.pending:
                work = self.pending.popleft()
                work.execute()

    def close(self) -> None:
        """End the stream; nothing may be pending."""
        with self._world.lock:
            if self.pending:
                raise BreachError(f"a stream was closed while {self.pending[0].label} is pending")
            self._world.streams.pop(self._handle, None)

    def create_graph_builder(self) -> GraphBuilder:
        """Make a builder that captures this stream."""
        return GraphBuilder(self._world, self)

    def submit(self, work: Work) -> None:
        """Add work, or record it where the stream is captured."""
        _ = self.handle
        if self.recorded is not None:
            self.recorded.append(work)
            return
        self._world.admit(self, work)
        work.submitted()
        self.pending.append(work)


class GraphBuilder:
    """As ``cuda.core.graph.GraphBuilder``."""

    def __init__(self, world: World, stream: Stream) -> None:
        self._world = world
        self._stream = stream
        self._recorded: list[Work] | None = None

    def begin_building(self, mode: str | None = "relaxed") -> GraphBuilder:
        """Capture from here on. Other threads go on, so the whole process must not be forbidden anything."""
        with self._world.lock:
            if mode != "thread_local":
                raise BreachError(f"capturing in mode {mode!r} would end when another thread allocates")
            self._world.need_no_capture("capturing")
            self._world.building[threading.get_ident()] = self._stream
            self._stream.recorded = []
        return self

    def end_building(self) -> GraphBuilder:
        """Stop capturing."""
        with self._world.lock:
            if self._stream.recorded is None:
                raise BreachError("nothing is captured")
            del self._world.building[threading.get_ident()]
            self._recorded, self._stream.recorded = self._stream.recorded, None
        return self

    def complete(self, options: None = None) -> Graph:
        """Make the graph."""
        assert options is None
        if self._recorded is None:
            raise BreachError("a graph was completed before its capture ended")
        return Graph(self._world, self._recorded)

    def close(self) -> None:
        """End the builder."""
        if self._stream.recorded is not None:
            raise BreachError("a builder was closed while it captures")


class Graph:
    """As ``cuda.core.graph.Graph``."""

    def __init__(self, world: World, recorded: list[Work]) -> None:
        self._world = world
        self._recorded: list[Work] | None = recorded

    def launch(self, stream: Stream) -> None:
        """Submit everything that was recorded."""
        with self._world.lock:
            self._world.need_current("launching a graph")
            if self._recorded is None:
                raise BreachError("a graph was launched after it was closed")
            for work in self._recorded:
                work.still_right()
                stream.submit(Work(f"a graph of {work.label}", work.reads, work.writes, work.run, work.host))

    def close(self) -> None:
        """End the graph; the one that was launched may go on."""
        self._recorded = None
