"""Two bundles side by side: what their manifests say, what they answer, how long that takes, what memory it takes."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from trtc.compiler.samples import check_samples, load_samples
from trtc.engines.bundle import bundle_size_bytes
from trtc.engines.errors import EngineError
from trtc.profiles import RequestError, UsageError
from trtc.runtime import Arena, load
from trtc.tools.bench.budget import Budget
from trtc.tools.bench.clock import MonotonicClock
from trtc.tools.bench.rounds import alternate
from trtc.tools.bench.traffic import recorded_traffic
from trtc.tools.comparison.changes import Change, changes_between
from trtc.tools.comparison.figures import (
    Figure,
    Verdict,
    agreement_figures,
    known_figures,
    time_figures,
    verdict_on,
)
from trtc.tools.comparison.requests import Values
from trtc.tools.comparison.result import CaseResult, ComparisonResult
from trtc.tools.comparison.rules import Rule, Rules
from trtc.tools.comparison.values import compare_outputs
from trtc.tools.inputs import shown_sizes
from trtc.tools.output import counted

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from trtc.engines.manifest import Manifest
    from trtc.runtime import Session
    from trtc.tools.bench.clock import Clock
    from trtc.tools.bench.rounds import Rounds
    from trtc.tools.comparison.conditions import Condition
    from trtc.tools.output import Progress

MAX_DISTINCT = 64
"""Distinct sizes of recorded traffic that are run: those that came most often."""
MAX_TURN = 256
"""Calls of one round."""
NOTHING_ALLOWED = Rules(Rule(0.0, 0.0, coarse=False))
_OPEN = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is asked about two bundles.

    Attributes:
        traffic: recorded sizes; None for the opt sizes of the old bundle's profiles.
        samples: real inputs, instead.
        val_ranges: ``--val-range`` texts.
        seed: of generated values.
        seconds: for measuring each bundle; 0 measures no times.
        threads: of one call; None as measured.
        conditions: that fail where they hold.
        clock: that times are read from.
    """

    traffic: Path | None = None
    samples: tuple[Path, ...] = ()
    val_ranges: tuple[str, ...] = ()
    seed: int = 0
    seconds: float = 3.0
    threads: int | None = None
    conditions: tuple[Condition, ...] = ()
    clock: Clock = field(default_factory=MonotonicClock)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What was found.

    Attributes:
        changes: as the manifests say.
        figures: of both bundles.
        differences: outputs that are not bit for bit the same, or cannot be compared.
        verdicts: one for each condition; before them, where there are conditions or the new bundle serves no request,
            one on whether it serves what the old one does.
        requests: distinct ones that were run.
        rounds: that times were measured in.
        notes: for people.
    """

    changes: tuple[Change, ...]
    figures: tuple[Figure, ...]
    differences: tuple[str, ...]
    verdicts: tuple[Verdict, ...]
    requests: int
    rounds: int
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class _Sent:
    """A request and how often it comes."""

    feeds: dict[str, Any]
    sizes: dict[str, int]
    count: float


def examine(paths: tuple[Path, Path], manifests: tuple[Manifest, Manifest], asked: Asked, progress: Progress) -> Found:
    """Look at two bundles.

    Args:
        paths: of the old and of the new bundle.
        manifests: of both.
        asked: what about.
        progress: told what is going on.

    Raises:
        UsageError: for samples or traffic that the old bundle does not take.
        HostError: when one of them cannot be loaded here.
    """
    if asked.seconds == 0 and any(c.kind == "time" for c in asked.conditions):
        raise UsageError("--fail-if asks about times, but --seconds 0 measures none; give --seconds 3")
    old, new = manifests
    notes: list[str] = []
    sent = _requests(old, asked, notes)
    served = _served(new, sent)
    figures = [known_figures("size", bundle_size_bytes(old), bundle_size_bytes(new))]
    with contextlib.ExitStack() as stack:
        progress.stage("loading both bundles")
        sessions = tuple(stack.enter_context(load(p, arena=Arena(), threads=asked.threads)) for p in paths)
        if served:
            progress.stage(f"comparing the answers to {counted(len(served), 'request')}")
        result = _answers(sessions[0], sessions[1], served)
        rounds = 0
        broken = _broken(result)
        figures += [] if broken else agreement_figures(result)
        if asked.seconds and served and not broken:
            progress.stage("measuring in turns")
            timed = _measured(sessions[0], sessions[1], served, asked)
            figures = [*time_figures(timed, asked.seed), *figures]
            rounds = timed.ours_s.shape[0]
        old_bytes, new_bytes = (session.stats.arena.in_use_bytes for session in sessions)
        figures.append(known_figures("memory", old_bytes, new_bytes))
    by_name = {figure.name: figure for figure in figures}
    verdicts = [verdict_on(condition, by_name, broken) for condition in asked.conditions]
    if asked.conditions or not served:
        verdicts.insert(0, _serves(sent, served, new))
    return Found(
        changes=tuple(changes_between(old, new)),
        figures=tuple(figures),
        differences=tuple(_differences(result, broken)),
        verdicts=tuple(verdicts),
        requests=len(served),
        rounds=rounds,
        notes=tuple(notes),
    )


def _requests(old: Manifest, asked: Asked, notes: list[str]) -> list[_Sent]:
    """Settle what is run: real samples, recorded sizes, or the opt sizes of each profile of the old bundle."""
    if asked.samples and asked.traffic is not None:
        raise UsageError("give either --samples or --traffic: samples have sizes of their own")
    if asked.samples:
        fed = tuple(spec for spec in old.signature.inputs if not spec.has_default)
        samples = check_samples(load_samples(asked.samples), fed)
        return [_Sent(feeds, shown_sizes(feeds, old.signature), 1) for feeds in samples.feeds]
    if asked.traffic is not None:
        recorded = recorded_traffic(asked.traffic, old)
        notes.extend(recorded.notes)
        rows = sorted(recorded.rows, key=lambda row: -row[1])
        if len(rows) > MAX_DISTINCT:
            share = sum(count for _, count in rows[:MAX_DISTINCT]) / sum(count for _, count in rows)
            notes.append(f"the {MAX_DISTINCT} sizes that came most often are run: {share:.1%} of the traffic")
            rows = rows[:MAX_DISTINCT]
    else:
        rows = [
            ({s: r.opt if r.opt is not None else max(r.min, _OPEN) for s, r in p.ranges.items()}, 1)
            for p in old.ladder.profiles
        ]
        notes.append("sizes are the opt sizes of the old bundle's profiles; give --traffic for those that really come")
    values = Values(old, asked.val_ranges, None, asked.seed)
    return [_Sent(values.feeds(sizes), sizes, count) for sizes, count in rows]


def _served(new: Manifest, sent: Sequence[_Sent]) -> list[_Sent]:
    symbols = set(new.signature.symbols)
    return [
        s for s in sent if symbols <= s.sizes.keys() and any(p.fits(s.sizes, new.padded) for p in new.ladder.profiles)
    ]


def _serves(sent: Sequence[_Sent], served: Sequence[_Sent], new: Manifest) -> Verdict:
    lost = [s for s in sent if s not in served]
    text = "serves what the old one does"
    if not lost:
        return Verdict(condition=text, state="passed", detail=f"{len(sent)} of {len(sent)} distinct requests")
    known = set(new.signature.symbols) <= lost[0].sizes.keys()
    why = new.ladder.misfit(lost[0].sizes, new.padded) if known else "its symbols are others"
    if not served:
        said = "does not serve the one request" if len(sent) == 1 else f"serves none of the {len(sent)} requests"
        return Verdict(condition=text, state="failed", detail=f"the new bundle {said} of the old one: {why}")
    return Verdict(condition=text, state="failed", detail=f"{len(lost)} of {len(sent)} requests are not served: {why}")


def _answers(old: Session, new: Session, sent: Sequence[_Sent]) -> ComparisonResult:
    cases = []
    for i, request in enumerate(sent):
        facts: dict[str, Any] = {"request": str(i), "profile": "", "mode": "", "sizes": request.sizes, "run_sizes": {}}
        expected = old.run(request.feeds)
        try:
            got = new.run(request.feeds)
        except (EngineError, RequestError) as error:
            cases.append(CaseResult(**facts, error=f"the new bundle failed where the old one ran: {error}"))
            continue
        cases.append(CaseResult(**facts, outputs=compare_outputs(got, expected, NOTHING_ALLOWED)))
    return ComparisonResult(subject="new", against="old", cases=tuple(cases))


def _broken(result: ComparisonResult) -> str:
    """Say why answers cannot be compared: another set of outputs, other types, shapes, NaN in other places."""
    if not result.cases:
        return "no request was run on both bundles"
    for case in result.cases:
        if case.error:
            return case.error
        for output in case.outputs:
            if not output.passed and output.max_abs is None:
                return f"output {output.output!r}: {output.reason}"
            if output.reason.startswith("NaN or infinity"):
                return f"output {output.output!r}: {output.reason}"
    return ""


def _differences(result: ComparisonResult, broken: str) -> list[str]:
    if broken:
        return [broken]
    found: dict[str, tuple[float, str]] = {}
    for case in result.cases:
        for output in case.outputs:
            worst = output.max_abs or 0.0
            if not output.passed and worst >= found.get(output.output, (-1.0, ""))[0]:
                cosine = "" if output.cosine is None else f", cosine {output.cosine:.9f}"
                text = f"output {output.output!r} differs by up to {worst:.3g} at {list(output.where or ())}{cosine}"
                found[output.output] = worst, text
    return [text for _, text in found.values()]


def _measured(old: Session, new: Session, sent: Sequence[_Sent], asked: Asked) -> Rounds:
    """Time both in turns; a round sends each request as often as it came, scaled down to what a round may hold."""
    counts = [request.count for request in sent]
    unit = 1.0 if all(count == round(count) for count in counts) else min(counts)
    share = min(1 / unit, MAX_TURN / sum(counts))
    turn = [request.feeds for request in sent for _ in range(max(1, round(request.count * share)))]
    return alternate((new.run, turn), (old.run, turn), Budget(duration_s=asked.seconds), asked.clock)
