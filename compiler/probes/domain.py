"""The values that an experiment ran with, and feeds that stay inside them or go beyond on purpose."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from trtc.compiler.probes.subject import is_floating, is_number
from trtc.engines.manifest import ValueDomain

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from trtc.compiler.probes.subject import Feeds

Box: TypeAlias = tuple[float, float]
"""Lowest and highest value, both included."""

BOX_VARIANTS = ("uniform", "low", "upper half", "high", "lower half")
"""A domain is a box, so experiments look at its inside, its corners and its halves: a largest value found in zero
padding, say, shows only where all real values are negative."""


class Bounds:
    """Lowest and highest value of each input so far, and where rows of zeros were seen. Only finite numbers count."""

    def __init__(self) -> None:
        self._bounds: dict[str, Box] = {}
        self._zero_rows: set[str] = set()

    def include(self, feeds: Mapping[str, Any]) -> None:
        """Widen by the values of one request."""
        for name, value in feeds.items():
            if not is_number(value) or value.size == 0:
                continue
            array = value if value.dtype.kind in "biuf" else value.astype(np.float32)
            low, high = float(array.min()), float(array.max())
            if np.isfinite(low) and np.isfinite(high):
                self._include_box(name, (low, high))
            if _zero_rows(array).any():
                self._zero_rows.add(name)

    def include_all(self, other: Bounds) -> None:
        """Widen by everything that ``other`` holds."""
        for name, box in other._bounds.items():
            self._include_box(name, box)
        self._zero_rows |= other._zero_rows

    def boxes(self) -> dict[str, Box]:
        """Return the bounds of each input that has any."""
        return dict(self._bounds)

    def domain(self) -> dict[str, ValueDomain]:
        """Record the bounds."""
        return {
            name: ValueDomain(low=low, high=high, rows_nonzero=name not in self._zero_rows)
            for name, (low, high) in self._bounds.items()
        }

    def _include_box(self, name: str, box: Box) -> None:
        old = self._bounds.get(name, box)
        self._bounds[name] = min(old[0], box[0]), max(old[1], box[1])


def inside(domain: Mapping[str, ValueDomain], feeds: Mapping[str, Any]) -> bool:
    """Tell whether every value of a request lies in the domain, so that padding was shown to be exact for it."""
    for name, allowed in domain.items():
        value = feeds.get(name)
        if not isinstance(value, np.ndarray) or value.size == 0:
            continue
        array = value if value.dtype.kind in "biuf" else value.astype(np.float32)
        if not bool(((array >= allowed.low) & (array <= allowed.high)).all()):
            return False
        if allowed.rows_nonzero and _zero_rows(array).any():
            return False
    return True


def has_zero_row(value: Any) -> bool:
    """Tell whether a row (last axis) of a numeric array is all zero."""
    return is_number(value) and value.ndim > 0 and value.size > 0 and bool(_zero_rows(value).any())


def without_zero_rows(feeds: Feeds) -> Feeds:
    """Give each all-zero row one nonzero element, where the array has any nonzero value to take it from."""
    return {name: _without_zero_rows(value) for name, value in feeds.items()}


def with_zero_rows(feeds: Feeds, name: str, *, every: bool) -> Feeds:
    """Zero all rows of one input, or its first row only."""
    value = feeds[name].copy()
    if every or value.ndim == 1:
        value[...] = np.zeros((), value.dtype)
    else:
        value.reshape(-1, value.shape[-1])[0] = np.zeros((), value.dtype)
    return {**feeds, name: value}


def mask_like(feeds: Mapping[str, Any], boxes: Mapping[str, Box]) -> list[str]:
    """Name the integer and bool inputs that were only ever 0 and 1."""
    return [
        name
        for name, value in feeds.items()
        if is_number(value)
        and value.ndim
        and value.dtype.kind in "biu"
        and name in boxes
        and boxes[name][0] >= 0.0
        and boxes[name][1] == 1.0
    ]


def with_ones(feeds: Feeds, names: Iterable[str]) -> Feeds:
    """Fill some inputs with ones: most real requests have a mask without a single 0."""
    return {**feeds, **{name: np.ones_like(feeds[name]) for name in names}}


def in_box(feeds: Feeds, boxes: Mapping[str, Box], variant: str, rng: np.random.Generator) -> Feeds:
    """Replace the floats of a request by others in their boxes; a variant of BOX_VARIANTS says which."""
    changed = dict(feeds)
    for name, value in feeds.items():
        found = boxes.get(name)
        if found is None or not is_floating(value):
            continue
        low, high = found
        middle = min(max(0.0, low), high) if low < 0.0 < high else (low + high) / 2
        if variant == "upper half":
            low = middle
        elif variant == "lower half":
            high = middle
        elif variant == "low":
            high = low
        elif variant == "high":
            low = high
        drawn = rng.uniform(low, high, value.shape) if high > low else np.full(value.shape, low)
        changed[name] = _keep_nonzero(drawn.astype(value.dtype), found)
    return changed


def shrunk(boxes: Mapping[str, Box], factor: float) -> dict[str, Box]:
    """Make the boxes around zero smaller."""
    return {n: (low * factor, high * factor) for n, (low, high) in boxes.items() if low <= 0.0 <= high}


def _keep_nonzero(value: np.ndarray, bounds: tuple[float, float]) -> np.ndarray:
    """A corner at zero must not smuggle in rows of zeros, which are a question of their own."""
    nonzero = bounds[1] if bounds[1] != 0.0 else bounds[0]
    if value.ndim and value.size and nonzero != 0.0:
        rows = _zero_rows(value)
        value[..., 0] = np.where(rows, np.asarray(nonzero, value.dtype), value[..., 0])
    return value


def _without_zero_rows(value: Any) -> Any:
    if not has_zero_row(value):
        return value
    rows, nonzero = _zero_rows(value), value[value != 0]
    if nonzero.size == 0:
        return value
    value = value.copy()
    value[..., 0] = np.where(rows, nonzero[0], value[..., 0])
    return value


def _zero_rows(value: np.ndarray) -> np.ndarray:
    return np.asarray(~np.any(value != 0, axis=-1) if value.ndim else value == 0)
