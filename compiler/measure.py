"""Measure on this machine what the plan leaves open: exact or padded, how many calls at once, how many threads each."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from trtc.compiler.options import Silent
from trtc.compiler.timing import calls_per_s, median_s, prepared
from trtc.compiler.trade_off import lone_call_text
from trtc.compiler.ways import Way, race
from trtc.engines.manifest import Execution

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trtc.compiler.options import Progress, WantedMode
    from trtc.compiler.probes.subject import Subject
    from trtc.compiler.ways import Outcome, Race
    from trtc.engines.manifest import Mode
    from trtc.engines.protocol import Engine
    from trtc.profiles import PadRule, Profile

NEARLY = 0.9
"""Ways to run within a tenth of the best throughput count as equal; of those the one with the least latency wins."""
SIZES_PER_PROFILE = 4
_FEWEST_PAIRS, _MOST_PAIRS = 4, 16
_RUNS = 4
"""Of a call at least, where one takes longer than its share of the time: to prepare it, to time it, beside others."""
_SILENT = Silent()


class OpenEngine(Protocol):
    """Opens the engine that is measured."""

    def __call__(self, threads: int, *, spinning: bool = True) -> Engine:
        """Open it with a number of threads for each call; ``spinning`` as in ``Backend.load``."""


@dataclass(frozen=True, slots=True)
class MeasureOptions:
    """What to measure.

    Attributes:
        wanted: a mode that the user fixed, or ``auto``.
        budget_s: seconds for everything; 0 measures nothing.
        threads: processors that this process may use.
        callers: that the program has at once; 0 for as many as help.
        device: whether the engine runs on a device, where calls share no processors.
    """

    wanted: WantedMode
    budget_s: float
    threads: int
    callers: int = 0
    device: bool = False


@dataclass(frozen=True, slots=True)
class Measured:
    """What was measured.

    Attributes:
        execution: the choice, with the figures that it rests on.
        cost_s: seconds of one run at each profile's bucket; empty where a bucket is open or nothing was measured.
    """

    execution: Execution
    cost_s: tuple[float, ...]


def measure(
    open_engine: OpenEngine,
    subject: Subject,
    rules: Sequence[PadRule],
    options: MeasureOptions,
    progress: Progress = _SILENT,
) -> Measured:
    """Measure and choose.

    Args:
        open_engine: opens the engine.
        subject: signature, ladder, values.
        rules: accepted padding.
        options: what to measure, and for how long.
        progress: told how far it is.
    """
    fixed: Mode = "bucket" if options.wanted == "bucket" else "exact"
    if options.budget_s <= 0:
        return Measured(unmeasured(fixed, "nothing was measured (--measure-seconds 0)", device=options.device), ())
    rng = np.random.default_rng(0)
    way = _choose_threads(open_engine, subject, options, progress)
    engine = open_engine(way.threads)
    try:
        profiles = subject.ladder.profiles
        share_s = options.budget_s / 4 / len(profiles)

        def cost_of(i: int) -> float:
            progress.detail(f"profile {i + 1} of {len(profiles)}")
            bucket = _closed(profiles[i])
            return median_s(prepared(engine, subject, rules, bucket, rng), share_s) if bucket else 0.0

        cost_s = tuple(map(cost_of, range(len(profiles))))
        mode: Mode = fixed
        figures: dict[str, float] = {}
        reason = f"sizes run {fixed}, as asked"
        if options.wanted == "auto":
            padded = frozenset(rule.symbol for rule in rules)
            pairs = _sizes_to_compare(subject, padded) if padded else []
            pair_rng = np.random.default_rng(0)
            pair_share_s = options.budget_s / 4 / max(len(pairs), 1)

            def exactly_s(sizes: dict[str, int]) -> float:
                return median_s(prepared(engine, subject, rules, sizes, pair_rng), pair_share_s)

            exact_s, bucket_s = _exact_against_bucket(exactly_s, pairs, cost_s, options.budget_s / 4, progress)
            figures = {"exact_s": exact_s, "bucket_s": bucket_s} if bucket_s else {}
            mode, reason = _mode_from(exact_s, bucket_s)
    finally:
        engine.close()
    execution = Execution(
        mode=mode,
        slots=way.slots,
        threads=way.threads,
        reason=f"{reason}; {way.reason}",
        measured=figures | way.figures,
    )
    return Measured(execution, cost_s if all(cost_s) else ())


def unmeasured(mode: Mode, reason: str, *, device: bool) -> Execution:
    """Say how an engine runs that was not measured.

    On processors one call runs at a time, with all of them, as in a session of ONNX Runtime: a lone call is fast, and
    no processor is asked for twice. On a device calls need no processors, and as many run at once as a session decides.

    Args:
        mode: to run in.
        reason: for the mode, and why nothing was measured.
        device: whether the engine runs on a device.
    """
    if device:
        return Execution(mode=mode, reason=reason)
    alone = "one call at a time on all processors is fastest for a lone caller; others wait for it"
    return Execution(mode=mode, slots=1, reason=f"{reason}; {alone}")


def fastest(course: Race, modes: Sequence[Mode], ways: Sequence[tuple[int, int]], budget_s: float) -> Measured:
    """Choose the mode, the slots and the threads that serve given requests fastest.

    Args:
        course: the requests, and what runs them.
        modes: to choose from.
        ways: calls at once and threads each, to choose from.
        budget_s: seconds for measuring.
    """
    outcome = race(course, [Way(slots, threads, mode) for slots, threads in ways for mode in modes], budget_s)
    best = outcome.best
    execution = Execution(
        mode=best.mode,
        slots=best.slots,
        threads=best.threads,
        reason=_reason(outcome, modes),
        measured=outcome.figures,
    )
    return Measured(execution, course.subject.ladder.cost_s)


def _reason(outcome: Outcome, modes: Sequence[Mode]) -> str:
    best = outcome.best
    text = f"served {outcome.rates[best]:.1f} requests/s of this traffic ({outcome.requests} sizes)"
    other = outcome.best_of("bucket" if best.mode == "exact" else "exact")
    if other is not None:
        said = "padded to the bucket" if other.mode == "bucket" else "at exact sizes"
        text += f"; {said} at most {outcome.rates[other]:.1f}"
    elif len(modes) == 1:
        text += "; no other mode was tried"
    lone_s = {(way.slots, way.threads): lone_s for way, lone_s in outcome.lone_s.items() if way.mode == best.mode}
    lone = lone_call_text(lone_s, (best.slots, best.threads))
    return f"{text}; {lone}" if lone else text


def _mode_from(exact_s: float, bucket_s: float) -> tuple[Mode, str]:
    """Decide from seconds; both 0 where nothing may be padded."""
    if not bucket_s:
        return "exact", "nothing may be padded up to a bucket"
    if exact_s <= bucket_s:
        return "exact", f"exact sizes take {exact_s / bucket_s:.2f} of the time of padded ones here"
    return "bucket", f"padded sizes take {bucket_s / exact_s:.2f} of the time of exact ones here"


def _exact_against_bucket(
    exactly_s: Callable[[dict[str, int]], float],
    pairs: Sequence[tuple[dict[str, int], int]],
    cost_s: Sequence[float],
    budget_s: float,
    progress: Progress,
) -> tuple[float, float]:
    """Mean seconds of exact runs and of padded ones, over sizes that each profile would take; 0 without any."""
    if not pairs:
        return 0.0, 0.0
    exact_s = bucket_s = 0.0
    start_s = time.perf_counter()
    for done, (sizes, index) in enumerate(pairs, 1):
        progress.detail(f"exact size {done} of {len(pairs)}")
        exact_s += exactly_s(sizes)
        bucket_s += cost_s[index]
        if done >= _FEWEST_PAIRS and time.perf_counter() - start_s > budget_s:
            break
    return exact_s / done, bucket_s / done


def _sizes_to_compare(subject: Subject, padded: frozenset[str]) -> list[tuple[dict[str, int], int]]:
    rng = np.random.default_rng(1)
    pairs = []
    ladder = subject.ladder
    for index, profile in enumerate(ladder.profiles):
        bucket = _closed(profile)
        for _ in range(SIZES_PER_PROFILE if bucket else 0):
            below = {
                s: max((b for p in ladder.profiles if (b := p.ranges[s].max or 0) < size), default=0)
                for s, size in bucket.items()
            }
            sizes = {
                s: int(rng.integers(max(below[s] + 1, 1), size + 1)) if s in padded else size
                for s, size in bucket.items()
            }
            if profile.fits(sizes, padded):
                pairs.append((sizes, index))
    order = rng.permutation(len(pairs))[:_MOST_PAIRS]
    return [pairs[i] for i in order]


@dataclass(frozen=True, slots=True)
class _Way:
    """How many calls run at once, with how many threads each, and what that rests on."""

    slots: int
    threads: int
    reason: str
    figures: dict[str, float]


def _choose_threads(open_engine: OpenEngine, subject: Subject, options: MeasureOptions, progress: Progress) -> _Way:
    """Choose how many calls run at once and with how many threads each."""
    allowed = options.threads
    sizes = _typical_sizes(subject)
    if allowed == 1 or sizes is None:
        # Without sizes to measure at, a lone call comes first, as where nothing is measured.
        return _Way(1, allowed, "one processor" if allowed == 1 else "no typical size is known", {})
    ways = ways_of(allowed, options.callers)
    share_s = options.budget_s / 2 / len(ways) / 2
    rates: dict[tuple[int, int], float] = {}
    lone_s: dict[tuple[int, int], float] = {}
    for i, way in enumerate(ways):
        progress.detail(f"way {i + 1} of {len(ways)}")
        engine = open_engine(way[1])
        try:
            rng = np.random.default_rng(2)
            calls = [prepared(engine, subject, (), sizes, rng) for _ in range(way[0])]
            lone_s[way] = median_s(calls[0], share_s)
            if i == 0:
                runs = sum(slots + _RUNS for slots, _ in ways) + _RUNS * (len(subject.ladder.profiles) + _FEWEST_PAIRS)
                progress.ahead(max(options.budget_s, runs * lone_s[way]))
            rates[way] = calls_per_s(calls, share_s)
        finally:
            engine.close()
    best = max(rates.values())
    slots, threads = min((way for way in ways if rates[way] >= NEARLY * best), key=lambda way: lone_s[way])
    rate = rates[slots, threads]
    most = "the most of all ways tried" if rate == best else f"{best:.0f} is the most of all ways tried"
    reason = f"{rate:.0f} calls/s, {most}; {lone_call_text(lone_s, (slots, threads))}"
    figures = {f"calls_per_s_{a}x{b}": rate for (a, b), rate in rates.items()}
    figures |= {f"lone_call_s_{a}x{b}": seconds for (a, b), seconds in lone_s.items()}
    return _Way(slots, threads, reason, figures)


def ways_of(allowed: int, callers: int = 0) -> list[tuple[int, int]]:
    """Calls at once and threads each that are worth trying: they share the processors, and ask for none twice.

    More threads than processors look good only where other programs compete; in a program of its own idle threads then
    have to sleep, and a lone call is slower.

    Args:
        allowed: processors.
        callers: that the program has at once; 0 for as many as help.
    """
    most = min(callers or allowed, allowed)
    shares = {1 << k for k in range(allowed.bit_length())} | {allowed, allowed // most}
    return [(min(allowed // threads, most), threads) for threads in sorted(shares) if threads <= allowed]


def _typical_sizes(subject: Subject) -> dict[str, int] | None:
    """The opt sizes of the middle profile; None where they are open."""
    profiles = subject.ladder.profiles
    profile = profiles[len(profiles) // 2]
    sizes = {s: r.opt for s, r in profile.ranges.items() if r.opt is not None}
    return sizes if len(sizes) == len(profile.ranges) else None


def _closed(profile: Profile) -> dict[str, int]:
    """The bucket, or nothing where it is open."""
    bucket = {s: size for s, size in profile.bucket.items() if size is not None}
    return bucket if len(bucket) == len(profile.ranges) else {}
