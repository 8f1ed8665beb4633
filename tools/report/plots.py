"""Pictures for pages: matplotlib draws, inline SVG comes out, in the colours of the page around it."""

from __future__ import annotations

import io
import re
from contextlib import contextmanager
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import numpy as np

_INK = "#010203"
"""Stands for the colour of the page's text while matplotlib draws; every page has another one."""
_LABEL_SHARE = 0.12
"""Of the axis that a label may take."""
COLOURS = ("#3b7dd8", "#d9822b", "#4a9e5c", "#b65fb3", "#c94f4f", "#7a8290")
"""Tell apart on white and on black, also with the common kinds of colour blindness (after P. Tol, 2021)."""


def histogram(
    name: str, series: Mapping[str, Sequence[float] | np.ndarray], axis: str, marks: Mapping[str, float]
) -> str:
    """Draw how values are distributed, up to the 99.5th percentile: a few stragglers would squeeze the rest.

    Args:
        name: unique on the page; letters and digits.
        series: values by name.
        axis: what they are, with their unit.
        marks: vertical lines by name.
    """
    import numpy as np

    whole = np.concatenate([np.asarray(values, float) for values in series.values()])
    high = float(np.quantile(whole, 0.995)) if whole.size else 1.0
    low = float(whole.min()) if whole.size else 0.0
    edges = np.linspace(low, high if high > low else low + 1e-9, 60)

    def draw(axes: Any) -> None:
        for (label, values), colour in zip(series.items(), COLOURS, strict=False):
            axes.hist(
                np.asarray(values, float), bins=edges, histtype="stepfilled", alpha=0.55, color=colour, label=label
            )
        shown = {label: value for label, value in marks.items() if low <= value <= high}
        for (label, value), row in zip(shown.items(), label_rows(list(shown.values()), edges[-1] - low), strict=True):
            axes.axvline(value, color=_INK, linewidth=1, linestyle="--")
            axes.annotate(label, (value, 1), xycoords=("data", "axes fraction"), xytext=(3, -11 * (row + 1)),
                          textcoords="offset points", fontsize=8)  # fmt: skip
        axes.set_xlabel(axis)
        axes.set_ylabel("calls")
        if len(series) > 1:
            axes.legend(frameon=False)

    return _drawn(name, draw)


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

    def draw(axes: Any) -> None:
        height = 0.8 / len(series)
        for i, (label, values) in enumerate(series.items()):
            places = [row + (i - (len(series) - 1) / 2) * height for row in range(len(labels))]
            axes.barh(places, values, height, color=COLOURS[i % len(COLOURS)], label=label)
        axes.set_yticks(range(len(labels)), [_shortened(label) for label in labels])
        axes.invert_yaxis()
        axes.set_xlabel(axis)
        if len(series) > 1:
            axes.legend(frameon=False)

    return _drawn(name, draw, rows=len(labels) * max(1, len(series) // 2))


def roofline(name: str, points: Mapping[str, tuple[float, float]], flop_per_s: float, bytes_per_s: float) -> str:
    """Draw the machine's limits, and points below them.

    Args:
        name: unique on the page; letters and digits.
        points: operations for each byte, and operations per second, by name.
        flop_per_s: the first limit.
        bytes_per_s: the second.
    """
    import numpy as np

    reach = [x for x, _ in points.values() if x > 0] + [flop_per_s / bytes_per_s]
    x = np.geomspace(min(reach) / 4, max(reach) * 4, 100)

    def draw(axes: Any) -> None:
        axes.plot(x, np.minimum(flop_per_s, x * bytes_per_s) / 1e9, color=_INK, linewidth=1.5)
        for i, (label, (intensity, rate)) in enumerate(points.items()):
            if intensity > 0 < rate:
                axes.plot(intensity, rate / 1e9, "o", color=COLOURS[i % len(COLOURS)])
                axes.annotate(
                    _shortened(label), (intensity, rate / 1e9), xytext=(5, 4), textcoords="offset points", fontsize=7
                )
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("operations for each byte moved")
        axes.set_ylabel("GFLOP/s")

    return _drawn(name, draw)


def _drawn(name: str, draw: Callable[[Any], None], rows: int = 0) -> str:
    """Return a picture as SVG: no fixed size, ids of its own, text as text, the ink as the page's."""
    import matplotlib as mpl

    style: Any = _style(name)
    with _quiet(), mpl.rc_context(style):
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure

        picture = Figure(figsize=(8, max(1.4, min(8.0, 0.9 + 0.3 * rows)) if rows else 2.6), layout="constrained")
        canvas: Any = FigureCanvasSVG(picture)
        axes = picture.add_subplot()
        axes.spines[["top", "right"]].set_visible(False)
        draw(axes)
        out = io.BytesIO()
        canvas.print_svg(out, metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    svg = out.getvalue().decode()
    svg = svg[svg.index("<svg") :].replace(_INK, "currentColor")
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'\b(id|xlink:href|href)="(#?)', rf'\1="\2{name}-', svg)
    svg = re.sub(r"url\(#", f"url(#{name}-", svg)
    svg = re.sub(r'(<svg\b[^>]*?) (?:height|width)="[^"]*"', r"\1", svg)
    svg = re.sub(r'(<svg\b[^>]*?) (?:height|width)="[^"]*"', r"\1", svg)
    return svg.replace("<svg", f'<svg role="img" aria-label="{escape(name)}"', 1)


def _style(name: str) -> dict[str, Any]:
    return {
        "svg.fonttype": "none",
        "svg.hashsalt": name,
        "font.family": "sans-serif",
        "font.size": 9,
        "savefig.transparent": True,
        "figure.facecolor": "none",
        "axes.facecolor": "none",
        "text.color": _INK,
        "axes.labelcolor": _INK,
        "axes.edgecolor": _INK,
        "xtick.color": _INK,
        "ytick.color": _INK,
        "axes.grid": True,
        "grid.color": _INK,
        "grid.alpha": 0.15,
        "axes.axisbelow": True,
        "legend.labelcolor": _INK,
        "text.parse_math": False,
    }


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep matplotlib's remarks on fonts to itself: a browser chooses the font anyway."""
    import logging
    import warnings

    logger = logging.getLogger("matplotlib")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Glyph .* missing from font")
            yield
    finally:
        logger.setLevel(level)


def _shortened(text: str, most: int = 44) -> str:
    return text if len(text) <= most else f"{text[: most - 3]}..."
