"""``trtc build``: from a model to a verified bundle."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trtc.engines.manifest_file import MANIFEST, WRITER_LOCK, read_manifest
from trtc.profiles import TrtcError, UsageError
from trtc.tools.claims import claim_text
from trtc.tools.durations import seconds_text
from trtc.tools.output import (
    Progress,
    counted,
    print_command,
    print_json,
    print_line,
    print_signature,
    print_table,
    print_text,
    size_text,
)
from trtc.tools.places import is_same_place, require_files_in
from trtc.tools.planned import planned_texts, runs_text
from trtc.tools.shape_options import ArgumentOrder, model_options, options_from, shape_options
from trtc.tools.suggestions import ranges_hint, run_command
from trtc.tools.traffic_options import traffic_options
from trtc.tools.verification import unverified_text

if TYPE_CHECKING:
    from trtc.compiler.pipeline import BuildReport

SCHEMA = "trtc.build/1"
NULL = "null"
"""Name of the backend that computes nothing, so that there is nothing to verify."""
_FILE_ENDINGS = (".onnx", ".json", ".toml", ".npz", ".plan", ".engine")
"""Of models, engines and data: a folder of such a name misleads people and programs."""


@click.command(cls=ArgumentOrder)
@click.argument("model", type=click.Path(path_type=Path), required=False)
@click.option("--onnx", type=click.Path(path_type=Path), hidden=True)
@click.option(
    "-o",
    "--output",
    "--saveEngine",
    "--save-engine",
    "output",
    type=click.Path(path_type=Path),
    metavar="NAME.trtc",
    help="Path of the bundle; MODEL with .trtc when left out.",
)
@shape_options
@model_options
@traffic_options
@click.option(
    "--plan",
    "plan_file",
    type=click.Path(path_type=Path),
    metavar="PLAN.toml",
    help="Build the ladder of a plan file, which trtc plan writes.",
)
@click.option("--frozen", is_flag=True, help="With --plan: build exactly that, or say what no longer holds.")
@click.option("--json", "as_json", is_flag=True, help=f"Print one JSON object (schema {SCHEMA}).")
@click.option("-q", "--quiet", is_flag=True, help="Print errors only.")
@click.pass_context
def build(  # the positional mark keeps options of any name apart from the context
    ctx: click.Context, /, model: Path | None, onnx: Path | None, output: Path | None, **given: Any
) -> None:
    """Compile MODEL (.onnx) into a bundle: find its symbols, prove what may be padded, build, verify.

    \b
    Examples:
      trtc build model.onnx                                exact sizes, any size
      trtc build model.onnx --dim batch=1..8 --buckets seq=32,64,128 \\
          --pad seq --fill input_ids=0 --fill attention_mask=0
      trtc build model.onnx --target cpu --target rtx:sm89,sm120 --dim batch=1..8 --buckets seq=32,64
      trtc build model.onnx --traffic traffic.jsonl --pad seq --fill input_ids=0 --fill attention_mask=0
      trtc build model.onnx --minShapes=x:1x3x32x32 --optShapes=x:4x3x32x320 --maxShapes=x:8x3x32x960
    """  # noqa: D301 (\b is how click is told to leave lines as they are)
    from trtc.compiler.pipeline import build as run_build

    as_json, quiet = given.pop("as_json"), given.pop("quiet")
    options = options_from(ctx, given)
    if given["plan_file"] is not None:
        from trtc.compiler.plan_build import options_with_plan

        options = options_with_plan(given["plan_file"], options, frozen=given["frozen"])
    source = model_path(model, onnx)
    target = output or source.with_suffix(".trtc")
    refuse_output(target, source)
    older = _source_of(target)
    progress = Progress(quiet=quiet or as_json)
    try:
        report = run_build(source, target, options, progress)
    except BaseException:
        progress.drop()
        raise
    progress.done()
    if as_json:
        print_json(SCHEMA, {"path": str(target), "cache_hit": report.hit, "build_s": report.build_s,
                            "notes": report.notes, "manifest": report.manifest})  # fmt: skip
    elif not quiet:
        for note in report.notes:
            if note not in progress.notes:
                print_text(f"note: {note}")
        if older is not None:
            same = older == report.manifest.source.sha256
            built = (
                "the same model"
                if same
                else f"another model (content digest {older[:12]}...)"
                if older
                else "a model that its manifest does not tell"
            )
            print_text(f"note: replaced the bundle that was there, built from {built}")
        show_report(report, report.build_s if report.hit else progress.whole_s)


def _source_of(target: Path) -> str | None:
    """Say which model the bundle that will be replaced was built from; empty for a broken one, None where none is."""
    if not (target / MANIFEST).exists():
        return None
    try:
        return read_manifest(target).source.sha256
    except TrtcError:
        return ""


def model_path(model: Path | None, onnx: Path | None, verb: str = "build") -> Path:
    """Settle the model: the argument, or trtexec's ``--onnx``; ``verb`` is the command, for the message.

    Raises:
        UsageError: when there is none, or two.
    """
    if (model is None) == (onnx is None):
        came = "no model was given" if model is None else f"two models were given, {model} and {onnx}"
        raise UsageError(f"{came}; write one: trtc {verb} MODEL.onnx")
    return model or onnx  # type: ignore[return-value]  # one of them is there


def refuse_output(target: Path, source: Path) -> None:
    """Refuse a place for the bundle that a build could only fail at, before minutes are spent.

    Raises:
        UsageError: when something else is there, or for a name that says file.
        HostError: when the folder may not be written.
    """
    if is_same_place(target, source):
        raise UsageError(f"the bundle cannot replace its model {source}; give another path with -o")
    try:
        target.resolve()
    except RuntimeError as error:
        raise UsageError(f"{target}: its links lead in circles; give another path with -o") from error
    if target.exists() and not target.is_dir():
        raise UsageError(f"{target}: a file is in the way, a bundle is a folder; choose another name with -o")
    if target.suffix.lower() in _FILE_ENDINGS and not (target / MANIFEST).exists():
        name = shlex.quote(str(target.with_suffix(".trtc")))
        raise UsageError(f"{target}: a bundle is a folder; name it NAME.trtc, such as -o {name}")
    if (
        target.is_dir()
        and any(target.iterdir())
        and not (target / MANIFEST).exists()
        and not (target / WRITER_LOCK).exists()
    ):
        raise UsageError(f"{target} is a folder that holds something else, not a bundle; choose another name with -o")
    parent = next(folder for folder in (target, *target.absolute().parents) if folder.exists())
    if not parent.is_dir():
        raise UsageError(f"{target}: {parent} is a file, so nothing can lie in it; choose another path with -o")
    require_files_in(parent, str(target), "change its rights, or choose another folder with -o")


def show_report(report: BuildReport, build_s: float) -> None:
    """Print what was built, what was shown about it, and what to do next; ``build_s`` by the clock of the stages."""
    from trtc.engines import bundle_size_bytes

    manifest = report.manifest
    print_line()
    print_signature(manifest.signature)
    print_line()
    costs = manifest.ladder.cost_s
    first = manifest.engines[0]
    memory = {m.profile: m for m in first.memory}
    rows = []
    for i, profile in enumerate(manifest.ladder.profiles):
        m = memory.get(profile.name)
        rows.append(
            (
                profile.name,
                ", ".join(f"{s} {profile.ranges[s]}" for s in manifest.signature.symbols if s in profile.ranges)
                or "fixed",
                seconds_text(costs[i]) if costs else "-",
                size_text(m.slot_bytes) if m else "grows",
                size_text(m.scratch_bytes) if m else "-",
            )
        )
    title = "profiles" if len(manifest.engines) == 1 else f"profiles, with the memory of engine {first.name}"
    print_table(title, ("profile", "sizes", "one run at the bucket", "planned memory", "library memory"), rows)
    for text in planned_texts(manifest):
        print_text(text)
    for evidence in manifest.evidence:
        if evidence.kind == "relations":
            continue
        print_text(claim_text(evidence, manifest.padding))
    for engine in manifest.engines:
        size = size_text(sum(blob.size_bytes for blob in engine.files))
        passed = [v for v in engine.verification if v.ran and v.passed]
        runs = sum(v.runs for v in passed)
        worst = max((v.worst.max_abs for v in passed if v.worst), default=0.0)
        names = sorted({v.reference for v in passed})
        said = (
            f"{counted(runs, 'comparison')} with {' and '.join(names)}, largest difference {worst:.2g}"
            if passed
            else unverified_text(engine) or "not verified here"
        )
        scratch = max((m.scratch_bytes for m in engine.memory), default=-1)
        needs = f", up to {size_text(scratch)} inside the library" if scratch > 0 and engine is not first else ""
        print_text(f"engine {engine.name} ({size}{needs}): {said}")
    print_text(runs_text(manifest.execution))
    print_line()
    how = "taken from the build cache, digests checked; built" if report.hit else "built"
    print_line(f"{report.path}: {size_text(bundle_size_bytes(manifest))}, {how} in {seconds_text(build_s)}")
    if hint := ranges_hint(manifest):
        print_command("hint: sizes are served as they come; ranges give planned memory, such as", hint)
    unverified = [e.name for e in manifest.engines if not e.verified and e.backend != NULL]
    if unverified:
        print_command(
            f"verify {' and '.join(unverified)} on a machine that can run it, with the model at hand",
            f"trtc verify {shlex.quote(str(report.path))} --model MODEL.onnx",
        )
    if len(unverified) < len(manifest.engines):
        print_line(f"next: {run_command(report.path, manifest)}")
