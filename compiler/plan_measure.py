"""What planning measures: which threads serve the traffic, what sizes cost, whether padding pays."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import numpy as np

from trtc.compiler.cost_grid import FIRST_RUNS, GridOptions, MeasuredCost, measure_cost
from trtc.compiler.measure import Measured, fastest, ways_of
from trtc.compiler.plan_bounds import rounded
from trtc.compiler.replay import Caller, Request, Tally
from trtc.compiler.ways import Outcome, Race, Way, race
from trtc.compiler.workload import workload_of
from trtc.engines.errors import EngineError
from trtc.profiles import ModelError
from trtc.profiles.evaluation import served_part
from trtc.profiles.traffic import traffic_from_rows

if TYPE_CHECKING:
    from trtc.compiler.analysis import Analysis
    from trtc.compiler.engine_job import Opener
    from trtc.compiler.options import Setting
    from trtc.compiler.plan_bounds import Bounds
    from trtc.engines.manifest import Mode

_WAYS_SHARE, _GRID_SHARE = 0.2, 0.5
"""Parts of the time for measuring: which threads, the cost grid; the rest compares exact with padded."""
_NEAR = 0.75
"""Ways below this share of the best rate at exact sizes are not tried padded."""


def first_race(opener: Opener, analysis: Analysis, bounds: Bounds, setting: Setting) -> Outcome:
    """Compare threads at exact sizes: costs depend on them, and the ladder on costs.

    Raises:
        ModelError: when the model does not run at a size of the traffic.
    """
    sizes = rounded(bounds, workload_of(bounds.traffic))
    course = Race(opener.open, analysis.subject, (), sizes, setting.threads, setting.progress)
    ways = [Way(slots, threads, "exact") for slots, threads in ways_of(setting.threads, setting.options.callers)]
    try:
        return race(course, ways, _WAYS_SHARE * setting.options.measure_s)
    except EngineError as error:
        raise _unrunnable(error) from error


def measured_cost(opener: Opener, analysis: Analysis, bounds: Bounds, setting: Setting, way: Way) -> MeasuredCost:
    """Measure runs at sizes of the traffic, over half of the time for measuring.

    Raises:
        ModelError: when the model does not run at one of them.
    """
    symbols = bounds.traffic.symbols
    with closing(opener.open(way.threads)) as engine:
        caller = Caller(engine, analysis.subject, ())

        tally = Tally(setting.progress.detail, "run {}")
        budget_s = _GRID_SHARE * setting.options.measure_s

        def run(point: tuple[int, ...]) -> float:
            sizes = bounds.fixed | dict(zip(symbols, point, strict=True))
            run_s = caller.seconds(Request(sizes, sizes))
            if not tally.done:  # the largest size: the corners, each run so often, take this long at most
                corners_s = run_s * (FIRST_RUNS + 1) * 2 ** len(symbols)
                setting.progress.ahead(max(budget_s, corners_s))
            tally.add()
            return run_s

        steps = np.array([bounds.steps[symbol] for symbol in symbols])
        runs_at = traffic_from_rows(symbols, -(-bounds.traffic.sizes // steps) * steps, bounds.traffic.weights)
        options = GridOptions(budget_s, setting.options.seed)
        try:
            return measure_cost(bounds.axes, run, runs_at, options)
        except EngineError as error:
            raise _unrunnable(error) from error


def compared(opener: Opener, final: Analysis, bounds: Bounds, setting: Setting, first: Outcome) -> Measured:
    """Compare exact sizes with padded ones, on the ladder that was planned."""
    setting.progress.stage("comparing exact sizes with padded ones")
    least = _NEAR * first.rates[first.best]
    fastest_lone = min(first.lone_s, key=lambda way: first.lone_s[way])  # measured again, so that it can be told
    near = [(way.slots, way.threads) for way, rate in first.rates.items() if rate >= least or way == fastest_lone]
    share = 1 - _WAYS_SHARE - _GRID_SHARE
    padded = {rule.symbol for rule in final.plan.padding}
    course = Race(
        opener.open,
        final.subject,
        final.plan.padding,
        [bounds.fixed | sizes for sizes in workload_of(served_part(final.plan.ladder, bounds.traffic, padded))],
        setting.threads,
        setting.progress,
    )
    return fastest(course, _modes(final, bounds, setting), near, share * setting.options.measure_s)


def _modes(final: Analysis, bounds: Bounds, setting: Setting) -> tuple[Mode, ...]:
    """The modes that can be chosen from: what was asked for, and what the model takes."""
    wanted = setting.options.mode
    padded = {rule.symbol for rule in final.plan.padding} & set(bounds.traffic.symbols)
    if wanted != "auto" or not padded:
        return ("bucket" if wanted == "bucket" else "exact",)
    sizes, symbols = bounds.traffic.sizes, bounds.traffic.symbols
    exact = not any((sizes[:, i] % bounds.steps[symbol]).any() for i, symbol in enumerate(symbols))
    return ("exact", "bucket") if exact else ("bucket",)


def _unrunnable(error: EngineError) -> ModelError:
    return ModelError(
        f"the model does not run at every size of the traffic: {error}; leave such requests out of the traffic, or "
        "state the sizes that run, such as --dim seq=1..512"
    )
