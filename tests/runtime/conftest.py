"""Small models as bundles, built with the real backend or with the null one, and plain ONNX Runtime beside them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from trtc.engines.build import EngineRequest
from trtc.engines.bundle import write_bundle
from trtc.engines.manifest import (
    BlobFile,
    BuildRecord,
    EngineRecord,
    Evidence,
    Execution,
    Manifest,
    Requirements,
    Source,
    ValueDomain,
)
from trtc.engines.registry import backend_named
from trtc.engines.signature import Signature, TensorSpec
from trtc.profiles import Ladder, Profile, Range
from trtc.runtime import Arena, load

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from trtc.profiles import Derived, PadRule
    from trtc.runtime import Session


def value(name: str, dims: tuple[str | int | None, ...] | None, dtype: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, dtype, dims)


def model_of(
    nodes: list[onnx.NodeProto],
    inputs: list[onnx.ValueInfoProto],
    outputs: list[onnx.ValueInfoProto],
    *,
    initializers: tuple[onnx.TensorProto, ...] = (),
    opset: int = 18,
) -> onnx.ModelProto:
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(initializers))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)


def spec_of(info: onnx.ValueInfoProto) -> TensorSpec:
    """Read a spec from a declaration; empty and missing dims depend on the data."""
    if not info.type.HasField("tensor_type"):
        item = info.type.sequence_type.elem_type.tensor_type.elem_type
        return TensorSpec(info.name, f"seq(tensor({TensorProto.DataType.Name(item).lower()}))", None)
    tensor = info.type.tensor_type
    dtype = TensorProto.DataType.Name(tensor.elem_type).lower()
    if not tensor.HasField("shape"):
        return TensorSpec(info.name, dtype, None)
    dims = tuple((d.dim_value if d.HasField("dim_value") else d.dim_param or None) for d in tensor.shape.dim)
    return TensorSpec(info.name, dtype, dims)


@dataclass(frozen=True)
class Recipe:
    """All that a bundle is made from; see ``make_bundle``."""

    model: onnx.ModelProto
    profiles: tuple[dict[str, tuple[int, int | None]], ...] = ({},)
    mode: str = "exact"
    padding: tuple[PadRule, ...] = ()
    derived: tuple[Derived, ...] = ()
    domains: dict[str, ValueDomain] = field(default_factory=dict)
    row_domains: dict[str, ValueDomain] = field(default_factory=dict)
    unused: frozenset[str] = frozenset()
    outputs: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    backend: str = "onnxruntime"
    engine: dict[str, Any] = field(default_factory=dict)
    slots: int = 2
    threads: int = 1

    def signature(self) -> Signature:
        defaults = {tensor.name for tensor in self.model.graph.initializer}
        inputs = [spec_of(info) for info in self.model.graph.input]
        inputs = [replace(s, used=s.name not in self.unused, has_default=s.name in defaults) for s in inputs]
        outputs = [spec_of(info) for info in self.model.graph.output]
        outputs = [replace(s, dims=self.outputs.get(s.name, s.dims)) for s in outputs]
        return Signature(tuple(inputs), tuple(outputs))

    def ladder(self) -> Ladder:
        named = [
            Profile(f"p{i}", {symbol: Range(low, high, high) for symbol, (low, high) in ranges.items()})
            for i, ranges in enumerate(self.profiles)
        ]
        return Ladder(tuple(named))


def write(path: Path, work: Path, recipe: Recipe) -> Path:
    work.mkdir(parents=True, exist_ok=True)
    (work / "engine").mkdir()
    (work / "model.onnx").write_bytes(recipe.model.SerializeToString())
    signature, ladder = recipe.signature(), recipe.ladder()
    request = EngineRequest(work / "model.onnx", work / "engine", signature, ladder, 1)
    built = backend_named(recipe.backend).build_module().build_engine(request)
    files = tuple(
        BlobFile(path=name, size_bytes=p.stat().st_size, sha256=hashlib.sha256(p.read_bytes()).hexdigest())
        for name, p in built.files.items()
    )
    record = {
        "name": "cpu",
        "backend": recipe.backend,
        "target": "cpu",
        "precision": built.precision,
        "entry": built.entry,
        "files": files,
        "requirements": built.requirements,
        "verified": True,
        **recipe.engine,
    }
    evidence = tuple(
        Evidence(
            kind="rows" if rule.side == "rows" else "padding",
            symbol=rule.symbol,
            accepted=True,
            runs=1,
            samples="made up",
            domain=recipe.row_domains if rule.side == "rows" else recipe.domains,
        )
        for rule in recipe.padding
    )
    manifest = Manifest(
        schema="1.0",
        source=Source(sha256="0" * 64, size_bytes=1, ir_version=9, opsets={"": 18}),
        build=BuildRecord(key="1" * 64, trtc="0", libraries={}, machine={}, options={}),
        signature=signature,
        ladder=ladder,
        execution=Execution(mode=recipe.mode, slots=recipe.slots, threads=recipe.threads),
        engines=(EngineRecord(**record),),
        padding=recipe.padding,
        derived=recipe.derived,
        evidence=evidence,
    )
    write_bundle(path, manifest, built.files)
    return path


@pytest.fixture(scope="session")
def make_bundle(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Build a bundle: ``make_bundle(model, profiles=({"batch": (1, 4)},), mode="bucket", padding=(...))``."""

    def make(model: onnx.ModelProto, **options: Any) -> Path:
        folder = tmp_path_factory.mktemp("bundle")
        return write(folder / "model.trtc", folder / "work", Recipe(model, **options))

    return make


@pytest.fixture
def open_bundle(make_bundle: Callable[..., Path]) -> Iterator[Callable[..., Session]]:
    """Build and load in an arena of its own, which every test must leave empty; slots as the host allows or given."""
    opened: list[tuple[Session, Arena]] = []

    def open_one(model: onnx.ModelProto, *, slots: int = 2, arena: Arena | None = None, **options: Any) -> Session:
        memory = arena or Arena()
        session = load(make_bundle(model, **options), slots=slots, threads=1, arena=memory)
        opened.append((session, memory))
        return session

    yield open_one
    for session, _ in opened:
        session.close()
    for _, memory in opened:
        assert memory.stats.in_use_bytes == 0, "the arena still holds blocks after every session was closed"


@pytest.fixture(scope="session")
def plain() -> Callable[..., dict[str, Any]]:
    """Run a model with plain ONNX Runtime: ``plain(model, feeds)``."""
    sessions: dict[bytes, onnxruntime.InferenceSession] = {}

    def run(model: onnx.ModelProto, feeds: dict[str, Any]) -> dict[str, Any]:
        data = model.SerializeToString()
        if data not in sessions:
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = 1
            options.log_severity_level = 4
            sessions[data] = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
        names = [output.name for output in sessions[data].get_outputs()]
        return dict(zip(names, sessions[data].run(names, feeds), strict=True))

    return run


@pytest.fixture(scope="session")
def mix_model() -> onnx.ModelProto:
    """``y = a + b``, ``z = a @ transpose(b)``: two inputs, two symbols, one static axis, one quadratic output."""
    nodes = [
        helper.make_node("Add", ["a", "b"], ["y"]),
        helper.make_node("Transpose", ["b"], ["bt"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["a", "bt"], ["z"]),
    ]
    inputs = [value("a", ("batch", "seq", 4)), value("b", ("batch", "seq", 4))]
    return model_of(nodes, inputs, [value("y", ("batch", "seq", 4)), value("z", ("batch", "seq", "seq"))])


@pytest.fixture(scope="session")
def double_model() -> onnx.ModelProto:
    """``y = x + x`` over float32 [batch, 4]."""
    node = helper.make_node("Add", ["x", "x"], ["y"])
    return model_of([node], [value("x", ("batch", 4))], [value("y", ("batch", 4))])


@pytest.fixture(scope="session")
def masked_sum() -> onnx.ModelProto:
    """``y[batch] = sum over seq of x * mask``; where the mask is padded with 0, padding is neutral."""
    nodes = [
        helper.make_node("Cast", ["mask"], ["m"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["x", "m"], ["xm"]),
        helper.make_node("ReduceSum", ["xm", "axes"], ["y"], keepdims=0),
        helper.make_node("Identity", ["xm"], ["each"]),
    ]
    return model_of(
        nodes,
        [value("x", ("batch", "seq")), value("mask", ("batch", "seq"), TensorProto.INT64)],
        [value("y", ("batch",)), value("each", ("batch", "seq"))],
        initializers=(helper.make_tensor("axes", TensorProto.INT64, [1], [1]),),
    )


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.fixture(scope="session")
def identity_model() -> Callable[..., onnx.ModelProto]:
    """``y = x`` of a dtype and dims: ``identity_model(TensorProto.INT64, ("n",))``; dims None for unknown rank."""

    def build(dtype: int = TensorProto.FLOAT, dims: tuple[str | int | None, ...] | None = ("n", 2)) -> onnx.ModelProto:
        node = helper.make_node("Identity", ["x"], ["y"])
        return model_of([node], [value("x", dims, dtype)], [value("y", dims, dtype)])

    return build


@pytest.fixture(scope="session")
def graphs() -> Any:
    """The builders of this file, for models that only one test needs."""

    class Graphs:
        value = staticmethod(value)
        model = staticmethod(model_of)
        node = staticmethod(helper.make_node)
        requirements = Requirements

    return Graphs


@pytest.fixture(scope="session")
def million_turns() -> onnx.ModelProto:
    """A Loop of a million MatMuls when ``go`` is true, else one turn: ``y = x @ I`` each time."""
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["keep"], ["keep_out"]),
            helper.make_node("MatMul", ["v", "eye"], ["v_out"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("keep", TensorProto.BOOL, []),
            value("v", (64, 64)),
        ],
        [helper.make_tensor_value_info("keep_out", TensorProto.BOOL, []), value("v_out", (64, 64))],
    )
    eye = onnx.numpy_helper.from_array(np.eye(64, dtype=np.float32), "eye")
    node = helper.make_node("Loop", ["turns", "", "x"], ["y"], body=body)
    return model_of(
        [node],
        [value("turns", (), TensorProto.INT64), value("x", (64, 64))],
        [value("y", (64, 64))],
        initializers=(eye,),
    )
