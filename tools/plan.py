"""``trtc plan``: the ladder that serves given traffic best, as a table, a file and a page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trtc.profiles import CheckError, UsageError
from trtc.tools.build import model_path
from trtc.tools.output import Progress, print_json, print_line, print_table, print_text
from trtc.tools.places import is_same_place, require_file_place
from trtc.tools.report.files import require_page, write_text
from trtc.tools.shape_options import ArgumentOrder, model_options, options_from, shape_options
from trtc.tools.traffic_options import plan_options_from, traffic_options

if TYPE_CHECKING:
    from trtc.compiler.options import BuildOptions
    from trtc.tools.plan_view import PlanView

SCHEMA = "trtc.plan/1"
FIT_SCHEMA = "trtc.plan-fit/1"


@click.command(cls=ArgumentOrder)
@click.argument("model", type=click.Path(path_type=Path), required=False)
@click.option("--onnx", type=click.Path(path_type=Path), hidden=True)
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="PLAN.toml", help="Write the plan there.")
@click.option(
    "--html",
    "page",
    type=click.Path(path_type=Path),
    metavar="FILE.html",
    help="Write one page with pictures; it needs nothing else.",
)
@click.option(
    "--from-bundle",
    "bundle",
    type=click.Path(path_type=Path),
    metavar="NAME.trtc",
    help="Say whether this bundle's ladder still fits the traffic, and what a rebuild would gain.",
)
@traffic_options
@shape_options
@model_options
@click.option("--json", "as_json", is_flag=True, help=f"Print one JSON object (schema {SCHEMA} or {FIT_SCHEMA}).")
@click.option("-q", "--quiet", is_flag=True, help="Print errors only.")
@click.pass_context
def plan(  # the positional mark keeps options of any name apart from the context
    ctx: click.Context, /, model: Path | None, onnx: Path | None, **given: Any
) -> None:
    """Find the profiles that serve TRAFFIC best: padding is proven, costs are measured, and nothing is built.

    \b
    Examples:
      trtc plan model.onnx --traffic traffic.jsonl --pad seq --fill input_ids=0 --fill attention_mask=0 -o plan.toml
      trtc plan model.onnx --traffic traffic.jsonl --max-profiles 4 --html plan.html
      trtc plan --from-bundle model.trtc --traffic today.jsonl
    """  # noqa: D301 (\b is how click is told to leave lines as they are)
    shown = _Shown(given.pop("as_json"), given.pop("quiet"), given.pop("output"), given.pop("page"))
    bundle = given.pop("bundle")
    if not given["traffic"]:
        raise UsageError("a plan is made from traffic; give --traffic FILE, which session.record_traffic writes")
    if bundle is not None:
        _fit(bundle, model or onnx, given, shown)
    else:
        _plan(model_path(model, onnx, "plan"), options_from(ctx, given), shown)


class _Shown:
    """Where results go."""

    def __init__(self, as_json: bool, quiet: bool, output: Path | None, page: Path | None) -> None:  # noqa: FBT001
        self.as_json, self.quiet, self.output, self.page = as_json, quiet, output, page

    @property
    def places(self) -> list[Path]:
        """Files that will be written."""
        return [place for place in (self.output, self.page) if place is not None]

    def refuse_places(self, source: Path) -> None:
        """Say now what could only fail after minutes of measuring: places, and the library that draws."""
        require_file_place(self.output, "-o")
        require_page(self.page)
        for place in self.places:
            if is_same_place(place, source):
                raise UsageError(f"{place} is the model; give another path")


def _plan(source: Path, options: BuildOptions, shown: _Shown) -> None:
    from trtc.compiler.plan_model import plan_model
    from trtc.tools.plan_view import PlanView

    shown.refuse_places(source)
    progress = Progress(quiet=shown.quiet or shown.as_json)
    try:
        made = plan_model(source, options, progress)
    except BaseException:
        progress.drop()
        raise
    progress.done()
    view = PlanView.of(source.name, made)
    if shown.page is not None:
        write_page(view, shown.page)
    if shown.output is not None:
        from trtc.compiler.plan_build import plan_file_text

        write_text(shown.output, plan_file_text(made, options).encode())
    if shown.as_json:
        print_json(SCHEMA, {"path": None if shown.output is None else str(shown.output), **view.fields()})
    elif not shown.quiet:
        show_plan(view)
        for place in shown.places:
            print_line(f"written: {place}")


def show_plan(view: PlanView) -> None:
    """Print a plan."""
    from trtc.tools.plan_tables import sentences, tables

    said = sentences(view)
    print_line()
    if view.refused:
        print_text(said.pop(0))
        print_line()
    for table in tables(view):
        mark = table.chosen >= 0
        rows = [(*row, "chosen" if i == table.chosen else "") if mark else row for i, row in enumerate(table.rows)]
        print_table(table.title, (*table.columns, "") if mark else table.columns, rows)
        print_line()
    for sentence in said:
        print_text(sentence)


def write_page(view: PlanView, place: Path) -> None:
    """Write the page with pictures.

    Raises:
        HostError: when matplotlib is not installed.
    """
    from trtc.tools.plan_page import plan_page

    write_text(place, plan_page(view).encode())


def _fit(bundle: Path, model: Path | None, given: dict[str, Any], shown: _Shown) -> None:
    from trtc.compiler.traffic_source import traffic_for
    from trtc.engines.manifest_file import read_manifest
    from trtc.tools.plan_bundle import fit_of, show_fit

    if model is not None or shown.output is not None or shown.page is not None:
        raise UsageError("--from-bundle compares a bundle with traffic; leave the model, -o and --html out")
    manifest = read_manifest(bundle)
    file_sha256 = "" if manifest.original is None else manifest.original.file_sha256
    reading = traffic_for(plan_options_from(given), manifest.signature, file_sha256)
    if reading is None:
        raise AssertionError("--traffic was looked for before")
    fit = fit_of(manifest, reading.traffic)
    if shown.as_json:
        print_json(FIT_SCHEMA, {"bundle": str(bundle), **fit.fields()})
    elif not shown.quiet:
        show_fit(fit)
    if not fit.fits:
        parts = [f"{fit.refused:.2%} of the requests are refused"] if fit.refused else []
        parts += [f"the others would take {fit.gain:.1%} less after a rebuild"] if fit.gain else []
        raise CheckError(f"{bundle}: the ladder does not fit this traffic: {', '.join(parts)}; rebuild with --traffic")
