"""Pictures of a plan, as SVG that stands inside a page: text stays text, colours follow the page's theme.

matplotlib draws with colours that stand for roles; each is replaced by a variable of the page's style afterwards.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from io import StringIO
from typing import TYPE_CHECKING, Any

import numpy as np

from trtc.tools.durations import seconds_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from trtc.tools.plan_view import PlanView

INK, FAINT, MAIN, SECOND, MARK = "#010101", "#020202", "#030303", "#040404", "#050505"
_ROLES = {INK: "var(--ink)", FAINT: "var(--faint)", MAIN: "var(--main)", SECOND: "var(--second)", MARK: "var(--mark)"}
_SIZE_IN = (5.0, 3.0)
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "trtc",
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "grid.color": FAINT,
    "grid.linewidth": 0.3,
    "legend.frameon": False,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
}
_MOST_BARS = 80
_MOST_EDGES = 24
_SURFACE = 40


def pictures(view: PlanView) -> list[tuple[str, str]]:
    """Draw all pictures of a plan: a caption and an SVG for each.

    Raises:
        ImportError: when matplotlib is not installed.
    """
    drawn = [(_traffic_caption(view, symbol), _traffic(view, symbol)) for symbol in view.varying]
    drawn.append(
        ("Each profile: its share of the requests, and the share of its work that is padding.", _buckets(view))
    )
    drawn.append(
        ("Padding waste and expected cost of the best ladder of each length; the mark is the chosen one.", _curve(view))
    )
    drawn.append((_cost_caption(view), _cost(view)))
    return drawn


@contextmanager
def _figure(columns: int = 1) -> Iterator[tuple[Figure, list[Axes], list[str]]]:
    """Yield a figure, its axes, and a list that takes the SVG when the block ends."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=_SIZE_IN, layout="constrained")
        axes = np.atleast_1d(figure.subplots(1, columns)).tolist()
        made: list[str] = []
        yield figure, axes, made
        text = StringIO()
        figure.savefig(text, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
        made.append(_themed(text.getvalue()))


def _themed(svg: str) -> str:
    """Cut the SVG out of its file, let it fill its place, and name colours by their roles."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    for colour, role in _ROLES.items():
        svg = svg.replace(colour, role)
    return svg


def _traffic_caption(view: PlanView, symbol: str) -> str:
    edges = "; lines: the largest size of each profile" if symbol in view.padded else ""
    return f"Requests by {symbol}{edges}."


def _traffic(view: PlanView, symbol: str) -> str:
    sizes, weights = view.traffic.marginal(symbol)
    with _figure() as (_, (axes,), made):
        low, high = int(sizes[0]), int(sizes[-1])
        bins = np.arange(low - 0.5, high + 1, max(1, -(-(high - low + 1) // _MOST_BARS)))
        bins = np.append(bins, high + 0.5) if bins[-1] < high + 0.5 else bins
        axes.hist(
            sizes, bins=bins.tolist(), weights=weights / weights.sum() * 100, color=MAIN, edgecolor=MAIN, linewidth=0.3
        )
        edges = sorted({p.ranges[symbol].max or 0 for p in view.ladder.profiles})
        if symbol in view.padded and len(edges) <= _MOST_EDGES:
            for edge in edges:
                axes.axvline(edge + 0.5, color=MARK, linewidth=0.8)
        axes.set_xlabel(symbol)
        axes.set_ylabel("requests, %")
        _whole_numbers(axes)
    return made[0]


def _buckets(view: PlanView) -> str:
    uses = view.evaluation.buckets
    with _figure() as (_, (axes,), made):
        at = np.arange(len(uses))
        axes.bar(at - 0.2, [use.share * 100 for use in uses], 0.38, color=MAIN, label="requests")
        axes.bar(at + 0.2, [use.waste * 100 for use in uses], 0.38, color=SECOND, label="padding waste")
        axes.set_xticks(at, [view.bucket_text(i) for i in range(len(uses))], rotation=45 if len(uses) > 4 else 0)  # noqa: PLR2004 (more would touch each other)
        axes.set_xlabel(view.bucket_label)
        axes.set_ylabel("%")
        axes.legend()
    return made[0]


def _curve(view: PlanView) -> str:
    lengths = [point.profiles for point in view.curve]
    with _figure(2) as (_, (waste, cost), made):
        waste.plot(lengths, [point.waste * 100 for point in view.curve], color=SECOND, marker=".")
        waste.plot([view.point.profiles], [view.point.waste * 100], color=MARK, marker="o", linestyle="none")
        waste.set_ylabel("padding waste, %")
        unit, scale = _unit(max(point.expected_s for point in view.curve))
        cost.plot(lengths, [point.expected_s * scale for point in view.curve], color=MAIN, marker=".")
        cost.plot([view.point.profiles], [view.point.expected_s * scale], color=MARK, marker="o", linestyle="none")
        cost.axhline(view.exact_s * scale, color=FAINT, linewidth=0.8, linestyle="--")
        cost.annotate("exact sizes", (lengths[-1], view.exact_s * scale), ha="right", va="top", fontsize=9, color=INK)
        cost.set_ylabel(f"expected cost, {unit} a request")
        for axes in (waste, cost):
            axes.set_ylim(bottom=0)
            axes.set_xlabel("profiles")
            axes.grid(visible=True, axis="y")
            _whole_numbers(axes)
    return made[0]


def _cost_caption(view: PlanView) -> str:
    model = view.cost.model
    how = "measured" if model.source == "measured" else "counted from the graph's operations: right in shape only"
    others = {s: axis[-1] for s, axis in zip(model.symbols, model.grid, strict=True) if s not in view.surface_symbols}
    rest = "; ".join(f"{symbol} at {size}" for symbol, size in others.items())
    return f"Cost of one run by {' and '.join(view.surface_symbols)}, {how}" + (f" ({rest})." if rest else ".")


def _cost(view: PlanView) -> str:
    model = view.cost.model
    shown = view.surface_symbols
    grids = dict(zip(model.symbols, model.grid, strict=True))
    unit, scale = _unit(max(model.grid_s))
    with _figure() as (figure, (axes,), made):
        if len(shown) == 1:
            sizes = np.arange(grids[shown[0]][0], grids[shown[0]][-1] + 1)
            axes.plot(sizes, view.cost_at({shown[0]: sizes}) * scale, color=MAIN)
            points = np.array(grids[shown[0]])
            axes.plot(points, view.cost_at({shown[0]: points}) * scale, ".", color=MARK)
            axes.set_ylabel(f"{unit} a run")
            axes.set_ylim(bottom=0)
        else:
            across, up = (_spread(grids[symbol]) for symbol in shown)
            flat = {shown[0]: np.tile(across, len(up)), shown[1]: np.repeat(up, len(across))}
            table = view.cost_at(flat).reshape(len(up), len(across)) * scale
            mesh: Any = axes.pcolormesh(
                across, up, table, cmap="viridis", shading="nearest", edgecolors="face", linewidth=0.4
            )
            bar = figure.colorbar(mesh, ax=axes, label=f"{unit} a run")
            bar.outline.set_visible(False)
            axes.set_ylabel(shown[1])
        axes.set_xlabel(shown[0])
        _whole_numbers(axes)
    return made[0]


def _whole_numbers(axes: Axes) -> None:
    """Sizes and lengths are whole numbers."""
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def _spread(axis: tuple[int, ...]) -> np.ndarray:
    return np.unique(np.linspace(axis[0], axis[-1], _SURFACE).round().astype(np.int64))


def _unit(seconds: float) -> tuple[str, float]:
    """The unit that people read a time of this size in, and how many of it a second has."""
    text = seconds_text(seconds)
    return ("us", 1e6) if text.endswith("us") else ("ms", 1e3) if text.endswith("ms") else ("s", 1.0)
