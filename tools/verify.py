"""``trtc verify``: compare the engines of a bundle with the model that it was built from, here and now."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from trtc.engines.bundle import write_bundle
from trtc.engines.host import this_host
from trtc.engines.manifest_file import read_manifest
from trtc.profiles import CheckError, HostError
from trtc.tools.generated import recorded_val_ranges
from trtc.tools.output import Progress, print_json, print_line, print_note, print_text
from trtc.tools.places import require_files_in
from trtc.tools.quantities import FiniteRange, WholeRange
from trtc.tools.verification import show_verification

if TYPE_CHECKING:
    from trtc.compiler.reverify import Reverified
    from trtc.engines.manifest import Manifest

SCHEMA = "trtc.verify/1"


@click.command()
@click.argument("bundle", type=click.Path(path_type=Path))
@click.option("--model", required=True, type=click.Path(path_type=Path), help="The model that it was built from.")
@click.option("--engine", "engines", multiple=True, help="Verify this engine only; repeat for several.")
@click.option("--device", default="", metavar="INDEX|UUID", help="GPU to run on; the first that fits when left out.")
@click.option("--samples", multiple=True, type=click.Path(path_type=Path), help="Real inputs: .npz files or folders.")
@click.option(
    "--val-range", multiple=True, metavar="INPUT:[LOW,HIGH]", help="Values that an input takes; as built when left out."
)
@click.option("--atol", type=FiniteRange(0), help="Absolute tolerance; the bundle's when left out.")
@click.option("--rtol", type=FiniteRange(0), help="Relative tolerance; the bundle's when left out.")
@click.option("--seed", type=WholeRange(0), default=0, show_default=True, help="Of generated values.")
@click.option(
    "--verify-seconds", type=FiniteRange(1), default=60.0, show_default=True, help="Time for comparing one engine."
)
@click.option(
    "--model-root", type=click.Path(path_type=Path, file_okay=False), help="Folder that external data may lie in."
)
@click.option("--threads", type=WholeRange(0), default=0, show_default=True, help="0 for all of this process.")
@click.option("--allow-plugins", is_flag=True, help="Run libraries of plug-ins that the bundle brings: they are code.")
@click.option("--dry-run", is_flag=True, help="Compare, but leave the bundle as it is.")
@click.option("--json", "as_json", is_flag=True, help=f"Print one JSON object (schema {SCHEMA}).")
@click.option("-q", "--quiet", is_flag=True, help="Print errors only.")
def verify(bundle: Path, model: Path, **given: Any) -> None:
    """Run every engine of BUNDLE that can run here against its model, and record the results in the bundle.

    An engine that was built where it could not run is refused at load until this has passed.

    \b
    Example:
      trtc verify minilm.trtc --model minilm.onnx
    """  # noqa: D301 (\b is how click is told to leave lines as they are)
    from trtc.compiler.importer import load_model
    from trtc.compiler.reverify import Candidate, ReverifyOptions, reverify

    manifest = read_manifest(bundle)
    if not given["dry_run"]:
        require_files_in(bundle, f"{bundle}: what is found is written into the bundle", "or look only, with --dry-run")
    allow = given["allow_plugins"]
    unfit, devices = _unfit(manifest, given["engines"], given["device"], allow_plugins=allow)
    options = ReverifyOptions(
        samples=given["samples"],
        val_ranges=given["val_range"] or recorded_val_ranges(manifest),
        atol=given["atol"],
        rtol=given["rtol"],
        seed=given["seed"],
        verify_s=given["verify_seconds"],
        threads=given["threads"] or this_host().threads,
        devices=devices,
        allow_plugins=allow,
    )
    progress = Progress(quiet=given["quiet"] or given["as_json"])
    with tempfile.TemporaryDirectory(prefix="trtc-verify-") as work:
        try:
            progress.stage("loading the model")
            loaded = load_model(model, work_folder=Path(work) / "model", model_root=given["model_root"])
            found = reverify(Candidate(bundle, manifest, loaded), options, unfit, progress)
        except BaseException:
            progress.drop()
            raise
        progress.done()
    wrote = not given["dry_run"] and found.after != found.before
    if wrote:
        _write(bundle, found)
    if given["as_json"]:
        _print_json(bundle, found, wrote=wrote)
    elif not given["quiet"]:
        _show(found, wrote=wrote, dry=given["dry_run"])
    _conclude(found)


def _unfit(
    manifest: Manifest, wanted: tuple[str, ...], device: str, *, allow_plugins: bool
) -> tuple[dict[str, str], dict[str, str]]:
    """Say why engines cannot run here, or are not to, and on which GPU the others run.

    That an engine was never verified is no reason here.
    """
    from trtc.engines.gpu import choose_gpu, survey_gpus
    from trtc.profiles import UsageError, unknown_name
    from trtc.runtime.verdicts import judge

    names = [record.name for record in manifest.engines]
    for name in wanted:
        if name not in names:
            raise UsageError(f"--engine: {unknown_name('engine', name, names)}")
    if device:
        choose_gpu(device, survey_gpus())
    unfit, devices = {}, {}
    for record in manifest.engines:
        assumed = msgspec.structs.replace(record, verified=True)
        verdict = judge(assumed, this_host(), device, allow_plugins=allow_plugins)
        if wanted and record.name not in wanted:
            unfit[record.name] = "not asked for"
        elif not verdict.fits:
            unfit[record.name] = verdict.reason
        elif verdict.device:
            devices[record.name] = verdict.device
    return unfit, devices


def _write(bundle: Path, found: Reverified) -> None:
    if read_manifest(bundle) != found.before:
        raise CheckError(f"{bundle} was replaced while it was verified; its new manifest was left alone: run again")
    write_bundle(bundle, found.after, {})


def _conclude(found: Reverified) -> None:
    """Fail when an engine that ran does not agree, or none ran at all."""
    failed = [
        f"engine {outcome.record.name}: {outcome.reason}"
        for outcome in found.engines
        if (outcome.ran and outcome.reason) or outcome.broken
    ]
    if failed:
        raise CheckError("; ".join(failed))
    if not any(outcome.ran for outcome in found.engines):
        reasons = "; ".join(f"{outcome.record.name}: {outcome.reason}" for outcome in found.engines)
        raise HostError(f"no engine of this bundle could be verified here ({reasons or 'it holds none'})")


def _print_json(bundle: Path, found: Reverified, *, wrote: bool) -> None:
    engines = [
        {
            "engine": outcome.record.name,
            "ran": outcome.ran,
            "passed": outcome.passed,
            "reason": outcome.reason,
            "verification": outcome.record.verification if outcome.ran else (),
        }
        for outcome in found.engines
    ]
    print_json(SCHEMA, {"bundle": str(bundle), "written": wrote, "engines": engines, "notes": found.notes})


def _show(found: Reverified, *, wrote: bool, dry: bool) -> None:
    for note in found.notes:
        print_note(note)
    show_verification([outcome.record for outcome in found.engines if outcome.ran])
    for outcome in found.engines:
        if not outcome.ran:
            print_text(f"engine {outcome.record.name} was left as it is: {outcome.reason}")
    if wrote:
        print_line("the results were written into the bundle")
    else:
        print_line("the bundle was not changed" + (" (--dry-run)" if dry else ""))
