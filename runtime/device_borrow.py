"""Results that stay on the device, and inputs that are there already, for the length of a ``with`` block."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from trtc.profiles import RequestError
from trtc.runtime.borrow import Borrow, BorrowedOutputs
from trtc.runtime.errors import KeptViewWarning, LeaseError
from trtc.runtime.slots import SlotState
from trtc.runtime.transfer import write_host_inputs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trtc.engines.protocol import DeviceCall, DeviceEngine
    from trtc.runtime.routes import Route
    from trtc.runtime.slots import Slot
    from trtc.runtime.waited import WaitedCall

_ON_HOST = frozenset([1, 3])
"""Kinds of memory that numpy reads by itself, as DLPack numbers them: the processor's, and pinned memory."""


class _Held:
    """Lives as long as a view, or anything that was made from one."""

    __slots__ = ("__weakref__",)


class DeviceBorrow(Borrow):
    """A call whose outputs are read on the device, as objects with DLPack.

    A view, or a tensor made from one, that outlives the block keeps its values: its slot takes other device memory.
    """

    __slots__ = ("_engine", "_held")

    def on(self, engine: DeviceEngine) -> DeviceBorrow:
        """Say which engine it is."""
        self._engine = engine
        self._held: weakref.ref[_Held] | None = None
        return self

    def __enter__(self) -> BorrowedOutputs:
        if self._slot is not None:
            raise LeaseError("this borrow is open already; call session.borrow(...) once for each block")
        core = self._core
        there = {name: value for name, value in _items(self._feeds) if lies_on_device(value)}
        seen = {name: self._stand_in(value) for name, value in there.items()}
        values, sizes = core.check({**dict(_items(self._feeds)), **seen} if there else self._feeds)
        slot = core.take(self._timeout_s)
        try:
            route, _ = core.route_for(slot, values, sizes, there)
            views = self._run(slot, route, values, there)
        except BaseException:
            slot.state = SlotState.FREE
            core.pool.put(slot)
            if core.pool.waiting:
                core.pool.wake()
            raise
        self._route, self._views, self._slot = route, views, slot
        return views

    def __exit__(self, *_: object) -> None:
        slot = self._slot
        if slot is None:
            return
        self._views.clear()
        kept = self._held is not None and self._held() is not None
        if kept:
            self._engine.part(slot.address)
            slot.routes.clear()
            slot.last = None
            self._core.counters.kept_views += 1
        super().__exit__()
        if kept:
            self._warn(
                "a view on the device outlived its borrow block; it keeps its values, and its slot takes other device "
                "memory: copy what you keep, or call run()",
                KeptViewWarning,
            )

    def _stand_in(self, value: Any) -> np.ndarray:
        """Return an array without memory of its own that has shape and type of a tensor on the device."""
        shape, dtype = self._engine.look(value)
        return np.broadcast_to(np.zeros((), dtype), shape)

    def _run(self, slot: Slot, route: Route, values: Mapping[str, Any], there: Mapping[str, Any]) -> BorrowedOutputs:
        plan = route.plan
        if plan.layout.late:
            raise RequestError(
                f"the data decides the size of output {plan.layout.late[0]!r}: it cannot stay on the device; call run()"
            )
        for name in there:
            if name in plan.layout.inputs and plan.layout.inputs[name].shape != values[name].shape:
                raise RequestError(
                    f"input {name!r} lies on the device as {list(values[name].shape)}, and would be padded to "
                    f"{list(plan.layout.inputs[name].shape)}; send it at that size, or from the host"
                )
        write_host_inputs(slot, route, list(values.values()), [i for i, name in enumerate(values) if name in there])
        call = cast("DeviceCall", cast("WaitedCall", route.call).asynchronous)
        slot.move(SlotState.INITIALISED)
        slot.move(SlotState.FENCED)
        try:
            call.enqueue_on_device({name: value for name, value in there.items() if name in plan.layout.inputs})
        finally:
            call.wait()
            slot.move(SlotState.INITIALISED)
        held = _Held()
        self._held = weakref.ref(held)
        names = {public: name for name, public in plan.public.items()}
        return BorrowedOutputs(
            [
                (public, call.output_view(names[public], plan.trims[names[public]], held))
                for public in self._names or self._core.output_names
            ]
        )


def lies_on_device(value: Any) -> bool:
    """Tell whether a value lies where numpy cannot read it."""
    if isinstance(value, np.ndarray | np.generic):
        return False
    kind = getattr(value, "__dlpack_device__", None)
    return kind is not None and int(kind()[0]) not in _ON_HOST


def _items(feeds: Any) -> list[tuple[str, Any]]:
    """Return the items of any mapping; nothing for what is none (the check says so)."""
    return [(name, feeds[name]) for name in feeds.keys()] if hasattr(feeds, "keys") else []  # noqa: SIM118 (as there)
