"""What a benchmark found: the objects of the JSON report ``trtc.bench/1``. All times are in seconds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from trtc.tools.bench.conditions import Conditions
from trtc.tools.bench.limits import Limits, Roof
from trtc.tools.bench.memory import Memory
from trtc.tools.bench.ratio import Ratio
from trtc.tools.bench.summary import Summary

if TYPE_CHECKING:
    from collections.abc import Sequence

SCHEMA = "trtc.bench/1"


class SizeResult(msgspec.Struct, frozen=True):
    """One distinct request of a case.

    ``profile`` and ``run_sizes``: where it runs, and at which sizes; null and its own sizes where that cannot be told.
    ``waste``: share of the input elements that are padding. ``first_call_s`` prepares its route. ``latency``: of its
    calls; null where the mix did not come to it.
    """

    sizes: dict[str, int]
    profile: str | None
    run_sizes: dict[str, int]
    waste: float
    first_call_s: float
    latency: Summary | None


def most_called(sizes: Sequence[SizeResult], most: int) -> list[SizeResult]:
    """Keep the sizes with most calls, in the order in which they come."""

    def calls(i: int) -> int:
        found = sizes[i].latency
        return 0 if found is None else found.count

    return [sizes[i] for i in sorted(sorted(range(len(sizes)), key=calls, reverse=True)[:most])]


class PeerResult(msgspec.Struct, frozen=True):
    """The peer beside us, in turns.

    ``ours`` and ``peer``: all calls of these turns. ``ratio``: our time over its time, with the two medians that it is
    made of. ``idle_threads``: how threads of both sides wait for work, for people. ``differences``: largest absolute
    difference of each output; ``agrees`` is false where one exceeds the bundle's tolerance, so that the two do not the
    same work.
    """

    name: str
    version: str
    threads: int | None
    idle_threads: str
    ours: Summary
    peer: Summary
    ratio: Ratio
    differences: dict[str, float]
    agrees: bool


class CaseResult(msgspec.Struct, frozen=True):
    """Requests that were measured together.

    ``loop``: ``closed`` (``callers`` callers, each sends its next call when the one before ended) or ``open``
    (``rate_per_second`` calls begin in each second; ``latency`` then counts from when a call should have begun,
    ``service`` from when it did). ``parts``: medians of the parts of a call, measured apart after the timed calls,
    with a clock between them; ``run`` is the whole of these calls. ``late_share``: share of open-loop calls that began
    more than a millisecond late.
    """

    name: str
    loop: Literal["closed", "open"]
    callers: int
    rate_per_second: float | None
    per_second: float
    elapsed_s: float
    latency: Summary
    service: Summary
    late_share: float
    parts: dict[str, float]
    sizes: tuple[SizeResult, ...]
    generated: dict[str, str]
    peer: PeerResult | None = None
    roof: Roof | None = None


class BenchReport(msgspec.Struct, frozen=True):
    """Everything. ``transfers`` and ``graphs`` say what a latency holds, for comparing with other tools.

    ``idle_threads``: how threads of the engine wait for work: ``spin`` (actively), ``sleep``, or ``its own way`` where
    the engine's library decides.
    """

    bundle: str
    engine: str
    backend: str
    target: str
    mode: str
    slots: int
    threads: int
    idle_threads: Literal["spin", "sleep", "its own way"]
    transfers: str
    graphs: str
    load_s: float
    iterations: int
    duration_s: float
    warm_up_s: float
    cases: tuple[CaseResult, ...]
    memory: Memory
    conditions: Conditions
    host: dict[str, str]
    versions: dict[str, str]
    limits: Limits | None = None
    notes: tuple[str, ...] = ()
