"""``trtc diff``: what changed from one bundle to another, and whether that will do. The gate of a pull request."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trtc.engines.manifest_file import read_manifest
from trtc.profiles import CheckError
from trtc.tools.comparison.conditions import ABOUT, FIGURES, read_conditions
from trtc.tools.output import Progress, print_json, print_line, print_note, print_table
from trtc.tools.places import require_file_place
from trtc.tools.quantities import FiniteRange, WholeRange

if TYPE_CHECKING:
    from trtc.tools.comparison.pair import Found

SCHEMA = "trtc.diff/1"


@click.command(epilog="Figures of --fail-if: " + "; ".join(f"{name} ({text})" for name, text in ABOUT.items()) + ".")
@click.argument("old", type=click.Path(path_type=Path))
@click.argument("new", type=click.Path(path_type=Path))
@click.option(
    "--traffic",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Sizes that are sent: .jsonl, .csv, .parquet, .npz or a folder of them.",
)
@click.option("--samples", multiple=True, type=click.Path(path_type=Path), help="Real inputs: .npz files or folders.")
@click.option(
    "--fail-if", "fail_if", multiple=True, metavar="CONDITIONS", help="Such as 'p99>+5%,cosine<0.999,memory>+10%'."
)
@click.option("--junit", type=click.Path(path_type=Path), metavar="FILE.xml", help="Write verdicts for a build server.")
@click.option(
    "--seconds",
    type=FiniteRange(0),
    default=3.0,
    show_default=True,
    help="Of measuring each bundle; 0 for none.",
)
@click.option("--val-range", multiple=True, metavar="INPUT:[LOW,HIGH]", help="Values that a generated input takes.")
@click.option("--seed", type=WholeRange(0), default=0, show_default=True, help="Of generated values.")
@click.option("--threads", type=WholeRange(1), help="Of one call; as measured when left out.")
@click.option("--json", "as_json", is_flag=True, help=f"Print one JSON object (schema {SCHEMA}).")
@click.option("-q", "--quiet", is_flag=True, help="Print errors only.")
def diff(old: Path, new: Path, **given: Any) -> None:
    """Say what changed from bundle OLD to bundle NEW, in words and in figures; exit with 1 when a condition holds.

    Times are measured in turns, in one process. A change within the noise is told, and does not fail.

    \b
    Example:
      trtc diff main.trtc change.trtc --traffic sizes.jsonl --fail-if 'p99>+5%,cosine<0.999' --junit diff.xml
    """  # noqa: D301 (\b is how click is told to leave lines as they are)
    from trtc.tools.comparison.junit import write_junit
    from trtc.tools.comparison.pair import Asked, examine

    conditions = read_conditions(given["fail_if"])
    require_file_place(given["junit"], "--junit")
    progress = Progress(quiet=given["quiet"] or given["as_json"])
    asked = Asked(
        traffic=given["traffic"],
        samples=given["samples"],
        val_ranges=given["val_range"],
        seed=given["seed"],
        seconds=given["seconds"],
        threads=given["threads"],
        conditions=tuple(conditions),
    )
    manifests = read_manifest(old), read_manifest(new)
    try:
        found = examine((old, new), manifests, asked, progress)
    except BaseException:
        progress.drop()
        raise
    progress.done()
    if given["junit"] is not None:
        write_junit(given["junit"], f"{old.name} -> {new.name}", found.verdicts)
    if given["as_json"]:
        _print_json(old, new, found)
    elif not given["quiet"]:
        _show(old, new, found)
    failed = [f"{v.condition}: {v.detail}" for v in found.verdicts if v.state == "failed"]
    if failed:
        raise CheckError(f"{new} does not pass beside {old}: {'; '.join(failed)}")


def _print_json(old: Path, new: Path, found: Found) -> None:
    fields = {
        "old": str(old),
        "new": str(new),
        "passed": all(verdict.state != "failed" for verdict in found.verdicts),
        "changes": found.changes,
        "figures": found.figures,
        "differences": found.differences,
        "verdicts": found.verdicts,
        "requests": found.requests,
        "rounds": found.rounds,
        "notes": found.notes,
    }
    print_json(SCHEMA, fields)


def _show(old: Path, new: Path, found: Found) -> None:
    from trtc.tools.comparison.figures import figure_text

    for note in found.notes:
        print_note(note)
    if found.changes:
        rows = [(c.part, c.what, c.old or "-", c.new or "-") for c in found.changes]
        print_table(f"changes from {old} to {new}", ("part", "what", "old", "new"), rows)
    else:
        print_line(f"{old} and {new} say the same about plan, engines and evidence")
    for figure in found.figures:
        noise = "; the two cannot be told apart" if FIGURES[figure.name] == "time" and figure.noise else ""
        print_line(f"  {figure_text(figure, FIGURES[figure.name])}{noise}")
    for text in found.differences:
        print_line(f"  {text}")
    if found.verdicts:
        marks = {"passed": "ok", "failed": "FAILS", "noise": "ok (noise)"}
        print_table(
            "conditions", ("condition", "", "figure"), [(v.condition, marks[v.state], v.detail) for v in found.verdicts]
        )
