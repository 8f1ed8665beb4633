"""How far beyond the generated values is padding still exact? The wider the domain, the fewer requests run exact."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from trtc.compiler.probes.domain import BOX_VARIANTS, Bounds, in_box, without_zero_rows
from trtc.compiler.probes.subject import is_floating, is_number, largest_finite
from trtc.compiler.probes.trial import Worst

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeAlias

    from trtc.compiler.probes.experiment import Experiment
    from trtc.compiler.probes.subject import Feeds

    Change: TypeAlias = Callable[[Feeds, int], Feeds]

_MASKS = ((0, 1), (-1, 0, 1, 2))
"""What is tried for integers that were only ever 0 and 1."""


def widened(experiment: Experiment) -> Bounds:
    """Try wider values, one input at a time, then all together.

    Returns:
        The values that padding stayed exact for; nothing when it did not stay so for all inputs together.
    """
    total, changes = Bounds(), []
    if not experiment.runnable:
        return total
    example = experiment.generate(experiment.runnable[0])
    for name in experiment.bounds.boxes():
        best: Change | None = None
        for change in _changes(experiment, name, example):
            tried = _tried(experiment, [change])
            if tried is None:
                break
            total.include_all(tried)
            best = change
        if best is not None:
            changes.append(best)
    together = _tried(experiment, changes) if len(changes) > 1 else Bounds()
    return Bounds() if together is None else total


def _tried(experiment: Experiment, changes: list[Change]) -> Bounds | None:
    """Compare with changed values; their bounds when all ran and agreed, else None."""
    bounds, worst = Bounds(), Worst()
    for k, case in enumerate(experiment.runnable[: max(experiment.options.repeats, len(BOX_VARIANTS))]):
        feeds = experiment.generate(case)
        for change in changes:
            feeds = change(feeds, k)
        if not experiment.holds(case, feeds, worst):
            return None
        bounds.include(feeds)
    # Where the model itself overflows, equal results show nothing.
    return bounds if worst.comparisons and not worst.overflowed else None


def _changes(experiment: Experiment, name: str, example: Feeds) -> Iterator[Change]:
    """Yield ever wider values for one input. The reference refuses integers that leave their table."""
    value, box = example.get(name), experiment.bounds.boxes()[name]
    if value is None or not is_number(value):
        return
    if is_floating(value):
        reach = max(abs(box[0]), abs(box[1]))
        limit = largest_finite(value.dtype)
        for scale in experiment.options.float_scales:
            if 0.0 < reach * scale < limit:
                yield _floats(experiment, name, reach * scale)
    elif value.ndim and box[0] >= 0 and box[1] <= 1:
        for choice in _MASKS:
            legal = [v for v in choice if value.dtype.kind == "i" or v >= 0]
            if value.dtype.kind != "b" or choice == (0, 1):
                yield _choices(experiment, name, legal)
    elif value.dtype.kind in "iu" and value.size:
        yield from _integers(experiment, name, value.dtype)


def _floats(experiment: Experiment, name: str, reach: float) -> Change:
    def change(feeds: Feeds, k: int) -> Feeds:
        boxes = {name: (-reach, reach)}
        return in_box(feeds, boxes, BOX_VARIANTS[k % len(BOX_VARIANTS)], experiment.rng)

    return change


def _integers(experiment: Experiment, name: str, dtype: np.dtype[np.generic]) -> Iterator[Change]:
    """Yield the legal range where it is known, else ranges that grow like those of floats."""
    low, high = experiment.bounds.boxes()[name]
    ends = [experiment.subject.limits[name]] if name in experiment.subject.limits else []
    if not ends and dtype.itemsize == 1:
        ends = [(float(np.iinfo(dtype.str).min), float(np.iinfo(dtype.str).max))]
    elif not ends:
        ends = [(min(low, -high) * scale, high * scale) for scale in experiment.options.float_scales[1:]]
    info = np.iinfo(np.dtype(dtype.str))
    for first, last in ends:
        clipped = max(int(first), int(info.min)), min(int(last), int(info.max))

        def change(feeds: Feeds, k: int, clipped: tuple[int, int] = clipped) -> Feeds:
            shape = feeds[name].shape
            drawn = experiment.rng.integers(*clipped, shape, endpoint=True).astype(dtype)
            if drawn.size:
                drawn.reshape(-1)[k % drawn.size] = clipped[k % 2]
            return {**feeds, **without_zero_rows({name: drawn})}

        yield change


def _choices(experiment: Experiment, name: str, legal: list[int]) -> Change:
    def change(feeds: Feeds, k: int) -> Feeds:
        del k
        value = feeds[name]
        drawn = experiment.rng.choice(np.array(legal), value.shape).astype(value.dtype)
        return {**feeds, **without_zero_rows({name: drawn})} if drawn.any() else feeds

    return change
