"""One HTML page: sections under a title, readable in light and dark, on a phone, and printed. Nothing is fetched."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_STYLE = """
:root { color-scheme: light dark; --ink: #1d2129; --paper: #ffffff; --soft: #5b6472;
  --line: #d5d9e0; --shade: #f4f6f9; --edge: #8a93a3; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e7ec; --paper: #14171c; --soft: #9aa3b2; --line: #343a45; --shade: #1c2028; --edge: #79839a; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.25rem; max-width: 68rem; color: var(--ink); background: var(--paper);
  font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; margin: 0 0 .25rem; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; padding-top: .75rem; border-top: 1px solid var(--line); }
p, .note { margin: .5rem 0; overflow-wrap: anywhere; }
.note { padding: .5rem .75rem; background: var(--shade); border-left: 3px solid #c77700; }
nav ul { display: flex; flex-wrap: wrap; gap: .25rem 1rem; list-style: none; padding: 0; font-size: .9rem; }
a { color: inherit; }
/* What scrolls has a shade at each edge that hides more: the cover of the shade moves with the content. */
.wide, figure { overflow-x: auto;
  background: linear-gradient(to right, var(--paper) 40%, transparent) left / 2.5rem 100% no-repeat local,
    linear-gradient(to left, var(--paper) 40%, transparent) right / 2.5rem 100% no-repeat local,
    linear-gradient(to right, var(--edge), transparent) left / 1rem 100% no-repeat scroll,
    linear-gradient(to left, var(--edge), transparent) right / 1rem 100% no-repeat scroll; }
table { border-collapse: collapse; width: 100%; font-size: .875rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; color: var(--soft); padding: .25rem 0; }
th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid var(--line); vertical-align: top;
  min-width: 5.5rem; overflow-wrap: anywhere; }
th { font-weight: 600; }
tbody th { font-weight: 400; min-width: 8rem; }
td.number, th.number { text-align: right; white-space: nowrap; min-width: 0; }
figure { margin: 1rem 0; }
figure svg { display: block; width: 100%; min-width: 28rem; height: auto; max-height: 26rem; }
figcaption { color: var(--soft); font-size: .875rem; }
pre { background: var(--shade); padding: .75rem; white-space: pre-wrap; overflow-wrap: anywhere; font-size: .8125rem; }
@media print {
  :root { color-scheme: light; --ink: #000; --paper: #fff; --soft: #444; --line: #999; --shade: #fff; }
  body { max-width: none; padding: 0; font-size: 11pt; }
  nav { display: none; }
  h2, figure, tr { break-inside: avoid; }
  h2 { break-after: avoid; }
  thead { display: table-header-group; }
  .wide, figure { overflow: visible; background: none; }
  figure svg { min-width: 0; max-width: 40rem; }
}
"""


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
        f'<link rel="icon" href="data:,">\n<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n'
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


def table(caption: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Write a table with a header row; the first column heads its row, columns of numbers stand to the right.

    Args:
        caption: plain text.
        columns: names.
        rows: a cell for each column; numbers are written with three digits, texts as they are.
    """
    right = [bool(rows) and all(_is_number(row[i]) for row in rows) for i in range(len(columns))]
    head = "".join(
        f'<th scope="col"{_class(is_right=r)}>{escape(name)}</th>' for name, r in zip(columns, right, strict=True)
    )
    body = ""
    for row in rows:
        cells = [
            f"<td{_class(is_right=r)}>{escape(_text(value))}</td>" for value, r in zip(row[1:], right[1:], strict=True)
        ]
        body += f'<tr><th scope="row"{_class(is_right=right[0])}>{escape(_text(row[0]))}</th>{"".join(cells)}</tr>\n'
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


def _class(*, is_right: bool) -> str:
    return ' class="number"' if is_right else ""


def _is_number(value: object) -> bool:
    text = str(value)
    return isinstance(value, int | float) or (text[:1].isdigit() and len(text) < 16)  # noqa: PLR2004 (such as "12.5 ms")


def _text(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
