"""``trtc exec``: run a program with its ONNX Runtime sessions recorded, or served by bundles.

The program waits for this command to start: nothing large is imported before.
"""

from __future__ import annotations

from typing import Any

import click

from trtc.profiles.recorded import DEFAULT_SAMPLES
from trtc.tools.exec_line import MAX_SAMPLES, Line
from trtc.tools.exec_program import SCHEMA, run_program
from trtc.tools.quantities import WholeRange


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option(
    "--record",
    type=click.Path(),
    metavar="FILE.jsonl",
    help="Append what the program's models are asked for: sizes, times, values.",
)
@click.option(
    "--samples",
    type=WholeRange(0, MAX_SAMPLES),
    metavar="N",
    help=f"With --record: inputs kept for each model.  [default: {DEFAULT_SAMPLES}]",
)
@click.option("--no-values", is_flag=True, help="With --record: sizes and times only, no values of inputs.")
@click.option(
    "--bundle",
    "bundles",
    multiple=True,
    type=click.Path(),
    metavar="NAME.trtc",
    help="Serve the model that this bundle was built from; repeat.",
)
@click.option(
    "--bundles",
    "folders",
    multiple=True,
    type=click.Path(),
    metavar="DIR",
    help="Every bundle in this folder.",
)
@click.option(
    "--record-before",
    type=click.Path(),
    metavar="FILE.jsonl",
    help="A record of plain runs, to compare times with.",
)
@click.option(
    "--summary",
    type=click.Path(),
    metavar="FILE.json",
    help=f"Write the summary to a file (schema {SCHEMA}).",
)
@click.option("-q", "--quiet", is_flag=True, help="Print no summary.")
@click.argument("command", nargs=-1, type=click.UNPROCESSED, required=True)
def exec(**said: Any) -> int:  # noqa: A001 (the verb)
    """Run COMMAND as it is, with the ONNX Runtime sessions of its Python programs recorded or served by bundles.

    The exit code is the command's.

    \b
    Examples:
      trtc exec --record traffic.jsonl -- python app.py
      trtc build model.onnx --traffic traffic.jsonl -o model.trtc
      trtc exec --bundle model.trtc -- python app.py
    """  # noqa: D301 (\b is how click is told to leave lines as they are)
    return run_program(Line(**said))
