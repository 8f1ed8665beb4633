"""``trtc bench``: measure a bundle on this machine, alone or beside a peer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
from click.core import ParameterSource

from trtc.engines.manifest_file import read_manifest
from trtc.profiles import UsageError, sizes_text
from trtc.profiles.grammar import ShapeOptions, trtexec_options
from trtc.tools.bench.arrivals import Arrivals
from trtc.tools.bench.budget import Budget
from trtc.tools.bench.measure import Plan
from trtc.tools.bench.peers import require_peer
from trtc.tools.bench.results import SCHEMA
from trtc.tools.bench.sizes import fixed, grid_of, random_mix, replayed
from trtc.tools.bench.times import write_times
from trtc.tools.bench.traffic import recorded_traffic
from trtc.tools.bench.words import BenchWords
from trtc.tools.bench.workload import workload_of
from trtc.tools.inputs import read_inputs, requested_sizes, require_sizes, shown_sizes
from trtc.tools.output import Progress, print_json, print_line
from trtc.tools.places import require_file_place
from trtc.tools.quantities import FiniteRange, MemorySize, WholeRange
from trtc.tools.report.files import require_page, write_text
from trtc.tools.shape_options import arguments_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trtc.engines.manifest import Manifest
    from trtc.tools.bench.run import Benched
    from trtc.tools.bench.sizes import Mix
    from trtc.tools.bench.traffic import Recorded
    from trtc.tools.bench.workload import Workload

_DEFAULT = Budget()
_FILES = {"times": "--export-times", "html": "--html", "trace": "--trace"}


class Percentiles(click.ParamType[tuple[float, ...]]):
    """Numbers from 0 to 100, with commas between them."""

    name = "percentiles"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[float, ...]:
        """Read ``90,95,99``."""
        if isinstance(value, tuple):
            return value
        try:
            found = tuple(float(text) for text in str(value).split(","))
        except ValueError:
            found = ()
        if not found or not all(0 <= share <= 100 for share in found):  # noqa: PLR2004 (percent)
            self.fail(f"{value!r}; write numbers from 0 to 100, such as 90,95,99", param, ctx)
        return found


@click.command(cls=BenchWords)
@click.argument("bundle", type=click.Path(path_type=Path), required=False)
@click.option("--loadEngine", "--load-engine", "load_engine", type=click.Path(path_type=Path), hidden=True)
@click.option("--sizes", multiple=True, metavar="SYMBOL=SIZE,...", help="Measure these sizes.")
@click.option("--dim", multiple=True, metavar="SYMBOL=SIZE", help="The same, one symbol each.")
@click.option("--shape", multiple=True, metavar="NAME[2,17]", help="The same, as shapes of inputs.")
@click.option("--shapes", multiple=True, metavar="NAME:2x17,...", help="The same, as trtexec's --shapes.")
@click.option("--grid", multiple=True, metavar="SYMBOL=A,B ...", help="Every combination, with FLOP/s and bytes/s.")
@click.option("--random", "random_count", type=WholeRange(1), metavar="COUNT", help="Sizes drawn from the profiles.")
@click.option("--traffic", type=click.Path(path_type=Path), metavar="FILE",
              help="Replay recorded sizes: .jsonl, .csv, .parquet, .npz or a folder of them.")  # fmt: skip
@click.option("--all-profiles", is_flag=True, help="The opt sizes of each profile; what is done when nothing is said.")
@click.option("--inputs", "npz", multiple=True, type=click.Path(path_type=Path), metavar="FILE.npz",
              help="Real inputs by name, one member each.")  # fmt: skip
@click.option("--input", "--loadInputs", "--load-inputs", "named", multiple=True, metavar="NAME=FILE.npy",
              help="One real input; repeat.")  # fmt: skip
@click.option("--val-range", multiple=True, metavar="INPUT:[LOW,HIGH]", help="Values that a generated input takes.")
@click.option("--seed", type=WholeRange(0), default=0, show_default=True, help="Of everything that is drawn.")
@click.option("--iterations", type=WholeRange(1), default=_DEFAULT.iterations, show_default=True,
              help="Timed calls at the least.")  # fmt: skip
@click.option("--duration", type=FiniteRange(0), default=_DEFAULT.duration_s, show_default=True,
              help="Seconds of timed calls at the least.")  # fmt: skip
@click.option("--warm-up", "--warmUp", "warm_up_ms", type=FiniteRange(0), default=_DEFAULT.warm_up_s * 1e3,
              show_default=True, help="Milliseconds of calls that are thrown away.")  # fmt: skip
@click.option("--percentile", "percentiles", type=Percentiles(), default="90,95,99", show_default=True,
              help="Percentiles to report.")  # fmt: skip
@click.option("--rate", type=FiniteRange(0, min_open=True), metavar="PER_SECOND",
              help="Open loop: calls begin at this rate, whether or not earlier ones ended.")  # fmt: skip
@click.option("--arrivals", type=click.Choice(["even", "poisson"]), default="even", show_default=True,
              help="Open loop: how calls are spread over time.")  # fmt: skip
@click.option("--callers", "--concurrency", "--streams", "callers", type=WholeRange(1),
              help="Calls at once: 1 in a closed loop, one for each slot in an open one, when left out.")  # fmt: skip
@click.option("--vs", "peer", default="", metavar="onnxruntime|openvino|torch|OTHER.trtc",
              help="Take turns with this peer, and print ratios.")  # fmt: skip
@click.option("--model", type=click.Path(path_type=Path), help="The model that the peer runs.")
@click.option("--engine", default="auto", show_default=True, help="Engine of the bundle to load.")
@click.option(
    "--mode", type=click.Choice(["exact", "bucket"]), help="Exact sizes or padded; as the build chose when left out."
)
@click.option("--slots", type=WholeRange(1), help="Calls that may run at once; as measured when left out.")
@click.option("--threads", type=WholeRange(1), help="Threads of one call; as measured when left out.")
@click.option("--max-memory", type=MemorySize(), metavar="SIZE", help="Budget of planned memory: 512M, 2G, or MiB.")
@click.option("--export-times", "--exportTimes", "times", type=click.Path(path_type=Path), metavar="FILE.json",
              help="Write the times of every call.")  # fmt: skip
@click.option("--html", type=click.Path(path_type=Path), metavar="FILE.html", help="Write a report with pictures.")
@click.option("--trace", type=click.Path(path_type=Path), metavar="FILE.json",
              help="Note a few calls in every detail, for Perfetto.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help=f"Print one JSON object (schema {SCHEMA}).")
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
@click.pass_context
def bench(ctx: click.Context, /, bundle: Path | None, **given: Any) -> None:
    """Measure BUNDLE on this machine.

    \b
    Examples:
      trtc bench minilm.trtc
      trtc bench minilm.trtc --grid batch=1,8 seq=32,128
      trtc bench minilm.trtc --sizes batch=1,seq=17 --rate 200 --duration 10
      trtc bench minilm.trtc --vs onnxruntime --model minilm.onnx --html report.html
    """  # noqa: D301 (\b is how click is told to leave lines as they are)
    from trtc.tools.bench.run import Subject, Wishes
    from trtc.tools.bench.run import bench as measured_by

    path = bundle or given["load_engine"]
    if path is None:
        raise UsageError(f"no bundle was given; write {ctx.command_path} NAME.trtc (trtc build makes one)")
    _require_sense(given)
    if given["rate"] is None and ctx.get_parameter_source("arrivals") is not ParameterSource.DEFAULT:
        raise UsageError("--arrivals spreads the calls of an open loop; add --rate PER_SECOND, or leave it out")
    for name, option in _FILES.items():
        require_file_place(given[name], option)
    require_page(given["html"])
    if given["peer"]:
        require_peer(given["peer"], given["model"])
    arrivals = None if given["rate"] is None else Arrivals(given["rate"], given["arrivals"], given["seed"])
    budget = Budget(given["iterations"], given["duration"], given["warm_up_ms"] / 1e3)
    if arrivals is not None:
        arrivals.starts_s(budget.iterations, budget.duration_s)  # refuses what cannot be kept, before anything runs
    traffic = None if given["traffic"] is None else recorded_traffic(given["traffic"], read_manifest(path))
    wishes = Wishes(
        plan=Plan(budget, given["callers"], arrivals, given["percentiles"]),
        roof=bool(given["grid"]),
        notes=() if traffic is None else traffic.notes,
        trace=given["trace"] is not None,
        seed=given["seed"],
    )
    load = {name: given[name] for name in ("engine", "mode", "slots", "threads")}
    subject = Subject(path, load | {"max_memory_bytes": given["max_memory"]}, given["peer"], given["model"])
    progress = Progress(quiet=given["quiet"] or given["as_json"])
    try:
        found = measured_by(subject, lambda manifest: _workloads(manifest, ctx, given, traffic), wishes, progress)
    except BaseException:
        progress.drop()
        raise
    _write(found, given)
    _say(found, given)


def _require_sense(given: Mapping[str, Any]) -> None:
    """Refuse options that contradict each other."""
    stated = ("sizes", "dim", "shape", "shapes")
    kinds = {
        "sizes": any(given[name] for name in (*stated, "npz", "named")),
        "--grid": bool(given["grid"]),
        "--random": given["random_count"] is not None,
        "--traffic": given["traffic"] is not None,
        "--all-profiles": given["all_profiles"],
    }
    if len(said := [name for name, is_said in kinds.items() if is_said]) > 1:
        raise UsageError(f"{' and '.join(said)} both say which sizes to measure; keep one")
    if given["peer"] and (given["rate"] is not None or (given["callers"] or 1) > 1):
        raise UsageError("--vs times single calls in turns; leave --rate and --callers out, or --vs")
    if given["model"] and not given["peer"]:
        raise UsageError("--model is what a peer runs; add --vs onnxruntime, or leave it out")


def _workloads(
    manifest: Manifest, ctx: click.Context, given: Mapping[str, Any], traffic: Recorded | None
) -> list[Workload]:
    shapes = ShapeOptions(
        dim=given["dim"],
        shape=given["shape"],
        trtexec=trtexec_options([a for a in arguments_of(ctx) if a != "--profile"]) if given["shapes"] else (),
    )
    stated = requested_sizes(given["sizes"], shapes, manifest.signature)
    files = read_inputs(given["npz"], given["named"], manifest.signature, stated)
    wanted = {**shown_sizes(files, manifest.signature), **stated} if stated or files else None
    mixes = _mixes(manifest, given, wanted, traffic)
    return [workload_of(mix, files, manifest, given["val_range"], given["seed"]) for mix in mixes]


def _mixes(
    manifest: Manifest, given: Mapping[str, Any], stated: dict[str, int] | None, traffic: Recorded | None
) -> Sequence[Mix]:
    """Settle which sizes are measured."""
    symbols = manifest.signature.symbols
    rng = np.random.default_rng(given["seed"])
    if stated is not None:
        return [fixed(sizes_text(stated) or "no symbols", stated)]
    if given["grid"]:
        return [fixed(sizes_text(sizes), sizes) for sizes in grid_of(given["grid"], symbols)]
    if given["random_count"]:
        return [random_mix(manifest.ladder, given["random_count"], rng)]
    if traffic is not None:
        return [replayed(f"traffic of {given['traffic'].name}", traffic.rows, rng)]
    found = []
    for profile in manifest.ladder.profiles:
        opts = {symbol: served.opt for symbol, served in profile.ranges.items()}
        require_sizes([symbol for symbol, opt in opts.items() if opt is None], manifest)
        sizes = {symbol: opt for symbol, opt in opts.items() if opt is not None}
        found.append(fixed(f"profile {profile.name} at {sizes_text(sizes) or 'its sizes'}", sizes))
    return found


def _write(found: Benched, given: Mapping[str, Any]) -> None:
    if given["times"]:
        write_times(given["times"], found.measured)
    if given["trace"] and found.trace is not None:
        found.trace.write(given["trace"])
    if given["html"]:
        from trtc.tools.bench.page import bench_page

        write_text(given["html"], bench_page(found).encode())


def _say(found: Benched, given: Mapping[str, Any]) -> None:
    from trtc.tools.bench.show import show_report

    written = {option: str(given[name]) for name, option in _FILES.items() if given[name]}
    if given["as_json"]:
        import msgspec

        print_json(SCHEMA, {**msgspec.structs.asdict(found.report), "written": written})
        return
    show_report(found.report)
    if found.trace is not None:
        from trtc.tools.bench.trace_summary import show_trace

        show_trace(found.trace, found.report.bundle)
    for option, path in written.items():
        print_line(f"{option[2:]} written to {path}")
