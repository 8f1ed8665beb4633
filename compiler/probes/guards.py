"""What makes padding neutral: the inputs whose padding must hold its fill, and those where it may hold anything."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from trtc.compiler.probes.subject import is_floating, is_number, scaled
from trtc.compiler.probes.trial import Worst

if TYPE_CHECKING:
    from trtc.compiler.probes.cases import PadCase
    from trtc.compiler.probes.experiment import Experiment
    from trtc.compiler.probes.subject import Feeds


def describe_guards(experiment: Experiment) -> str:
    """Find out which fills matter, and say so.

    Inputs are taken in turn: their padding is filled with other values while that of the inputs known to matter
    keeps its fill. What remains without effect is free; the others guard it.
    """
    names = list(dict.fromkeys(name for rule in experiment.padded.rules for name in rule.fills))
    example = experiment.generate(experiment.runnable[0])
    floats = frozenset(name for name, value in example.items() if is_floating(value))
    free: list[str] = []
    loud: list[str] = []
    untested: list[str] = []
    for name in names:
        verdict = _unchanged(experiment, [*free, name], loud)
        if verdict is None:
            untested.append(name)
        elif verdict:
            free.append(name)
            if name in floats and _unchanged(experiment, free, [*loud, name]):
                loud.append(name)
    guards = [name for name in names if name not in free and name not in untested]
    return _text(free, loud, guards, untested, experiment.options.garbage_scale)


def _unchanged(experiment: Experiment, names: list[str], loud: list[str]) -> bool | None:
    """Tell whether results stay with garbage in the padding of ``names``.

    Returns:
        None when nothing ran, or no garbage for the last name differed from its fill.
    """
    worst, differed = Worst(), False
    for case in experiment.runnable[: experiment.options.repeats]:
        feeds = experiment.generate(case)
        route = experiment.padded.route(feeds, case)
        garbage = {
            n: g for n in names if n in feeds and (g := _garbage(experiment, n, case, loud=n in loud)) is not None
        }
        last = garbage.get(names[-1])
        if last is None:
            return None
        differed |= any(bool(np.any(last[region] != fill)) for region, fill in route.inputs[names[-1]].fills)
        if experiment.holds(case, feeds, worst, garbage) is False:
            return False
    return True if worst.comparisons and differed else None


def _garbage(experiment: Experiment, name: str, case: PadCase, *, loud: bool) -> np.ndarray | None:
    """Make values that are legal for the input but are not its fill, at the sizes to run at."""
    feeds: Feeds = experiment.subject.values.feeds(case.run_sizes, experiment.rng)
    value = feeds.get(name)
    if not is_number(value) or not isinstance(value, np.ndarray):
        return None
    if is_floating(value):
        return scaled(value, experiment.options.garbage_scale) if loud else value
    fills = [rule.fills[name] for rule in experiment.padded.rules if name in rule.fills]
    if all(np.all(value == fill) for fill in fills) and value.size:
        low, high = experiment.bounds.boxes().get(name, (0.0, 0.0))
        return np.where(value == low, np.asarray(high, value.dtype), np.asarray(low, value.dtype)).astype(value.dtype)
    return value


def _text(free: list[str], loud: list[str], guards: list[str], untested: list[str], scale: float) -> str:
    parts = []
    if free:
        louder = f" (also {scale:g} times larger: {', '.join(loud)})" if loud else ""
        parts.append(f"the padding of {', '.join(free)} may hold any legal value{louder}")
    if guards:
        verb = "guards it by its fill" if len(guards) == 1 else "guard it by their fills"
        alone = "is neutral only by its fill" if len(guards) == 1 else "are neutral only by their fills"
        parts.append(f"{', '.join(guards)} {verb if free else alone}")
    if untested:
        parts.append(f"no other legal value was at hand for the padding of {', '.join(untested)}")
    return "; ".join(parts)
