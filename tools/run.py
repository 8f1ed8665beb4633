"""``trtc run``: run a bundle on inputs from files, or on generated ones at stated sizes."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec
import numpy as np

from trtc.engines.array_files import write_npz
from trtc.engines.errors import EngineError
from trtc.profiles import RequestError, UsageError, sizes_text
from trtc.profiles.grammar import ShapeOptions, quote_name, trtexec_options
from trtc.tools.durations import seconds_text
from trtc.tools.generated import described, generate, value_domains
from trtc.tools.inputs import read_inputs, requested_sizes, require_sizes, shown_sizes
from trtc.tools.output import print_json, print_line, print_note, print_table
from trtc.tools.places import require_file_place
from trtc.tools.quantities import MemorySize, WholeRange
from trtc.tools.shape_options import ArgumentOrder, arguments_of
from trtc.tools.value_faults import explained

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trtc.engines.manifest import Manifest
    from trtc.runtime import Session

SCHEMA = "trtc.run/1"


@dataclass(frozen=True, slots=True)
class Request:
    """One request that will be run.

    Attributes:
        feeds: inputs by name.
        sizes: of the symbols that the inputs show.
        generated: what each generated input holds, for people.
    """

    feeds: dict[str, Any]
    sizes: dict[str, int]
    generated: dict[str, str]


class OutputFacts(msgspec.Struct, frozen=True):
    """Figures of one output; None where its values are no numbers, or there are none."""

    name: str
    dtype: str
    shape: list[int]
    min: float | None
    mean: float | None
    max: float | None
    nan: int | None


class RunFacts(msgspec.Struct, frozen=True):
    """What one request gave. ``median_s`` is of the calls after the first; None for one call."""

    sizes: dict[str, int]
    profile: str | None
    run_sizes: dict[str, int]
    generated: dict[str, str]
    iterations: int
    first_s: float
    median_s: float | None
    outputs: list[OutputFacts]


@click.command(cls=ArgumentOrder)
@click.argument("bundle", type=click.Path(path_type=Path), required=False)
@click.option("--loadEngine", "--load-engine", "load_engine", type=click.Path(path_type=Path), hidden=True)
@click.option(
    "--inputs",
    "npz",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE.npz",
    help="Inputs by name, one member each.",
)
@click.option(
    "--input",
    "--loadInputs",
    "--load-inputs",
    "named",
    multiple=True,
    metavar="NAME=FILE.npy",
    help="One input from a .npy file; repeat. Also NAME:FILE, also raw values with --sizes.",
)
@click.option("--sizes", multiple=True, metavar="SYMBOL=SIZE,...", help="Generate what is not given, at these sizes.")
@click.option("--dim", multiple=True, metavar="SYMBOL=SIZE", help="The same, one symbol each.")
@click.option("--shape", multiple=True, metavar="NAME[2,17]", help="The same, as shapes of inputs.")
@click.option("--shapes", multiple=True, metavar="NAME:2x17,...", help="The same, as trtexec's --shapes.")
@click.option(
    "--all-profiles", is_flag=True, help="Generate inputs at the opt sizes of each profile, and run them all."
)
@click.option("--val-range", multiple=True, metavar="INPUT:[LOW,HIGH]", help="Values that a generated input takes.")
@click.option("--seed", type=WholeRange(0), default=0, show_default=True, help="Of generated values.")
@click.option("--outputs", multiple=True, metavar="NAME,...", help="Return these outputs only.")
@click.option("--save-outputs", type=click.Path(path_type=Path), metavar="FILE.npz", help="Write the results.")
@click.option("--iterations", type=WholeRange(1), default=1, show_default=True, help="Calls to make.")
@click.option("--engine", default="auto", show_default=True, help="Engine of the bundle to load.")
@click.option("--device", metavar="INDEX|UUID|cpu", help="GPU to run on, or cpu for none; what fits when left out.")
@click.option(
    "--fallback", type=click.Choice(["cpu"]), help="Run on the CPU where a GPU is there and cannot be used, not fail."
)
@click.option("--allow-plugins", is_flag=True, help="Run libraries of plug-ins that the bundle brings: they are code.")
@click.option(
    "--staticPlugins", "--dynamicPlugins", "--plugins", "foreign_plugins", multiple=True, type=click.Path(), hidden=True
)
@click.option("--slots", type=WholeRange(1), help="Calls that may run at once; as measured when left out.")
@click.option("--threads", type=WholeRange(1), help="Threads of one call; as measured when left out.")
@click.option("--max-memory", type=MemorySize(), metavar="SIZE", help="Budget of planned memory: 512M, 2G, or MiB.")
@click.option("--explain", is_flag=True, help="Say why this engine, and how requests of these sizes run.")
@click.option("--json", "as_json", is_flag=True, help=f"Print one JSON object (schema {SCHEMA}).")
@click.pass_context
def run(ctx: click.Context, /, bundle: Path | None, **given: Any) -> None:
    """Run BUNDLE on real inputs, or on generated ones at the sizes that you state.

    \b
    Examples:
      trtc run minilm.trtc --sizes batch=2,seq=17
      trtc run minilm.trtc --inputs request.npz --save-outputs answer.npz
      trtc run minilm.trtc --all-profiles --iterations 20
    """  # noqa: D301 (\b is how click is told to leave lines as they are)
    from trtc.runtime import load

    path = bundle or given["load_engine"]
    if path is None:
        raise UsageError("no bundle was given; write trtc run NAME.trtc (trtc build makes one)")
    if given["foreign_plugins"]:
        raise UsageError("a bundle brings its own plug-ins, and --allow-plugins lets them run; leave their paths out")
    if given["all_profiles"] and given["save_outputs"]:
        raise UsageError("--save-outputs with --all-profiles would keep the last profile only; run one set of sizes")
    require_file_place(given["save_outputs"], "--save-outputs")
    with load(
        path,
        device=given["device"],
        engine=given["engine"],
        fallback=given["fallback"],
        slots=given["slots"],
        threads=given["threads"],
        max_memory_bytes=given["max_memory"],
        allow_plugins=given["allow_plugins"],
    ) as session:
        requests = _requests(session.manifest, ctx, given)
        names = _output_names(given["outputs"], session)
        facts: list[RunFacts] = []
        last: dict[str, Any] = {}
        for request in requests:
            found, last = _run(session, request, names, given["iterations"])
            facts.append(found)
        if given["save_outputs"]:
            write_npz(given["save_outputs"], last)
        engine, text = session.explain().engine, [str(session.explain(r.sizes or None)) for r in requests]
        size = {"planned_bytes": session.stats.arena.in_use_bytes, "peak_bytes": session.stats.arena.peak_bytes}
    saved = str(given["save_outputs"]) if given["save_outputs"] else None
    if given["as_json"]:
        fields = {"bundle": str(path), "engine": engine, "runs": facts, "memory": size, "saved": saved}
        print_json(SCHEMA, fields | ({"explain": text} if given["explain"] else {}))
        return
    for found in facts:
        _show(found)
    for line in text if given["explain"] else ():
        print_line(line)
    if saved:
        print_line(f"outputs written to {saved}")


def _requests(manifest: Manifest, ctx: click.Context, given: Mapping[str, Any]) -> list[Request]:
    """Settle what is run: files and stated sizes, or the opt sizes of each profile."""
    shapes = ShapeOptions(
        dim=given["dim"],
        shape=given["shape"],
        trtexec=trtexec_options([a for a in arguments_of(ctx) if a != "--profile"]) if given["shapes"] else (),
    )
    stated = requested_sizes(given["sizes"], shapes, manifest.signature)
    files = read_inputs(given["npz"], given["named"], manifest.signature, stated)
    domains = value_domains(manifest, given["val_range"])
    sets: list[dict[str, int]] = []
    if given["all_profiles"]:
        if stated or files:
            raise UsageError("--all-profiles states all sizes itself; leave --sizes, --shape and --inputs out")
        wanted = [{s: r.opt for s, r in profile.ranges.items()} for profile in manifest.ladder.profiles]
        for opts in wanted:
            require_sizes([symbol for symbol, opt in opts.items() if opt is None], manifest)
        sets = [{symbol: opt for symbol, opt in opts.items() if opt is not None} for opts in wanted]
    else:
        sets = [{**shown_sizes(files, manifest.signature), **stated}]
    rng = np.random.default_rng(given["seed"])
    made = {derived.input for derived in manifest.derived}
    requests = []
    for sizes in sets:
        wanting = [
            spec
            for spec in manifest.signature.inputs
            if spec.name not in files and spec.used and not spec.has_default and spec.name not in made
        ]
        if files and not stated:
            wanting = []  # A request that was begun by hand is checked as it is: what lacks is named, not made up.
        needed = frozenset[str]().union(*(spec.symbols for spec in wanting))
        require_sizes([s for s in manifest.signature.symbols if s in needed and s not in sizes], manifest)
        feeds = {**files, **{spec.name: generate(spec, sizes, domains.get(spec.name), rng) for spec in wanting}}
        requests.append(Request(feeds, sizes, {spec.name: described(spec, domains.get(spec.name)) for spec in wanting}))
    return requests


def _output_names(texts: tuple[str, ...], session: Session) -> list[str] | None:
    """Read ``a,b``; a text that is an output's whole name is that output, whatever it holds."""
    known = [name for spec in session.signature.outputs for name in (spec.name, spec.public_name)]
    names = [name for text in texts for name in ([text] if text in known else text.split(","))]
    return names or None


def _run(
    session: Session, request: Request, names: list[str] | None, iterations: int
) -> tuple[RunFacts, dict[str, Any]]:
    times = []
    outputs: dict[str, Any] = {}
    try:
        for _ in range(iterations):
            started_s = time.perf_counter()
            outputs = session.run(request.feeds, names)
            times.append(time.perf_counter() - started_s)
    except EngineError as error:
        if not request.generated:
            raise explained(error, session.manifest, request.feeds) from error
        made = "; ".join(f"{name}: {text}" for name, text in request.generated.items())
        ranges = " ".join(f"--val-range {quote_name(name)}:[LOW,HIGH]" for name in request.generated)
        raise EngineError(
            f"{error}; the values were generated ({made}): give real ones with --inputs FILE.npz, or say what "
            f"the model takes: {ranges}"
        ) from error
    profile, run_sizes = ran_at(session, request.feeds, request.sizes)
    facts = RunFacts(
        sizes=request.sizes,
        profile=profile,
        run_sizes=run_sizes,
        generated=request.generated,
        iterations=iterations,
        first_s=times[0],
        median_s=statistics.median(times[1:]) if len(times) > 1 else None,
        outputs=[_facts(name, value) for name, value in outputs.items()],
    )
    return facts, outputs


def ran_at(session: Session, feeds: Mapping[str, Any], sizes: dict[str, int]) -> tuple[str | None, dict[str, int]]:
    """Say in which profile and at which sizes a request ran; values outside of what padding was proved for run exact.

    Args:
        session: that ran it.
        feeds: inputs by name.
        sizes: of the symbols that the inputs show; the profile is None where one lacks.
    """
    from trtc.runtime.guards import guards_of

    try:
        found = session.explain(sizes)
    except RequestError:  # The request ran with inputs left out, so not every symbol has a size.
        return None, sizes
    guards = guards_of(session.manifest)
    exact = any(
        isinstance(value, np.ndarray) and name in guards and not guards[name].holds(value)
        for name, value in feeds.items()
    )
    return found.profile, sizes if exact else dict(found.run_sizes or {})


def _facts(name: str, value: Any) -> OutputFacts:
    if not isinstance(value, np.ndarray):
        return OutputFacts(name, type(value).__name__, [len(value)] if hasattr(value, "__len__") else [], *[None] * 4)
    numbers = value if value.dtype.kind in "biufc" else None
    if value.dtype.type.__module__ == "ml_dtypes":
        numbers = value.astype(np.float64)
    if numbers is None or numbers.dtype.kind == "c":
        return OutputFacts(name, str(value.dtype), list(value.shape), *[None] * 4)
    bad = np.isnan(numbers) if numbers.dtype.kind == "f" else np.zeros(numbers.shape, bool)
    good = numbers[~bad].astype(np.float64)
    low, mean, high = (float(f(good)) for f in (np.min, _mean, np.max)) if good.size else (None, None, None)
    return OutputFacts(name, str(value.dtype), list(value.shape), low, mean, high, int(bad.sum()))


def _mean(values: np.ndarray) -> float:
    with np.errstate(all="ignore"):  # infinities of both signs have no mean
        return float(np.mean(values))


def _show(facts: RunFacts) -> None:
    for name, text in facts.generated.items():
        print_note(f"input {name!r} was generated: {text}")
    padded = f", run at {sizes_text(facts.run_sizes)}" if facts.run_sizes != facts.sizes else ""
    print_line(f"profile {facts.profile or '?'}: {sizes_text(facts.sizes)}{padded}")
    rows = [
        (o.name, o.dtype, str(o.shape), *("-" if v is None else v for v in (o.min, o.mean, o.max, o.nan)))
        for o in facts.outputs
    ]
    print_table("", ("output", "dtype", "shape", "min", "mean", "max", "NaN"), rows)
    more = facts.iterations - 1
    rest = f", median of {more} more {seconds_text(facts.median_s)}" if facts.median_s is not None else ""
    print_line(f"first call {seconds_text(facts.first_s)}{rest}")
