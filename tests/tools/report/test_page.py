"""Pages: whole in themselves, sound as HTML, tables that are tables, pictures that can be read."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from types import SimpleNamespace

import pytest

from trtc.tools.bench.page import _verdict
from trtc.tools.report.page import Section, note, page, paragraph, table
from trtc.tools.report.plots import bars, drawn_to, histogram, joined_labels, label_rows, roofline

VOID = {"meta", "link", "br", "wbr", "img", "hr", "input"}
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


@pytest.mark.parametrize("verb", ["inspect", "bench", "plan"])
def test_a_page_is_sound_and_fetches_nothing(pages, verb):
    text = pages[verb].read_text()
    seen = read(text)
    assert len(set(seen.ids)) == len(seen.ids)
    assert all(reference.startswith(("#", "data:")) for reference in seen.references)
    assert {reference[1:] for reference in seen.references if reference.startswith("#")} <= set(seen.ids)
    assert "url(http" not in text
    assert "script" not in seen.tags
    assert {"col", "row"} <= set(seen.scopes)
    assert seen.tags.count("table") >= 3
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
    assert '<td class="short">passed</td>' in text


def test_the_page_of_a_benchmark_shows_its_figures(pages):
    text = pages["bench"].read_text()
    for title in (
        "Overview",
        "How latencies spread",
        "Sizes and padding waste",
        "Parts of a call",
        "Roofline",
        "Memory",
        "Verification",
        "Conditions",
    ):
        assert f">{title}</h2>" in text
    assert text.count("=== Performance summary ===") == 4
    assert text.index(">Overview</h2>") < text.index(">Sizes and padding waste</h2>") < text.index(">Conditions</h2>")
    for told in (
        "batch=3, seq=12: 5 calls",
        "In turns with onnxruntime: medians",
        "time over the peer",
        '<td class="short">agree</td>',
        "The peer is onnxruntime",
        "Idle threads: both sides spin.",
        "Closed loop, 1 caller.",
        "Input &#x27;attention_mask&#x27; was generated: ",
    ):
        assert told in text


def test_the_page_of_an_open_loop_says_what_had_to_wait(trtc, built, tmp_path):
    path = tmp_path / "open.html"
    words = ("--sizes", "batch=1,seq=5", "--rate", "1e6", "--iterations", "50", "--duration", "0", "--warm-up", "0")
    assert trtc("bench", built, *words, "-q", "--html", path).code == 0
    text = path.read_text()
    for told in ("Open loop, 1e+06 calls per second", "a call itself takes", "the rate was not kept"):
        assert told in text


def test_the_page_of_a_plan_shows_what_was_chosen_first(pages):
    text = pages["plan"].read_text()
    titles = ["Overview", "Profiles", "Beside other ladders", "How many profiles", "Traffic", "Cost"]
    places = [text.index(f">{title}</h2>") for title in titles]
    assert places == sorted(places)
    assert text.count("<figure>") == 6
    assert text.count('<tr class="chosen">') == 1
    assert "112 requests over batch, seq, 4 different sizes." in text


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
    first = roofline("r", [(0.5, 1e9), (100.0, 5e9)], 1e10, 1e9)
    assert first == roofline("r", [(0.5, 1e9), (100.0, 5e9)], 1e10, 1e9)
    assert "currentColor" in first
    assert "#010203" not in first
    assert 'role="img"' in first


def test_one_value_and_equal_values_can_be_drawn():
    for values in ([1.0], [2.0] * 50):
        read(histogram("h", {"a": values}, "ms", {"median": values[0]}))


def test_numbers_stand_to_the_right_under_their_header():
    text = table("t", ("name", "time"), [("a", "12.5 ms"), ("b", "3 us")])
    assert text.count('class="number"') == 3


def test_labels_of_marks_that_are_close_stand_in_rows_of_their_own():
    assert label_rows([10.0, 50.0, 90.0], 100.0) == [0, 0, 0]
    assert label_rows([90.0, 91.0, 92.0, 20.0], 100.0) == [0, 1, 2, 0]
    assert label_rows([90.0, 95.0, 106.0], 100.0) == [0, 1, 0], "a row is free again after the end of its label"
    read(histogram("h", {"a": [1.0, 2.0, 3.0]}, "ms", {"p90": 2.9, "p95": 2.9}))


def test_points_of_a_roofline_that_lie_together_have_one_label():
    points = {1: (1.0, 1e9), 2: (1.01, 1.01e9), 3: (50.0, 5e9)}
    assert joined_labels(points, (5.0, 3.0)) == {"1, 2": (1.0, 1e9), "3": (50.0, 5e9)}
    assert list(joined_labels(points, (0.1, 0.1))) == ["1", "2", "3"], "on a picture of a narrow range they are apart"


def test_axes_of_a_roofline_are_numbers_for_people():
    texts = re.findall(r"<text[^>]*>(.*?)</text>", roofline("r", [(0.5, 1e9), (100.0, 5e9)], 1e10, 1e9))
    assert {"1", "10", "100", "GFLOP/s"} <= set(texts)
    assert not [text for text in texts if "$" in text]


def test_a_picture_ends_where_only_stragglers_follow():
    assert drawn_to([1.0] * 50 + [1.1] * 49 + [90.0]) < 3
    assert drawn_to([2.0] * 50) == 2.0
    assert drawn_to([float(i) for i in range(201)]) == 199.0


def test_pictures_of_one_page_do_not_share_names():
    first, second = (bars(name, ["a"], {"x": [1.0]}, "ms") for name in ("one", "two"))
    names = [set(read(picture).ids) for picture in (first, second)]
    assert names[0]
    assert not names[0] & names[1]


def test_a_peer_that_does_other_work_is_neither_faster_nor_slower():
    peer = SimpleNamespace(agrees=False, ratio=SimpleNamespace(verdict="faster"))
    assert _verdict(peer) == "not the same work"


@pytest.mark.parametrize(
    ("texts", "kind"),
    [
        (["12.5 ms", "3 us", "-"], "number"),
        (["43.5%", "0.0%"], "number"),
        (["1.2e-06", "0"], "number"),
        (["111 GFLOP/s", "12.4 GB/s"], "number"),
        (["3.11.7", "0.1.0"], "short"),
        (["8 x 128", "1..4"], "short"),
        (["-", "-"], "short"),
        (["batch=1, sequence_length=16", "x"], "long"),
    ],
)
def test_columns_are_set_by_what_they_hold(texts, kind):
    assert f'<th scope="col" class="{kind}">c</th>' in table("t", ("a", "c"), [("x", text) for text in texts])


def test_words_break_only_where_they_are_too_long_by_themselves():
    short, long = "batch_size=1, sequence_length=16", "model.encoder.layer_0.attention/output_weights"
    text = table("t", ("a", "b"), [("x", short), ("y", long)])
    assert short in text
    assert "attention/<wbr>output_<wbr>weights" in text


def test_wide_tables_scroll_in_their_box_with_a_shade_and_long_names_wrap():
    text = page("t", [])
    style = text[text.index("<style>") : text.index("@media print")]
    rules = dict(rule.split("{", 1) for rule in style.split("}") if "{" in rule)
    (boxed,) = [text for name, text in rules.items() if ".wide" in name and "overflow-x: auto" in text]
    assert "no-repeat local" in boxed
    assert "no-repeat scroll" in boxed
    (cells,) = [text for name, text in rules.items() if name.strip().endswith(".long")]
    assert "overflow-wrap: anywhere" in cells
    assert "min-width" in cells, "else cells shrink to letters instead of scrolling"
