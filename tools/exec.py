"""``trtc exec``: run a program with its ONNX Runtime sessions recorded, or served by bundles.

The program waits for this command to start: nothing large is imported before.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from trtc.profiles import CheckError, HostError, TrtcError, UsageError
from trtc.profiles.recorded import DEFAULT_SAMPLES, EXEC_VARIABLE
from trtc.tools.places import require_file_place

if TYPE_CHECKING:
    from collections.abc import Sequence

Bundle: TypeAlias = "dict[str, str]"
"""``path``, ``source_sha256`` and ``file_sha256``, as the program's side reads them."""
MANIFEST = "manifest.json"
_SITE = Path(__file__).parent.parent / "runtime" / "compat" / "site"

SCHEMA = "trtc.exec/1"
_PASSED_ON = ("SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGWINCH")
_MAX_ENVIRONMENT = 100_000
"""Bytes of one variable; Linux takes 128 KiB."""
_SIGNALLED = 128


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option(
    "--record",
    type=click.Path(path_type=Path),
    metavar="FILE.jsonl",
    help="Append what the program's models are asked for: sizes, times, values.",
)
@click.option(
    "--samples",
    type=click.IntRange(0, 4096),
    metavar="N",
    help=f"With --record: inputs kept for each model.  [default: {DEFAULT_SAMPLES}]",
)
@click.option("--no-values", is_flag=True, help="With --record: sizes and times only, no values of inputs.")
@click.option(
    "--bundle",
    "bundles",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="NAME.trtc",
    help="Serve the model that this bundle was built from; repeat.",
)
@click.option(
    "--bundles",
    "folders",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Every bundle in this folder.",
)
@click.option(
    "--record-before",
    type=click.Path(path_type=Path),
    metavar="FILE.jsonl",
    help="A record of plain runs, to compare times with.",
)
@click.option(
    "--summary",
    type=click.Path(path_type=Path),
    metavar="FILE.json",
    help=f"Write the summary to a file (schema {SCHEMA}).",
)
@click.option("-q", "--quiet", is_flag=True, help="Print no summary.")
@click.argument("command", nargs=-1, type=click.UNPROCESSED, required=True)
def exec(  # noqa: A001, PLR0913, PLR0917 (the verb, and one parameter an option)
    command: tuple[str, ...], record: Path | None, samples: int | None, bundles: tuple[Path, ...],
    folders: tuple[Path, ...], record_before: Path | None, summary: Path | None, *, no_values: bool, quiet: bool,
) -> int:  # fmt: skip
    """Run COMMAND as it is, with the ONNX Runtime sessions of its Python programs recorded or served by bundles.

    The exit code is the command's.

    \b
    Examples:
      trtc exec --record traffic.jsonl -- python app.py
      trtc build model.onnx --traffic traffic.jsonl -o model.trtc
      trtc exec --bundle model.trtc --record-before traffic.jsonl -- python app.py
    """  # noqa: D301 (\b is how click is told to leave lines as they are)
    if (samples is not None or no_values) and record is None:
        raise UsageError("--samples and --no-values say what is recorded; add --record FILE.jsonl")
    known = _bundles(bundles, folders)
    if not known and record is None:
        raise UsageError("nothing to do: give --record FILE.jsonl, --bundle NAME.trtc or --bundles DIR")
    if record_before is not None and not record_before.is_file():
        raise UsageError(f"{record_before}: no such file; give the record that trtc exec --record wrote")
    if record is not None and (problem := _unwritable(record)):
        click.echo(f"trtc: warning: {record}: {problem}; nothing is recorded, the program runs all the same", err=True)
        record = None
    summary = _place_of(summary)
    with tempfile.TemporaryDirectory(prefix="trtc-exec-") as folder:
        report = Path(folder) / "report.jsonl"
        report.touch()
        settings = {
            "bundles": known,
            "record": "" if record is None else str(record.absolute()),
            "samples": DEFAULT_SAMPLES if samples is None else samples,
            "values": not no_values,
            "report": str(report),
        }
        begin = time.perf_counter()
        code = _run(command, _environment(settings))
        wall_s = time.perf_counter() - begin
        # Imported when the program is over: it does not wait for them.
        from trtc.tools.exec_summary import read_before, read_report, show_summary, summary_fields

        found = read_report(report)
    before: dict[str, float] = {}
    if record_before is not None:
        try:
            before = read_before(record_before)
        except UsageError as error:  # the program has run: its exit code counts
            click.echo(f"trtc: warning: {error}", err=True)
    fields = {"exit_code": code, "wall_s": wall_s, **summary_fields(found, known, before)}
    if not quiet:
        show_summary(fields)
    if summary is not None:
        try:
            summary.write_text(json.dumps({"schema": SCHEMA, **fields}, indent=2) + "\n")
        except OSError as error:
            click.echo(f"trtc: warning: {summary}: {error.strerror}; the summary is not written", err=True)
    return code


def _bundles(bundles: Sequence[Path], folders: Sequence[Path]) -> tuple[Bundle, ...]:
    paths = list(bundles)
    for folder in folders:
        if not folder.is_dir():
            raise UsageError(f"{folder}: no such folder; --bundles takes a folder that holds bundles")
        inside = sorted(path.parent for path in folder.glob(f"*/{MANIFEST}"))
        if not inside:
            raise UsageError(f"{folder}: no bundle lies in it; give the folder that holds NAME.trtc folders")
        paths += inside
    return tuple(map(_known, paths))


def _place_of(summary: Path | None) -> Path | None:
    """Look at the place of a summary before the program runs, which does not depend on it."""
    try:
        require_file_place(summary, "--summary")
    except TrtcError as error:
        click.echo(f"trtc: warning: {error}; the summary is not written, the program runs all the same", err=True)
        return None
    return summary


def _unwritable(record: Path) -> str:
    """Say why a record cannot be written; empty where it can."""
    if record.is_dir():
        return "a folder; give the path of a file"
    try:
        with record.open("ab"):
            return ""
    except OSError as error:
        return error.strerror or str(error)


def _known(path: Path) -> Bundle:
    """Read which model a bundle was built from. The rest is checked by the program that loads it."""
    try:
        manifest = json.loads((path / MANIFEST).read_bytes())
        original = manifest.get("original") or {}
        return {
            "path": str(path.resolve()),
            "source_sha256": str(manifest["source"]["sha256"]),
            "file_sha256": str(original.get("file_sha256", "")),
        }
    except OSError as error:
        raise UsageError(f"{path}: no bundle there ({error.strerror}); give the path of a NAME.trtc folder") from error
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise CheckError(f"{path}: its manifest cannot be read; copy the bundle again or rebuild it") from error


def _environment(settings: dict[str, Any]) -> dict[str, str]:
    text = json.dumps(settings)
    if len(text) > _MAX_ENVIRONMENT:
        raise UsageError(f"{len(settings['bundles'])} bundles are more than the environment holds; give fewer")
    paths = [str(_SITE), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, EXEC_VARIABLE: text, "PYTHONPATH": os.pathsep.join(path for path in paths if path)}


def _run(command: Sequence[str], environment: dict[str, str]) -> int:
    """Run a command to its end; signals reach it, and its exit code is what shells would say."""
    passed = [getattr(signal, name) for name in _PASSED_ON if hasattr(signal, name)]
    before: dict[Any, Any] = {}
    try:
        child = subprocess.Popen(list(command), env=environment)  # noqa: S603 (running a command is what this is for)
    except FileNotFoundError as error:
        raise UsageError(f"{command[0]}: no such command; give a program after --") from error
    except OSError as error:
        raise HostError(f"{command[0]}: cannot be started: {error.strerror}; check the file and its rights") from error
    try:
        # A terminal sends SIGINT to the program as well, which decides what it means.
        before[signal.SIGINT] = signal.signal(signal.SIGINT, signal.SIG_IGN)
        for number in passed:
            before[number] = signal.signal(number, lambda given, _frame: child.send_signal(given))
        code = child.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return code if code >= 0 else _SIGNALLED - code
