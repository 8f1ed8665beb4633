"""``trtc build``: from a model to a verified bundle."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trtc.profiles import UsageError, dim_text
from trtc.tools.output import Progress, print_json, print_line, print_table, seconds_text, size_text
from trtc.tools.shape_options import ArgumentOrder, model_options, options_from, shape_options

if TYPE_CHECKING:
    from trtc.compiler.pipeline import BuildReport

SCHEMA = "trtc.build/1"


@click.command(cls=ArgumentOrder)
@click.argument("model", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Path of the bundle; MODEL with .trtc when left out.")
@shape_options
@model_options
@click.option("--json", "as_json", is_flag=True, help=f"Print one JSON object (schema {SCHEMA}).")
@click.option("-q", "--quiet", is_flag=True, help="Print errors only.")
@click.pass_context
def build(ctx: click.Context, /, model: Path, output: Path | None, **given: Any) -> None:
    """Compile MODEL (.onnx) into a bundle: find its symbols, prove what may be padded, build, verify.

    \b
    Examples:
      trtc build model.onnx                                exact sizes, any size
      trtc build model.onnx --dim batch=1..8 --buckets seq=32,64,128 \\
          --pad seq --fill input_ids=0 --fill attention_mask=0
      trtc build model.onnx --minShapes=x:1x3x32x32 --optShapes=x:4x3x32x320 --maxShapes=x:8x3x32x960
    """
    from trtc.compiler.pipeline import build as run_build

    as_json, quiet = given.pop("as_json"), given.pop("quiet")
    target = output or model.with_suffix(".trtc")
    if target.resolve() == model.resolve():
        raise UsageError(f"the bundle cannot replace its model {model}; give another path with -o")
    progress = Progress(quiet=quiet or as_json)
    try:
        report = run_build(model, target, options_from(ctx, given), progress)
    finally:
        progress.done()
    if as_json:
        print_json(SCHEMA, {"path": str(target), "cache_hit": report.hit, "build_s": report.build_s,
                            "notes": report.notes, "manifest": report.manifest})  # fmt: skip
    elif not quiet:
        show_report(report)


def show_report(report: BuildReport) -> None:
    """Print what was built, what was shown about it, and what to do next."""
    from trtc.engines import bundle_size_bytes

    manifest = report.manifest
    for note in report.notes:
        print_line(f"note: {note}")
    print_line()
    for kind, specs in (("input", manifest.signature.inputs), ("output", manifest.signature.outputs)):
        for spec in specs:
            print_line(f"{kind:6} {spec}")
    print_line()
    costs = manifest.ladder.cost_s
    memory = {m.profile: m for m in manifest.engines[0].memory}
    rows = []
    for i, profile in enumerate(manifest.ladder.profiles):
        m = memory.get(profile.name)
        rows.append(
            (
                profile.name,
                ", ".join(f"{s} {profile.ranges[s]}" for s in manifest.signature.symbols if s in profile.ranges) or "fixed",
                seconds_text(costs[i]) if costs else "-",
                size_text(m.slot_bytes) if m else "grows",
                size_text(m.scratch_bytes) if m else "-",
            )
        )
    print_table("profiles", ("profile", "sizes", "one run at the bucket", "planned memory", "library memory"), rows)
    for evidence in manifest.evidence:
        if evidence.kind == "relations":
            continue
        claim = "rows are independent" if evidence.kind == "rows" else "padding is neutral"
        state = "shown" if evidence.accepted else "NOT neutral, accepted by the user"
        worst = max((f.max_abs for f in evidence.findings), default=0.0)
        print_line(f"{claim} along {evidence.symbol}: {state} in {evidence.runs} runs, largest difference {worst:.2g}")
    for engine in manifest.engines:
        passed = [v for v in engine.verification if v.ran and v.passed]
        runs = sum(v.runs for v in passed)
        worst = max((v.worst.max_abs for v in passed if v.worst), default=0.0)
        names = sorted({v.reference for v in passed})
        said = f"{runs} comparisons with {' and '.join(names)}, largest difference {worst:.2g}" if passed else "not verified here"
        print_line(f"engine {engine.name}: {said}")
    execution = manifest.execution
    print_line(f"runs {execution.mode} sizes: {execution.reason}")
    print_line()
    how = "taken from the build cache, digests checked; built" if report.hit else "built"
    print_line(f"{report.path}: {size_text(bundle_size_bytes(manifest))}, {how} in {seconds_text(report.build_s)}")
    if not any(p.bucket and all(size is not None for size in p.bucket.values()) for p in manifest.ladder.profiles):
        symbols = [dim_text(s) for s in manifest.signature.symbols]
        if symbols:
            print_line(
                "hint: every size is served as it comes. For planned memory and buckets give ranges, such as "
                + " ".join(f"--dim {s}=1..8" if i == 0 else f"--buckets {s}=32,64,128" for i, s in enumerate(symbols[:2]))
            )
    print_line(f"next: trtc run {report.path}")
