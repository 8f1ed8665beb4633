"""How pictures are drawn: matplotlib draws, inline SVG comes out, in the colours of the page around it."""

from __future__ import annotations

import io
import re
from contextlib import contextmanager
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

INK = "#010203"
"""Stands for the colour of the page's text while matplotlib draws; every page has another one."""
COLOURS = ("#3b7dd8", "#d9822b", "#4a9e5c", "#b65fb3", "#c94f4f", "#7a8290")
"""Tell apart on white and on black, also with the common kinds of colour blindness (after P. Tol, 2021)."""
MARK = COLOURS[4]
"""For what was chosen, among everything else."""
WIDTH_IN = 4.6
"""Of a picture. Its letters have 9 points: about the page's own size where the page shows it as wide as it may be."""
_LOW_IN, _HIGH_IN = 1.3, 8.0


def drawn(name: str, draw: Callable[[Any], None], height_in: float = 2.1) -> str:
    """Return a picture as SVG: no fixed size, ids of its own, text as text, the ink as the page's.

    Args:
        name: unique on the page; letters and digits.
        draw: draws on a figure of matplotlib.
        height_in: of the picture, in inches; kept between 1.3 and 8.

    Raises:
        ImportError: when matplotlib is not installed.
    """
    import matplotlib as mpl

    style: Any = _style(name)
    with _quiet(), mpl.rc_context(style):
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure

        picture = Figure(figsize=(WIDTH_IN, min(max(height_in, _LOW_IN), _HIGH_IN)), layout="constrained")
        canvas: Any = FigureCanvasSVG(picture)
        draw(picture)
        out = io.BytesIO()
        canvas.print_svg(out, metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    svg = out.getvalue().decode()
    svg = svg[svg.index("<svg") :].replace(INK, "currentColor")
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'\b(id="|href="#)', rf"\1{name}-", svg)
    svg = re.sub(r"url\(#", f"url(#{name}-", svg)
    svg = re.sub(r'(<svg\b[^>]*?) (?:height|width)="[^"]*"', r"\1", svg)
    svg = re.sub(r'(<svg\b[^>]*?) (?:height|width)="[^"]*"', r"\1", svg)
    return svg.replace("<svg", f'<svg role="img" aria-label="{escape(name)}"', 1)


def shortened(text: str, most: int = 44) -> str:
    """Cut a label; the table beside a picture has it whole."""
    return text if len(text) <= most else f"{text[: most - 3]}..."


def whole_numbers(axis: Any) -> None:
    """Let an axis count: sizes, calls and profiles are whole numbers."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(nbins="auto" if axis.axis_name == "x" else 5, integer=True))


def _style(name: str) -> dict[str, Any]:
    return {
        "svg.fonttype": "none",
        "svg.hashsalt": name,
        "font.family": "sans-serif",
        "font.size": 9,
        "savefig.transparent": True,
        "figure.facecolor": "none",
        "axes.facecolor": "none",
        "text.color": INK,
        "axes.labelcolor": INK,
        "axes.edgecolor": INK,
        "xtick.color": INK,
        "ytick.color": INK,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "legend.frameon": False,
        "axes.grid": True,
        "grid.color": INK,
        "grid.alpha": 0.15,
        "axes.axisbelow": True,
        "legend.labelcolor": INK,
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
