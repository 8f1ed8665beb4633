"""What the verbs print: tables for people at a terminal, plain lines elsewhere, JSON for programs."""

from __future__ import annotations

import sys
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

PLAIN_WIDTH = 10_000
"""Without a terminal nothing is wrapped or cut: the reader is a file or a program."""


def print_json(schema: str, fields: dict[str, Any]) -> None:
    """Print one JSON object.

    Args:
        schema: name and version of its schema, such as ``trtc.run/1``.
        fields: the rest; frozen values of ours are written as objects.
    """
    data = msgspec.json.encode({"schema": schema, **fields}, enc_hook=str)
    click.echo(msgspec.json.format(data, indent=2).decode())


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table with a title; columns of numbers stand to the right."""
    console = _console()
    table = Table(title=title or None, box=SIMPLE_HEAD, title_justify="left", title_style="bold", pad_edge=False)
    for i, name in enumerate(columns):
        numbers = bool(rows) and all(isinstance(row[i], int | float) for row in rows)
        table.add_column(name, justify="right" if numbers else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(_cell(value)) for value in row))
    console.print(table)


def print_line(text: str = "") -> None:
    """Print one line, as it is."""
    click.echo(text)


def size_text(size_bytes: int) -> str:
    """Write bytes for people, base 2."""
    if size_bytes < 0:
        return "not measured"
    value = float(size_bytes)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024 or unit == "GiB":  # noqa: PLR2004 (base 2)
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    raise AssertionError(size_bytes)  # pragma: no cover (the loop always returns)


def seconds_text(seconds: float) -> str:
    """Write a duration for people."""
    if seconds < 1e-3:  # noqa: PLR2004 (microseconds below a millisecond)
        return f"{seconds * 1e6:.1f} us"
    return f"{seconds * 1e3:.1f} ms" if seconds < 1 else f"{seconds:.1f} s"


class Progress:
    """Stages of long work: a live line with elapsed time at a terminal, one plain line a stage elsewhere.

    Written to standard error, so that standard output holds results only.
    """

    def __init__(self, *, quiet: bool = False) -> None:
        self._console = Console(stderr=True, highlight=False)
        self._quiet = quiet
        self._live = self._console.is_terminal and not quiet
        self._status = self._console.status("") if self._live else None
        self._stage = ""
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
        if not self._quiet:
            self._console.print(Text(f"  note: {text}"))

    def expect(self, seconds: float | None) -> None:
        """Say how long the last like build took."""
        if seconds is not None and not self._quiet:
            self._console.print(Text(f"the last like build took {seconds_text(seconds)}"))

    def done(self) -> None:
        """End the last stage."""
        self._finish()
        if self._status is not None:
            self._status.stop()

    def _finish(self) -> None:
        if self._stage and not self._quiet:
            took, whole = time.monotonic() - self._started_s, time.monotonic() - self._begun_s
            self._console.print(Text(f"{self._stage}: {seconds_text(took)} (at {seconds_text(whole)})"))
        self._stage = ""


def _console() -> Console:
    console = Console(highlight=False, markup=False)
    return console if console.is_terminal else Console(highlight=False, markup=False, width=PLAIN_WIDTH, file=sys.stdout)


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.3g}"
    return str(value)
