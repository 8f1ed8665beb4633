"""Names are anybody's text: what is printed never commands the terminal."""

from __future__ import annotations

import json
import subprocess
import sys

import onnx
import pytest
from onnx import TensorProto, helper

from trtc.tools.printable import printable, printable_json

HOSTILE = "\x1b]0;title\x07\x1b[2J\rx\x9b31m\u202etxt"
OBEYED = set("\x1b\x07\r\x9b\u202e")


@pytest.fixture
def hostile(tmp_path):
    """A model whose input, output, node and metadata are called by escape sequences."""
    inputs = [helper.make_tensor_value_info(HOSTILE, TensorProto.FLOAT, ["b", 2])]
    outputs = [helper.make_tensor_value_info("y" + HOSTILE, TensorProto.FLOAT, ["b", 2])]
    add = helper.make_node("Add", [HOSTILE, HOSTILE], ["y" + HOSTILE], name=HOSTILE)
    graph = helper.make_graph([add], "g", inputs, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    model.metadata_props.add(key=HOSTILE, value=HOSTILE)
    path = tmp_path / "hostile.onnx"
    onnx.save(model, path)
    return path


def process(*words: object):
    command = [sys.executable, "-m", "trtc.tools.cli", *map(str, words)]
    return subprocess.run(command, capture_output=True, check=False, timeout=120)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[2J", "a\\x1b[2J"),
        ("a\r\nb\tc", "a\\x0d\nb\tc"),
        ("\x7f\x9b", "\\x7f\\x9b"),
        ("\u202eabc", "\\u202eabc"),
        ("\ud800", "\\ud800"),
        ("plain é 漢 \\x1b", "plain é 漢 \\x1b"),
    ],
)
def test_what_a_terminal_would_obey_is_written_out(text, shown):
    assert printable(text) == shown


def test_json_stays_the_same_value():
    text = json.dumps({HOSTILE: [HOSTILE]}, ensure_ascii=False)
    assert json.loads(printable_json(text)) == {HOSTILE: [HOSTILE]}
    assert not OBEYED & set(printable_json(text))


def test_no_verb_sends_names_to_the_terminal_as_they_are(hostile, tmp_path):
    bundle = tmp_path / "hostile.trtc"
    done = [
        process("inspect", hostile),
        process("build", hostile, "-o", bundle, "--no-cache", "--measure-seconds", "0"),
        process("inspect", bundle),
        process("run", bundle, "--sizes", "b=2"),
        process("inspect", bundle, "--json"),
    ]
    failed = [process("run", bundle), process("inspect", f"no{HOSTILE}.onnx"), process("run", HOSTILE)]
    assert [d.returncode for d in (*done, *failed)] == [0, 0, 0, 0, 0, 2, 2, 2]
    for one in (*done, *failed):
        text = (one.stdout + one.stderr).decode()
        assert not OBEYED & set(text), text
