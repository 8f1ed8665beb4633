"""Prepared routes: for one slot and one set of shapes, everything that a call does, ready to be done."""

from __future__ import annotations

from sys import getrefcount
from typing import TYPE_CHECKING, Any

import numpy as np

from trtc.engines.memory import HostSlot, array_at
from trtc.engines.route import RoutePlan, plan_route
from trtc.engines.signature import Signature
from trtc.profiles import RequestError
from trtc.runtime.derived import DerivedTables
from trtc.runtime.fit import PickTables, misfits
from trtc.runtime.guards import Guard, guards_of
from trtc.runtime.waited import WaitedCall

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from trtc.engines.manifest import Manifest, Mode
    from trtc.engines.protocol import Call, Engine
    from trtc.engines.route import Region
    from trtc.runtime.slots import Slot


class Route:
    """What one call does. Owned by a slot; used by the holder of its lease only.

    Attributes:
        call: prepared by the engine; its run is over when ``enqueue`` returns.
        inputs: (position among the given values, view of the real region) of each given input that has a place.
        lone: the view of the only input, where there is one.
        constants: (view, value) of everything that is the same in each run: padding, and inputs that trtc makes.
        repeats: (view of padded rows, view of the real row) pairs, to be copied on every run.
        outputs: view of the caller's region of each placed output, by name.
        copies: (name, function that copies that view).
        guards: (position, domain) to be checked before a padded run.
        objects: (position, name) of the inputs that cannot lie in memory.
        memory: what the engine sees of the slot; it holds the objects.
        used: set by every run, cleared when the table looks for something to forget.
    """

    __slots__ = (
        "_idle",
        "call",
        "constants",
        "copies",
        "guards",
        "inputs",
        "lone",
        "memory",
        "objects",
        "outputs",
        "plan",
        "repeats",
        "used",
    )

    def __init__(self, plan: RoutePlan, slot: Slot, given: tuple[str, ...], made: Mapping[str, np.ndarray]) -> None:
        layout = plan.layout
        places = {name: array_at(slot.buffer, place) for name, place in layout.inputs.items()}
        real = {name: _part(places[name], plan.inputs[name].real) for name in layout.inputs}
        self.plan = plan
        self.inputs = tuple((i, real[name]) for i, name in enumerate(given) if name in real)
        self.constants: tuple[tuple[np.ndarray, Any], ...] = (
            *((real[name], array) for name, array in made.items()),
            *(
                (_part(places[name], region), value)
                for name in layout.inputs
                for region, value in plan.inputs[name].fills
            ),
        )
        self.repeats = tuple(
            (_part(places[name], to), _part(places[name], source))
            for name in places
            for to, source in plan.inputs[name].repeats
        )
        self.outputs = {
            plan.public[name]: _view_of(slot, _part(array_at(slot.buffer, place), plan.trims[name]))
            for name, place in layout.outputs.items()
        }
        self.copies = tuple((name, view.copy) for name, view in self.outputs.items())
        if len(self.inputs) == 1:
            self.lone = self.inputs[0][1]
        self.guards: tuple[tuple[int, Guard], ...] = ()
        self.objects: tuple[tuple[int, str], ...] = ()
        self.memory = HostSlot(slot.buffer, slot.address)
        self.used = True
        self.call: Call
        self._idle = 0
        for view in self.outputs.values():
            self._idle = getrefcount(view)  # as counted by loops like this one

    def guarded(self, arrays: Sequence[np.ndarray]) -> bool:
        """Tell whether these values lie where padding was shown to be neutral."""
        for i, guard in self.guards:  # noqa: SIM110 (a generator costs more than the rest)
            if not guard.holds(arrays[i]):
                return False
        return True

    def has_kept_views(self) -> bool:
        """Tell whether anybody else still refers to an output view, directly or through a slice of it."""
        idle = self._idle
        for view in self.outputs.values():  # noqa: SIM110 (a generator costs more than the rest)
            if getrefcount(view) > idle:
                return True
        return False

    def kept_views(self) -> list[np.ndarray]:
        """Return the output views that somebody else still refers to."""
        kept = []
        for view in self.outputs.values():
            if getrefcount(view) > self._idle:
                kept.append(view)  # noqa: PERF401 (a comprehension may hold another number of references)
        return kept


def _part(array: np.ndarray, region: Region) -> np.ndarray:
    """View a region. The ellipsis matters for rank 0, where numpy would hand out a copy of the number instead."""
    index: Any = (*region, ...)
    part: np.ndarray = array[index]
    return part


def _view_of(slot: Slot, part: np.ndarray) -> np.ndarray:
    """Rebuild a view directly over the slot's buffer.

    numpy makes a slice refer to the first owner of its memory and skips the arrays in between: only a view that
    sits on the buffer itself is referred to by its slices, which is how a kept one is noticed.
    """
    start = part.__array_interface__["data"][0] - slot.address if part.size else 0
    return np.ndarray(part.shape, part.dtype, buffer=slot.buffer, offset=start, strides=part.strides)


class RouteMaker:
    """Decides how requests run and prepares their routes. Its values never change; thread-safe.

    Args:
        manifest: of the bundle.
        engine: that was loaded.
        mode: exact, or padded to the bucket.
    """

    def __init__(self, manifest: Manifest, engine: Engine, mode: Mode) -> None:
        self._manifest = manifest
        self._engine = engine
        self._traits = engine.traits
        self._mode = mode
        self._guards = guards_of(manifest, filled=True)
        self._row_guards = guards_of(manifest, filled=False)
        self._tables = DerivedTables(manifest.signature)
        self._picks = PickTables(manifest.ladder, manifest.signature.symbols)
        self._derived = {d.input: d for d in manifest.derived}

    def plan(self, given: Iterable[str], sizes: Mapping[str, int], *, padded: bool = True) -> RoutePlan:
        """Plan a request.

        Args:
            given: names of the inputs that the caller gives.
            sizes: real sizes by symbol.
            padded: False to run at exactly these sizes, because the request's values forbid padding.

        Raises:
            RequestError: when no profile takes the sizes, or a size cannot be known.
        """
        manifest = self._manifest
        signature = self._reduced(given)
        needed = {*signature.symbols, *(symbol for spec in signature.outputs for symbol in spec.symbols)}
        if unknown := [s for s in manifest.signature.symbols if s in needed and s not in sizes]:
            raise RequestError(
                f"the size of {', '.join(unknown)} does not follow from the inputs that were given; "
                f"give an input that has it: {', '.join(str(i) for i in manifest.signature.inputs)}"
            )
        allowed = manifest.padded if padded else frozenset[str]()
        profile = manifest.ladder.profiles[self._picks.pick(sizes, allowed)]
        run = profile.run_sizes(sizes, allowed, to_bucket=self._mode == "bucket")
        rules = [rule for rule in manifest.padding if rule.symbol in sizes]
        return plan_route(signature, rules, sizes, run, self._traits.alignment_bytes)

    def misfits(self, sizes: Mapping[str, int]) -> list[str]:
        """Say everything that keeps these sizes, of all symbols or of some, out of the ladder."""
        return misfits(self._manifest.ladder, sizes, self._manifest.padded)

    def prepare(self, plan: RoutePlan, slot: Slot, given: tuple[str, ...]) -> Route:
        """Prepare a planned request in a slot that is large enough.

        Raises:
            EngineError: when the engine refuses the binding.
        """
        names = set(given)
        made = {
            name: self._tables.values(self._derived[name], plan)
            for name in plan.layout.inputs
            if name not in names and name in self._derived
        }
        route = Route(plan, slot, given, made)
        if plan.padded:
            guards = self._guards if plan.padded_values else self._row_guards
            route.guards = tuple((i, guards[name]) for i, name in enumerate(given) if name in guards)
        used = {spec.name for spec in self._manifest.signature.inputs if spec.used}
        route.objects = tuple(
            (i, name) for i, name in enumerate(given) if name in used and name not in plan.layout.inputs
        )
        route.memory.objects.update((name, None) for _, name in route.objects)
        call = self._engine.prepare(plan.layout, route.memory)
        route.call = WaitedCall(call) if self._traits.asynchronous else call
        return route

    def _reduced(self, given: Iterable[str]) -> Signature:
        """The signature of a call: inputs that no node uses, or that the model has a value for, have no place."""
        names = {*given, *self._derived}
        inputs = tuple(spec for spec in self._manifest.signature.inputs if spec.used and spec.name in names)
        return Signature(inputs, self._manifest.signature.outputs)
