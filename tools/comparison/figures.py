"""Figures of two bundles side by side, and whether a condition about them holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec
import numpy as np

if TYPE_CHECKING:
    from trtc.tools.bench.rounds import Rounds
    from trtc.tools.comparison.conditions import Condition
    from trtc.tools.comparison.result import ComparisonResult

CONFIDENCE = 0.95
DRAWS = 1000
MAX_TIMES = 20_000
"""Of each side that are resampled; of more, the same calls of every round are kept on both sides."""
TIMES = {"mean": None, "p50": 50.0, "p90": 90.0, "p95": 95.0, "p99": 99.0}


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """One figure of both bundles.

    ``old`` and ``new``: seconds, bytes, or for agreement (``new`` only) a plain number. ``change``: of new against old,
    as a share. ``low`` and ``high`` bound the change of measured times with 95 percent confidence; equal to it for
    what is not measured.
    """

    name: str
    new: float
    old: float | None = None
    change: float | None = None
    low: float | None = None
    high: float | None = None

    @property
    def noise(self) -> bool:
        """Whether the measurement cannot tell new from old."""
        return self.low is not None and self.high is not None and self.low <= 0 <= self.high


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one condition: ``passed``, ``failed``, or ``noise``: it holds, but within the noise."""

    condition: str
    state: Literal["passed", "failed", "noise"]
    detail: str


def known_figures(name: str, old: float, new: float) -> Figure:
    """Make a figure of two numbers that are exact."""
    change = (new - old) / old if old else 0.0 if new == old else float("inf")
    return Figure(name=name, old=old, new=new, change=change, low=change, high=change)


def time_figures(rounds: Rounds, seed: int = 0) -> list[Figure]:
    """Make the figures of times that were measured in turns.

    Whole rounds are resampled (percentile bootstrap): a round of the new bundle and the round of the old one beside
    it stay together, so what both met cancels out.

    Args:
        rounds: ``ours`` is the new bundle, ``peer`` the old one.
        seed: of the resampling.
    """
    rng = np.random.default_rng(seed)
    new, old = rounds.ours_s, rounds.peer_s
    now, before = _statistics(new), _statistics(old)
    kept = max(1, MAX_TIMES // new.shape[0])
    if new.shape[1] > kept:
        calls = rng.choice(new.shape[1], kept, replace=False)
        new, old = new[:, calls], old[:, calls]
    picks = rng.integers(0, new.shape[0], (DRAWS, new.shape[0]))
    ratios = np.array([_statistics(new[pick]) / _statistics(old[pick]) for pick in picks]) - 1
    low, high = np.quantile(ratios, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2], axis=0)
    change = now / before - 1
    return [
        Figure(
            name=name,
            old=float(before[i]),
            new=float(now[i]),
            change=float(change[i]),
            low=float(min(low[i], change[i])),
            high=float(max(high[i], change[i])),
        )
        for i, name in enumerate(TIMES)
    ]


def agreement_figures(result: ComparisonResult) -> list[Figure]:
    """Make the figures of answers: the worst of all outputs and requests; none for what no output has."""
    outputs = [output for case in result.cases for output in case.outputs]
    cosines = [o.cosine for o in outputs if o.cosine is not None]
    found = [Figure(name="cosine", new=min(cosines))] if cosines else []
    for name in ("max_abs", "max_rel"):
        values = [v for o in outputs if (v := getattr(o, name)) is not None]
        found += [Figure(name=name, new=max(values))] if values else []
    return found


def verdict_on(condition: Condition, figures: dict[str, Figure], broken: str) -> Verdict:
    """Decide one condition.

    A change of times that lies within the noise does not fail: repeating the measurement could say the opposite.

    Args:
        condition: that fails where it holds.
        figures: by name.
        broken: why answers cannot be compared at all, which fails every condition about them; empty when they can.
    """
    if condition.kind == "agreement" and broken:
        return Verdict(condition=condition.text, state="failed", detail=broken)
    figure = figures.get(condition.figure)
    if figure is None:
        return Verdict(condition=condition.text, state="failed", detail=f"{condition.figure} could not be found")
    value = figure.change if condition.relative else figure.new
    if value is None:
        return Verdict(condition=condition.text, state="failed", detail=f"{condition.figure} has no change")
    detail = figure_text(figure, condition.kind)
    measured = condition.relative and condition.kind == "time"
    if not condition.holds(value):
        ends = [end for end in (figure.low, figure.high) if end is not None]
        if measured and any(condition.holds(end) for end in ends):
            detail += ": the noise is wider than that; measure longer with --seconds to be sure"
        return Verdict(condition=condition.text, state="passed", detail=detail)
    if measured and figure.noise:
        return Verdict(condition=condition.text, state="noise", detail=f"{detail}: within the noise")
    return Verdict(condition=condition.text, state="failed", detail=detail)


def figure_text(figure: Figure, kind: str) -> str:
    """Write a figure for people."""
    from trtc.tools.durations import seconds_text
    from trtc.tools.output import size_text

    if kind == "agreement":
        return f"{figure.name} {figure.new:.9g}"
    shown = (seconds_text) if kind == "time" else (lambda v: size_text(int(v)))
    text = f"{figure.name} {shown(figure.old or 0)} -> {shown(figure.new)}"
    if figure.change is None:
        return text
    text = f"{text} ({figure.change:+.1%}"
    return f"{text}, 95% {figure.low:+.1%}..{figure.high:+.1%})" if kind == "time" else f"{text})"


def _statistics(times: np.ndarray) -> np.ndarray:
    """Return mean and percentiles in the order of ``TIMES``."""
    shares = [share / 100 for share in TIMES.values() if share is not None]
    return np.array([times.mean(), *np.quantile(times, shares)])
