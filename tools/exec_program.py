"""Run a program as ``trtc exec`` was told: its environment, its end, and the summary.

The program waits for this to start: nothing large is imported before, and what the summary needs is imported while the
program runs.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from contextlib import suppress

from trtc.profiles.recorded import DEFAULT_SAMPLES, EXEC_VARIABLE
from trtc.tools.exec_bundles import given_bundles, identity

TYPE_CHECKING = False  # importing typing takes 2 ms, pathlib 3
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from trtc.tools.exec_bundles import GivenBundle
    from trtc.tools.exec_line import Line
    from trtc.tools.exec_summary import Before

SCHEMA = "trtc.exec/1"
_SITE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "runtime", "compat", "site")
_PASSED_ON = ("SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGWINCH")
_MAX_ENVIRONMENT = 100_000
"""Bytes of one variable; Linux takes 128 KiB."""
_SIGNALLED = 128


def run_program(line: Line) -> int:
    """Run the program; return its exit code, or what shells would say of the signal that ended it.

    Raises:
        UsageError: for options that contradict each other, or files that are not there.
        CheckError: for a bundle whose manifest cannot be read.
        HostError: when the program cannot be started.
    """
    known = _checked(line)
    record = line.record
    if record is not None and (problem := _unwritable(record)):
        _warn(f"{record}: {problem}; nothing is recorded, the program runs all the same")
        record = None
    summary = _place_of(line.summary)
    report = _empty_file()
    try:
        settings = {
            "bundles": list(map(identity, known)),
            "record": "" if record is None else os.path.abspath(record),
            "samples": DEFAULT_SAMPLES if line.samples is None else line.samples,
            "values": not line.no_values,
            "report": report,
        }
        begin = time.perf_counter()
        code = _run(line.command, _environment(settings))
        wall_s = time.perf_counter() - begin
        if line.quiet and summary is None:
            return code
        from trtc.tools.exec_summary import read_report, show_summary, summary_fields

        found = read_report(report)
    finally:
        _remove(report)
    used = {entry["bundle"] for entry in found if isinstance(entry.get("bundle"), str)}
    before = _before(line, [bundle for bundle in known if bundle.path in used])
    fields = {"exit_code": code, "wall_s": wall_s, **summary_fields(found, list(map(identity, known)), before)}
    if not line.quiet:
        with suppress(OSError):  # the program has run: its exit code counts
            show_summary(fields)
    if summary is not None:
        try:
            with open(summary, "w") as file:
                file.write(json.dumps({"schema": SCHEMA, **fields}, indent=2) + "\n")
        except OSError as error:
            _warn(f"{summary}: {error.strerror}; the summary is not written")
    return code


def _checked(line: Line) -> tuple[GivenBundle, ...]:
    """Return the bundles that were given."""
    from trtc.profiles import UsageError

    if (line.samples is not None or line.no_values) and line.record is None:
        raise UsageError("--samples and --no-values say what is recorded; add --record FILE.jsonl")
    known = given_bundles(line.bundles, line.folders)
    if not known and line.record is None:
        raise UsageError("nothing to do: give --record FILE.jsonl, --bundle NAME.trtc or --bundles DIR")
    if line.record_before is not None and not os.path.isfile(line.record_before):
        raise UsageError(f"{line.record_before}: no such file; give the record that trtc exec --record wrote")
    return known


def _place_of(summary: str | None) -> str | None:
    """Look at the place of a summary before the program runs, which does not depend on it."""
    if summary is None:
        return None
    from pathlib import Path

    from trtc.profiles import TrtcError
    from trtc.tools.places import require_file_place

    try:
        require_file_place(Path(summary), "--summary")
    except TrtcError as error:
        _warn(f"{error}; the summary is not written, the program runs all the same")
        return None
    return summary


def _unwritable(record: str) -> str:
    """Say why a record cannot be written; empty where it can."""
    if os.path.isdir(record):
        return "a folder; give the path of a file"
    if os.path.exists(record) and not os.path.isfile(record):  # opening a pipe waits for its reader
        return "no regular file; give the path of a file"
    try:
        with open(record, "ab"):
            return ""
    except OSError as error:
        return error.strerror or str(error)


def _empty_file() -> str:
    """Make a file that only this user may read, where programs write what the summary is made of; return its path."""
    named = (os.environ.get(name) for name in ("TMPDIR", "TEMP", "TMP"))
    folder = next(filter(None, named), "/tmp")  # noqa: S108 (a new file in it, which only this user may open)
    path = os.path.join(os.path.abspath(folder), f"trtc-exec-{os.urandom(8).hex()}.jsonl")
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    except OSError:  # the module finds another place, or says that there is none; it takes its time to import
        import tempfile

        descriptor, path = tempfile.mkstemp(prefix="trtc-exec-", suffix=".jsonl")
    os.close(descriptor)
    return path


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:  # the program emptied the folder of temporary files
        return


def _environment(settings: dict[str, Any]) -> dict[str, str]:
    text = json.dumps(settings)
    if len(text) > _MAX_ENVIRONMENT:
        from trtc.profiles import UsageError

        raise UsageError(f"{len(settings['bundles'])} bundles are more than the environment holds; give fewer")
    paths = [_SITE, os.environ.get("PYTHONPATH", "")]
    return {**os.environ, EXEC_VARIABLE: text, "PYTHONPATH": os.pathsep.join(path for path in paths if path)}


def _run(command: tuple[str, ...], environment: dict[str, str]) -> int:
    """Run a command to its end; signals reach it, and its exit code is what shells would say."""
    passed = [getattr(signal, name) for name in _PASSED_ON if hasattr(signal, name)]
    before: dict[Any, Any] = {}
    # What comes while the program starts waits until it can be passed on: else it would end this command alone.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT, *passed])
    try:
        program = _start(command, environment, mask)
        if signal.SIGINT in signal.sigpending():
            _pass_on(program, signal.SIGINT)  # it may have come before the program was there
        # Later, a terminal sends SIGINT to the program as well, which decides what it means.
        before[signal.SIGINT] = signal.signal(signal.SIGINT, signal.SIG_IGN)
        for number in passed:
            before[number] = signal.signal(number, lambda given, _frame: _pass_on(program, given))
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        _, status = os.waitpid(program, 0)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else _SIGNALLED - code


def _start(command: tuple[str, ...], environment: dict[str, str], mask: set[int | signal.Signals]) -> int:
    """Start a program with this mask of signals; return its process id."""
    try:
        # The program gets back what Python ignores; `subprocess` does the same, and takes its time to import.
        defaults = [signal.SIGPIPE, signal.SIGXFSZ]
        return os.posix_spawnp(command[0], command, environment, setsigmask=mask, setsigdef=defaults)
    except (FileNotFoundError, NotADirectoryError) as error:
        from trtc.profiles import UsageError

        raise UsageError(f"{command[0]}: no such command; give a program after --") from error
    except OSError as error:
        from trtc.profiles import HostError

        raise HostError(f"{command[0]}: cannot be started: {error.strerror}; check the file and its rights") from error


def _pass_on(program: int, number: int) -> None:
    try:
        os.kill(program, number)
    except ProcessLookupError:  # it has just ended
        return


def _before(line: Line, used: Sequence[GivenBundle]) -> Before:
    from trtc.profiles import UsageError
    from trtc.tools.exec_summary import before_of, read_before

    if line.record_before is None:
        return before_of(entry for bundle in used for entry in bundle.recorded)
    try:
        return read_before(line.record_before)
    except UsageError as error:  # the program has run: its exit code counts
        _warn(str(error))
        return {}


def _warn(text: str) -> None:
    from trtc.tools.printable import printable

    with suppress(OSError):  # nobody can be told; the program runs all the same
        sys.stderr.write(f"trtc: warning: {printable(text)}\n")
