"""The command as a user types it, a small text encoder, and a bundle of it."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
import onnx
import pytest
from click.testing import CliRunner
from onnx import TensorProto, helper, numpy_helper

from trtc.compiler import empty_sizes
from trtc.tools.cli import command, described

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PADDED = ["--pad", "seq", "--pad", "batch", "--fill", "input_ids=0", "--fill", "attention_mask=0"]
CLOSED = ["--dim", "batch=1..4", "--buckets", "seq=8,16", *PADDED]


@dataclass(frozen=True)
class Said:
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def say(*words: object) -> Said:
    """Run the command in this process; errors become exit codes as ``main`` makes them."""
    result = CliRunner().invoke(command, [str(word) for word in words], prog_name="trtc", standalone_mode=False)
    error = result.exception
    if isinstance(error, click.ClickException):
        return Said(error.exit_code, result.stdout, result.stderr + error.format_message())
    if error is not None:
        message, code = described(error)
        return Said(code, result.stdout, result.stderr + message)
    return Said(0, result.stdout, result.stderr)


@pytest.fixture(scope="session", autouse=True)
def empty_sizes_are_tried_once() -> Iterator[None]:
    """Remember what the process answered that tries a model at empty sizes: most builds here are of one model.

    ``tests/compiler/test_empty_sizes.py`` is about that process.
    """
    ask = empty_sizes._answers
    answers: dict[object, list[str]] = {}

    def remembered(model: Any, signature: Any, trials: Any) -> list[str]:
        asked = (model.sha256, signature, tuple((str(sizes), Path(feeds).read_bytes()) for _, sizes, feeds in trials))
        if asked not in answers:
            answers[asked] = ask(model, signature, trials)
        return answers[asked]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(empty_sizes, "_answers", remembered)
        yield


@pytest.fixture(scope="session")
def trtc() -> Callable[..., Said]:
    return say


def text_encoder() -> onnx.ModelProto:
    """Hidden = table[input_ids] * attention_mask, pooled = its sum over seq; padding with a mask of 0 is exact."""
    ids, mask = (
        helper.make_tensor_value_info(n, TensorProto.INT64, ["batch", "seq"]) for n in ("input_ids", "attention_mask")
    )
    hidden = helper.make_tensor_value_info("hidden", TensorProto.FLOAT, ["batch", "seq", 4])
    pooled = helper.make_tensor_value_info("pooled", TensorProto.FLOAT, ["batch", 4])
    table = np.random.default_rng(0).standard_normal((10, 4)).astype("f4")
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["embedded"]),
        helper.make_node("Cast", ["attention_mask"], ["as_float"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["as_float", "last"], ["factor"]),
        helper.make_node("Mul", ["embedded", "factor"], ["hidden"]),
        helper.make_node("ReduceSum", ["hidden", "one"], ["pooled"], keepdims=0),
    ]
    constants = {"table": table, "last": np.array([2]), "one": np.array([1])}
    weights = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph(nodes, "encoder", [ids, mask], [hidden, pooled], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)


@pytest.fixture(scope="session")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Path of the encoder."""
    path = tmp_path_factory.mktemp("encoder") / "model.onnx"
    path.write_bytes(text_encoder().SerializeToString())
    return path


@pytest.fixture(scope="session")
def built(encoder: Path) -> Path:
    """A bundle of the encoder: batch 1..4, seq up to 8 and 16, padded. Do not change it: see ``bundle``."""
    path = encoder.with_name("built.trtc")
    said = say("build", encoder, "-o", path, "--measure-seconds", "0", *CLOSED)
    assert said.code == 0, said.err
    return path


@pytest.fixture(scope="session")
def built_open(encoder: Path) -> Path:
    """A bundle of the encoder that serves every size as it comes."""
    path = encoder.with_name("open.trtc")
    said = say("build", encoder, "-o", path, "--measure-seconds", "0")
    assert said.code == 0, said.err
    return path


@pytest.fixture
def bundle(built: Path, tmp_path: Path) -> Path:
    """A copy of ``built`` that a test may change."""
    return shutil.copytree(built, tmp_path / "model.trtc")


@pytest.fixture(scope="session")
def request_file(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Write a request as ``.npz``."""

    def write(**arrays: Any) -> Path:
        path = tmp_path_factory.mktemp("request") / "request.npz"
        np.savez(path, **arrays)
        return path

    return write


@pytest.fixture(scope="session")
def good_request(request_file: Callable[..., Path]) -> Path:
    return request_file(input_ids=np.arange(6).reshape(2, 3), attention_mask=np.ones((2, 3), np.int64))
