"""onnx's own node tests, each through a whole build and run, beside plain ONNX Runtime."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest

HERE = Path(__file__).parent
FEWEST_PASSED = 1700
"""Of 1,884 with onnx 1.23 and ONNX Runtime 1.32; the rest has no kernel, or no right answer, in plain ONNX Runtime."""


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """Run the suite as ``make conformance`` does; return the tests and what was printed."""
    folder = tmp_path_factory.mktemp("conformance")
    command = [sys.executable, str(HERE / "run.py"), "--json", str(folder / "all.json"), "--page", str(folder / "p.md")]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=folder)
    assert done.stderr == ""
    read = json.loads((folder / "all.json").read_text())
    return SimpleNamespace(tests=read["tests"], json=read, page=(folder / "p.md").read_text(), code=done.returncode)


def names(tests, *verdicts, side="trtc") -> set[str]:
    return {test["name"] for test in tests if test[side]["verdict"] in verdicts}


def test_every_test_that_plain_onnx_runtime_passes_passes(found):
    lost = names(found.tests, "passed", side="onnxruntime") - names(found.tests, "passed")
    assert lost == set()
    assert found.code == 0


def test_no_answer_is_wrong_that_plain_onnx_runtime_has_right(found):
    assert names(found.tests, "wrong") <= names(found.tests, "wrong", side="onnxruntime")


def test_nothing_crashes_hangs_or_fails_after_it_was_built(found):
    assert names(found.tests, "crashed", "hung", "failed", "") == set()


def test_the_whole_suite_was_run_and_nearly_all_of_it_passes(found):
    assert len(names(found.tests, "passed")) >= FEWEST_PASSED
    assert len({test["name"] for test in found.tests}) == len(found.tests) == found.json["counts"]["tests"]


def test_every_refusal_is_an_error_of_ours_that_says_why(found):
    reasons = [test["trtc"]["reason"] for test in found.tests if test["trtc"]["verdict"] == "refused"]
    assert reasons
    for reason in reasons:
        assert reason.startswith(("ModelError: ", "EngineDiffersError: ", "EngineError: ")), reason
        assert "Traceback" not in reason


def test_the_page_counts_every_operator(found):
    counts = Counter(test["operator"] for test in found.tests)
    rows = [line.split(" | ") for line in found.page.split("## By operator")[1].splitlines() if line.startswith("| ")]
    assert {row[0].removeprefix("| "): int(row[1]) for row in rows[2:]} == counts


def test_the_page_in_the_repository_is_of_a_run_of_the_whole_suite(found, repository):
    def head(page):
        return page.split("## Passed by")[0].split("|  | passed")[0]

    assert head((repository / "docs/conformance.md").read_text()) == head(found.page)


CHILD = """
import json, os, sys, time, faulthandler
first, step, skip = map(int, sys.argv[1:])
def say(**words):
    print(json.dumps(words), flush=True)
for i in range(first, 6, step):
    if i < skip:
        continue
    say(index=i, begin=[f"t{i}", "Op"])
    if i == 2:
        os.abort()
    say(index=i, ours=["passed", ""], seconds=0.0)
    if i == 3:
        faulthandler.dump_traceback_later(0.1, exit=True)
        time.sleep(60)
    say(index=i, plain=["passed", ""])
say(done=True)
"""


def module(name):
    spec = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[name] = loaded  # dataclasses look their module up
    try:
        spec.loader.exec_module(loaded)
    finally:
        del sys.modules[name]
    return loaded


@pytest.mark.parametrize("children", [1, 2])
def test_a_test_that_ends_or_hangs_its_process_is_named_and_the_others_are_judged(children):
    rows = module("pool").judge_all([sys.executable, "-c", CHILD], children, os.environ)
    assert [row.name for row in rows] == [f"t{i}" for i in range(6)]
    assert [row.ours[0] for row in rows] == ["passed", "passed", "crashed", "passed", "passed", "passed"]
    assert [row.plain[0] for row in rows] == ["passed", "passed", "not run", "hung", "passed", "passed"]
    assert "SIGABRT" in rows[2].ours[1]


def test_a_child_that_cannot_even_start_is_no_result():
    with pytest.raises(RuntimeError, match="ended between two tests"):
        module("pool").judge_all([sys.executable, "-c", "raise SystemExit('no library')"], 1, os.environ)
