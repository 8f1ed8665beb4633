"""``trtc compare``: a bundle against its model, another bundle, another backend, or saved outputs."""

from __future__ import annotations

import contextlib
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trtc.engines.manifest_file import read_manifest
from trtc.profiles import CheckError, UsageError
from trtc.tools.comparison.report import by_output, failure_text, show_comparison, show_parting, worst_of
from trtc.tools.comparison.sides import BACKENDS
from trtc.tools.output import Progress, print_json, print_note
from trtc.tools.quantities import MemorySize, WholeRange

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trtc.tools.comparison.localize import Parting
    from trtc.tools.comparison.result import ComparisonResult

SCHEMA = "trtc.compare/1"
_NUMBER = r"(?:.*:)?[-+0-9.eE]+\Z"
_SEVERAL = {
    "--atol": _NUMBER,
    "--rtol": _NUMBER,
    "--check-error-stat": r"(?:.*:)?(?:tensor|elemwise|max|mean|median|quantile)\Z",
    "--val-range": r".+:\s*\[[^\[\]]*\]\Z",
}
"""Options that may be followed by several values, as in Polygraphy, and what a further value looks like."""


class SeveralValues(click.Command):
    """A command whose options take several values each, as Polygraphy's do."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Repeat an option before each further value, then parse."""
        kept: list[str] = []
        flag, valued = "", False
        for word in args:
            name = word.partition("=")[0]
            if name in _SEVERAL:
                flag, valued = name, word != name
            elif flag and not valued:
                valued = True
            elif flag and re.match(_SEVERAL[flag], word, re.DOTALL):
                kept.append(flag)
            else:
                flag = ""
            kept.append(word)
        return super().parse_args(ctx, kept)


@click.command(cls=SeveralValues)
@click.argument("bundle", type=click.Path(path_type=Path))
@click.argument("other", type=click.Path(path_type=Path), required=False)
@click.option(
    "--backend",
    type=click.Choice(list(BACKENDS)),
    help="What runs OTHER, when it is a model; onnxruntime when left out.",
)
@click.option("--engine", default="auto", show_default=True, help="Engine of BUNDLE.")
@click.option("--other-engine", help="Engine of OTHER; of BUNDLE itself when OTHER is left out.")
@click.option(
    "--load-outputs",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Saved outputs: .npz or .json.",
)
@click.option(
    "--load-inputs", multiple=True, type=click.Path(path_type=Path), metavar="FILE", help="Saved inputs: .npz or .json."
)
@click.option("--samples", multiple=True, type=click.Path(path_type=Path), help="Real inputs: .npz files or folders.")
@click.option("--save-inputs", type=click.Path(path_type=Path), metavar="FILE", help="Write the requests.")
@click.option("--save-outputs", type=click.Path(path_type=Path), metavar="FILE", help="Write the bundle's answers.")
@click.option("--profile", "profiles", multiple=True, metavar="NAME", help="In this profile only; repeat for several.")
@click.option(
    "--mode", type=click.Choice(["all", "exact", "bucket"]), default="all", show_default=True,
    help="Exact sizes, padded to the bucket, or both.",
)  # fmt: skip
@click.option("--sizes", multiple=True, metavar="SYMBOL=SIZE,...", help="Generate one request of these sizes; repeat.")
@click.option("--iterations", type=WholeRange(1), default=4, show_default=True, help="Generated requests for each way.")
@click.option("--val-range", multiple=True, metavar="INPUT:[LOW,HIGH]", help="Values that a generated input takes.")
@click.option("--seed", type=WholeRange(0), default=0, show_default=True, help="Of generated values and sizes.")
@click.option("--atol", multiple=True, metavar="[OUTPUT:]VALUE", help="Absolute tolerance; the bundle's when left out.")
@click.option("--rtol", multiple=True, metavar="[OUTPUT:]VALUE", help="Relative tolerance; the bundle's when left out.")
@click.option(
    "--check-error-stat", multiple=True, metavar="[OUTPUT:]STAT",
    help="tensor (as builds do; default), elemwise, max, mean, median or quantile.",
)  # fmt: skip
@click.option("--validate", is_flag=True, help="Fail for NaN and infinities, also where both sides have them.")
@click.option("--localize", is_flag=True, help="When answers differ, find the first node where the two sides part.")
@click.option(
    "--localize-memory", type=MemorySize(), default="1G", show_default=True, help="Of inner tensors, on both sides."
)
@click.option(
    "--model-root", type=click.Path(path_type=Path, file_okay=False), help="Folder that external data may lie in."
)
@click.option("--threads", type=WholeRange(1), help="Of one call, on both sides.")
@click.option("--json", "as_json", is_flag=True, help=f"Print one JSON object (schema {SCHEMA}).")
@click.option("-q", "--quiet", is_flag=True, help="Print errors only.")
def compare(bundle: Path, other: Path | None, **given: Any) -> None:
    """Compare BUNDLE with OTHER (a model or a bundle), with another engine, or with saved outputs.

    Runs in every profile, at exact and at padded sizes. Exits with 1 when an answer differs.

    \b
    Examples:
      trtc compare minilm.trtc minilm.onnx
      trtc compare minilm.trtc yesterday.trtc --atol 1e-3 --check-error-stat max
      trtc compare minilm.trtc --load-inputs in.json --load-outputs out.json
    """  # noqa: D301 (\b is how click is told to leave lines as they are)
    from trtc.tools.comparison.task import Task

    _refuse_contradictions(other, given)
    manifest = read_manifest(bundle)
    progress = Progress(quiet=given["quiet"] or given["as_json"])
    with contextlib.ExitStack() as stack:
        try:
            work = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="trtc-compare-")))
            task = Task(bundle, other, manifest, given, progress)
            result, parting = task.run(work, stack)
        except BaseException:
            progress.drop()
            raise
        progress.done()
    if given["as_json"]:
        _print_json(result, parting)
    elif not given["quiet"]:
        for note in result.notes:
            print_note(note)
        show_comparison(result)
        if parting is not None:
            show_parting(parting)
    if result.failures:
        raise CheckError(f"{bundle} differs from {result.against}: {failure_text(result)}")


def _refuse_contradictions(other: Path | None, given: Mapping[str, Any]) -> None:
    ways = "a model or another bundle, --other-engine NAME, or --load-outputs FILE"
    saved = bool(given["load_outputs"])
    if other is None and not saved and given["other_engine"] is None:
        raise UsageError(f"nothing to compare with; name {ways}")
    if saved and (other is not None or given["other_engine"] is not None):
        raise UsageError(f"a bundle is compared with one thing at a time; name {ways}")
    if saved and not (given["load_inputs"] or given["samples"]):
        raise UsageError("--load-outputs needs the inputs that they are answers to: give --load-inputs, or --samples")
    if saved and given["localize"]:
        raise UsageError("--localize needs a model or a bundle that can be run; saved outputs hold no inner tensors")
    is_model = other is not None and not other.is_dir()
    if given["backend"] is not None and not is_model:
        raise UsageError("--backend says what runs a model; name the model")
    if given["other_engine"] is not None and is_model:
        raise UsageError("--other-engine names an engine of a bundle; a model is run by --backend")


def _print_json(result: ComparisonResult, parting: Parting | None) -> None:
    outputs = [
        {"output": name, "passed": all(r.passed for r in results), "requests": len(results), "worst": worst_of(results)}
        for name, results in by_output(result).items()
    ]
    fields: dict[str, Any] = {
        "bundle": result.subject,
        "against": result.against,
        "passed": not result.failures,
        "failures": result.failures,
        "outputs": outputs,
        "cases": result.cases,
        "parting": parting,
        "notes": result.notes,
    }
    print_json(SCHEMA, fields)
