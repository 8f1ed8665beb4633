"""Ladders planned for real traffic: their expected cost beside other ladders, and what a replay measures.

python benchmarks/planning.py [--quick] [--json FILE]
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from measuring import Figure, Report, quartiles, us
from rich.console import Console
from traces import MOST_TOKENS, Trace, sample, traces

from trtc.compiler.measure import ways_of
from trtc.compiler.pipeline import build
from trtc.compiler.plan_options import PlanOptions
from trtc.engines.blobs import blobs_of
from trtc.engines.bundle import write_bundle
from trtc.engines.host import this_host
from trtc.engines.manifest_file import read_manifest
from trtc.profiles import Ladder
from trtc.profiles.baselines import best_random, bucket_ladder, equal_counts, one_at_the_maximum, powers_of_two
from trtc.profiles.cost import element_cost
from trtc.profiles.evaluation import evaluate_ladder
from trtc.profiles.plan_values import PlanRequest
from trtc.profiles.planner import plan_ladder
from trtc.runtime import load

if TYPE_CHECKING:
    from trtc.engines.manifest import Manifest, Mode
    from trtc.profiles.cost import CostModel
    from trtc.profiles.traffic import Traffic

K, MOST_K = 8, 16
SECONDS_FOR_COSTS = 30.0


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is measured.

    Attributes:
        requests: of each trace that are replayed.
        rounds: of every row, in turns.
        measure_s: for the build that plans.
        random: ladders that are drawn.
    """

    requests: int = 96
    rounds: int = 7
    measure_s: float = SECONDS_FOR_COSTS
    random: int = 10_000


QUICK = Effort(requests=24, rounds=3, measure_s=10.0, random=500)


def measure(report: Report, effort: Effort | None = None, only: str = "") -> None:
    """Add the figures of every trace, or of those whose name holds a text."""
    effort = effort or Effort()
    console = Console(highlight=False, markup=False, stderr=True)
    for trace in traces():
        if only not in trace.name:
            continue
        console.print(f"\n{trace.name}: {len(trace.sizes)} requests; {trace.note}")
        with tempfile.TemporaryDirectory() as work:
            folder = Path(work)
            bundle = _planned(trace, folder, effort)
            manifest = read_manifest(bundle)
            cost = _cost(manifest)
            _expected(report, console, trace, cost, effort)
            _waste(report, console, trace)
            _replayed(report, console, trace, bundle, effort)


def _planned(trace: Trace, folder: Path, effort: Effort) -> Path:
    bundle = folder / "planned.trtc"
    plan = PlanOptions(traffic=(trace.write(folder),), max_profiles=K, within=0.0)
    build(trace.model, bundle, trace.options(plan=plan, measure_s=effort.measure_s))
    return bundle


def _cost(manifest: Manifest) -> CostModel:
    cost = manifest.engines[0].cost
    if cost is None:
        raise SystemExit("the bundle holds no costs")
    return cost.model


def _expected(report: Report, console: Console, trace: Trace, cost: CostModel, effort: Effort) -> None:
    """Expected cost of the planned ladder and of others, on the measured cost model."""
    traffic, padded = trace.traffic, frozenset([trace.symbol])
    planned = plan_ladder(traffic, cost, PlanRequest(max_profiles=K, padded=padded, within=0.0))
    ladders = {
        "planned": planned.ladder,
        "one profile at the maximum": one_at_the_maximum(traffic, cost, {}),
        "powers of two": powers_of_two(traffic, cost, {}, K),
        "equal counts (quantiles)": equal_counts(traffic, cost, {}, K),
        f"best of {effort.random} random": best_random(traffic, cost, {}, K, effort.random),
    }
    seen = {name: evaluate_ladder(ladder, traffic, cost, padded) for name, ladder in ladders.items()}
    console.print(f"expected cost of a request, at most {K} profiles:")
    for name, found in seen.items():
        console.print(f"  {name:28} {us(found.expected_s):>10}  {found.waste:6.1%} padding")
    console.print(f"  {'lower bound':28} {us(planned.point.lower_s):>10}")
    console.print(f"  {'every size exact':28} {us(planned.exact_s):>10}")
    for name, found in seen.items():
        if name != "planned":
            report.add(
                Figure(f"{trace.name}: expected cost, planned against {name}", us(seen["planned"].expected_s),
                       us(found.expected_s), seen["planned"].expected_s / found.expected_s, 1.0)
            )  # fmt: skip
    bound = planned.point.lower_s
    report.add(
        Figure(f"{trace.name}: expected cost over its lower bound", us(planned.point.expected_s), us(bound),
               planned.point.expected_s / bound, 1.000001)
    )  # fmt: skip


def _waste(report: Report, console: Console, trace: Trace) -> None:
    """Padding waste over the number of profiles, beside an optimum that shares no code with the planner."""
    request = PlanRequest(max_profiles=MOST_K, padded=frozenset([trace.symbol]), within=0.0)
    curve = plan_ladder(trace.traffic, element_cost([trace.symbol]), request).curve
    least = least_waste(trace.traffic, MOST_K)
    console.print("padding waste over the number of profiles:")
    for point in curve:
        bar = "#" * round(point.waste * 60)
        console.print(f"  {point.profiles:2} {point.waste:7.2%} {bar}")
    worst = max(point.waste - least[point.profiles - 1] for point in curve)
    report.add(
        Figure(f"{trace.name}: waste above the optimum, 1 to {MOST_K} profiles", f"{worst:.1e}", "0", worst, 1e-9,
               note=f"{curve[K - 1].waste:.1%} with {K}, {curve[-1].waste:.1%} with {MOST_K}")
    )  # fmt: skip


def least_waste(traffic: Traffic, most: int) -> list[float]:
    """The least waste of any ladder over one symbol, for 1 to ``most`` profiles: the textbook recursion, row by row."""
    sizes, weights = traffic.sizes[:, 0].astype(float), traffic.weights
    count = np.concatenate([[0.0], np.cumsum(weights)])
    useful = float((sizes * weights).sum())
    best = np.concatenate([[0.0], np.full(len(sizes), np.inf)])
    found = []
    for _ in range(most):
        best = np.array(
            [0.0, *(np.min(best[: j + 1] + sizes[j] * (count[j + 1] - count[: j + 1])) for j in range(len(sizes)))]
        )
        found.append(1 - useful / best[-1])
    return found


def _replayed(report: Report, console: Console, trace: Trace, bundle: Path, effort: Effort) -> None:
    """Replay the trace through bundles of other ladders and modes."""
    manifest = read_manifest(bundle)
    cost, execution = _cost(manifest), manifest.execution
    peak = max(MOST_TOKENS, *trace.sizes) if "input_ids=0" in trace.fills else max(trace.sizes)
    doubling = [n for n in (2**i for i in range(3, 12)) if n < peak]
    one = _like(manifest.ladder, bucket_ladder([trace.symbol], np.array([[peak]]), cost))
    powers = _like(manifest.ladder, bucket_ladder([trace.symbol], np.array([[n] for n in [*doubling, peak]]), cost))
    bundles: dict[str, Path] = {
        f"planned, {len(manifest.ladder.profiles)} profiles, padded": _variant(bundle, manifest.ladder, "bucket"),
        f"one profile at {peak}, padded": _variant(bundle, one, "bucket"),
        f"powers of two, {len(powers.profiles)} profiles, padded": _variant(bundle, powers, "bucket"),
        "every size exact": _variant(bundle, manifest.ladder, "exact"),
    }
    sizes = sample(trace, effort.requests)
    rng = np.random.default_rng(0)
    requests = [trace.feeds(size, rng) for size in sizes]
    ours, single, double, exact = bundles
    rates = _rates(
        {name: (path, execution.slots, execution.threads) for name, path in bundles.items()}, requests, effort
    )
    console.print(f"replayed, {execution.slots} callers of {execution.threads} threads:")
    for name, rounds in rates.items():
        console.print(f"  {name:40} {statistics.median(rounds):9.1f} requests/s")
    note = f"{effort.requests} requests, {effort.rounds} rounds in turns, {execution.slots} callers"
    for name, bar in ((single, 1 / 7 if "input_ids=0" in trace.fills else 1.0), (double, 1.0), (exact, None)):
        ratios = [theirs / mine for mine, theirs in zip(rates[ours], rates[name], strict=True)]
        report.add(
            Figure(f"{trace.name}: throughput of '{name}' over the planned ladder",
                   f"{statistics.median(rates[ours]):.1f}/s", f"{statistics.median(rates[name]):.1f}/s",
                   statistics.median(ratios), bar, quartiles(ratios), note)
        )  # fmt: skip
    _predicted(report, trace, bundles[ours], sizes, effort)
    _choice(report, console, trace, bundle, (bundles[ours], bundles[exact]), requests, effort)


def _predicted(report: Report, trace: Trace, bundle: Path, sizes: list[int], effort: Effort) -> None:
    """The predicted total of a replay, one request after the other, beside the measured one."""
    manifest = read_manifest(bundle)
    record, ladder = manifest.engines[0].cost, manifest.ladder
    if record is None:
        raise SystemExit("the bundle holds no costs")
    rng = np.random.default_rng(0)
    requests = [trace.feeds(size, rng) for size in sizes]
    fixed = {s: r.max or 1 for s, r in ladder.profiles[0].ranges.items() if s != trace.symbol}
    picked = [ladder.profiles[ladder.pick({**fixed, trace.symbol: n}, manifest.padded)] for n in sizes]
    predicted = float(record.model.seconds([[p.ranges[trace.symbol].max] for p in picked]).sum())
    with load(bundle, slots=1, threads=record.threads) as session:
        totals = []
        for _ in range(effort.rounds + 1):
            start = time.perf_counter()
            for feeds in requests:
                session.run(feeds)
            totals.append(time.perf_counter() - start)
    measured = statistics.median(totals[1:])
    off = abs(predicted / measured - 1)
    report.add(
        Figure(f"{trace.name}: predicted total off by", f"{predicted:.3f} s", f"{measured:.3f} s", off, 0.10,
               note=f"one caller, {record.threads} threads, padded to buckets")
    )  # fmt: skip


def _choice(  # noqa: PLR0913, PLR0917 (a table of one trace)
    report: Report,
    console: Console,
    trace: Trace,
    chosen: Path,
    variants: tuple[Path, Path],
    requests: list[dict[str, np.ndarray]],
    effort: Effort,
) -> None:
    """Every way to run beside the one that the plan chose by itself."""
    planned = read_manifest(chosen).execution
    ours = f"{planned.mode}, {planned.slots} x {planned.threads}"
    rows: dict[str, tuple[Path, int, int]] = {ours: (chosen, planned.slots, planned.threads)}
    for mode, path in zip(("bucket", "exact"), variants, strict=True):
        for slots, threads in ways_of(this_host().threads):
            rows[f"{mode}, {slots} x {threads}"] = (path, slots, threads)
    rates = _rates(rows, requests, effort)
    middle = {name: statistics.median(rounds) for name, rounds in rates.items()}
    console.print(f"ways to run (the plan chose {planned.mode}, {planned.slots} x {planned.threads}):")
    for name, rate in sorted(middle.items(), key=lambda item: -item[1]):
        console.print(f"  {name:40} {rate:9.1f} requests/s")
    best = max(middle, key=lambda name: middle[name])
    ratios = [theirs / mine for mine, theirs in zip(rates[ours], rates[best], strict=True)]
    report.add(
        Figure(f"{trace.name}: fastest way over the one that the plan chose", f"{middle[ours]:.1f}/s",
               f"{middle[best]:.1f}/s", statistics.median(ratios), 1.03, quartiles(ratios),
               f"chosen: {ours}; fastest: {best}")
    )  # fmt: skip


def _rates(
    rows: dict[str, tuple[Path, int, int]], requests: list[dict[str, np.ndarray]], effort: Effort
) -> dict[str, list[float]]:
    """Requests a second of each row, in turns, from as many callers as it has slots."""
    sessions = {name: load(path, slots=slots, threads=threads) for name, (path, slots, threads) in rows.items()}
    rates: dict[str, list[float]] = {name: [] for name in rows}
    try:
        for i in range(effort.rounds + 1):
            for name in rows if i % 2 else reversed(rows):
                run, slots = sessions[name].run, rows[name][1]
                for feeds in requests[: 2 * slots]:
                    run(feeds)  # the threads of the row before come to rest
                start = time.perf_counter()
                _drive(run, requests, slots)
                if i:
                    rates[name].append(len(requests) / (time.perf_counter() - start))
    finally:
        for session in sessions.values():
            session.close()
    return rates


def _drive(run: object, requests: list[dict[str, np.ndarray]], callers: int) -> None:
    left, lock = iter(requests), threading.Lock()

    def work() -> None:
        while True:
            with lock:
                feeds = next(left, None)
            if feeds is None:
                return
            run(feeds)  # type: ignore[operator]

    threads = [threading.Thread(target=work) for _ in range(callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _like(ours: Ladder, other: Ladder) -> Ladder:
    """Give another ladder the ranges of the symbols that it does not speak of."""
    rest = ours.profiles[0].ranges
    return Ladder(tuple(replace(p, ranges={**rest, **p.ranges}) for p in other.profiles), other.cost_s)


def _variant(bundle: Path, ladder: Ladder, mode: Mode) -> Path:
    """The same engine under another ladder and mode: on the CPU the engine does not depend on either."""
    manifest = read_manifest(bundle)
    execution = msgspec.structs.replace(manifest.execution, mode=mode)
    engines = tuple(msgspec.structs.replace(engine, memory=()) for engine in manifest.engines)
    path = bundle.with_name(f"{len(list(bundle.parent.iterdir()))}.trtc")
    sources = {blob: bundle / blob for blob in blobs_of(manifest)}
    write_bundle(path, msgspec.structs.replace(manifest, ladder=ladder, execution=execution, engines=engines), sources)
    return path


def main() -> None:
    """Run alone."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer requests and rounds: to see that it works")
    parser.add_argument("--trace", default="", help="only traces whose name holds this")
    parser.add_argument("--json", type=Path, default=Path("out/planning.json"), help="where to write the figures")
    given = parser.parse_args()
    report = Report()
    measure(report, QUICK if given.quick else None, given.trace)
    report.show()
    report.write(given.json)
    print(f"figures written to {given.json}")


if __name__ == "__main__":
    main()
