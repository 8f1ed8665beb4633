"""Compare an engine with the references: every profile, exact and padded, inside a time budget."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import TYPE_CHECKING

import numpy as np

from trtc.compiler.execute import run_call
from trtc.compiler.probes.domain import inside, without_zero_rows
from trtc.compiler.probes.subject import Runs, reduced
from trtc.compiler.probes.trial import PaddedRuns, Worst, rank
from trtc.compiler.tolerance import Tolerance
from trtc.compiler.verify_points import Point, verify_points
from trtc.engines.build import unheard
from trtc.engines.manifest import Evidence, ValueDomain, Verification
from trtc.engines.route import plan_route
from trtc.profiles import PadRule, TrtcError, UsageError, sizes_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trtc.compiler.probes.subject import Feeds, Reference, Subject
    from trtc.engines.protocol import Engine


@dataclass(frozen=True, slots=True)
class VerifyOptions:
    """How much is compared.

    Attributes:
        tolerance: when an engine counts as equal to a reference.
        seed: of sizes and values.
        budget_s: seconds for all comparisons; what it cuts off is said in the result.
        further_budget_s: seconds for each reference after the first (an evaluator written for clarity is slow).
        open_sizes: sizes to run where a range has no upper end.
        random_points: sizes drawn from each closed range, beside its min, opt and max.
        max_samples: real samples that are run.
        tell: told how far it is, such as ``3 of 12 requests``.
    """

    tolerance: Tolerance = field(default_factory=Tolerance)
    seed: int = 0
    budget_s: float = 120.0
    further_budget_s: float = 20.0
    open_sizes: tuple[int, ...] = (1, 2, 3, 5, 8, 17, 33, 64)
    random_points: int = 2
    max_samples: int = 4
    tell: Callable[[str], None] = unheard


@dataclass(frozen=True, slots=True)
class Padding:
    """What the bundle will pad, and what was shown about it.

    Attributes:
        rules: that were accepted, or whose deviation was.
        evidence: of the probes.
    """

    rules: tuple[PadRule, ...] = ()
    evidence: tuple[Evidence, ...] = ()

    @property
    def symbols(self) -> frozenset[str]:
        """Symbols that may be padded."""
        return frozenset(rule.symbol for rule in self.rules)

    @property
    def deviates(self) -> bool:
        """Whether padded answers are known to differ from exact ones."""
        return any(e.deviation_accepted for e in self.evidence if e.kind == "padding")

    @property
    def domain(self) -> dict[str, ValueDomain]:
        """Values that every probe of padding, with fills or with rows, ran with."""
        common: dict[str, ValueDomain] = {}
        for evidence in self.evidence:
            for name, new in evidence.domain.items() if evidence.kind in ("padding", "rows") else ():
                old = common.get(name, new)
                common[name] = ValueDomain(
                    low=max(old.low, new.low),
                    high=min(old.high, new.high),
                    rows_nonzero=old.rows_nonzero or new.rows_nonzero,
                )
        return common


_OTHER_VALUES = 3
_DEFAULTS = VerifyOptions()
_NO_PADDING = Padding()


def verify_engine(
    engine: Engine,
    subject: Subject,
    references: Sequence[Reference],
    padding: Padding = _NO_PADDING,
    options: VerifyOptions = _DEFAULTS,
) -> tuple[Verification, ...]:
    """Run the engine in every profile and compare it with each reference.

    Args:
        engine: open; it runs in memory of its own.
        subject: the model, its ladder, its values and samples.
        references: what to compare with; the first is trusted to be fast.
        padding: rules and their evidence. Padded runs are compared with exact reference runs; where a deviation
            was accepted, with reference runs padded alike.
        options: how much to compare.

    Returns:
        One summary for each profile, mode and reference. It passed only if something was compared and everything
        compared agreed; its ``detail`` says what could not be run, and what the budget cut off.

    Raises:
        UsageError: without any reference.
    """
    if not references:
        raise UsageError("verification needs a reference to compare with; give one or more")
    check = _Check(engine, subject, padding, options)
    queues = verify_points(subject, padding.rules, options)
    tallies = {key: [_Tally(i, reference) for i, reference in enumerate(references)] for key in queues}
    done, whole = 0, sum(map(len, queues.values()))
    started_s = time.monotonic()
    spent_s = [0.0] * len(references)
    further_s = min(options.further_budget_s, options.budget_s / 4)
    # Breadth first: when time runs out, every profile has been looked at before any was looked at twice. The first
    # look with the first reference is never cut off: a busy machine must not turn a good engine into a failed build.
    for i_turn, turn in enumerate(zip_longest(*queues.values())):
        for key, point in zip(queues, turn, strict=True):
            if point is None:
                continue
            done += 1
            options.tell(f"{done} of {whole} requests")
            late = time.monotonic() - started_s >= options.budget_s
            due = [
                not late or (i_turn == 0 and options.budget_s > 0) if i == 0 else not late and spent_s[i] < further_s
                for i in range(len(references))
            ]
            for tally, runs in zip(tallies[key], due, strict=True):
                tally.cut_off += not runs
            if any(due):
                check.run(
                    point, [tally if runs else None for tally, runs in zip(tallies[key], due, strict=True)], spent_s
                )
    return tuple(
        tally.summary(profile, mode, len(queues[profile, mode]))
        for (profile, mode), row in tallies.items()
        for tally in row
    )


class _Tally:
    """What one reference saw in one profile and mode."""

    def __init__(self, index: int, reference: Reference) -> None:
        self.index = index
        self.name = reference.name
        self.runs = Runs(reference)
        self.worst = Worst()
        self.engine_errors: dict[str, str] = {}
        self.refused = 0
        self.outside = 0
        self.cut_off = 0
        self.note = ""

    def summary(self, profile: str, mode: str, points: int) -> Verification:
        compared = self.worst.comparisons
        worst = max(self.worst.seen.items(), key=lambda item: rank(item[1][0]), default=None)
        failures = self.worst.failures()
        parts = [failures] if failures else []
        if self.engine_errors:
            sizes, reason = next(iter(self.engine_errors.items()))
            parts.append(
                f"the engine failed where the reference ran, {len(self.engine_errors)} times, at {sizes}: {reason}"
            )
        if self.refused:
            parts.append(
                f"the reference could not run {self.refused} of {points} points, such as {self.runs.example()}"
            )
        if self.outside:
            parts.append(f"{self.outside} of {points} points lay outside the padded value domain")
        if self.cut_off:
            parts.append(f"{self.cut_off} of {points} points were not run: the time budget was used up")
        if not compared and not self.engine_errors:
            parts.append("nothing was compared")
        if self.note and compared:
            parts.append(self.note)
        return Verification(
            profile=profile,
            mode="padded" if mode == "padded" else "exact",
            reference=self.name,
            ran=bool(compared or self.engine_errors),
            passed=self.worst.passed and not self.engine_errors,
            runs=compared,
            worst=None if worst is None else worst[1][0].finding(worst[0], worst[1][1]),
            detail="; ".join(parts),
        )


class _Check:
    """Runs single points."""

    def __init__(self, engine: Engine, subject: Subject, padding: Padding, options: VerifyOptions) -> None:
        self._engine = engine
        self._subject = subject
        self._padding = padding
        self._options = options
        self._domain = padding.domain
        self._rng = np.random.default_rng(options.seed)

    def run(self, point: Point, tallies: Sequence[_Tally | None], spent_s: list[float]) -> None:
        """Run the engine once, and every reference that is due."""
        feeds, first = self._drawn(point, tallies[0], spent_s)
        if self._is_outside(point, feeds):
            for tally in tallies:
                if tally is not None:
                    tally.outside += 1
            return
        got, error = self._engine_outputs(point, feeds)
        # Values that the first reference refuses, such as a divisor of 0, tell nothing about the engine.
        model_runs = first is not None or tallies[0] is None
        for i, tally in enumerate(tallies):
            if tally is None:
                continue
            exact = first if i == 0 else self._reference_outputs(tally, point, feeds, spent_s)
            if exact is None or (got is None and not model_runs):
                tally.refused += 1
            elif got is None:
                tally.engine_errors.setdefault(sizes_text(point.run_sizes), error)
            else:
                tally.worst.compare(got, exact, self._options.tolerance, point.described())

    def _drawn(self, point: Point, tally: _Tally | None, spent_s: list[float]) -> tuple[Feeds, Feeds | None]:
        """Draw values, and others where the first reference refuses them: it may be the values and not the sizes.

        Returns:
            The values, and what the first reference answers; None where it was not asked, or refuses them.
        """
        feeds = self._feeds(point)
        exact = None
        for _ in range(1 if point.feeds is not None else 1 + _OTHER_VALUES):
            if tally is None or self._is_outside(point, feeds):
                break
            exact = self._reference_outputs(tally, point, feeds, spent_s)
            if exact is not None:
                break
            feeds = self._feeds(point)
        return feeds, exact

    def _feeds(self, point: Point) -> Feeds:
        if point.feeds is not None:
            return point.feeds
        feeds = self._subject.values.feeds(point.sizes, self._rng)
        return without_zero_rows(feeds) if point.sizes != point.run_sizes else feeds

    def _is_outside(self, point: Point, feeds: Feeds) -> bool:
        return point.sizes != point.run_sizes and not inside(self._domain, feeds)

    def _engine_outputs(self, point: Point, feeds: Feeds) -> tuple[Feeds | None, str]:
        unread = {spec.name for spec in self._subject.signature.inputs if not spec.used}
        feeds = {name: value for name, value in feeds.items() if name not in unread}
        signature = reduced(self._subject.signature, feeds)
        route = plan_route(signature, self._padding.rules, point.sizes, point.run_sizes)
        try:
            return run_call(self._engine, route, feeds), ""
        except TrtcError as error:
            return None, (str(error).splitlines() or [type(error).__name__])[0]

    def _reference_outputs(self, tally: _Tally, point: Point, feeds: Feeds, spent_s: list[float]) -> Feeds | None:
        started_s = time.monotonic()
        try:
            if point.sizes != point.run_sizes and self._padding.deviates:
                tally.note = "compared with the reference padded alike, since the deviation of padding was accepted"
                return PaddedRuns(tally.runs, self._subject.signature, self._padding.rules).run(feeds, point.case)
            return tally.runs.attempt(feeds, point.sizes)
        finally:
            spent_s[tally.index] += time.monotonic() - started_s
