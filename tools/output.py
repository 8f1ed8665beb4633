"""What the verbs print: tables for people at a terminal, plain lines elsewhere, JSON for programs.

Results go to standard output; progress, notes and errors go to standard error.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click
import msgspec
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Sequence


def print_json(schema: str, fields: dict[str, Any]) -> None:
    """Print one JSON object. Numbers that are not finite become null.

    Args:
        schema: name and version of its schema, such as ``trtc.run/1``.
        fields: the rest; frozen values of ours are written as objects.
    """
    data = msgspec.json.encode({"schema": schema, **fields}, enc_hook=str)
    click.echo(msgspec.json.format(data, indent=2).decode())


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table with a title; columns of numbers stand to the right.

    Without a terminal: one line a row, columns two blanks apart, never wrapped or cut.
    """
    numeric = [bool(rows) and all(isinstance(row[i], int | float) for row in rows) for i in range(len(columns))]
    cells = [[_cell(value) for value in row] for row in rows]
    console = Console(highlight=False, markup=False)
    if not console.is_terminal:
        _print_plain(title, columns, cells, numeric)
        return
    table = Table(title=title or None, box=SIMPLE_HEAD, title_justify="left", title_style="bold", pad_edge=False)
    for name, right in zip(columns, numeric, strict=True):
        table.add_column(name, justify="right" if right else "left", overflow="fold")
    for row in cells:
        table.add_row(*(Text(cell) for cell in row))
    console.print(table)


def print_line(text: str = "") -> None:
    """Print one line of a result, as it is."""
    click.echo(text)


def print_facts(facts: Sequence[tuple[str, str]]) -> None:
    """Print names and texts, one pair a line, the texts below each other."""
    width = max((len(name) for name, _ in facts), default=0)
    for name, text in facts:
        click.echo(f"{name:{width}}  {text}".rstrip())


def print_note(text: str) -> None:
    """Say something worth knowing beside the results, on standard error."""
    click.echo(f"note: {text}", err=True)


def size_text(size_bytes: int) -> str:
    """Write bytes for people, base 2."""
    if size_bytes < 0:
        return "not measured"
    value = float(size_bytes)
    for unit in ("B", "KiB", "MiB"):
        if value < 1024:  # noqa: PLR2004 (base 2)
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} GiB"


def seconds_text(seconds: float) -> str:
    """Write a duration for people."""
    if seconds < 1e-3:  # noqa: PLR2004 (microseconds below a millisecond)
        return f"{seconds * 1e6:.1f} us"
    return f"{seconds * 1e3:.1f} ms" if seconds < 1 else f"{seconds:.1f} s"


class Progress:
    """Stages of long work: a live line with elapsed time at a terminal, one plain line a stage elsewhere.

    Written to standard error, so that standard output holds results only.

    Attributes:
        notes: that were shown.
    """

    def __init__(self, *, quiet: bool = False) -> None:
        self._console = Console(stderr=True, highlight=False, markup=False)
        self._quiet = quiet
        live = self._console.is_terminal and not quiet
        self._status = self._console.status("") if live else None
        self._stage = ""
        self.notes: list[str] = []
        self._started_s = self._begun_s = time.monotonic()

    def stage(self, text: str) -> None:
        """Begin a stage; the one before it is done."""
        self._finish()
        self._stage = text
        self._started_s = time.monotonic()
        if self._status is not None:
            self._status.update(Text(f"{text} ..."))
            self._status.start()

    def note(self, text: str) -> None:
        """Say something worth knowing."""
        self.notes.append(text)
        self._print(f"  note: {text}")

    def expect(self, seconds: float | None) -> None:
        """Say how long the last like build took."""
        if seconds is not None:
            self._print(f"the last like build took {seconds_text(seconds)}")

    def done(self) -> None:
        """End the last stage."""
        self._finish()
        if self._status is not None:
            self._status.stop()

    def drop(self) -> None:
        """End without a word on the last stage, which did not succeed."""
        self._stage = ""
        self.done()

    def _finish(self) -> None:
        if self._stage:
            took, whole = time.monotonic() - self._started_s, time.monotonic() - self._begun_s
            self._print(f"{self._stage}: {seconds_text(took)} (at {seconds_text(whole)})")
        self._stage = ""

    def _print(self, text: str) -> None:
        if not self._quiet:
            # Soft wrapping leaves long lines whole, for logs and pipes.
            self._console.print(Text(text), soft_wrap=not self._console.is_terminal)


def _print_plain(title: str, columns: Sequence[str], cells: list[list[str]], numeric: list[bool]) -> None:
    widths = [max(len(row[i]) for row in [list(columns), *cells]) for i in range(len(columns))]
    if title:
        click.echo(title)
    for row in [list(columns), *cells]:
        texts = [
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, numeric, strict=True)
        ]
        click.echo(("  " + "  ".join(texts)).rstrip())


def _cell(value: object) -> str:
    text = f"{value:.3g}" if isinstance(value, float) else str(value)
    return text.replace("\n", " ")
