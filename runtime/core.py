"""The careful path: one request from checked values to results, in a slot that is held. Shared by run and borrow."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from trtc.engines.layout import HOST_ALIGNMENT_BYTES, plan_layout
from trtc.engines.signature import Signature, numpy_dtype
from trtc.profiles import RequestError, unknown_name
from trtc.runtime.arena import NO_BLOCK
from trtc.runtime.errors import MemoryBudgetError
from trtc.runtime.request import check_request
from trtc.runtime.route_table import make_room
from trtc.runtime.slots import Slot, SlotPool, SlotState
from trtc.runtime.transfer import copy_outputs, fast_reader, forget_objects, names_key, shapes_key, write_inputs

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from trtc.engines.manifest import Manifest
    from trtc.engines.protocol import Traits
    from trtc.runtime.arena import Arena
    from trtc.runtime.cancel import CancelToken
    from trtc.runtime.routes import Route, RouteMaker

_FREE = SlotState.FREE.value
_ALLOCATED = SlotState.ALLOCATED.value


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
        traits: of the engine: what kind of memory, and how it is aligned.
    """

    def __init__(self, manifest: Manifest, maker: RouteMaker, arena: Arena, slots: int, traits: Traits) -> None:
        self.signature = manifest.signature
        self.output_names = tuple(spec.public_name for spec in manifest.signature.outputs)
        self.counters = Counters()
        self.slot_bytes = planned_slot_bytes(manifest, traits.alignment_bytes)
        self.required = tuple(
            spec.name
            for spec in manifest.signature.inputs
            if spec.used and not spec.has_default and spec.name not in {d.input for d in manifest.derived}
        )
        self._maker = maker
        self._arena = arena
        self._map_memory = traits.map_memory
        # Only single operations that the interpreter lock makes atomic: a finalizer may come in between any two.
        self._aside: deque[tuple[Slot, Route]] = deque()
        self.put_aside = self._aside.append
        """End the lease of a slot whose views are still referred to: takes (slot, route); the slot's state is free."""
        self._drained: list[Slot] = []
        held: list[Slot] = []
        try:
            for index in range(slots):
                held.append(Slot(index, arena.reserve(self.slot_bytes, traits.map_memory)))  # noqa: PERF401 (undone on failure)
        except BaseException:
            for slot in held:
                arena.release(slot.block)
            raise
        self.pool = SlotPool(held)
        self.fast_specs = self._fast_specs()
        self.fast_arrays = fast_reader(self.fast_specs)

    def _fast_specs(self) -> tuple[tuple[str, np.dtype[Any]], ...]:
        """Name and dtype of the required inputs; empty when the fast path cannot serve this signature.

        It cannot where anything required, or any output, has no place in planned memory.
        """
        specs = [spec for spec in self.signature.inputs if spec.name in self.required]
        outputs = self.signature.outputs
        if not all(spec.in_memory for spec in (*specs, *outputs)) or any(None in (o.dims or ()) for o in outputs):
            return ()
        return tuple((spec.name, numpy_dtype(spec.dtype)) for spec in specs)

    def check(self, feeds: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, int]]:
        """Check a request (see ``check_request``)."""
        return check_request(self.signature, feeds, self.required, self._maker.misfits)

    def selected(self, outputs: Sequence[str] | None) -> tuple[str, ...]:
        """Return the output names that a caller asked for, in that order; all of them for None or none.

        Raises:
            RequestError: for unknown or repeated names.
        """
        if outputs is not None and (isinstance(outputs, dict | np.ndarray) or not hasattr(outputs, "__iter__")):
            raise RequestError(
                f"outputs came as {type(outputs).__name__}; give a list of output names, after one dict of all inputs: "
                'run({"input": array}, ["output"])'
            )
        names = [outputs] if isinstance(outputs, str) else [] if outputs is None else list(outputs)
        if not names:
            return self.output_names
        for name in names:
            if name not in self.output_names:
                raise RequestError(unknown_name("output", str(name), self.output_names))
        if len(set(names)) != len(names):
            raise RequestError(f"outputs {names} repeat a name; ask for each once")
        return tuple(names)

    def run(
        self,
        feeds: Mapping[str, Any],
        outputs: Sequence[str] | None = None,
        timeout_s: float | None = None,
        cancel: CancelToken | None = None,
    ) -> dict[str, np.ndarray]:
        """Run one request with everything looked at (see ``Session.run``)."""
        self.pool.check_open()
        names = self.selected(outputs)
        values, sizes = self.check(feeds)
        slot = self.take(timeout_s)
        try:
            route, late = self.perform(slot, values, sizes, cancel)
            return copy_outputs(route, late, names)
        finally:
            slot.state = _FREE
            self.pool.put(slot)
            if self.pool.waiting:
                self.pool.wake()

    def take(self, timeout_s: float | None) -> Slot:
        """Take a free slot and open its lease, waiting while all are busy.

        Raises:
            SlotTimeoutError: when none became free in time.
            SessionClosedError: when the session was closed meanwhile.
        """
        try:
            slot = self.pool.take()
        except IndexError:
            slot = self.pool.wait(timeout_s, self._reclaim)
        if slot.state:
            slot.move(SlotState.ALLOCATED)  # raises: somebody touched a slot without a lease
        slot.state = _ALLOCATED
        return slot

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
        route, arrays = self.route_for(slot, values, sizes)
        try:
            write_inputs(slot, route, arrays)
            slot.move(SlotState.INITIALISED)
            slot.move(SlotState.FENCED)
            try:
                if cancel is None:
                    route.call.enqueue()
                else:
                    cancel.run(route.call)
                late = {route.plan.public[name]: value for name, value in route.call.wait().items()}
            finally:
                slot.move(SlotState.INITIALISED)
        finally:
            forget_objects(route)
        return route, late

    def route_for(
        self, slot: Slot, values: Mapping[str, Any], sizes: Mapping[str, int], unseen: Collection[str] = ()
    ) -> tuple[Route, list[Any]]:
        """Return the route of a checked request, prepared in an allocated slot, with the values in order.

        Args:
            slot: allocated.
            values: by input name.
            sizes: of the symbols that they show.
            unseen: inputs whose values cannot be looked at: where padding depends on them, sizes are exact.

        Raises:
            RequestError: when no profile takes it.
            EngineError: when the engine refuses the binding.
        """
        given, arrays = tuple(values), list(values.values())
        plain = self.fast_specs and given == self.required
        key = shapes_key(arrays) if plain else names_key(given, arrays)
        route = slot.routes.get(key) or self._prepare(slot, key, given, sizes, padded=True)
        outside = [guard for i, guard in route.guards if given[i] in unseen or not guard.holds(arrays[i])]
        if outside:
            # Outside of what the probes saw, padding is not known to be neutral: exact sizes always are.
            key = ("exact", key)
            try:
                route = slot.routes.get(key) or self._prepare(slot, key, given, sizes, padded=False)
            except RequestError as error:
                raise RequestError(f"{outside[0].refusal()}: {error}") from error
        route.used = True
        return route, arrays

    def drain(self, reason: str) -> None:
        """Refuse new calls, wait for those in flight, and give all memory back. Kept views stay valid.

        Args:
            reason: what callers are told that come too late, or still wait for a slot.
        """
        self.pool.close(reason)
        while len(self._drained) < len(self.pool.slots):
            try:
                slot, route = self._aside.popleft()
                kept = route.kept_views()
            except IndexError:
                slot, kept = self.pool.wait(None, self._reclaim, closing=True), []
            self._drained.append(slot)  # keeps it: a slot that nobody holds counts as lost
            self._arena.release_after(slot.block, kept)
            slot.replace_memory(NO_BLOCK)  # a closed session holds nothing, for as long as somebody refers to it

    def give_back(self) -> None:
        """Give all memory back without waiting: for a session that was dropped, whose calls are over.

        Called by a finalizer, so it takes no lock.
        """
        kept = {slot.index: route.kept_views() for slot, route in self._aside}
        for slot in self.pool.slots:
            self._arena.release_after(slot.block, kept.get(slot.index, []))

    def _reclaim(self) -> Slot | None:
        """Find a slot that was lost, or one put aside whose views died, or else one put aside that gets new memory."""
        lost = self.pool.lost()
        if lost is not None:
            if lost.last is None or not lost.last.has_kept_views():
                return lost
            self._aside.append((lost, lost.last))
            del lost
        for _ in range(len(self._aside)):
            slot, route = self._aside.popleft()
            if not route.kept_views():
                return slot
            self._aside.append((slot, route))
        if not self._aside:
            return None
        slot, route = self._aside.popleft()
        try:
            block = self._arena.reserve(slot.block.size_bytes, self._map_memory)
        except BaseException as error:
            self._aside.append((slot, route))
            if isinstance(error, MemoryBudgetError) and len(self._aside) < len(self.pool.slots):
                return None  # a call in flight gives its slot back
            raise
        self._arena.release_after(slot.block, route.kept_views())
        slot.replace_memory(block)
        return slot

    def _prepare(
        self, slot: Slot, key: Any, given: tuple[str, ...], sizes: Mapping[str, int], *, padded: bool
    ) -> Route:
        plan = self._maker.plan(given, sizes, padded=padded)
        if plan.layout.size_bytes > slot.block.size_bytes:
            wanted = max(plan.layout.size_bytes, slot.block.size_bytes * 3 // 2)
            grown = self._arena.reserve(wanted, self._map_memory)
            old = slot.block
            slot.replace_memory(grown)
            self._arena.release(old)
            self.counters.slot_growths += 1
        self.counters.routes_forgotten += make_room(slot.routes)
        route = self._maker.prepare(plan, slot, given)
        slot.routes[key] = route
        self.counters.routes_prepared += 1
        return route


def planned_slot_bytes(manifest: Manifest, alignment_bytes: int = HOST_ALIGNMENT_BYTES) -> int:
    """Bytes of one slot: the largest layout of all profiles; 0 where maxima are open and slots grow."""
    inputs = tuple(spec for spec in manifest.signature.inputs if spec.used)
    signature = Signature(inputs, manifest.signature.outputs)
    needed = 0
    for profile in manifest.ladder.profiles:
        bucket = {symbol: size for symbol, size in profile.bucket.items() if size is not None}
        if set(signature.symbols) - bucket.keys():
            return 0
        needed = max(needed, plan_layout(signature, bucket, alignment_bytes).size_bytes)
    return needed
