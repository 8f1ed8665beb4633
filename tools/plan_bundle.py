"""Whether the ladder of a bundle still fits the traffic of today, and what a rebuild would gain."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from trtc.profiles import CheckError, Range, UsageError, unknown_name
from trtc.profiles.cost import element_cost
from trtc.profiles.cost_fit import measured_cost
from trtc.profiles.evaluation import Evaluation, evaluate_ladder
from trtc.profiles.plan_values import PlanRequest
from trtc.profiles.planner import plan_ladder
from trtc.tools.durations import seconds_text
from trtc.tools.output import counted, print_table, print_text
from trtc.tools.plan_view import traffic_fields

if TYPE_CHECKING:
    from trtc.engines.manifest import Manifest, PlanRecord
    from trtc.profiles import Ladder
    from trtc.profiles.cost import CostModel
    from trtc.profiles.plan_values import PlanResult
    from trtc.profiles.traffic import Traffic

WORTH = 0.05
"""A rebuild is worth it when requests would take at least this share less."""


@dataclass(frozen=True, slots=True)
class Fit:
    """How a bundle serves given traffic.

    Attributes:
        traffic: of today, over the symbols of the bundle.
        planned: what the ladder was planned for; None where a person chose it.
        known_cost: whether the bundle holds costs; else padded elements stand for them and there are no seconds.
        mode: of the bundle: ``exact`` or ``bucket``.
        today: the ladder of the bundle on this traffic; None when it serves none of it.
        rebuilt: the best ladder for this traffic.
        again: the rebuilt ladder on this traffic, in the bundle's mode.
        padded: both ladders when requests are padded to their buckets: today's, if it serves any, and the rebuilt one.
        exact_known: whether the bundle holds what sizes inside of its buckets cost.
        flat: symbols whose smaller sizes are not known to cost less than the bucket, though the traffic has such.
    """

    traffic: Traffic
    planned: PlanRecord | None
    known_cost: bool
    mode: str
    today: Evaluation | None
    rebuilt: PlanResult
    again: Evaluation
    padded: tuple[Evaluation | None, Evaluation]
    exact_known: bool
    flat: tuple[str, ...] = ()

    @property
    def rebuilt_s(self) -> float:
        """Mean seconds (or elements) of a request with the rebuilt ladder, in the bundle's mode."""
        return self.again.expected_s

    @property
    def refused(self) -> float:
        """Share of the requests that no profile of the bundle takes."""
        return 1.0 if self.today is None else self.today.refused

    @property
    def gain(self) -> float:
        """How much less a served request would take after a rebuild, as a share."""
        if self.today is None or not self.today.expected_s:
            return 0.0
        return max(0.0, 1 - self.rebuilt_s / self.today.expected_s)

    @property
    def fits(self) -> bool:
        """Whether everything is served and a rebuild would gain little."""
        allowed = 0.0 if self.planned is None else self.planned.refuse_share
        return self.refused <= allowed + 1e-9 and self.gain < WORTH

    def fields(self) -> dict[str, Any]:
        """The fields of the JSON object. Seconds are null where the bundle holds no costs."""
        today = self.today

        def seconds(value: float) -> float | None:
            return value if self.known_cost else None

        return {
            "traffic": traffic_fields(self.traffic),
            "same_traffic": self.planned is not None and self.planned.traffic == self.traffic.digest,
            "mode": self.mode,
            "fits": self.fits,
            "today": None
            if today is None
            else {"expected_s": seconds(today.expected_s), "waste": today.waste, "refused": today.refused,
                  "buckets": today.buckets if self.known_cost else None},
            "rebuilt": {"expected_s": seconds(self.rebuilt_s), "waste": self.again.waste,
                        "refused": self.rebuilt.refused,
                        "profiles": self.rebuilt.ladder.profiles, "reason": self.rebuilt.reason},
            "gain_s": None if today is None else seconds(today.expected_s - self.rebuilt_s),
            "gain": self.gain,
            "refused": self.refused,
        }  # fmt: skip


def fit_of(manifest: Manifest, traffic: Traffic) -> Fit:
    """Compare a bundle's ladder with the best one.

    Raises:
        UsageError: for symbols that the bundle does not have.
        CheckError: when no ladder can be planned for this traffic.
    """
    symbols = manifest.signature.symbols
    for symbol in traffic.symbols:
        if symbol not in symbols:
            raise UsageError(f"the traffic has an {unknown_name('symbol', symbol, symbols)}")
    traffic = traffic.restricted([symbol for symbol in symbols if symbol in traffic.symbols])
    cost = cost_of(manifest, traffic)
    known = cost is not None
    model = element_cost(traffic.symbols) if cost is None else cost
    planned = manifest.planned
    request = PlanRequest(
        max_profiles=len(manifest.ladder.profiles) if planned is None else planned.max_profiles,
        padded=manifest.padded & set(traffic.symbols),
        align={} if planned is None else dict(planned.align),
        limits=_lowest(manifest.ladder, traffic),
        rare="cover" if planned is None or planned.rare == "catch_all" else planned.rare,
        refuse_share=0.0 if planned is None else planned.refuse_share,
    )
    result = plan_ladder(traffic, model, request)
    mode = manifest.execution.mode

    def both(*, to_bucket: bool) -> tuple[Evaluation | None, Evaluation]:
        """What today's ladder and the rebuilt one cost, run one way."""
        again = evaluate_ladder(result.ladder, traffic, model, manifest.padded, to_bucket=to_bucket)
        try:
            return evaluate_ladder(manifest.ladder, traffic, model, manifest.padded, to_bucket=to_bucket), again
        except CheckError:
            return None, again

    padded = both(to_bucket=True)
    today, again = padded if mode == "bucket" else both(to_bucket=False)
    flat = () if cost is None else _flat(cost, traffic)
    return Fit(
        traffic, planned, known, mode, today, result, again, padded, _measured(manifest, traffic) is not None, flat
    )


def _measured(manifest: Manifest, traffic: Traffic) -> CostModel | None:
    """The costs that planning measured, over symbols of this traffic."""
    found = [e.cost.model for e in manifest.engines if e.cost is not None]
    return next((model for model in found if set(model.symbols) <= set(traffic.symbols)), None)


def _flat(cost: CostModel, traffic: Traffic) -> tuple[str, ...]:
    axes = zip(cost.symbols, cost.grid, strict=True)
    return tuple(s for s, axis in axes if len(axis) == 1 and traffic.marginal(s)[0][0] < axis[0])


def cost_of(manifest: Manifest, traffic: Traffic) -> CostModel | None:
    """Seconds by sizes for the symbols of this traffic: as measured, or else through the costs of the buckets."""
    model = _measured(manifest, traffic) or _through_buckets(manifest.ladder, traffic)
    return None if model is None else _over_all(model, manifest.ladder, traffic)


def _through_buckets(ladder: Ladder, traffic: Traffic) -> CostModel | None:
    """Costs of a ladder that grows along one symbol: of its buckets, and between them; below the first as there."""
    tops = {s: [p.ranges[s].max for p in ladder.profiles if s in p.ranges] for s in traffic.symbols}
    growing = [symbol for symbol, sizes in tops.items() if len(set(sizes)) > 1]
    if not ladder.cost_s or len(growing) != 1 or None in tops[growing[0]]:
        return None
    seconds = {top: cost_s for top, cost_s in zip(tops[growing[0]], ladder.cost_s, strict=True) if top}
    grid = sorted(seconds)
    return measured_cost(growing, [grid], [seconds[size] for size in grid])


def _over_all(model: CostModel, ladder: Ladder, traffic: Traffic) -> CostModel:
    """Add the symbols that costs are not known along: up to the bucket they cost as there, beyond in proportion."""
    others = [symbol for symbol in traffic.symbols if symbol not in model.symbols]
    tops = [max(p.ranges[s].max or int(traffic.marginal(s)[0][-1]) for p in ladder.profiles) for s in others]
    return replace(model, symbols=(*model.symbols, *others), grid=(*model.grid, *((top,) for top in tops)))


def _lowest(ladder: Ladder, traffic: Traffic) -> dict[str, Range]:
    """Let profiles start where those of today do, and end anywhere."""
    found: dict[str, Range] = {}
    for symbol in traffic.symbols:
        ranges = [p.ranges[symbol] for p in ladder.profiles if symbol in p.ranges]
        if ranges:
            found[symbol] = Range(min(int(traffic.marginal(symbol)[0][0]), *(r.min for r in ranges)), None, None)
    return found


def _rows(fit: Fit) -> list[tuple[str, ...]]:
    """Each row is one ladder, run in one way: first as the bundle runs, then padded, which is what a ladder changes."""
    count = f"rebuilt, {counted(len(fit.rebuilt.ladder.profiles), 'profile')}"
    rows: list[tuple[str, ...]] = []
    ways = [("padded to the bucket", fit.padded, fit.known_cost)]
    if fit.mode == "exact":
        ways.insert(0, ("exact", (fit.today, fit.again), fit.exact_known))
    for run, (today, again), known in ways:
        for name, found, refused in (("this bundle", today, fit.refused), (count, again, fit.rebuilt.refused)):
            cost_s = "-" if found is None or not known else seconds_text(found.expected_s)
            rows.append((name, run, cost_s, "-" if found is None else f"{found.waste:.1%}", f"{refused:.2%}"))
    return rows


def show_fit(fit: Fit) -> None:
    """Print the comparison."""
    print_table("ladder", ("ladder", "sizes run", "a request", "padding waste", "refused"), _rows(fit))
    if fit.mode == "exact":
        print_text("this bundle runs exact sizes: profiles bound what is served, and cost nothing else")
        if fit.known_cost and not fit.exact_known:
            print_text("this bundle holds the costs of its buckets only: what exact sizes take is not known")
    if fit.today is not None and fit.known_cost:
        saved = fit.today.expected_s - fit.rebuilt_s
        print_text(f"a rebuild would save {seconds_text(max(saved, 0.0))} a request ({fit.gain:.1%})")
    elif fit.today is not None:
        print_text(
            f"a rebuild would pad {fit.gain:.1%} fewer elements; this bundle holds no costs, so no seconds are known"
        )
    if fit.flat:
        names = ", ".join(fit.flat)
        print_text(f"this bundle holds no costs along {names}: what smaller sizes of it would save does not count here")
    if fit.planned is not None and fit.planned.traffic == fit.traffic.digest:
        print_text("the traffic is the one that this ladder was planned for")
    print_text(
        "today's ladder still fits" if fit.fits else "today's ladder does not fit any more; rebuild with --traffic"
    )
