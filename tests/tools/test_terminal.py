"""What people see at a terminal: nothing is broken inside a name, and commands can be pasted."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import shlex
import struct
import subprocess
import sys
import termios

import onnx
import pytest
from onnx import TensorProto, helper

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")
LONG = "sequence_length_of_the_longest_text_in_a_request"


def seen(columns: int, *words: object) -> list[str]:
    """Run a command at a terminal of that width; return the lines that it showed."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    env = {name: value for name, value in os.environ.items() if name not in {"COLUMNS", "LINES"}} | {"TERM": "xterm"}
    command = [sys.executable, "-m", "trtc.tools.cli", *map(str, words)]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=env) as running:
        os.close(theirs)
        data = b""
        while chunk := _read(ours):
            data += chunk
        os.close(ours)
        assert running.wait(timeout=120) == 0, data.decode()
    return [
        line.rpartition("\r")[2].rstrip() for line in ESCAPES.sub("", data.decode()).replace("\r\n", "\n").split("\n")
    ]


def _read(fd: int) -> bytes:
    try:
        return os.read(fd, 65536)
    except OSError:  # the other end was closed
        return b""


@pytest.fixture(scope="module")
def long_names(trtc, tmp_path_factory):
    """A model with a long symbol and input, and a bundle of it."""
    path = tmp_path_factory.mktemp("long") / "model.onnx"
    names = ["an_input_whose_name_says_everything", "an_output_whose_name_says_everything"]
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch_size", LONG]) for name in names)
    graph = helper.make_graph([helper.make_node("Neg", [x.name], [y.name])], "g", [x], [y])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10), path)
    words = ["--dim", "batch_size=1..4", "--buckets", f"{LONG}=8,16", "--pad", LONG, "--fill", f"{x.name}=0"]
    said = trtc("build", path, "--measure-seconds", "0", *words)
    assert said.code == 0, said.err
    return path, names


@pytest.mark.parametrize("columns", [60, 80, 100, 140, 250])
def test_names_stay_whole_and_sentences_fit(long_names, columns):
    path, names = long_names
    for words in (["inspect", path, "--run"], ["inspect", path.with_suffix(".trtc")]):
        lines = seen(columns, *words)
        pieces = {LONG[:k] for k in range(12, len(LONG))} | {n[:k] for n in names for k in range(12, len(n))}
        assert not {word.strip("',;()") for line in lines for word in line.split()} & pieces
        assert any(LONG in line for line in lines)
        for line in lines:
            if line.startswith(("note:", "padding", "values", "sizes of", "requests", "run with")):
                assert len(line) <= columns


def test_rows_that_do_not_fit_are_blocks_and_those_that_do_are_a_table(long_names):
    bundle = long_names[0].with_suffix(".trtc")
    narrow, wide = ("\n".join(seen(columns, "inspect", bundle)) for columns in (90, 200))
    assert f"\n  p0\n      sizes: batch_size 1..4, {LONG} 1..8\n" in narrow
    assert "sizes:" not in wide
    assert re.search(rf"\n *p0 +batch_size 1..4, {LONG} 1..8 +not measured", wide)


@pytest.mark.parametrize("columns", [80, 100])
def test_verification_is_a_line_for_each_profile_and_mode(long_names, columns):
    lines = seen(columns, "inspect", long_names[0].with_suffix(".trtc"))
    begun = next(i for i, line in enumerate(lines) if line.startswith("verification of engine cpu"))
    rows = [line.split()[:3] for line in lines[begun:] if re.match(r" *p\d ", line)]
    assert rows == [[p, m, "passed"] for p in ("p0", "p1") for m in ("exact", "padded")]


@pytest.mark.parametrize("columns", [40, 80])
def test_commands_are_never_wrapped(long_names, columns):
    path, _ = long_names
    lines = seen(columns, "inspect", path, "--run")
    command = shlex.split(lines[lines.index("to build it:") + 1])
    assert command == ["trtc", "build", str(path), "--dim", "batch_size=1..8", "--dim", f"{LONG}=1..128"]
