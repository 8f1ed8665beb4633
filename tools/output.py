"""What the verbs print: tables for people at a terminal, plain lines elsewhere, JSON for programs.

Results go to standard output; progress, notes and errors go to standard error.
"""

from __future__ import annotations

import textwrap
import time
from typing import TYPE_CHECKING, Any

import click
import msgspec
from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from trtc.tools.durations import seconds_text
from trtc.tools.printable import printable, printable_json

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trtc.engines.signature import Signature


_GAP = 3
"""Columns that the frame of a table takes beside each cell, at most."""
_INDENT = "      "
_NARROWEST = 40
SILENCE_S = 10.0
"""A stage that takes longer says how far it is."""


def print_json(schema: str, fields: dict[str, Any]) -> None:
    """Print one JSON object. Numbers that are not finite become null.

    Args:
        schema: name and version of its schema, such as ``trtc.run/1``.
        fields: the rest; frozen values of ours are written as objects.
    """
    data = msgspec.json.encode({"schema": schema, **fields}, enc_hook=str)
    click.echo(printable_json(msgspec.json.format(data, indent=2).decode()))


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table with a title; columns of numbers stand to the right.

    At a terminal that is too narrow for it, each row is an indented block instead, because folded cells break names.
    Without a terminal: one line a row, columns two blanks apart, never wrapped or cut.
    """
    numeric = [bool(rows) and all(isinstance(row[i], int | float) for row in rows) for i in range(len(columns))]
    cells = [[_cell(value) for value in row] for row in rows]
    console = Console(highlight=False, markup=False)
    if not console.is_terminal:
        _print_plain(title, columns, cells, numeric)
        return
    widths = [max(cell_len(row[i]) for row in [list(columns), *cells]) for i in range(len(columns))]
    if sum(widths) + _GAP * len(widths) > console.width:
        _print_blocks(title, columns, cells, console.width)
        return
    table = Table(
        title=printable(title) or None,
        box=SIMPLE_HEAD,
        title_justify="left",
        title_style="bold",
        pad_edge=False,
        show_edge=False,
    )
    for name, right in zip(columns, numeric, strict=True):
        table.add_column(name, justify="right" if right else "left", no_wrap=True)
    for row in cells:
        table.add_row(*(Text(cell) for cell in row))
    console.print(table)


def print_line(text: str = "") -> None:
    """Print one line of a result."""
    click.echo(printable(text))


def print_text(text: str, *, err: bool = False) -> None:
    """Print a sentence. At a terminal it is wrapped between words and indented; elsewhere it stays one line."""
    console = Console(stderr=err)
    lines = _wrapped(text, console.width, "", "    ") if console.is_terminal else [text]
    for line in lines:
        click.echo(printable(line), err=err)


def print_command(purpose: str, command: str) -> None:
    """Print a command on a line of its own, whole, so that it can be pasted."""
    click.echo(printable(f"{purpose}:"))
    click.echo(printable(f"  {command}"))


def print_signature(signature: Signature) -> None:
    """Print inputs and outputs, one a line."""
    for kind, specs in (("input", signature.inputs), ("output", signature.outputs)):
        for spec in specs:
            extras = [
                "rank unknown" if spec.is_tensor and spec.dims is None else "",
                "" if spec.used else "no node reads it; may be left out",
                "has a default; may be left out" if spec.used and spec.has_default else "",
            ]
            print_line("  ".join([f"{kind:6} {spec}", *(f"({extra})" for extra in extras if extra)]))


def print_facts(facts: Sequence[tuple[str, str]]) -> None:
    """Print names and texts, one pair a line, the texts below each other."""
    width = max((len(name) for name, _ in facts), default=0)
    for name, text in facts:
        click.echo(printable(f"{name:{width}}  {text}".rstrip()))


def print_note(text: str) -> None:
    """Say something worth knowing beside the results, on standard error."""
    print_text(f"note: {text}", err=True)


def counted(number: int, noun: str) -> str:
    """Write how many: ``1 request``, ``2 requests``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


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


class Progress:
    """Stages of long work: a live line with elapsed time at a terminal, one plain line a stage elsewhere.

    Written to standard error, so that standard output holds results only.

    Attributes:
        notes: that were shown.
        whole_s: seconds from the start to the end of the last stage that ended.
    """

    def __init__(self, *, quiet: bool = False, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._console = Console(stderr=True, highlight=False, markup=False)
        self._quiet = quiet
        live = self._console.is_terminal and not quiet
        self._status = self._console.status("") if live else None
        self._stage = ""
        self.notes: list[str] = []
        self.whole_s = 0.0
        self._started_s = self._begun_s = self._told_s = clock()

    def stage(self, text: str) -> None:
        """Begin a stage; the one before it is done."""
        self._finish()
        self._stage = text
        self._started_s = self._told_s = self._clock()
        if self._status is not None:
            self._status.update(Text(printable(f"{text} ...")))
            self._status.start()

    def detail(self, text: str) -> None:
        """Say how far the stage is: in the live line; where there is none, a line from time to time."""
        if self._status is not None:
            self._status.update(Text(printable(f"{self._stage}: {text} ...")))
        elif (now_s := self._clock()) - self._told_s >= SILENCE_S:
            self._told_s = now_s
            self._print(f"{self._stage}: {text}")

    def ahead(self, seconds: float) -> None:
        """Say how long the stage will take from now on, about, where that is long."""
        if seconds >= SILENCE_S:
            self._print(f"{self._stage}: about {seconds_text(seconds)} from here")

    def note(self, text: str) -> None:
        """Say something worth knowing."""
        self.notes.append(text)
        self._print(f"  note: {text}")

    def expect(self, seconds: float | None, *, same: bool = True) -> None:
        """Say how long the last build took that was the same, or of the same model with other options."""
        if seconds is not None:
            what = "the same build took" if same else "a build of this model with other options took"
            self._print(f"{what} {seconds_text(seconds)}")

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
            now_s = self._clock()
            took_s, self.whole_s = now_s - self._started_s, now_s - self._begun_s
            self._print(f"{self._stage}: {seconds_text(took_s)} (at {seconds_text(self.whole_s)})")
        self._stage = ""

    def _print(self, text: str) -> None:
        if self._quiet:
            return
        # Lines stay whole for logs and pipes; at a terminal they break between words, which rich would not keep whole.
        lines = _wrapped(text, self._console.width, "", "    ") if self._console.is_terminal else [text]
        for line in lines:
            self._console.print(Text(printable(line)), soft_wrap=True)


def _wrapped(text: str, width: int, first: str, rest: str) -> list[str]:
    """Break between words only; a word that is wider than the terminal stays whole."""
    return textwrap.wrap(
        text, max(width, _NARROWEST), initial_indent=first, subsequent_indent=rest,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


def _print_blocks(title: str, columns: Sequence[str], cells: list[list[str]], width: int) -> None:
    """Print each row as its first cell, and the others below it, as many on a line as fit."""
    if title:
        click.echo(printable(title))
    for head, *others in cells:
        click.echo(printable(f"  {head}"))
        lines: list[str] = []
        for name, cell in zip(columns[1:], others, strict=True):
            part = f"{name}: {cell}"
            joined = f"{lines[-1]}; {part}" if lines else part
            if lines and cell_len(joined) + len(_INDENT) <= width:
                lines[-1] = joined
            else:
                lines.append(part)
        for line in lines:
            click.echo(printable("\n".join(_wrapped(line, width, _INDENT, _INDENT + "  "))))


def _print_plain(title: str, columns: Sequence[str], cells: list[list[str]], numeric: list[bool]) -> None:
    widths = [max(len(row[i]) for row in [list(columns), *cells]) for i in range(len(columns))]
    if title:
        click.echo(printable(title))
    for row in [list(columns), *cells]:
        texts = [
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, numeric, strict=True)
        ]
        click.echo(("  " + "  ".join(texts)).rstrip())


def _cell(value: object) -> str:
    text = f"{value:.3g}" if isinstance(value, float) else str(value)
    return printable(text.replace("\n", " "))
