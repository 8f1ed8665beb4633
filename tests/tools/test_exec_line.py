"""The command line of ``trtc exec`` means the same whether it is read plainly or by click."""

from __future__ import annotations

import subprocess
import sys

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trtc.tools.exec import exec as verb
from trtc.tools.exec_line import Line, read_line

WORDS = (
    *("--record", "--record=r.jsonl", "--record-before", "--summary", "--summary=", "--bundle", "--bundle=m.trtc"),
    *("--bundles", "--bundles=a=b", "--samples", "--samples=3", "--samples=-1", "--samples=9999", "--samples=x", "7"),
    *("--samples=00003", "--samples=" + "9" * 5000),
    *("--no-values", "--no-values=1", "-q", "-qq", "--quiet", "--", "-", "", "python", "app.py", "--help", "--unknown"),
)


def by_click(words: list[str]) -> Line | None:
    try:
        return Line(**verb.make_context("exec", list(words)).params)
    except (click.ClickException, click.exceptions.Exit):
        return None


@given(st.lists(st.sampled_from(WORDS), max_size=8))
def test_what_is_read_plainly_is_what_click_reads(words):
    found = read_line(words)
    assert found is None or found == by_click(words)


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["python", "a.py", "--record"], Line(command=("python", "a.py", "--record"))),
        (["--", "-x"], Line(command=("-x",))),
        (["--bundle", "a", "--bundle=b", "-q", "x"], Line(bundles=("a", "b"), quiet=True, command=("x",))),
        (["--record", "--", "--", "x"], Line(record="--", command=("x",))),
        (["--samples", "4096", "--no-values", "x"], Line(samples=4096, no_values=True, command=("x",))),
    ],
)
def test_usual_lines_need_no_click(words, line):
    assert read_line(words) == line == by_click(words)


@pytest.mark.parametrize("words", [[], ["--help"], ["--record"], ["--samples", "4097", "x"], ["--odd", "x"], ["-q"]])
def test_help_and_mistakes_are_left_to_click(words):
    assert read_line(words) is None


def test_a_number_that_python_does_not_read_is_left_to_click():
    assert read_line(["--samples", "9" * 5000, "x"]) is None


def test_a_program_waits_for_few_imports():
    code = "import sys; import trtc.tools.exec_program, trtc.tools.exec_line; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    found = set(loaded.stdout.split())
    assert "trtc.tools.exec_program" in found
    assert not found & {
        "click",
        "rich",
        "numpy",
        "msgspec",
        "dataclasses",
        "subprocess",
        "trtc.runtime",
        "shutil",
        "tempfile",
    }
