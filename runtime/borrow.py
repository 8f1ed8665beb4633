"""Results without a copy: views into the slot, for the length of a ``with`` block."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, NoReturn

from trtc.profiles import RequestError, unknown_name
from trtc.runtime.errors import KeptViewWarning, LeaseError, LostLeaseWarning
from trtc.runtime.slots import Slot, SlotState
from trtc.runtime.transfer import write_inputs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from trtc.runtime.core import Core
    from trtc.runtime.routes import Route

_FREE = SlotState.FREE.value
_FENCED = SlotState.FENCED.value
_INITIALISED = SlotState.INITIALISED.value


class BorrowedOutputs(dict[str, Any]):
    """Output views by name, while the borrow block is open."""

    def __missing__(self, name: str) -> NoReturn:
        raise RequestError(unknown_name("borrowed output", str(name), self))


class EndedOutputs(BorrowedOutputs):
    """What borrowed outputs become when their block ends: every use raises LeaseError."""

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise LeaseError(
            "the borrow block has ended and its views are gone; use them inside the block, "
            "or call run() for results that you own"
        )

    __getitem__ = __setitem__ = __delitem__ = __contains__ = __iter__ = __len__ = __eq__ = _refuse
    __or__ = __ror__ = __ior__ = __reversed__ = _refuse
    get = items = keys = values = copy = pop = popitem = setdefault = update = _refuse
    __hash__ = None  # type: ignore[assignment]  # as for every dict

    def __repr__(self) -> str:
        return "<outputs of a borrow block that has ended>"


class Borrow:
    """A call whose results are read in place.

    Entering runs the request; leaving ends the lease. A view that is still referred to then keeps its values: its
    slot is put aside until the view is gone, which is counted and warned about once for each session.
    A borrow that is dropped while open is reclaimed, with a warning.
    """

    __slots__ = ("_core", "_feeds", "_names", "_route", "_slot", "_timeout_s", "_views", "_warn")

    _route: Route
    _views: BorrowedOutputs

    def __init__(
        self,
        core: Core,
        feeds: Mapping[str, Any],
        outputs: Sequence[str] | None,
        timeout_s: float | None,
        warn: Callable[[str, type[Warning]], None],
    ) -> None:
        self._slot: Slot | None = None
        self._core = core
        self._feeds = feeds
        self._names = None if outputs is None else core.selected(outputs)
        self._timeout_s = timeout_s
        self._warn = warn

    def __enter__(self) -> BorrowedOutputs:
        if self._slot is not None:
            raise LeaseError("this borrow is open already; call session.borrow(...) once for each block")
        core = self._core
        fast = core.fast_arrays(self._feeds)
        slot = core.take(self._timeout_s)
        try:
            route = None if fast is None else slot.routes.get(fast[1])
            if fast is None or route is None or not route.guarded(fast[0]):
                values, sizes = core.check(self._feeds)
                route, late = core.perform(slot, values, sizes)
                found = {**route.outputs, **late}
                views = BorrowedOutputs([(name, found[name]) for name in self._names or core.output_names])
            else:
                route.used = True
                write_inputs(slot, route, fast[0])
                slot.state = _FENCED
                route.call.enqueue()
                slot.state = _INITIALISED
                views = BorrowedOutputs(route.outputs)
                if self._names is not None:
                    views = BorrowedOutputs([(name, views[name]) for name in self._names])
            self._route, self._views = route, views
        except BaseException:
            slot.state = _FREE
            core.pool.put(slot)
            if core.pool.waiting:
                core.pool.wake()
            raise
        self._slot = slot
        return views

    def __exit__(self, *_: object) -> None:
        slot = self._slot
        if slot is None:
            return
        core, route = self._core, self._route
        self._views.clear()
        self._views.__class__ = EndedOutputs
        # Ending the lease is one step for an interrupt: none comes between the assignment and the end of the call.
        if not route.has_kept_views():
            put = core.pool.put
            slot.state, self._slot = _FREE, None
            put(slot)
            kept = 0
        else:
            kept = len(route.kept_views())
            put_aside, entry = core.put_aside, (slot, route)
            slot.state, self._slot = _FREE, None
            put_aside(entry)
            core.counters.kept_views += kept
        del self._route
        if core.pool.waiting:
            core.pool.wake()
        if kept:
            self._warn(
                "a view from borrow() outlived its block; it keeps its values, but its slot cannot be used until "
                "the view is gone: copy what you keep, or call run()",
                KeptViewWarning,
            )

    def __del__(self) -> None:
        if getattr(self, "_slot", None) is not None:  # an interrupt can come before there is any attribute
            self._core.counters.lost_leases += 1
            self.__exit__()
            warnings.warn("a borrow was dropped before its block ended; its slot was reclaimed", LostLeaseWarning, 2)
