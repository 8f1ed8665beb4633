"""Values of inputs that may decide shapes: a builder with ranges for sizes wants ranges for these as well."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from trtc.engines.build import ValueBounds
from trtc.profiles.grammar import val_ranges

if TYPE_CHECKING:
    from trtc.compiler.options import BuildOptions
    from trtc.compiler.values import ValueSource
    from trtc.engines.signature import TensorSpec
    from trtc.profiles import Ladder, Profile

_INTEGERS = ("int32", "int64")
_MOST_ELEMENTS = 64
"""Inputs with more elements hold data, not sizes."""


def shape_values(source: ValueSource, ladder: Ladder, options: BuildOptions) -> tuple[dict[str, ValueBounds], ...]:
    """Return the lowest, the likely and the highest values of each small integer input, where they are known.

    Bounds are those that were declared, else those of real samples; where neither says anything, nothing is invented.
    The likely values are ones that the model runs with at the profile's tuned sizes.

    Args:
        source: of the build's values.
        ladder: one mapping is returned for each of its profiles.
        options: with the declared ranges.
    """
    bounds: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    declared = val_ranges(options.val_ranges)
    for spec in source.inputs:
        if _may_hold_sizes(spec):
            found = _bounds(source, spec, declared.get(spec.name))
            if found is not None:
                bounds[spec.name] = found
    return tuple(_of_profile(source, bounds, profile, options) for profile in ladder.profiles)


def _may_hold_sizes(spec: TensorSpec) -> bool:
    dims = [dim for dim in spec.dims or () if isinstance(dim, int)]
    static = spec.dims is not None and len(dims) == len(spec.dims)
    return spec.dtype in _INTEGERS and static and prod(dims) <= _MOST_ELEMENTS


def _bounds(
    source: ValueSource, spec: TensorSpec, declared: tuple[float, float] | None
) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the lowest and the highest value of each element, flat."""
    if declared is not None:
        count = prod(dim for dim in spec.dims or () if isinstance(dim, int))
        return np.full(count, int(declared[0])), np.full(count, int(declared[1]))
    feeds = source.samples.feeds if source.samples is not None else ()
    given = [np.asarray(feed[spec.name]).reshape(-1) for feed in feeds if spec.name in feed]
    return (np.min(given, axis=0), np.max(given, axis=0)) if given else None


def _of_profile(
    source: ValueSource, bounds: dict[str, tuple[np.ndarray, np.ndarray]], profile: Profile, options: BuildOptions
) -> dict[str, ValueBounds]:
    if not bounds:
        return {}
    sizes = {symbol: r.opt for symbol, r in profile.ranges.items() if r.opt is not None}
    feeds: dict[str, Any] = source.feeds(sizes, np.random.default_rng(options.seed))
    found = {}
    for name, (low, high) in bounds.items():
        # Only values that were made to fit these sizes are likelier than the highest.
        made = np.asarray(feeds[name]).reshape(-1) if source.rules[name].kind == "shape" else high
        likely = np.clip(made, low, high)
        found[name] = ValueBounds(*(tuple(int(value) for value in values) for values in (low, likely, high)))
    return found
