"""One HTML page: sections under a title, readable in light and dark, on a phone, and printed. Nothing is fetched."""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from trtc.tools.report.style import STYLE

if TYPE_CHECKING:
    from collections.abc import Sequence

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_LONG = 22
"""Letters of a text from which on it may be broken; shorter ones stay on a line."""
_NUMBER = re.compile(r"[-+]?[0-9][0-9,]*(\.[0-9]+)?(e[-+]?[0-9]+)?( ?[%A-Za-z/]{1,9})?")
"""A number, maybe with its unit: ``12.5 ms``, ``3 us``, ``1.2e-06``, ``43.5%``, ``8 GFLOP/s``."""
_NO_NUMBER = ("-", "not measured", "not told", "")
_JOINTS = re.compile(r"(?<=[\w\]])([_,=/.:]+)(?=[\w\[])")


@dataclass(frozen=True, slots=True)
class Section:
    """One part of a page.

    Attributes:
        title: plain text.
        body: HTML, from the functions of this folder: text that came from outside is escaped in it.
    """

    title: str
    body: str


def page(title: str, sections: Sequence[Section], *, subtitle: str = "") -> str:
    """Return a whole page.

    Args:
        title: plain text.
        sections: in order; the page lists them when there are several.
        subtitle: plain text.
    """
    links = "".join(f'<li><a href="#s{i}">{escape(s.title)}</a></li>' for i, s in enumerate(sections))
    parts = "".join(
        f'<section aria-labelledby="s{i}"><h2 id="s{i}">{escape(s.title)}</h2>{s.body}</section>\n'
        for i, s in enumerate(sections)
    )
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        # The browser keeps the page to itself even where a name from a model looks like a link or a script.
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        f'<link rel="icon" href="data:,">\n<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n'
        f"<header><h1>{escape(title)}</h1>{paragraph(subtitle) if subtitle else ''}</header>\n"
        + (f'<nav aria-label="Sections"><ul>{links}</ul></nav>\n' if len(sections) > 1 else "")
        + f"<main>\n{parts}</main>\n</body>\n</html>\n"
    )


def paragraph(text: str) -> str:
    """Write plain text as a paragraph."""
    return f"<p>{escape(text)}</p>"


def note(text: str) -> str:
    """Write plain text that a reader must not overlook."""
    return f'<p class="note">{escape(text)}</p>'


def preformatted(text: str) -> str:
    """Write plain text as it stands."""
    return f"<pre>{escape(text)}</pre>"


def table(caption: str, columns: Sequence[str], rows: Sequence[Sequence[object]], *, chosen: int = -1) -> str:
    """Write a table with a header row; the first column heads its row, columns of numbers stand to the right.

    Args:
        caption: plain text.
        columns: names.
        rows: a cell for each column; numbers are written with three digits, texts as they are.
        chosen: the row to stand out; -1 for none.
    """
    kinds = [_kind([_text(row[i]) for row in rows]) for i in range(len(columns))]
    head = "".join(
        f'<th scope="col" class="{kind}">{escape(name)}</th>' for name, kind in zip(columns, kinds, strict=True)
    )
    body = ""
    for i, row in enumerate(rows):
        first, *others = [_wrapped(_text(value)) for value in row]
        cells = "".join(f'<td class="{kind}">{text}</td>' for text, kind in zip(others, kinds[1:], strict=True))
        mark = ' class="chosen"' if i == chosen else ""
        body += f'<tr{mark}><th scope="row" class="{kinds[0]}">{first}</th>{cells}</tr>\n'
    return (
        f'<div class="wide"><table><caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead>'
        f"<tbody>\n{body}</tbody></table></div>"
    )


def facts(caption: str, pairs: Sequence[tuple[str, str]]) -> str:
    """Write names and texts as a table of two columns."""
    return table(caption, ("what", "value"), pairs)


def figure(svg: str, caption: str) -> str:
    """Frame a picture that ``plots`` drew, with a caption that says in words what it shows."""
    return f"<figure>{svg}<figcaption>{escape(caption)}</figcaption></figure>"


def gallery(figures: Sequence[str]) -> str:
    """Set pictures beside each other where there is room."""
    return f'<div class="gallery">{"".join(figures)}</div>'


def _kind(texts: Sequence[str]) -> str:
    """Tell how a column is set: ``number``, ``short``, or ``long``, which is the only one that is broken."""
    numbers = [_NUMBER.fullmatch(text) is not None for text in texts]
    if any(numbers) and all(is_one or text in _NO_NUMBER for text, is_one in zip(texts, numbers, strict=True)):
        return "number"
    return "long" if any(len(text) > _LONG for text in texts) else "short"


def _wrapped(text: str) -> str:
    """Escape a text, and let words that are long by themselves break after what joins their parts."""
    words = [word if len(word) <= _LONG else _JOINTS.sub("\\1\0", word) for word in text.split(" ")]
    return "<wbr>".join(escape(part) for part in " ".join(words).split("\0"))


def _text(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
