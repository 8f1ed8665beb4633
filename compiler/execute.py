"""One request through an engine, outside a session: for verification and measurement, not for speed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from trtc.engines.memory import array_at, host_slot
from trtc.engines.route import fill_input

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trtc.engines.protocol import Engine
    from trtc.engines.route import RoutePlan


_LEFTOVER = 0xA5
"""A byte that is no likely part of an answer."""


def run_call(engine: Engine, route: RoutePlan, feeds: Mapping[str, Any]) -> dict[str, Any]:
    """Fill a slot of its own, run twice, copy the real parts out.

    The first run of a call may take another way through an engine than all later ones, which answer nearly every
    request: those are what is returned. Between the runs the outputs are overwritten, so that nothing is left over.

    Args:
        engine: open.
        route: planned for these feeds by ``plan_route``.
        feeds: a value for each input of the route, at the real sizes; strings and sequences as they are.

    Returns:
        Outputs at the real sizes: first those with a place, then those that the engine sized itself. The caller
        owns them.

    Raises:
        EngineError: from the engine.
    """
    slot = host_slot(route.layout.size_bytes)
    for name, value in feeds.items():
        place = route.layout.inputs.get(name)
        if place is None:
            slot.objects[name] = value
        else:
            fill_input(array_at(slot.buffer, place), np.asarray(value), route.inputs[name])
    call = engine.prepare(route.layout, slot)
    call.enqueue()
    call.wait()
    for place in route.layout.outputs.values():
        np.ndarray(place.size_bytes, np.uint8, buffer=slot.buffer, offset=place.offset_bytes)[...] = _LEFTOVER
    call.enqueue()
    late = call.wait()
    outputs: dict[str, Any] = {
        name: array_at(slot.buffer, place)[route.trims[name]].copy() for name, place in route.layout.outputs.items()
    }
    return {**outputs, **late}
