"""A plan as one page that needs nothing else: no script, no font, no file beside it."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from trtc.tools.durations import seconds_text
from trtc.tools.output import counted
from trtc.tools.plan_pictures import pictures
from trtc.tools.planned import cost_text
from trtc.tools.printable import printable

if TYPE_CHECKING:
    from trtc.tools.plan_view import PlanView

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>
:root {{ --paper: #fdfdfc; --ink: #1d2126; --faint: #767d86; --line: #dcdfe3;
  --main: #2563a8; --second: #c2571a; --mark: #b3123c; }}
@media (prefers-color-scheme: dark) {{
  :root {{ --paper: #15181c; --ink: #e6e8eb; --faint: #9aa2ac; --line: #343a42;
    --main: #6ba6e8; --second: #f0934f; --mark: #ff6b8d; }}
}}
* {{ box-sizing: border-box; }}
body {{ margin: 0 auto; padding: 1.2rem; max-width: 72rem; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }}
h1 {{ font-size: 1.5rem; line-height: 1.25; margin: .2rem 0 1rem; overflow-wrap: anywhere; }}
h2 {{ font-size: 1.1rem; margin: 2rem 0 .5rem; }}
.lead {{ font-size: 1.05rem; max-width: 46rem; }}
.pictures {{ display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); gap: 1rem 2rem; }}
figure {{ margin: 0; }}
figure svg {{ width: 100%; height: auto; display: block; }}
figcaption {{ color: var(--faint); font-size: .9rem; }}
/* A shade at each edge that hides more: the cover of the shade moves with the content. */
.scroll {{ overflow-x: auto;
  background: linear-gradient(to right, var(--paper) 40%, transparent) left / 2.5rem 100% no-repeat local,
    linear-gradient(to left, var(--paper) 40%, transparent) right / 2.5rem 100% no-repeat local,
    linear-gradient(to right, var(--faint), transparent) left / 1rem 100% no-repeat scroll,
    linear-gradient(to left, var(--faint), transparent) right / 1rem 100% no-repeat scroll; }}
table {{ border-collapse: collapse; font-variant-numeric: tabular-nums; }}
th, td {{ padding: .25rem .9rem .25rem 0; text-align: left; border-bottom: 1px solid var(--line);
  min-width: 5.5rem; overflow-wrap: anywhere; }}
th {{ font-weight: 600; color: var(--faint); }}
td.number, th.number {{ text-align: right; white-space: nowrap; min-width: 0; }}
tr.chosen td {{ font-weight: 600; }}
li {{ max-width: 46rem; }}
</style>
</head>
<body>
<h1>{title}</h1>
{body}
</body>
</html>
"""


def page(view: PlanView) -> str:
    """Write the page.

    Raises:
        ImportError: when matplotlib is not installed.
    """
    parts = [f'<p class="lead">{_text(sentence)}</p>' for sentence in sentences(view)]
    figures = "".join(
        f"<figure>{svg}<figcaption>{_text(caption)}</figcaption></figure>" for caption, svg in pictures(view)
    )
    parts.append(f'<div class="pictures">{figures}</div>')
    parts += [f"<h2>{_text(shown.title)}</h2>{_table(shown)}" for shown in tables(view)]
    if view.notes:
        parts.append("<h2>Notes</h2><ul>" + "".join(f"<li>{_text(note)}</li>" for note in view.notes) + "</ul>")
    return _PAGE.format(title=_text(f"Plan for {view.title}"), body="\n".join(parts))


def sentences(view: PlanView) -> list[str]:
    """Say what was found, for the page and for the terminal."""
    point = view.point
    requests = counted(view.traffic.requests, "request") if view.traffic.requests else "a distribution"
    proof = (
        "no ladder of that length is better" if point.proven else f"a ladder as long is at most {point.gap:.1%} better"
    )
    count = f"{point.profiles} profile{'s' * (point.profiles != 1)}"
    found = [
        f"{requests} over {', '.join(view.traffic.symbols)}, {len(view.traffic.sizes)} different sizes",
        (
            f"{count}: {seconds_text(point.expected_s)} a request in its bucket, {point.waste:.1%} of the work is "
            f"padding, {proof}; at exact sizes {seconds_text(view.exact_s)}"
        ),
        f"why this many: {view.reason}",
        f"costs: {cost_text(view.cost)}",
    ]
    if view.refused:
        found.insert(0, f"{view.refused:.3%} of the requests are refused; all figures are of the others")
    if view.execution is not None:
        how = "exact sizes" if view.execution.mode == "exact" else "sizes padded to the bucket"
        found.append(f"runs {how}: {view.execution.reason}")
    return [f"{text[0].upper()}{text[1:]}." for text in found]


@dataclass(frozen=True, slots=True)
class Shown:
    """A table of the page and of the terminal.

    Attributes:
        title: above it.
        columns: their names.
        rows: cells.
        chosen: the row that was chosen; -1 where none is.
    """

    title: str
    columns: tuple[str, ...]
    rows: list[tuple[object, ...]]
    chosen: int = -1


def tables(view: PlanView) -> list[Shown]:
    """The profiles, the best ladder of each length, and other ladders."""
    return [_profiles(view), _lengths(view), _others(view)]


def _profiles(view: PlanView) -> Shown:
    rows: list[tuple[object, ...]] = [
        (
            profile.name,
            ", ".join(f"{s} {r}" for s, r in profile.ranges.items()),
            seconds_text(cost_s),
            f"{use.share:.1%}",
            f"{use.waste:.1%}",
        )
        for profile, cost_s, use in zip(view.ladder.profiles, view.ladder.cost_s, view.evaluation.buckets, strict=True)
    ]
    return Shown("profiles", ("profile", "sizes", "one run at the bucket", "requests", "padding waste"), rows)


def _lengths(view: PlanView) -> Shown:
    rows: list[tuple[object, ...]] = [
        (
            point.profiles,
            seconds_text(point.expected_s),
            f"{point.waste:.1%}",
            "yes" if point.proven else f"within {point.gap:.1%}",
        )
        for point in view.curve
    ]
    chosen = next(i for i, point in enumerate(view.curve) if point.profiles == view.point.profiles)
    columns = ("profiles", "a request", "padding waste", "proven best")
    return Shown("best ladder of each length", columns, rows, chosen)


def _others(view: PlanView) -> Shown:
    def row(name: str, profiles: object, expected_s: float, waste: float) -> tuple[object, ...]:
        factor = expected_s / view.point.expected_s if view.point.expected_s else 1.0
        return name, profiles, seconds_text(expected_s), f"{waste:.1%}", f"{factor:.2f}"

    rows = [
        row("this plan", view.point.profiles, view.point.expected_s, view.point.waste),
        *(row(other.name, other.profiles, other.expected_s, other.waste) for other in view.compared),
        row("every size exact", "-", view.exact_s, 0.0),
    ]
    columns = ("ladder", "profiles", "a request", "padding waste", "times this plan")
    return Shown("beside other ladders", columns, rows)


def _table(shown: Shown) -> str:
    numeric = [all(str(row[i])[:1].isdigit() for row in shown.rows) for i in range(len(shown.columns))]
    kinds = [' class="number"' if number else "" for number in numeric]
    head = "".join(f"<th{kind}>{_text(name)}</th>" for name, kind in zip(shown.columns, kinds, strict=True))
    lines = []
    for i, row in enumerate(shown.rows):
        cells = "".join(f"<td{kind}>{_text(cell)}</td>" for cell, kind in zip(row, kinds, strict=True))
        mark = ' class="chosen"' if i == shown.chosen else ""
        lines.append(f"<tr{mark}>{cells}</tr>")
    return f'<div class="scroll"><table><tr>{head}</tr>{"".join(lines)}</table></div>'


def _text(value: object) -> str:
    return escape(printable(str(value)))
