"""The page of cases is what the tests say."""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def table():
    """The script that writes the page."""
    spec = importlib.util.spec_from_file_location("table_of_cases", Path(__file__).with_name("table.py"))
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(__import__("sys").modules, spec.name, module)
        spec.loader.exec_module(module)
        yield module


def test_the_page_is_up_to_date(table):
    assert table.PAGE.read_text(encoding="utf-8") == table.page(), "run: make cases"


def test_every_file_of_cases_is_on_the_page(table):
    text = table.PAGE.read_text(encoding="utf-8")
    files = [file.name for file in table.HERE.glob("test_*.py") if file != Path(__file__)]
    assert files
    assert all(f"tests/cases/{name}" in text for name in files)


@pytest.mark.parametrize(
    "source",
    [
        "def test_a():\n    'Right.'",
        "@pytest.mark.case('wrong')\ndef test_a():\n    pass",
        "@pytest.mark.case('wrong')\n@pytest.mark.case('again')\ndef test_a():\n    'Right.'",
    ],
    ids=["no-mark", "no-docstring", "two-marks"],
)
def test_a_case_without_its_texts_is_an_error(table, source):
    with pytest.raises(table.MissingTextError, match="test_a"):
        list(table.cases(ast.parse(source)))


def test_a_row_holds_mark_docstring_and_name(table):
    source = "@pytest.mark.slow\n@pytest.mark.case('a|b')\ndef test_c_is_d():\n    '''Two\n    lines.\n\n    More.'''"
    (case,) = table.cases(ast.parse(source))
    assert (case.behaviour, case.right, case.test) == ("a|b", "Two lines.", "test_c_is_d")
