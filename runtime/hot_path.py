"""The fast path of ``Session.run``: a request whose arrays have the model's types and whose shapes were seen before.

It does what ``Core.perform`` does, in one function without calls that could be spared; anything unusual (other types,
new shapes, missing inputs, busy slots) goes to the careful path. Each line here was measured: a call of a tiny model
spends most of its time inside the engine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from trtc.runtime.slots import SlotState

if TYPE_CHECKING:
    from collections.abc import Callable

    from trtc.runtime.core import Core

    Results = dict[str, Any]


def fast_run(core: Core) -> Callable[[Any], Results]:
    """Return a function from feeds to all outputs; ``core.run`` takes the requests that the fast path does not."""
    specs = core.fast_specs
    if not specs:
        return core.run
    if len(specs) == 1:
        return _fast_single(core, *specs[0])
    return _fast_many(core, specs)


def _fast_single(core: Core, name: str, dtype: np.dtype[Any]) -> Callable[[Any], Results]:  # noqa: C901 (one piece: calls cost)
    careful = core.run
    take, put, pool, ndarray = core.pool.take, core.pool.put, core.pool, np.ndarray
    free, allocated, fenced = SlotState.FREE.value, SlotState.ALLOCATED.value, SlotState.FENCED.value

    def run(feeds: Any) -> Results:
        try:
            array = feeds[name]
            if type(array) is not ndarray or array.dtype is not dtype or len(feeds) != 1:
                return careful(feeds)
            slot = take()
        except (LookupError, TypeError):  # another name or type of feeds; or all slots are busy
            return careful(feeds)
        if slot.state:
            slot.move(SlotState.ALLOCATED)  # raises: somebody touched a slot without a lease
        try:
            slot.state = allocated
            route = slot.routes.get(array.shape)
            if route is not None and (not route.guards or route.guards[0][1].holds(array)):
                route.used = True
                route.lone[...] = array
                if slot.last is not route:
                    slot.last = None
                    for view, value in route.constants:
                        view[...] = value
                    slot.last = route
                for rows, row in route.repeats:
                    rows[...] = row
                slot.state = fenced
                route.call.enqueue()
                results = {}
                for output, copy in route.copies:  # a comprehension is a call before Python 3.12
                    results[output] = copy()
                return results
        finally:
            slot.state = free
            put(slot)
            if pool.waiting:
                pool.wake()
        del slot  # who comes next may lose it to an interrupt: then nobody else may seem to hold it
        return careful(feeds)

    return run


def _fast_many(  # noqa: C901 (one piece: calls cost)
    core: Core, specs: tuple[tuple[str, np.dtype[Any]], ...]
) -> Callable[[Any], Results]:
    careful = core.run
    take, put, pool, ndarray, count = core.pool.take, core.pool.put, core.pool, np.ndarray, len(specs)
    free, allocated, fenced = SlotState.FREE.value, SlotState.ALLOCATED.value, SlotState.FENCED.value

    def run(feeds: Any) -> Results:  # noqa: C901, PLR0912 (as above)
        arrays = []
        shapes = []
        try:
            if len(feeds) != count:
                return careful(feeds)
            for name, dtype in specs:
                array = feeds[name]
                if type(array) is not ndarray or array.dtype is not dtype:
                    return careful(feeds)
                arrays.append(array)
                shapes.append(array.shape)
            slot = take()
        except (LookupError, TypeError):
            return careful(feeds)
        if slot.state:
            slot.move(SlotState.ALLOCATED)
        try:
            slot.state = allocated
            route = slot.routes.get(tuple(shapes))
            if route is not None:
                for i, guard in route.guards:
                    if not guard.holds(arrays[i]):
                        break
                else:
                    route.used = True
                    for i, view in route.inputs:
                        view[...] = arrays[i]
                    if slot.last is not route:
                        slot.last = None
                        for view, value in route.constants:
                            view[...] = value
                        slot.last = route
                    for rows, row in route.repeats:
                        rows[...] = row
                    slot.state = fenced
                    route.call.enqueue()
                    results = {}
                    for output, copy in route.copies:
                        results[output] = copy()
                    return results
        finally:
            slot.state = free
            put(slot)
            if pool.waiting:
                pool.wake()
        del slot  # who comes next may lose it to an interrupt: then nobody else may seem to hold it
        return careful(feeds)

    return run
