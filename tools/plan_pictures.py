"""Pictures of a plan, each with a caption that says in words what it shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from trtc.tools.durations import seconds_text
from trtc.tools.report.drawing import COLOURS, INK, MARK, drawn, whole_numbers
from trtc.tools.report.plots import bars

if TYPE_CHECKING:
    from trtc.tools.plan_view import PlanView

_MAIN, _SECOND = COLOURS[:2]
_MOST_BARS = 80
_MOST_EDGES = 24
_SURFACE = 40


def traffic(view: PlanView, symbol: str) -> tuple[str, str]:
    """Draw how often each size of a symbol was requested, and where the buckets end."""
    sizes, weights = view.traffic.marginal(symbol)
    low, high = int(sizes[0]), int(sizes[-1])
    bins = np.arange(low - 0.5, high + 1, max(1, -(-(high - low + 1) // _MOST_BARS)))
    bins = np.append(bins, high + 0.5) if bins[-1] < high + 0.5 else bins
    edges = sorted({p.ranges[symbol].max or 0 for p in view.ladder.profiles})
    marked = symbol in view.padded and len(edges) <= _MOST_EDGES

    def draw(picture: Any) -> None:
        axes = picture.add_subplot()
        share = weights / weights.sum() * 100
        axes.hist(sizes, bins=bins.tolist(), weights=share, color=_MAIN, edgecolor=_MAIN, linewidth=0.3)
        for edge in edges if marked else ():
            axes.axvline(edge + 0.5, color=MARK, linewidth=0.8)
        axes.set_xlabel(symbol)
        axes.set_ylabel("requests, %")
        whole_numbers(axes.xaxis)

    name = f"traffic{view.traffic.symbols.index(symbol)}"
    return drawn(name, draw), f"Requests by {symbol}{'; lines: the largest size of each profile' if marked else ''}."


def buckets(view: PlanView) -> tuple[str, str]:
    """Draw what share of the requests each profile takes, and how much of its work is padding."""
    uses = view.evaluation.buckets
    names = [f"{profile.name}: {view.bucket_text(i)}" for i, profile in enumerate(view.ladder.profiles)]
    series = {
        "requests": [use.share * 100 for use in uses],
        "padding waste": [use.waste * 100 for use in uses],
    }
    text = (
        f"Each profile by its bucket ({view.bucket_label}): its share of the requests, and the share of its work that "
        "is padding."
    )
    return bars("buckets", names, series, "%"), text


def ladders(view: PlanView) -> tuple[str, str]:
    """Draw what a request costs with this plan, with other ladders, and with every size exact."""
    found = [("this plan", view.point.expected_s), *((other.name, other.expected_s) for other in view.compared)]
    found.append(("every size exact", view.exact_s))
    unit, scale = _unit(max(seconds for _, seconds in found))
    series = {"expected": [seconds * scale for _, seconds in found]}
    axis = f"expected cost, {unit} a request"
    return bars(
        "ladders", [name for name, _ in found], series, axis
    ), "What a request costs on average, in its bucket or at its exact size."


def curve(view: PlanView) -> tuple[str, str]:
    """Draw padding waste and cost of the best ladder of each length."""
    lengths = [point.profiles for point in view.curve]
    unit, scale = _unit(max(point.expected_s for point in view.curve))

    def draw(picture: Any) -> None:
        waste, cost_axes = picture.subplots(1, 2)
        waste.plot(lengths, [point.waste * 100 for point in view.curve], color=_SECOND, marker=".")
        waste.plot([view.point.profiles], [view.point.waste * 100], color=MARK, marker="o", linestyle="none")
        waste.set_ylabel("padding waste, %")
        cost_axes.plot(lengths, [point.expected_s * scale for point in view.curve], color=_MAIN, marker=".")
        cost_axes.plot([view.point.profiles], [view.point.expected_s * scale], color=MARK, marker="o", linestyle="none")
        cost_axes.axhline(view.exact_s * scale, color=INK, linewidth=0.8, linestyle="--")
        cost_axes.set_ylabel(f"{unit} a request")
        for axes in (waste, cost_axes):
            axes.set_ylim(bottom=0)
            axes.set_xlabel("profiles")
            axes.grid(visible=False, axis="x")
            whole_numbers(axes.xaxis)

    text = (
        "Padding waste and expected cost of the best ladder of each length; the larger mark is the chosen one, the "
        "dashed line is what requests cost at exact sizes."
    )
    return drawn("curve", draw), text


def cost(view: PlanView) -> tuple[str, str]:
    """Draw what one run costs, by the one or two symbols that change it most."""
    shown = view.surface_symbols
    unit, scale = _unit(max(view.cost.model.grid_s))

    def draw(picture: Any) -> None:
        axes = picture.add_subplot()
        (_line if len(shown) == 1 else _surface)(view, axes, unit, scale)
        axes.set_xlabel(shown[0])
        whole_numbers(axes.xaxis)

    return drawn("cost", draw, 2.6), _cost_caption(view)


def _line(view: PlanView, axes: Any, unit: str, scale: float) -> None:
    (symbol,) = view.surface_symbols
    grid = np.array(dict(zip(view.cost.model.symbols, view.cost.model.grid, strict=True))[symbol])
    sizes = np.arange(grid[0], grid[-1] + 1)
    axes.plot(sizes, view.cost_at({symbol: sizes}) * scale, color=_MAIN)
    axes.plot(grid, view.cost_at({symbol: grid}) * scale, ".", color=MARK)
    axes.set_ylabel(f"{unit} a run")
    axes.set_ylim(bottom=0)


def _surface(view: PlanView, axes: Any, unit: str, scale: float) -> None:
    shown = view.surface_symbols
    grids = dict(zip(view.cost.model.symbols, view.cost.model.grid, strict=True))
    across, up = (_spread(grids[symbol]) for symbol in shown)
    flat = {shown[0]: np.tile(across, len(up)), shown[1]: np.repeat(up, len(across))}
    table = view.cost_at(flat).reshape(len(up), len(across)) * scale
    axes.grid(visible=False)
    mesh = axes.pcolormesh(across, up, table, cmap="viridis", shading="nearest", edgecolors="face", linewidth=0.4)
    bar = axes.figure.colorbar(mesh, ax=axes, label=f"{unit} a run")
    bar.outline.set_visible(False)
    bar.solids.set_rasterized(False)  # else it is a picture of its own inside
    axes.set_ylabel(shown[1])
    whole_numbers(axes.yaxis)


def _cost_caption(view: PlanView) -> str:
    model = view.cost.model
    how = "measured" if model.source == "measured" else "counted from the graph's operations: right in shape only"
    others = {s: axis[-1] for s, axis in zip(model.symbols, model.grid, strict=True) if s not in view.surface_symbols}
    rest = "; ".join(f"{symbol} at {size}" for symbol, size in others.items())
    points = "; dots: the sizes that it rests on" if len(view.surface_symbols) == 1 else ""
    return f"Cost of one run by {' and '.join(view.surface_symbols)}, {how}{points}" + (f" ({rest})." if rest else ".")


def _spread(axis: tuple[int, ...]) -> np.ndarray:
    return np.unique(np.linspace(axis[0], axis[-1], _SURFACE).round().astype(np.int64))


def _unit(seconds: float) -> tuple[str, float]:
    """The unit that people read a time of this size in, and how many of it a second has."""
    text = seconds_text(seconds)
    return ("us", 1e6) if text.endswith("us") else ("ms", 1e3) if text.endswith("ms") else ("s", 1.0)
