"""``trtc plan --html``: a plan as one page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtc.tools.plan_pictures import buckets, cost, curve, ladders, traffic
from trtc.tools.plan_tables import sentences, tables
from trtc.tools.printable import printable
from trtc.tools.report.page import Section, figure, gallery, note, page, paragraph, table

if TYPE_CHECKING:
    from trtc.tools.plan_tables import Shown
    from trtc.tools.plan_view import PlanView


def plan_page(view: PlanView) -> str:
    """Return the whole page: what was chosen first, what it rests on last.

    Raises:
        ImportError: when matplotlib is not installed.
    """
    profiles, lengths, others = tables(view)
    said = "".join(paragraph(printable(text)) for text in sentences(view))
    sections = [
        Section("Overview", said + "".join(note(printable(text)) for text in view.notes)),
        Section("Profiles", _table("The ladder, and what it does for this traffic", profiles) + figure(*buckets(view))),
        Section("Beside other ladders", _table("The same traffic and costs", others) + figure(*ladders(view))),
        Section("How many profiles", figure(*curve(view)) + _table("The best ladder of each length", lengths)),
        Section("Traffic", gallery([figure(*traffic(view, symbol)) for symbol in view.varying])),
        Section("Cost", figure(*cost(view))),
    ]
    return page(printable(f"Plan for {view.title}"), [section for section in sections if section.body])


def _table(caption: str, shown: Shown) -> str:
    rows = [[printable(str(cell)) for cell in row] for row in shown.rows]
    return table(caption, shown.columns, rows, chosen=shown.chosen)
