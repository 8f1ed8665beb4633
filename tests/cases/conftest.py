"""A model in a few lines of text, built to a bundle on disk, loaded, and the command as a user types it."""

from __future__ import annotations

import contextlib
import io
import sys
from dataclasses import dataclass, fields
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import onnx
import onnx.parser
import pytest

from trtc.compiler import BuildOptions, ShapeOptions
from trtc.compiler import build as build_bundle
from trtc.runtime import load
from trtc.tools.cli import main

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from trtc.compiler import BuildReport
    from trtc.runtime import Session

Source: TypeAlias = "str | onnx.ModelProto | Path"
HEAD = '<ir_version: 10, opset_import: ["" : 17]>'
SHAPES = {field.name for field in fields(ShapeOptions)}


@dataclass(frozen=True)
class Said:
    """What a command did."""

    code: int
    out: str
    err: str


@pytest.fixture(scope="session")
def parsed() -> Callable[..., onnx.ModelProto]:
    """Read a graph in onnx's text form; IR 10 and opset 17 unless said."""

    def parse(graph: str, head: str = HEAD) -> onnx.ModelProto:
        return onnx.parser.parse_model(f"{head}\n{graph}")

    return parse


@pytest.fixture(scope="session")
def model_file(tmp_path_factory: pytest.TempPathFactory, parsed: Callable[..., onnx.ModelProto]) -> Callable[..., Path]:
    """Write a model into a folder of its own."""

    def write(source: Source) -> Path:
        if isinstance(source, Path):
            return source
        proto = parsed(source) if isinstance(source, str) else source
        path = tmp_path_factory.mktemp("case") / "model.onnx"
        path.write_bytes(proto.SerializeToString())
        return path

    return write


@pytest.fixture(scope="session")
def build(model_file: Callable[..., Path]) -> Callable[..., BuildReport]:
    """Build a bundle beside its model. Nothing is measured, and the build cache is not used.

    Shape options are given by their names, such as ``dim=("B=1..4",)``; so are the other build options.
    """
    numbers = count()

    def run(source: Source, **options: Any) -> BuildReport:
        shapes = ShapeOptions(**{name: options.pop(name) for name in SHAPES & options.keys()})
        path = model_file(source)
        wanted = {"measure_s": 0.0, "verify_s": 2.0, "use_cache": False, "threads": 1, **options}
        return build_bundle(path, path.with_name(f"{next(numbers)}.trtc"), BuildOptions(shapes=shapes, **wanted))

    return run


@pytest.fixture(scope="session")
def serve(build: Callable[..., BuildReport]) -> Iterator[Callable[..., Session]]:
    """Build and load; the same model with the same options is built once."""
    opened: dict[str, Session] = {}

    def run(source: Source, **options: Any) -> Session:
        content = source.SerializeToString() if isinstance(source, onnx.ModelProto) else source
        key = repr((content, sorted(options.items())))
        if key not in opened:
            opened[key] = load(build(source, **options).path)
        return opened[key]

    yield run
    for session in opened.values():
        session.close()


@pytest.fixture(scope="session")
def trtc() -> Callable[..., Said]:
    """Run the command in this process, through the function that the installed command calls."""

    def say(*words: object) -> Said:
        out, err = io.StringIO(), io.StringIO()
        with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            patch.setattr(sys, "argv", ["trtc", *map(str, words)])
            with pytest.raises(SystemExit) as left:
                main()
        return Said(int(left.value.code or 0), out.getvalue(), err.getvalue())

    return say
