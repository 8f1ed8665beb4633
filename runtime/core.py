"""The careful path: one request from checked values to results, in a slot that is held. Shared by run and borrow."""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from trtc.engines.errors import EngineError
from trtc.engines.layout import plan_layout
from trtc.engines.signature import numpy_dtype
from trtc.profiles import RequestError, unknown_name
from trtc.runtime.request import check_request
from trtc.runtime.slots import Slot, SlotPool, SlotState

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from trtc.engines.manifest import Manifest
    from trtc.runtime.arena import Arena
    from trtc.runtime.cancel import CancelToken
    from trtc.runtime.routes import Route, RouteMaker

_FREE = SlotState.FREE.value
_ALLOCATED = SlotState.ALLOCATED.value
MAX_ROUTES = 1024
"""Prepared routes that one slot keeps (a few KiB each); the least recently used half-heartedly goes first."""


@dataclass(slots=True)
class Counters:
    """What happened so far; read them through ``Session.stats``."""

    routes_prepared: int = 0
    routes_forgotten: int = 0
    slot_growths: int = 0
    kept_views: int = 0
    lost_leases: int = 0


class Core:
    """Slots, routes and rules of one session. Thread-safe: a slot is touched by its holder only.

    Args:
        manifest: of the bundle.
        maker: prepares routes.
        arena: gives the memory.
        slots: calls that may run at once.
    """

    def __init__(self, manifest: Manifest, maker: RouteMaker, arena: Arena, slots: int) -> None:
        self.signature = manifest.signature
        self.output_names = tuple(spec.name for spec in manifest.signature.outputs)
        self.counters = Counters()
        self._maker = maker
        self._arena = arena
        self._optional = frozenset(d.input for d in manifest.derived) | frozenset(
            spec.name for spec in manifest.signature.inputs if not spec.used or spec.has_default
        )
        self.slot_bytes = planned_slot_bytes(manifest)
        self._pinned: list[tuple[Slot, Route]] = []
        self._pin_lock = Lock()
        self.slots: list[Slot] = []
        try:
            for index in range(slots):
                self.slots.append(Slot(index, arena.reserve(self.slot_bytes)))  # noqa: PERF401 (undone on failure)
        except BaseException:
            for slot in self.slots:
                arena.release(slot.block)
            raise
        self.pool = SlotPool(self.slots, self._reclaim)
        self.fast_arrays = fast_reader(self.fast_specs)

    @property
    def fast_specs(self) -> tuple[tuple[str, np.dtype[Any]], ...]:
        """Name and dtype of the inputs that every request gives; empty when any of them cannot lie in memory."""
        specs = [spec for spec in self.signature.inputs if spec.name not in self._optional]
        if not all(spec.in_memory for spec in specs):
            return ()
        return tuple((spec.name, numpy_dtype(spec.dtype)) for spec in specs)

    def check(self, feeds: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, int]]:
        """Check a request (see ``check_request``)."""
        return check_request(self.signature, feeds, self._optional)

    def selected(self, outputs: Sequence[str] | None) -> tuple[str, ...]:
        """Return the output names that a caller asked for, in that order; all of them for None or none.

        Raises:
            RequestError: for unknown or repeated names.
        """
        if outputs is None or len(outputs) == 0:
            return self.output_names
        for name in outputs:
            if name not in self.output_names:
                raise RequestError(unknown_name("output", name, self.output_names))
        if len(set(outputs)) != len(outputs):
            raise RequestError(f"outputs {list(outputs)} repeat a name; ask for each once")
        return tuple(outputs)

    def take(self, timeout_s: float | None) -> Slot:
        """Take a free slot and open its lease, waiting while all are busy.

        Raises:
            SlotTimeoutError: when none became free in time.
        """
        try:
            slot = self.pool.take()
        except IndexError:
            slot = self.pool.wait(timeout_s)
        if slot.state:
            slot.move(SlotState.ALLOCATED)  # raises: somebody touched a slot without a lease
        slot.state = _ALLOCATED
        return slot

    def give(self, slot: Slot) -> None:
        """End a lease."""
        slot.state = _FREE
        self.pool.give(slot)

    def perform(
        self, slot: Slot, values: Mapping[str, Any], sizes: Mapping[str, int], cancel: CancelToken | None = None
    ) -> tuple[Route, dict[str, Any]]:
        """Run one checked request in an allocated slot.

        Returns:
            The route, whose output views hold the results, and the outputs that the engine returned by itself.

        Raises:
            RequestError: when no profile takes it.
            EngineError: when the engine fails; CancelledError when ``cancel`` stopped it.
        """
        given = tuple(values)
        arrays = list(values.values())
        key = route_key(arrays)
        route = slot.routes.get(key) or self._prepare(slot, key, given, sizes, padded=True)
        if not all(guard.holds(arrays[i]) for i, guard in route.guards):
            # Outside of what the probes saw, padding is not known to be neutral: exact sizes always are.
            key = ("exact", key)
            route = slot.routes.get(key) or self._prepare(slot, key, given, sizes, padded=False)
        route.used = True
        write_inputs(slot, route, arrays)
        slot.move(SlotState.INITIALISED)
        slot.move(SlotState.FENCED)
        try:
            if cancel is None:
                route.call.enqueue()
            else:
                cancel.run(route.call)
            late = route.call.wait()
        finally:
            slot.move(SlotState.INITIALISED)
        return route, late

    def finish_borrow(self, slot: Slot, route: Route) -> int:
        """End a lease whose views were handed out. A slot with views that are still referred to is put aside.

        Returns:
            How many views were kept.
        """
        slot.state = _FREE
        if route.has_kept_views():
            kept = len(route.kept_views())
            with self._pin_lock:
                self._pinned.append((slot, route))
            self.counters.kept_views += kept
            if self.pool.waiting:
                self.pool.wake()
            return kept
        self.pool.give(slot)
        return 0

    def drain(self) -> None:
        """Take every slot, waiting for calls in flight, and give all memory back. Kept views stay valid."""
        taken = 0
        while taken < len(self.slots):
            with self._pin_lock:
                pinned, self._pinned = self._pinned, []
            for slot, route in pinned:
                self._arena.release_after(slot.block, route.kept_views())
                taken += 1
            if taken < len(self.slots):
                slot = self.pool.wait(None)
                self._arena.release(slot.block)
                slot.routes.clear()
                taken += 1
        for slot in self.slots:
            slot.routes.clear()
            slot.last = None

    def _reclaim(self) -> Slot | None:
        """Find a slot among those put aside: one whose views died, or else one that gets new memory."""
        with self._pin_lock:
            for i, (slot, route) in enumerate(self._pinned):
                if not route.kept_views():
                    del self._pinned[i]
                    return slot
            if not self._pinned:
                return None
            slot, route = self._pinned.pop(0)
        try:
            block = self._arena.reserve(slot.block.size_bytes)
        except BaseException:
            with self._pin_lock:
                self._pinned.append((slot, route))
            raise
        self._arena.release_after(slot.block, route.kept_views())
        slot.replace_memory(block)
        return slot

    def _prepare(self, slot: Slot, key: Any, given: tuple[str, ...], sizes: Mapping[str, int], *, padded: bool) -> Route:
        plan = self._maker.plan(given, sizes, padded=padded)
        if plan.layout.size_bytes > slot.block.size_bytes:
            grown = self._arena.reserve(max(plan.layout.size_bytes, slot.block.size_bytes * 3 // 2))
            self._arena.release(slot.block)
            slot.replace_memory(grown)
            self.counters.slot_growths += 1
        while len(slot.routes) >= MAX_ROUTES:
            self._forget_one(slot)
        route = self._maker.prepare(plan, slot, given)
        slot.routes[key] = route
        self.counters.routes_prepared += 1
        return route

    def _forget_one(self, slot: Slot) -> None:
        """Forget the oldest route that was not used since the last look (second chance)."""
        for _ in range(len(slot.routes)):
            key = next(iter(slot.routes))
            route = slot.routes.pop(key)
            if not route.used:
                break
            route.used = False
            slot.routes[key] = route
        else:
            slot.routes.pop(next(iter(slot.routes)))
        self.counters.routes_forgotten += 1


def route_key(arrays: Sequence[Any]) -> Any:
    """The key of a request in the table of routes: the shape of a lone input, else the shapes of all, in order."""
    try:
        return arrays[0].shape if len(arrays) == 1 else tuple([array.shape for array in arrays])
    except AttributeError:  # sequences and the like
        return tuple([getattr(array, "shape", None) for array in arrays])


def fast_reader(specs: Sequence[tuple[str, np.dtype[Any]]]) -> Callable[[Any], list[np.ndarray] | None]:
    """Return a function from feeds to arrays in order, or None where the careful path must look."""
    count, ndarray = len(specs), np.ndarray

    def read(feeds: Any) -> list[np.ndarray] | None:
        arrays = []
        try:
            if len(feeds) != count:
                return None
            for name, dtype in specs:
                array = feeds[name]
                if type(array) is not ndarray or array.dtype is not dtype:
                    return None
                arrays.append(array)
        except (LookupError, TypeError):
            return None
        return arrays

    return read


def write_inputs(slot: Slot, route: Route, arrays: Sequence[Any]) -> None:
    """Write everything that a run reads: values, and the constants unless the same route ran here last."""
    for i, view in route.inputs:
        view[...] = arrays[i]
    if slot.last is not route:
        slot.last = None
        for view, value in route.constants:
            view[...] = value
        slot.last = route
    for rows, row in route.repeats:
        rows[...] = row
    for i, name in route.objects:
        slot.objects[name] = arrays[i]


def copy_outputs(route: Route, late: Mapping[str, Any], names: Sequence[str]) -> dict[str, np.ndarray]:
    """Copy results out of the slot; the caller owns them."""
    placed = dict(route.outputs)
    found: dict[str, Any] = {}
    for name in names:
        if name not in placed and name not in late:
            raise EngineError(f"the engine returned no output {name!r}")
        found[name] = placed[name].copy() if name in placed else late[name]
    return found


def planned_slot_bytes(manifest: Manifest) -> int:
    """Bytes of one slot: the largest layout of all profiles; 0 where maxima are open and slots grow."""
    needed = 0
    for profile in manifest.ladder.profiles:
        bucket = {symbol: size for symbol, size in profile.bucket.items() if size is not None}
        if len(bucket) < len(profile.bucket) or set(manifest.signature.symbols) - bucket.keys():
            return 0
        needed = max(needed, plan_layout(manifest.signature, bucket).size_bytes)
    return needed
