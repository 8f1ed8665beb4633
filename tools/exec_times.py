"""What calls took under ``trtc exec``, beside what they took in a recorded run: another moment of the machine."""

from __future__ import annotations

from trtc.tools.durations import seconds_text

TYPE_CHECKING = False  # importing typing takes 2 ms
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    Sums = tuple[int, float, float]
    """Calls, their seconds, and the squares of these."""
    Known = tuple[float, float]
    """Calls before, and their mean seconds."""

_ERRORS = 3.0
"""Standard errors that two means must lie apart: chance alone does that once in 400 times."""
_DRIFT = 0.1
"""Share that two moments of one machine may differ by whatever runs on it: its clock and its neighbours do that."""


def added(one: Sums, other: Sums) -> Sums:
    """Join two sums."""
    return one[0] + other[0], one[1] + other[1], one[2] + other[2]


def answered_fields(sums: Sums) -> dict[str, Any]:
    """Return calls of one who answered, for JSON; no mean where there are none."""
    calls, seconds, _ = sums
    return {"calls": calls, "seconds": seconds, "mean_s": seconds / calls if calls else None}


def compared(shapes: Mapping[str, Sums], before: Mapping[str, Known]) -> dict[str, Any]:
    """Compare calls with calls of equal shapes: a mean over other sizes would be a mean of other work.

    Args:
        shapes: what calls took now, by the shapes of their inputs.
        before: what they took in the recorded run.

    Returns:
        ``compared_calls``, the means ``compared_s`` and ``before_s``, and ``differs``: whether these lie apart by more
        than the calls scatter, None where no two calls are of equal shapes, so that nobody knows.
    """
    both = {key: sums for key, sums in shapes.items() if key in before}
    calls = sum(count for count, _, _ in both.values())
    if not calls:
        return {"compared_calls": 0, "compared_s": None, "before_s": None, "differs": None}
    ours_s = sum(seconds for _, seconds, _ in both.values()) / calls
    before_s = sum(count * before[key][1] for key, (count, _, _) in both.items()) / calls
    error_s = _error_s(both, before, calls)
    differs = None if error_s is None else abs(ours_s - before_s) > max(_ERRORS * error_s, _DRIFT * before_s)
    return {"compared_calls": calls, "compared_s": ours_s, "before_s": before_s, "differs": differs}


def answers_text(model: Mapping[str, Any]) -> str:
    """Say how many calls of a model were answered by whom, and in what time."""
    sizes = _counted(model["sizes"], "size")
    bundle, library = model["by_bundle"], model["by_onnxruntime"]
    if not model["calls"]:
        return "opened, no call"
    plain = f"{seconds_text(library['mean_s'])} each" if library["calls"] else ""
    if not bundle["calls"]:
        text = f"{_counted(library['calls'], 'call')} of {sizes} by ONNX Runtime"
        return f"{text} ({plain}{_before_text(model, library['calls'])})"
    ours = f"{seconds_text(bundle['mean_s'])} each{_before_text(model, bundle['calls'])}"
    if not library["calls"]:
        return f"{_counted(bundle['calls'], 'call')} of {sizes} by the bundle ({ours})"
    return (
        f"{_counted(model['calls'], 'call')} of {sizes}: {bundle['calls']} by the bundle ({ours}), "
        f"{library['calls']} by ONNX Runtime ({plain})"
    )


def _before_text(model: Mapping[str, Any], calls: int) -> str:
    if not model["before_s"]:
        return ""
    ratio = model["compared_s"] / model["before_s"]
    verdict = "" if model["differs"] is None else f": {ratio:.2f} x"
    if model["differs"] is False:
        near = abs(ratio - 1) <= _DRIFT
        verdict = ": about the same" if near else ": calls scatter too much to tell them apart"
    if model["compared_calls"] == calls:
        return f", {seconds_text(model['before_s'])} in the recorded run{verdict}"
    return (
        f"; {model['compared_calls']} of them have sizes that were recorded before: "
        f"{seconds_text(model['compared_s'])} each, {seconds_text(model['before_s'])} in the recorded run{verdict}"
    )


def _error_s(both: Mapping[str, Sums], before: Mapping[str, Known], calls: int) -> float | None:
    """Return the standard error of the difference of the two means; None where nothing tells how calls scatter.

    Calls of all shapes are taken to scatter by one share of their mean, and those before as these do: no record says
    how they did.
    """
    freedom = sum(count - 1 for count, _, _ in both.values())
    means = {key: seconds / count for key, (count, seconds, _) in both.items() if count}
    if not freedom or not all(means.values()):
        return None
    scatter = sum(
        max(squares - seconds * means[key], 0.0) / means[key] ** 2 for key, (_, seconds, squares) in both.items()
    )
    terms = (
        count * means[key] ** 2 + (count * before[key][1]) ** 2 / before[key][0] for key, (count, _, _) in both.items()
    )
    return float((scatter / freedom * sum(terms)) ** 0.5 / calls)


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
