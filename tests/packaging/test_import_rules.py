"""The import rules of ``pyproject.toml`` hold, and a breach of one is seen."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FOLDERS = ("profiles", "engines", "compiler", "runtime", "tools")


@pytest.fixture
def tree(checkout_copy: Path, tmp_path: Path) -> Path:
    """The five folders of the checkout, linked the way ``make check`` links them."""
    (tmp_path / ".typing/trtc").mkdir(parents=True)
    shutil.copy(checkout_copy / "pyproject.toml", tmp_path)
    for folder in FOLDERS:
        shutil.copytree(checkout_copy / folder, tmp_path / folder)
        (tmp_path / ".typing/trtc" / folder).symlink_to(tmp_path / folder)
    return tmp_path


def lint(tree: Path) -> tuple[int, str]:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache", "--no-logo"]
    env = {**os.environ, "PYTHONPATH": ".typing", "COLUMNS": "200"}
    done = subprocess.run(command, cwd=tree, env=env, check=False, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def test_the_tree_keeps_the_rules(tree):
    code, words = lint(tree)
    assert code == 0, words


@pytest.mark.parametrize(
    ("file", "line"),
    [
        pytest.param("runtime/breach.py", "import trtc.compiler", id="runtime-imports-compiler"),
        pytest.param("compiler/breach.py", "import trtc.runtime", id="compiler-imports-runtime"),
        pytest.param("engines/breach.py", "import trtc.runtime", id="engines-import-runtime"),
        pytest.param("profiles/breach.py", "import trtc.engines", id="profiles-import-engines"),
        pytest.param("runtime/breach.py", "import onnx", id="runtime-imports-onnx"),
        pytest.param("profiles/breach.py", "import onnx", id="profiles-import-onnx"),
        pytest.param("engines/null/breach.py", "import trtc.engines.onnxruntime", id="backend-imports-backend"),
    ],
)
def test_a_breach_is_seen_and_named(tree, file, line):
    (tree / file).write_text(f"{line}\n")
    code, words = lint(tree)
    assert code == 1
    assert f"trtc.{file.removesuffix('.py').replace('/', '.')} ->" in words
