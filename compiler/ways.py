"""Which way of running serves given requests fastest: exact or padded, how many calls at once, how many threads each.

Ways run in turns, so that whatever else the machine does meets them alike. One whose best round is clearly behind the
best round of another is dropped; the rest go on until the time is over.
"""

from __future__ import annotations

import math
import statistics
import time
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from trtc.compiler.options import Silent
from trtc.compiler.replay import Caller, Tally, distinct, drive, warm_up
from trtc.compiler.workload import requests_in, thinned

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from trtc.compiler.measure import OpenEngine
    from trtc.compiler.options import Progress
    from trtc.compiler.probes.subject import Subject
    from trtc.compiler.replay import Request
    from trtc.engines.manifest import Mode
    from trtc.engines.protocol import Engine
    from trtc.profiles import PadRule

BEHIND = 0.85
"""A way that never reached this share of the best rate is dropped. Other work on the machine slows rounds down, so the
best round of each tells most."""
LEAST_NOISE, MOST_NOISE = 0.015, 0.10
"""Ways whose best rounds differ by less than the noise of the rounds count as equal, within these limits: few rounds
show too little of it, and where it is larger than the second, something must be chosen all the same."""
FEWEST_ROUNDS, MOST_ROUNDS = 3, 40
_ROUND_S = 0.05
_PATIENCE_S = 5.0
"""Where the fewest rounds of all requests would take longer than this, and than the budget, fewer requests are run."""
_FEWEST_REQUESTS = 4
"""And twice the calls at once, so that there is something to wait for."""
_SILENT = Silent()


@dataclass(frozen=True, slots=True, order=True)
class Way:
    """One way to run.

    Attributes:
        slots: calls at once.
        threads: of each.
        mode: exact sizes, or padded to the bucket.
    """

    slots: int
    threads: int
    mode: Mode

    @property
    def name(self) -> str:
        """As figures name it, such as ``2x1_exact``."""
        return f"{self.slots}x{self.threads}_{self.mode}"


@dataclass(frozen=True, slots=True)
class Race:
    """What is compared, and on what.

    Attributes:
        open_engine: opens the engine with a number of threads.
        subject: signature, ladder, values.
        rules: accepted padding.
        sizes: requests, each for an equal share.
        threads: processors that this process may use.
        progress: told how far it is.
    """

    open_engine: OpenEngine
    subject: Subject
    rules: Sequence[PadRule]
    sizes: Sequence[Mapping[str, int]]
    threads: int
    progress: Progress = _SILENT

    def requests(self, mode: Mode) -> tuple[Request, ...]:
        """The requests as a mode runs them."""
        padded = frozenset(rule.symbol for rule in self.rules)
        return requests_in(self.subject.ladder, self.sizes, padded, mode)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How the ways compare.

    Attributes:
        best: the choice.
        rates: requests a second of each way, the median of its rounds.
        lone_s: mean seconds of a request that has the machine to itself, of every way.
        requests: that each round ran.
    """

    best: Way
    rates: dict[Way, float]
    lone_s: dict[Way, float] = field(default_factory=dict)
    requests: int = 0

    @property
    def figures(self) -> dict[str, float]:
        """For the manifest."""
        found = {f"calls_per_s_{way.name}": rate for way, rate in self.rates.items()}
        return found | {f"lone_call_s_{way.name}": seconds for way, seconds in self.lone_s.items()}

    def best_of(self, mode: Mode) -> Way | None:
        """The fastest way of one mode; None where that was not tried."""
        tried = [way for way in self.rates if way.mode == mode]
        return max(tried, key=lambda way: self.rates[way], default=None)


def race(course: Race, ways: Sequence[Way], budget_s: float) -> Outcome:
    """Compare ways of running.

    Args:
        course: what is run.
        ways: to compare, one at least.
        budget_s: seconds; a few rounds are run even beyond it, of fewer requests where the model is slow.

    Raises:
        EngineError: when a request fails.
    """
    rounds: dict[Way, list[float]] = {way: [] for way in ways}
    with ExitStack() as stack:
        ready, run_s = _ready(stack, course, ways)
        course = replace(course, sizes=_affordable(course.sizes, ways, run_s, budget_s))
        round_s = run_s * sum(len(course.requests(way.mode)) for way in ways)
        course.progress.ahead(max(budget_s, (FEWEST_ROUNDS + 1) * round_s))  # one for the lone calls
        start_s = time.perf_counter()
        alive = list(ways)
        for i in range(MOST_ROUNDS):
            if i >= FEWEST_ROUNDS and time.perf_counter() - start_s > budget_s:
                break
            tally = Tally(course.progress.detail, f"round {i + 1}, run {{}}")
            for way in alive if i % 2 else reversed(alive):
                rounds[way].append(_rate(ready[way], course.requests(way.mode), budget_s, tally))
            best = max(max(rates) for rates in rounds.values())
            alive = [way for way in alive if i == 0 or max(rounds[way]) >= BEHIND * best]
            if len(alive) == 1 and i >= 1:
                break
        tally = Tally(course.progress.detail, "lone calls, run {}")
        lone_s = {way: _lone_s(ready[way][0], course.requests(way.mode), tally) for way in ways}
    rates = {way: statistics.median(values) for way, values in rounds.items()}
    choice = chosen({way: rounds[way] for way in alive}, lone_s, course.threads)
    return Outcome(choice, rates, lone_s, len(course.sizes))


def _affordable(
    sizes: Sequence[Mapping[str, int]], ways: Sequence[Way], run_s: float, budget_s: float
) -> Sequence[Mapping[str, int]]:
    """Thin out requests that would take too long; each that is left stands for an equal share again.

    Args:
        sizes: of the requests.
        ways: that run them.
        run_s: seconds of a request, about.
        budget_s: seconds for all.
    """
    rounds = FEWEST_ROUNDS * len(ways)
    fewest = max(_FEWEST_REQUESTS, 2 * max(way.slots for way in ways))
    count = max(fewest, int(max(budget_s, _PATIENCE_S) / (rounds * run_s))) if run_s else len(sizes)
    return sizes if count >= len(sizes) else thinned(sizes, count)


def _ready(stack: ExitStack, course: Race, ways: Sequence[Way]) -> tuple[dict[Way, list[Caller]], float]:
    """Open an engine for each number of threads, and prepare every request in every slot of each way.

    Returns:
        The callers of each way, and the seconds that one request took, about: the least of any way, over all sizes.
    """
    engines: dict[tuple[int, bool], Engine] = {}
    ready: dict[Way, list[Caller]] = {}
    run_s = math.inf
    whole = sum(way.slots * len(distinct(course.requests(way.mode))) for way in ways)
    tally = Tally(course.progress.detail, f"{{}} of {whole} requests to warm up")
    for way in ways:
        key = way.threads, way.slots * way.threads <= course.threads
        if key not in engines:
            opened = course.open_engine(way.threads, spinning=key[1])
            engines[key] = stack.enter_context(closing(opened))
        ready[way] = [Caller(engines[key], course.subject, course.rules) for _ in range(way.slots)]
        requests = course.requests(way.mode)
        taken_s = warm_up(ready[way], requests, tally)
        run_s = min(run_s, taken_s / max(len(distinct(requests)), 1) / way.slots)
    return ready, run_s


def _lone_s(caller: Caller, requests: Sequence[Request], tally: Tally) -> float:
    """Mean seconds of a request that has the machine to itself."""
    return drive([caller], requests, tally) / len(requests)


def _rate(callers: Sequence[Caller], requests: Sequence[Request], budget_s: float, tally: Tally) -> float:
    """Requests a second of one round: whole passes, for long enough to tell ways apart."""
    spent_s, passes = 0.0, 0
    while not passes or spent_s < min(_ROUND_S, budget_s / MOST_ROUNDS):
        spent_s += drive(callers, requests, tally)
        passes += 1
    return passes * len(requests) / spent_s


def chosen(rounds: Mapping[Way, Sequence[float]], lone_s: Mapping[Way, float], threads: int) -> Way:
    """Choose a way from the rates of its rounds.

    Ways that are alike within the noise are told apart by what measures nothing: exact sizes before padded ones, which
    compute more; no more threads than processors; then the least time for a lone call.

    Args:
        rounds: requests a second in each round.
        lone_s: seconds of a lone request.
        threads: processors.
    """
    best = {way: max(rates) for way, rates in rounds.items()}
    least = (1 - _noise(rounds.values())) * max(best.values())
    alike: Iterable[Way] = (way for way in rounds if best[way] >= least)
    return min(alike, key=lambda way: (way.mode != "exact", way.slots * way.threads > threads, lone_s[way], way.slots))


def _noise(rounds: Iterable[Sequence[float]]) -> float:
    """How far rounds of the same way fall behind its best one, as a share: the median over all ways."""
    behind = statistics.median(1 - statistics.median(rates) / max(rates) for rates in rounds)
    return min(max(behind, LEAST_NOISE), MOST_NOISE)
