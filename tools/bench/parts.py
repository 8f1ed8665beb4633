"""Parts of a call, in words: they come from other calls than the timed ones, which may have met another machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtc.runtime.trace_events import ENQUEUE, PHASES, RUN
from trtc.tools.durations import seconds_text

if TYPE_CHECKING:
    from trtc.tools.bench.results import CaseResult

SLOWER = 1.1
"""Times the median of the timed calls, above which parts are shares: their times would not be those of a timed call."""


def comparable(case: CaseResult) -> bool:
    """Tell whether the calls that were looked at in parts took about as long as the timed ones."""
    return case.parts.get(RUN, 0.0) <= SLOWER * case.service.median_s


def part_texts(case: CaseResult) -> dict[str, str]:
    """Write each part of a call by name: its time, or its share where the calls that were looked at were slower."""
    whole, shares = case.parts.get(RUN, 0.0), not comparable(case)
    return {
        name: f"{case.parts[name] / whole:.1%}" if shares else seconds_text(case.parts[name])
        for name in PHASES
        if name in case.parts
    }


def parts_text(case: CaseResult) -> str:
    """Write the parts of a call on a line, with the time of the calls that they are from."""
    parts = ", ".join(f"{name} {text}" for name, text in part_texts(case).items())
    if RUN not in case.parts:
        return f"parts of a call: {parts or 'not told'}"
    whole = seconds_text(case.parts[RUN])
    if comparable(case):
        return f"parts of a call, of other calls of {whole}: {parts}"
    return f"parts of a call, as shares of other calls, which were slower ({whole}): {parts}"


def enqueue_line(case: CaseResult) -> str:
    """Write trtexec's line; without a figure where it would be more than the latency above it."""
    if ENQUEUE not in case.parts:
        return ""
    enqueue_ms, whole_ms = case.parts[ENQUEUE] * 1e3, case.parts[RUN] * 1e3
    if case.parts[ENQUEUE] > case.latency.median_s:
        return (
            "Enqueue Time: left out, the calls that were looked at for it were slower than those above (Latency: "
            f"median = {whole_ms:.6g} ms)"
        )
    return f"Enqueue Time: median = {enqueue_ms:.6g} ms (of other calls, whose Latency: median = {whole_ms:.6g} ms)"
