"""Write docs/cases.md from the tests beside this file: run ``make cases``.

    python tests/cases/table.py [--check]

One row a test: what can go wrong (its ``case`` mark), what is right (the first paragraph of its docstring), and its
name. The tests are read, not run.
"""

from __future__ import annotations

import ast
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent.parent / "docs" / "cases.md"
ORDER = ("padding", "sizes", "arrays", "graphs", "files", "bundles", "comparing", "measuring")
INTRO = """# Cases

Small inputs that go wrong easily, and what trtc does with them. Each row is a test that builds a bundle, loads it and
runs it, or shows the error; the tests hold the right values. This page is written by `make cases` from the tests.
"""


@dataclass(frozen=True)
class Case:
    """One row.

    Attributes:
        behaviour: what can go wrong.
        right: what is right.
        test: name of the test function.
    """

    behaviour: str
    right: str
    test: str


class MissingTextError(Exception):
    """A test without a mark or without a docstring."""


def page() -> str:
    """Return the page as it should be."""
    parts = [INTRO]
    for file in _files():
        tree = ast.parse(file.read_text(encoding="utf-8"))
        title, _, rest = (ast.get_docstring(tree) or "").partition(":")
        place = f"../tests/cases/{file.name}"
        rows = [
            f"| {_cell(case.behaviour)} | {_cell(case.right)} | [{_sentence(case.test)}]({place}) |"
            for case in cases(tree)
        ]
        about = f"\n{rest.strip()[:1].upper()}{rest.strip()[1:]}\n" if rest else ""
        table = ["| what can go wrong | what is right | test |", "| --- | --- | --- |", *rows]
        parts.append(f"## {title.strip()}\n{about}\n" + "\n".join(table) + "\n")
    return "\n".join(parts)


def cases(tree: ast.Module) -> Iterator[Case]:
    """Yield the cases of one file, in its order.

    Raises:
        MissingTextError: for a test that has no mark or no docstring.
    """
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            text = (ast.get_docstring(node) or "").split("\n\n")[0]
            marks = [mark for decorator in node.decorator_list if (mark := _mark(decorator)) is not None]
            if not text or len(marks) != 1:
                raise MissingTextError(f"{node.name}: give it one case mark and a docstring that says what is right")
            yield Case(marks[0], " ".join(text.split()), node.name)


def _files() -> list[Path]:
    found = {file.stem.removeprefix("test_"): file for file in HERE.glob("test_*.py") if file.stem != "test_page"}
    return [found.pop(name) for name in ORDER if name in found] + [found[name] for name in sorted(found)]


def _mark(decorator: ast.expr) -> str | None:
    match decorator:
        case ast.Call(func=ast.Attribute(attr="case"), args=[ast.Constant(value=str(text))]):
            return text
    return None


def _sentence(name: str) -> str:
    return name.removeprefix("test_").replace("_", " ")


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def main(arguments: list[str]) -> int:
    """Write the page, or compare it with ``--check``; return the exit code."""
    wanted = page()
    if arguments == ["--check"]:
        return 0 if PAGE.is_file() and PAGE.read_text(encoding="utf-8") == wanted else 1
    PAGE.write_text(wanted, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
