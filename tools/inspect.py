"""``trtc inspect``: what a model takes, or what a bundle holds and why it runs as it does."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trtc.engines.manifest_file import MANIFEST
from trtc.profiles import UsageError
from trtc.tools.output import Progress, print_json, print_line
from trtc.tools.report.files import require_page, write_text

if TYPE_CHECKING:
    from collections.abc import Mapping

MODEL_SCHEMA = "trtc.inspect-model/1"
BUNDLE_SCHEMA = "trtc.inspect-bundle/1"
_RUN_OPTIONS = {"samples": "--samples", "val_range": "--val-range"}
_MODEL_OPTIONS = {"runs": "--run", **_RUN_OPTIONS, "model_root": "--model-root"}


@click.command()
@click.argument("path", type=click.Path(path_type=Path))
@click.option(
    "--run", "runs", is_flag=True, help="Model: run it at many sizes, and show which run and how outputs follow."
)
@click.option("--samples", multiple=True, type=click.Path(path_type=Path), help="Model, with --run: real inputs.")
@click.option("--val-range", multiple=True, metavar="INPUT:[LOW,HIGH]", help="Model, with --run: values of an input.")
@click.option(
    "--model-root",
    type=click.Path(path_type=Path, file_okay=False),
    help="Model: folder that external data may lie in.",
)
@click.option("--verify-digests", is_flag=True, help="Bundle: read every file and compare its SHA-256.")
@click.option(
    "--html", type=click.Path(path_type=Path), metavar="FILE.html", help="Bundle: write a page with pictures."
)
@click.option(
    "--json", "as_json", is_flag=True, help=f"Print one JSON object (schema {MODEL_SCHEMA} or {BUNDLE_SCHEMA})."
)
def inspect(path: Path, **given: Any) -> None:
    """Show a model (PATH is an .onnx file) or a bundle (PATH is a NAME.trtc folder).

    A model is not run unless --run is given. A bundle is shown without any of the compiler's libraries.

    \b
    Examples:
      trtc inspect model.onnx
      trtc inspect model.onnx --run
      trtc inspect model.trtc --verify-digests
    """  # noqa: D301 (\b is how click is told to leave lines as they are)
    if path.suffix.lower() == ".trtc" and not path.exists():
        raise UsageError(f"{path}: there is no bundle; give the path of a NAME.trtc folder, which trtc build writes")
    bundle = path.parent if path.name == MANIFEST and path.is_file() else path
    if bundle.is_dir() and not any(bundle.glob("*.onnx")):
        _refuse(given, _MODEL_OPTIONS, "a bundle")
        _bundle(bundle, given)
    else:
        _refuse(given, {"verify_digests": "--verify-digests", "html": "--html"}, "a model")
        if not given["runs"]:
            _refuse(given, _RUN_OPTIONS, "a model that is not run (add --run)")
        _model(path, given)


def _refuse(given: Mapping[str, Any], options: Mapping[str, str], what: str) -> None:
    if used := [option for name, option in options.items() if given[name]]:
        raise UsageError(f"{', '.join(used)} says nothing about {what}; leave it out")


def _bundle(path: Path, given: Mapping[str, Any]) -> None:
    from trtc.tools.inspect_bundle import bundle_facts, show_bundle

    require_page(given["html"])
    found = bundle_facts(path, verify_digests=given["verify_digests"])
    if given["html"]:
        from trtc.tools.inspect_page import inspect_page

        write_text(given["html"], inspect_page(found).encode())
    if given["as_json"]:
        print_json(BUNDLE_SCHEMA, found.fields())
    elif given["html"]:
        print_line(f"page written to {given['html']}")
    else:
        show_bundle(found)


def _model(path: Path, given: Mapping[str, Any]) -> None:
    from trtc.tools.inspect_model import model_facts, show_model

    progress = Progress(quiet=given["as_json"] or not given["runs"])
    try:
        found = model_facts(path, given, progress)
    except BaseException:
        progress.drop()
        raise
    progress.done()
    if given["as_json"]:
        print_json(MODEL_SCHEMA, found.fields())
    else:
        show_model(found)
