"""Calls with a clock between their parts: what takes the place of the usual ones while a session is traced."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from threading import get_native_id
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from trtc.runtime.borrow import Borrow, BorrowedOutputs
from trtc.runtime.errors import LeaseError, SessionClosedError
from trtc.runtime.slots import SlotState
from trtc.runtime.trace_events import BORROW, ENQUEUE, EXECUTE, PHASES, RUN, WAIT, Count, Held, Span
from trtc.runtime.transfer import copy_outputs, forget_objects, write_inputs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np

    from trtc.runtime.arena import Arena
    from trtc.runtime.cancel import CancelToken
    from trtc.runtime.core import Core
    from trtc.runtime.routes import Route
    from trtc.runtime.slots import Slot


@dataclass(slots=True)
class Notes:
    """What was noted. Any thread may add: each addition is one step of a list."""

    arena: Arena
    spans: list[Span] = field(default_factory=list)
    counts: list[Count] = field(default_factory=list)
    held: list[Held] = field(default_factory=list)

    def call(self, name: str, timed: Timed) -> None:
        """Note a call with its parts, and memory after it."""
        moments, thread = timed.moments, get_native_id()
        self.spans.append(Span(name, moments[0], moments[-1], thread, timed.args))
        # A borrow has no last part: its results are read in place.
        parts = zip(PHASES, moments, moments[1:], strict=False)
        self.spans.extend(Span(part, start, end, thread) for part, start, end in parts)
        started, ended = moments[PHASES.index(EXECUTE)], moments[PHASES.index(EXECUTE) + 1]
        self.spans.append(Span(ENQUEUE, started, timed.submitted_ns, thread))
        self.spans.append(Span(WAIT, timed.submitted_ns, ended, thread))
        stats = self.arena.stats
        arena = {"in use": stats.in_use_bytes, "reserved": stats.reserved_bytes}
        self.counts.append(Count("arena, bytes", moments[-1], arena))
        with suppress(OSError, ValueError):
            self.counts.append(Count("resident, bytes", moments[-1], {"bytes": _resident_bytes()}))


@dataclass(slots=True)
class Timed:
    """One call on its way: the moments between its parts, and what to show beside it."""

    moments: list[int]
    submitted_ns: int = 0
    args: dict[str, Any] = field(default_factory=dict)

    def next(self) -> None:
        """End a part."""
        self.moments.append(perf_counter_ns())


def run_while_traced(notes: Notes, traced: Core, own: Core, *given: Any) -> dict[str, np.ndarray]:
    """Do what ``Core.run`` does in ``traced``, and note it; in the session's own slots where the trace is just over."""
    try:
        return traced_run(notes, traced, *given)
    except SessionClosedError:  # before anything ran
        if traced is own:
            raise
        return own.run(*given)


def traced_run(  # noqa: PLR0913, PLR0917 (those of ``Core.run``, and where to note)
    notes: Notes,
    core: Core,
    feeds: Mapping[str, Any],
    outputs: Sequence[str] | None = None,
    timeout_s: float | None = None,
    cancel: CancelToken | None = None,
) -> dict[str, np.ndarray]:
    """Do what ``Core.run`` does, and look at the clock in between."""
    timed = Timed([perf_counter_ns()])
    core.pool.check_open()
    names = core.selected(outputs)
    values, sizes = core.check(feeds)
    timed.next()
    slot = core.take(timeout_s)
    timed.next()
    try:
        route, late = _perform(core, slot, (values, sizes), timed, cancel)
        results = copy_outputs(route, late, names)
        timed.next()
        notes.call(RUN, timed)
        return results
    finally:
        slot.state = SlotState.FREE.value
        core.pool.put(slot)
        if core.pool.waiting:
            core.pool.wake()


class TracedBorrow(Borrow):
    """A borrow that is noted: the call, and how long its views were held."""

    __slots__ = ("_entered_ns", "_notes", "_own")

    def noted_in(self, notes: Notes, own: Core) -> TracedBorrow:
        """Say where to note it, and whose slots to use, without a note, where the trace is over when it is entered."""
        self._notes, self._own = notes, own
        return self

    def __enter__(self) -> BorrowedOutputs:
        if self._slot is not None:
            raise LeaseError("this borrow is open already; call session.borrow(...) once for each block")
        core, timed = self._core, Timed([perf_counter_ns()])
        values, sizes = core.check(self._feeds)
        timed.next()
        try:
            slot = core.take(self._timeout_s)
        except SessionClosedError:
            if core is self._own:
                raise
            self._core, self._entered_ns = self._own, 0
            return super().__enter__()
        timed.next()
        try:
            route, late = _perform(core, slot, (values, sizes), timed, None)
            found = {**route.outputs, **late}
            views = BorrowedOutputs([(name, found[name]) for name in self._names or core.output_names])
            self._notes.call(BORROW, timed)
            self._route, self._views = route, views
        except BaseException:
            slot.state = SlotState.FREE.value
            core.pool.put(slot)
            if core.pool.waiting:
                core.pool.wake()
            raise
        self._entered_ns = timed.moments[-1]
        self._slot = slot
        return views

    def __exit__(self, *given: object) -> None:
        if self._slot is not None and self._entered_ns:
            self._notes.held.append(Held(self._entered_ns, perf_counter_ns()))
        super().__exit__(*given)


def _perform(
    core: Core,
    slot: Slot,
    request: tuple[Mapping[str, Any], Mapping[str, int]],
    timed: Timed,
    cancel: CancelToken | None,
) -> tuple[Route, dict[str, Any]]:
    """Do what ``Core.perform`` does."""
    values, sizes = request
    made = core.counters.routes_prepared
    route, arrays = core.route_for(slot, values, sizes)
    prepared = core.counters.routes_prepared > made
    timed.next()
    try:
        write_inputs(slot, route, arrays)
        slot.move(SlotState.INITIALISED)
        slot.move(SlotState.FENCED)
        timed.next()
        try:
            if cancel is None:
                route.call.enqueue()
            else:
                cancel.run(route.call)
            timed.submitted_ns = perf_counter_ns()
            late = {route.plan.public[name]: value for name, value in route.call.wait().items()}
        finally:
            slot.move(SlotState.INITIALISED)
        timed.next()
    finally:
        forget_objects(route)
    timed.args = {
        "sizes": dict(sizes),
        "run_sizes": route.plan.layout.sizes,
        "padded": route.plan.padded,
        "route": "prepared" if prepared else "ready",
    }
    return route, late


def _resident_bytes() -> int:
    import mmap

    with open("/proc/self/statm", "rb") as stream:  # noqa: PTH123 (read after each call)
        return int(stream.read().split()[1]) * mmap.PAGESIZE
