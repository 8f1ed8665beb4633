"""Moving values into a slot and out of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from trtc.engines.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping, Sequence

    from trtc.runtime.routes import Route
    from trtc.runtime.slots import Slot


def shapes_key(arrays: Sequence[Any]) -> Any:
    """The key of a request that gives exactly the required inputs: the lone shape, or all shapes in order."""
    return arrays[0].shape if len(arrays) == 1 else tuple([array.shape for array in arrays])


def names_key(given: tuple[str, ...], values: Sequence[Any]) -> Any:
    """The key of any other request: which inputs it gives counts as well. No ``shapes_key`` is equal to one."""
    return ("given", given, tuple([getattr(value, "shape", None) for value in values]))


Read: TypeAlias = "Callable[[Any], tuple[list[np.ndarray], Any] | None]"


def fast_reader(specs: Sequence[tuple[str, np.dtype[Any]]]) -> Read:
    """Return a function from feeds to their arrays and ``shapes_key``, or None where the careful path must look."""
    count, ndarray = len(specs), np.ndarray

    def read(feeds: Any) -> tuple[list[np.ndarray], Any] | None:
        arrays = []
        shapes = []
        try:
            if len(feeds) != count:
                return None
            for name, dtype in specs:
                array = feeds[name]
                if type(array) is not ndarray or array.dtype is not dtype:
                    return None
                arrays.append(array)
                shapes.append(array.shape)
        except (LookupError, TypeError):
            return None
        return (arrays, tuple(shapes) if count > 1 else shapes[0]) if count else None

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
        route.memory.objects[name] = arrays[i]


def forget_objects(route: Route) -> None:
    """Let go of the caller's values that a run referred to."""
    for _, name in route.objects:
        route.memory.objects[name] = None


def copy_outputs(route: Route, late: Mapping[str, Any], names: Sequence[str]) -> dict[str, np.ndarray]:
    """Copy results out of the slot; the caller owns them."""
    placed = route.outputs
    found: dict[str, Any] = {}
    for name in names:
        if name not in placed and name not in late:
            raise EngineError(f"the engine returned no output {name!r}; its bundle is damaged: rebuild it")
        found[name] = placed[name].copy() if name in placed else late[name]
    return found


def write_host_inputs(slot: Slot, route: Route, arrays: Sequence[Any], elsewhere: Container[int]) -> None:
    """Write what a run reads, but for the values at some positions, which reach the engine in another way."""
    for i, view in route.inputs:
        if i not in elsewhere:
            view[...] = arrays[i]
    slot.last = None
    for view, value in route.constants:
        view[...] = value
    for rows, row in route.repeats:
        rows[...] = row
