"""Pages in a real browser: on a screen, on a phone, on paper; nothing is complained about and nothing is fetched."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from trtc.tools.report.page import Section, figure, note, page, preformatted, table

PHONE = 390
SMALLEST_POINTS = 6
TWO_LINES = 45
"""Pixels of a row whose names take two lines."""
VERBS = ("inspect", "bench", "plan")
MOST_SHEETS = {"inspect": 4, "bench": 7, "plan": 4}
"""Of paper: the three pages of a small bundle; tables whose cells break into letters take many more."""
LONG = "a_symbol_with_quite_a_long_name_of_its_own" * 4


@pytest.fixture(scope="module")
def sheets(browser):
    """Print a page, and return the text of each sheet, laid out as printed."""
    program = shutil.which("pdftotext")
    if program is None:
        pytest.skip("pdftotext is not installed; Debian: apt-get install poppler-utils")

    def read(path):
        done = subprocess.run(
            [program, "-layout", browser.printed(path), "-"], capture_output=True, text=True, check=True
        )
        return done.stdout.split("\f")[:-1]

    return read


@pytest.fixture(scope="module")
def letters(browser, sheets):  # noqa: ARG001 (sheets skips where the program is missing)
    """Print a page, and return the height of each word, in points; what is cut off at the edge is no word."""

    def read(path):
        done = subprocess.run(
            ["pdftotext", "-bbox", browser.printed(path), "-"], capture_output=True, text=True, check=True
        )
        words = re.findall(r'yMin="([0-9.]+)" xMax="[0-9.]+" yMax="([0-9.]+)">(.*?)</word>', done.stdout)
        return {word: float(end) - float(start) for start, end, word in words if len(word) > 1}

    return read


@pytest.mark.parametrize("verb", VERBS)
def test_a_browser_has_nothing_to_complain_about(browser, pages, verb):
    assert browser.complaints(pages[verb]) == []


def test_a_browser_complains_about_what_pages_may_not_do(browser, tmp_path):
    """The same look sees a page that does what ours may not: it is refused by its own rules."""
    broken = tmp_path / "broken.html"
    for forbidden in ("<script>1</script>", '<img src="http://127.0.0.1:9/x.png">'):
        broken.write_text(page("x", [Section("y", forbidden + figure("", "z"))]))
        assert browser.complaints(broken)


@pytest.mark.parametrize("verb", VERBS)
def test_a_page_fits_a_phone_loads_nothing_and_can_be_read(browser, pages, verb):
    found = browser.measured(pages[verb], PHONE)
    assert found["width"] == PHONE
    assert [name for name in found["loaded"] if not name.startswith("data:")] == []
    assert found["texts"], "letters of pictures are letters"
    assert min(found["texts"]) >= 8, "pixels: smaller letters of pictures cannot be read"


@pytest.mark.parametrize("verb", VERBS)
def test_on_a_phone_no_picture_is_shaded_and_names_of_columns_stay_on_a_line(browser, pages, verb):
    """A name that wraps where it cannot be seen leaves a gap above those that can."""
    found = browser.measured(pages[verb], PHONE)
    assert set(found["behind"]) == {"none"}
    assert found["heads"]
    assert max(found["heads"]) < TWO_LINES


def test_long_names_neither_widen_a_page_nor_escape_the_look(browser, tmp_path):
    path = tmp_path / "long.html"
    parts = [note(LONG), preformatted(LONG), table(LONG, [LONG, "n"], [[LONG, 1.0], ["short", 2.0]])]
    path.write_text(page(LONG, [Section(LONG, "".join(parts))] * 2, subtitle=LONG))
    assert browser.measured(path, PHONE)["width"] == PHONE
    path.write_text(page("x", [Section("y", '<div style="width:600px">wide</div>')]))
    assert browser.measured(path, PHONE)["width"] > PHONE


@pytest.mark.parametrize("verb", VERBS)
def test_a_printed_page_holds_its_text_on_few_sheets(sheets, pages, verb):
    found = sheets(pages[verb])
    assert len(found) <= MOST_SHEETS[verb]
    assert all(sheet.strip() for sheet in found), "no sheet is empty"
    titles = re.findall(r"<h2[^>]*>(.*?)</h2>", pages[verb].read_text())
    lines = [line.strip() for sheet in found for line in sheet.splitlines()]
    assert len(titles) >= 5
    assert set(titles) <= set(lines)


@pytest.mark.parametrize("verb", VERBS)
def test_no_heading_stands_alone_at_the_end_of_a_sheet(sheets, pages, verb):
    titles = set(re.findall(r"<h2[^>]*>(.*?)</h2>", pages[verb].read_text()))
    for sheet in sheets(pages[verb]):
        assert [line.strip() for line in sheet.splitlines() if line.strip()][-1] not in titles


@pytest.mark.parametrize("verb", VERBS)
def test_printed_letters_are_large_enough_to_be_read(letters, pages, verb):
    assert min(letters(pages[verb]).values()) > SMALLEST_POINTS


def test_a_wide_table_is_printed_whole_and_not_small(letters, tmp_path):
    path = tmp_path / "wide.html"
    columns = [f"column {i}" for i in range(9)]
    path.write_text(page("x", [Section("y", table("t", columns, [[LONG, *["passed"] * 7, "end_of_it"]]))]))
    found = letters(path)
    assert "end_of_it" in found
    assert min(found.values()) > SMALLEST_POINTS
