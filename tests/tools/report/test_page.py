"""Pages: whole in themselves, sound as HTML, tables that are tables, no complaint from a browser."""

from __future__ import annotations

import shutil
import subprocess
from html.parser import HTMLParser

import pytest

from trtc.tools import plan_html
from trtc.tools.report.page import Section, figure, note, page, paragraph, table
from trtc.tools.report.plots import bars, histogram, label_rows, roofline

VOID = {"meta", "link", "br", "img", "hr", "input"}
HOSTILE = '<script>console.error("ran")</script>"\'&'


class Seen(HTMLParser):
    """Checks nesting, and collects ids, references and tables."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.references: list[str] = []
        self.scopes: list[str] = []
        self.tags: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag not in VOID:
            self.open.append(tag)
        self._look(tag, attrs)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self._look(tag, attrs)

    def _look(self, tag, attrs):
        for name, value in attrs:
            if name == "id":
                self.ids.append(value)
            if name in ("href", "src", "xlink:href"):
                self.references.append(value)
            if tag == "th" and name == "scope":
                self.scopes.append(value)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def read(text: str) -> Seen:
    seen = Seen()
    seen.feed(text)
    assert seen.open == []
    return seen


@pytest.fixture(scope="module")
def pages(built, tmp_path_factory, request):
    """Both pages as the commands write them."""
    from trtc.tools.bench import limits

    trtc = request.getfixturevalue("trtc")
    folder = tmp_path_factory.mktemp("pages")
    quick = ("--iterations", "5", "--duration", "0", "--warm-up", "0", "-q")
    words = {"inspect": [], "bench": ["--grid", "batch=1,3", "seq=5,12", *quick]}
    found = {}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("TRY_S", 0.0), ("SIDE", 64), ("COPY_BYTES", 4096)):
            patch.setattr(limits, name, value)
        for verb, more in words.items():
            path = folder / f"{verb}.html"
            said = trtc(verb, built, "--html", path, *more)
            assert said.code == 0, said.err
            found[verb] = path
    return found


@pytest.mark.parametrize("verb", ["inspect", "bench"])
def test_a_page_is_sound_and_fetches_nothing(pages, verb):
    text = pages[verb].read_text()
    seen = read(text)
    assert len(set(seen.ids)) == len(seen.ids)
    assert all(reference.startswith(("#", "data:")) for reference in seen.references)
    assert {reference[1:] for reference in seen.references if reference.startswith("#")} <= set(seen.ids)
    assert "url(http" not in text
    assert "script" not in seen.tags
    assert {"col", "row"} <= set(seen.scopes)
    assert seen.tags.count("table") >= 4
    assert seen.tags.count("caption") == seen.tags.count("table")
    assert "svg" in seen.tags


def test_the_page_of_a_bundle_shows_its_evidence(pages):
    text = pages["inspect"].read_text()
    for title in (
        "Signature",
        "Profiles",
        "Padding and its evidence",
        "Engines",
        "Verification",
        "Memory of each profile",
    ):
        assert f">{title}</h2>" in text
    assert "<td>passed</td>" in text


def test_the_page_of_a_benchmark_shows_its_figures(pages):
    text = pages["bench"].read_text()
    for title in (
        "Overview",
        "batch=1, seq=5",
        "Sizes and padding waste",
        "Roofline",
        "Memory",
        "Verification",
        "Conditions",
    ):
        assert f">{title}</h2>" in text
    assert "=== Performance summary ===" in text


def test_texts_from_outside_stay_texts():
    text = page(
        HOSTILE, [Section(HOSTILE, paragraph(HOSTILE) + note(HOSTILE) + table(HOSTILE, [HOSTILE, "x"], [[HOSTILE, 1]]))]
    )
    assert "<script>" not in text
    assert "script" not in read(text).tags
    picture = bars("b", [HOSTILE], {HOSTILE: [1.0], "b": [2.0]}, HOSTILE)
    assert "<script>" not in picture
    read(picture)


def test_pictures_take_the_colours_of_the_page_and_are_the_same_each_time():
    first = roofline("r", {"a": (0.5, 1e9), "b": (100.0, 5e9)}, 1e10, 1e9)
    assert first == roofline("r", {"a": (0.5, 1e9), "b": (100.0, 5e9)}, 1e10, 1e9)
    assert "currentColor" in first
    assert "#010203" not in first
    assert 'role="img"' in first


def test_one_value_and_equal_values_can_be_drawn():
    for values in ([1.0], [2.0] * 50):
        read(histogram("h", {"a": values}, "ms", {"median": values[0]}))


def test_numbers_stand_to_the_right_under_their_header():
    text = table("t", ("name", "time"), [("a", "12.5 ms"), ("b", "3 us")])
    assert text.count('class="number"') == 3


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """Open a page without a window, and return what the browser wrote to its console."""
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("chromium is not installed; Debian: apt-get install chromium")
    folder = tmp_path_factory.mktemp("browser")

    def look(path):
        command = [program, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--v=0",
                   f"--user-data-dir={folder / 'profile'}", f"--screenshot={folder / 'page.png'}",
                   "--window-size=400,900", f"file://{path}"]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        assert (folder / "page.png").stat().st_size > 1000, done.stderr
        (folder / "page.png").unlink()
        return [line for line in done.stderr.splitlines() if ":CONSOLE" in line]

    return look


def test_a_browser_has_nothing_to_complain_about(browser, pages, tmp_path):
    assert [line for path in pages.values() for line in browser(path)] == []
    # The same look sees a page that does what ours may not: it is refused by its own rules, which is a complaint.
    broken = tmp_path / "broken.html"
    broken.write_text(page("x", [Section("y", "<script>1</script>" + figure("", "z"))]))
    assert browser(broken)


def test_labels_of_marks_that_are_close_stand_in_rows_of_their_own():
    assert label_rows([10.0, 50.0, 90.0], 100.0) == [0, 0, 0]
    assert label_rows([90.0, 91.0, 92.0, 20.0], 100.0) == [0, 1, 2, 0]
    assert label_rows([90.0, 95.0, 103.0], 100.0) == [0, 1, 0], "a row is free again after the end of its label"
    read(histogram("h", {"a": [1.0, 2.0, 3.0]}, "ms", {"p90": 2.9, "p95": 2.9}))


@pytest.mark.parametrize(("template", "box"), [(page("t", []), ".wide"), (plan_html._PAGE, ".scroll")])
def test_wide_tables_scroll_in_their_box_with_a_shade_and_long_names_wrap(template, box):
    style = template[template.index("<style>") : template.index("</style>")].replace("{{", "{").replace("}}", "}")
    rules = dict(rule.split("{", 1) for rule in style.split("}") if "{" in rule)
    (boxed,) = [text for name, text in rules.items() if box in name and "@" not in name and "overflow-x: auto" in text]
    assert "no-repeat local" in boxed
    assert "no-repeat scroll" in boxed
    (cells,) = [text for name, text in rules.items() if name.strip() == "th, td"]
    assert "overflow-wrap: anywhere" in cells
    assert "min-width" in cells, "else cells shrink to letters instead of scrolling"
