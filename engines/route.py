"""What happens to each tensor of one request: where its real part lies, what is filled, what is cut off again.

Pure planning, shared by the compiler (which proves and verifies padding) and the runtime (which does it), so that
both mean the same thing by it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from trtc.engines.errors import BundleError
from trtc.engines.layout import HOST_ALIGNMENT_BYTES, Layout, plan_layout
from trtc.engines.value import Value
from trtc.profiles import dim_symbols, dim_value

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from trtc.engines.signature import Signature, TensorSpec
    from trtc.profiles import Dim, PadRule, Sizes

Region: TypeAlias = tuple[slice, ...]


class InputRoute(Value, frozen=True):
    """How one input reaches its place.

    Attributes:
        real: the region that takes the caller's values.
        fills: regions and the constant that fills each; to be written in this order.
        repeats: (destination, source) regions: a real row is copied into the padded rows; after the fills.
    """

    real: Region
    fills: tuple[tuple[Region, float | int | bool], ...] = ()
    repeats: tuple[tuple[Region, Region], ...] = ()


class RoutePlan(Value, frozen=True):
    """One request at its real sizes, run at possibly larger ones.

    Attributes:
        sizes: what the request has.
        layout: places at the sizes that it runs at.
        inputs: routes of the placed inputs.
        trims: region of each placed output that belongs to the caller.
        public: the name that callers use for each output.
        padded: True when any size grows, so that the value domain of the evidence must be checked.
        padded_values: True when constants are filled in; rows that only repeat real rows have a domain of their own.
    """

    sizes: dict[str, int]
    layout: Layout
    inputs: dict[str, InputRoute]
    trims: dict[str, Region]
    public: dict[str, str]
    padded: bool
    padded_values: bool


def plan_route(
    signature: Signature,
    padding: Sequence[PadRule],
    sizes: Sizes,
    run_sizes: Sizes,
    alignment_bytes: int = HOST_ALIGNMENT_BYTES,
) -> RoutePlan:
    """Plan one request.

    Args:
        signature: of the bundle, reduced to the inputs that the request gives.
        padding: accepted rules; only their symbols may differ between ``sizes`` and ``run_sizes``.
        sizes: real sizes by symbol.
        run_sizes: sizes to run at, each at least the real one.
        alignment_bytes: of every place.

    Raises:
        RequestError: when a relation gives a negative size.
        BundleError: when a rule has no fill for an input.
    """
    layout = plan_layout(signature, run_sizes, alignment_bytes)
    rules = {rule.symbol: rule for rule in padding if run_sizes[rule.symbol] != sizes[rule.symbol]}
    inputs = {
        spec.name: _input_route(spec, rules, sizes, layout.inputs[spec.name].shape)
        for spec in signature.inputs
        if spec.name in layout.inputs
    }
    trims = {
        spec.name: tuple(
            _real_range(dim, rules, sizes, full)
            for dim, full in zip(spec.dims or (), layout.outputs[spec.name].shape, strict=True)
        )
        for spec in signature.outputs
        if spec.name in layout.outputs
    }
    public = {spec.name: spec.public_name for spec in signature.outputs}
    filled = any(rule.side != "rows" for rule in rules.values())
    return RoutePlan(dict(sizes), layout, inputs, trims, public, padded=bool(rules), padded_values=filled)


def pad_array(array: np.ndarray, route: InputRoute, shape: tuple[int, ...]) -> np.ndarray:
    """Return a new array of ``shape`` with ``array`` in its real region and the padding filled in."""
    import numpy as np

    padded = np.empty(shape, array.dtype)
    fill_input(padded, array, route)
    return padded


def fill_input(place: np.ndarray, array: np.ndarray, route: InputRoute) -> None:
    """Write one input into its place: real values, then constants, then repeated rows."""
    place[route.real] = array
    for region, value in route.fills:
        place[region] = value
    for destination, source in route.repeats:
        place[destination] = place[source]


def _real_range(dim: Dim, rules: dict[str, PadRule], sizes: Sizes, full: int) -> slice:
    """The part of an axis that is real, as a slice without open ends."""
    touched = dim_symbols(dim) & rules.keys()
    real = dim_value(dim, sizes) if touched else full
    if real is None or real == full:
        return slice(0, full)
    left = any(rules[symbol].side == "left" for symbol in touched)
    return slice(full - real, full) if left else slice(0, real)


def _input_route(spec: TensorSpec, rules: dict[str, PadRule], sizes: Sizes, shape: tuple[int, ...]) -> InputRoute:
    dims = spec.dims or ()
    real = tuple(_real_range(dim, rules, sizes, full) for dim, full in zip(dims, shape, strict=True))
    whole = tuple(slice(0, full) for full in shape)
    fills: list[tuple[Region, float | int | bool]] = []
    repeats: list[tuple[Region, Region]] = []
    for axis, (dim, part, full) in enumerate(zip(dims, real, shape, strict=True)):
        if part == slice(0, full) or not isinstance(dim, str):
            continue

        def region(cut: slice, axis: int = axis) -> Region:
            return (*whole[:axis], cut, *whole[axis + 1 :])

        if rules[dim].side == "rows":
            repeats.append((region(slice(part.stop, full)), region(slice(part.stop - 1, part.stop))))
        else:
            pad = slice(0, part.start) if part.start else slice(part.stop, full)
            if spec.name not in rules[dim].fills:
                raise BundleError(f"input {spec.name!r} has no fill for {dim}, which is padded; rebuild the bundle")
            fills.append((region(pad), rules[dim].fills[spec.name]))
    return InputRoute(real, tuple(fills), tuple(repeats))
