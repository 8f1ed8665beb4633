"""The kinds of pictures that several pages have: how values are distributed, bars, a roofline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trtc.tools.report.drawing import COLOURS, INK, drawn, shortened, whole_numbers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np

_LABEL_SHARE = 0.15
"""Of the axis that a label may take."""
_NEAR = 0.04
"""Share of an axis below which two points of a roofline have one label."""


def histogram(
    name: str, series: Mapping[str, Sequence[float] | np.ndarray], axis: str, marks: Mapping[str, float]
) -> str:
    """Draw how values are distributed, up to ``drawn_to``.

    Args:
        name: unique on the page; letters and digits.
        series: values by name.
        axis: what they are, with their unit.
        marks: vertical lines by name; those beyond the picture are left out.
    """
    import numpy as np

    whole = np.concatenate([np.asarray(values, float) for values in series.values()])
    low, high = (float(whole.min()), drawn_to(whole)) if whole.size else (0.0, 1.0)
    edges = np.linspace(low, high if high > low else low + 1e-9, 1 + min(60, max(12, int(2 * whole.size**0.5))))

    def draw(picture: Any) -> None:
        axes = picture.add_subplot()
        for (label, values), colour in zip(series.items(), COLOURS, strict=False):
            axes.hist(
                np.asarray(values, float), bins=edges, histtype="stepfilled", alpha=0.55, color=colour, label=label
            )
        shown = {label: value for label, value in marks.items() if low <= value <= high}
        for (label, value), row in zip(shown.items(), label_rows(list(shown.values()), edges[-1] - low), strict=True):
            axes.axvline(value, color=INK, linewidth=1, linestyle="--")
            axes.annotate(label, (value, 1), xycoords=("data", "axes fraction"), xytext=(0, 2 + 10 * row),
                          textcoords="offset points")  # fmt: skip
        axes.set_xlabel(axis)
        axes.set_ylabel("calls")
        whole_numbers(axes.yaxis)
        if len(series) > 1:
            axes.legend()

    return drawn(name, draw)


def drawn_to(values: Sequence[float] | np.ndarray) -> float:
    """Return where a histogram ends, so that a few stragglers do not squeeze the rest.

    That is the 99.5th percentile, or ten times as far from the median as nine of ten values are, where that is less.
    """
    import numpy as np

    median, most, nearly_all = (float(q) for q in np.quantile(np.asarray(values, float), (0.5, 0.9, 0.995)))
    return min(nearly_all, median + 10 * (most - median)) if most > median else nearly_all


def label_rows(values: Sequence[float], span: float) -> list[int]:
    """Choose a row for the label of each value, so that none is printed over another.

    Args:
        values: where labels begin.
        span: what the whole axis covers, in the same unit.
    """
    ends: list[float] = []
    rows = [0] * len(values)
    for i in sorted(range(len(values)), key=lambda i: values[i]):
        rows[i] = next((row for row, end in enumerate(ends) if end <= values[i]), len(ends))
        ends[rows[i] : rows[i] + 1] = [values[i] + _LABEL_SHARE * span]
    return rows


def bars(name: str, labels: Sequence[str], series: Mapping[str, Sequence[float]], axis: str) -> str:
    """Draw a group of horizontal bars for each label.

    Args:
        name: unique on the page; letters and digits.
        labels: from top to bottom.
        series: a value for each label, by name.
        axis: what they are, with their unit.
    """

    def draw(picture: Any) -> None:
        axes = picture.add_subplot()
        height = 0.8 / len(series)
        for i, (label, values) in enumerate(series.items()):
            places = [row + (i - (len(series) - 1) / 2) * height for row in range(len(labels))]
            axes.barh(places, values, height, color=COLOURS[i % len(COLOURS)], label=label)
        axes.set_yticks(range(len(labels)), [shortened(label) for label in labels])
        axes.grid(visible=False, axis="y")
        axes.invert_yaxis()
        axes.set_xlabel(axis)
        if len(series) > 1:  # above the bars, where none of them lies under it
            picture.legend(loc="outside upper left", ncols=len(series))

    rows = len(labels) * max(1, len(series) // 2)
    return drawn(name, draw, 0.8 + 0.22 * rows + 0.25 * (len(series) > 1))


def roofline(name: str, points: Sequence[tuple[float, float]], flop_per_s: float, bytes_per_s: float) -> str:
    """Draw the machine's limits, and numbered points.

    Args:
        name: unique on the page; letters and digits.
        points: operations for each byte, and operations per second; numbered from 1, those that are no point left out.
        flop_per_s: the first limit.
        bytes_per_s: the second.
    """
    import numpy as np

    seen = {i: point for i, point in enumerate(points, 1) if point[0] > 0 < point[1]}
    reach = [x for x, _ in seen.values()] + [flop_per_s / bytes_per_s]
    low, high = min(reach) / 4, max(reach) * 4
    rates = [rate for _, rate in seen.values()] + [flop_per_s]
    floor, top = min([*rates, low * bytes_per_s]) / 1.5, max(rates) * 2
    x = np.geomspace(low, high, 100)

    def draw(picture: Any) -> None:
        from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

        axes = picture.add_subplot()
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlim(low, high)
        axes.set_ylim(floor / 1e9, top / 1e9)
        axes.plot(x, np.minimum(flop_per_s, x * bytes_per_s) / 1e9, color=INK, linewidth=1.5)
        for intensity, rate in seen.values():
            axes.plot(intensity, rate / 1e9, "o", color=COLOURS[0], markersize=5)
        spread = np.log(high / low), np.log(top / floor)
        for label, (intensity, rate) in joined_labels(seen, spread).items():
            axes.annotate(label, (intensity, rate / 1e9), xytext=(5, 4), textcoords="offset points")
        for side in (axes.xaxis, axes.yaxis):
            side.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=12))
            side.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            side.set_minor_formatter(NullFormatter())
        axes.set_xlabel("operations for each byte moved")
        axes.set_ylabel("GFLOP/s")

    return drawn(name, draw, 3.0)


def joined_labels(
    points: Mapping[int, tuple[float, float]], spread: tuple[float, float]
) -> dict[str, tuple[float, float]]:
    """Join the numbers of points that lie so near each other that their labels would overlap.

    Args:
        points: positive places, by number.
        spread: natural logarithm of the largest over the smallest place that an axis shows, for each axis.

    Returns:
        Where each label goes: the place of the first of its points.
    """
    import math

    groups: list[tuple[tuple[float, float], list[int]]] = []
    for number, place in points.items():
        near = (
            group
            for at, group in groups
            if all(abs(math.log(a / b)) <= _NEAR * s for a, b, s in zip(at, place, spread, strict=True))
        )
        group = next(near, None)
        if group is None:
            groups.append((place, [number]))
        else:
            group.append(number)
    return {", ".join(map(str, numbers)): place for place, numbers in groups}
