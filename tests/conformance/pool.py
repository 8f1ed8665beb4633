"""Children that judge the tests. One that dies costs one test: it is named, and the next child goes on after it."""

from __future__ import annotations

import json
import signal
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_REASON_BYTES = 2000


@dataclass(slots=True)
class Row:
    """One test: what both sides gave, as (verdict, reason)."""

    index: int
    name: str
    operator: str
    ours: tuple[str, str] = ("", "")
    plain: tuple[str, str] = ("not run", "the other side ended the process first")
    seconds: float = 0.0


@dataclass(slots=True)
class _Share:
    """What one child after the other has said about its share of the tests."""

    rows: dict[int, Row] = field(default_factory=dict)
    done: bool = False
    open: Row | None = None

    def hear(self, line: str) -> None:
        said: dict[str, Any] = json.loads(line)
        if said.get("done"):
            self.done = True
        elif "begin" in said:
            self.open = self.rows[said["index"]] = Row(said["index"], *said["begin"])
        elif "ours" in said:
            row = self.rows[said["index"]]
            row.ours, row.seconds = tuple(said["ours"]), said["seconds"]
        else:
            self.rows[said["index"]].plain = tuple(said["plain"])
            self.open = None


def judge_all(command: Sequence[str], children: int, environ: Mapping[str, str]) -> list[Row]:
    """Run every test.

    Args:
        command: of a child; it gets three numbers: the first test, the step to the next, and the first not yet judged.
        children: how many run at once.
        environ: of the children.

    Returns:
        One row for each test, in the suite's order.

    Raises:
        RuntimeError: when a child ends before or between tests, so that none can be named.
    """

    def share(first: int) -> list[Row]:
        found = _Share()
        skip = 0
        while not found.done:
            ending = _run_child([*command, str(first), str(children), str(skip)], environ, found)
            if found.done:
                break
            if found.open is None:
                raise RuntimeError(f"a child of the suite ended between two tests: {ending[1]}")
            _blame(found.open, ending)
            skip, found.open = found.open.index + 1, None
        return list(found.rows.values())

    with ThreadPoolExecutor(children) as threads:
        shares = list(threads.map(share, range(children)))
    return sorted((row for rows in shares for row in rows), key=lambda row: row.index)


def _run_child(command: list[str], environ: Mapping[str, str], found: _Share) -> tuple[str, str]:
    """Run one child to its end; return how it ended, as (verdict, reason)."""
    with tempfile.TemporaryFile() as errors:
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, env=dict(environ)) as child:
            for line in child.stdout or ():
                found.hear(line)
        errors.seek(0)
        text = errors.read()[-_REASON_BYTES:].decode(errors="replace").strip()
    if "Timeout (" in text:
        return "hung", text
    code = child.returncode
    how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
    return "crashed", f"{how}: {text}"


def _blame(row: Row, ending: tuple[str, str]) -> None:
    if row.ours[0]:
        row.plain = ending
    else:
        row.ours = ending
