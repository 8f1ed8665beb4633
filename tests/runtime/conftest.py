"""Small models as bundles, built with the real backends or with the null one, and plain ONNX Runtime beside them.

Every test that makes a bundle runs twice: on the CPU, and on TensorRT for RTX. There the engine is really built, and
run by the simulator. The tests in ``CPU_ONLY`` do not run there; each says why.
"""

from __future__ import annotations

import gc
import hashlib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from simulator import BuiltModel, EngineStore, Machine
from simulator.cpu_only import CPU_ONLY
from trtc.engines.build import EngineRequest, ValueBounds
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
from trtc.engines.target import parse_target
from trtc.engines.tensorrt.worker import build_here
from trtc.profiles import Ladder, Profile, Range
from trtc.runtime import Arena, load

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from trtc.engines.build import BuiltEngine
    from trtc.profiles import Derived, PadRule
    from trtc.runtime import Session


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run what makes bundles on both targets, unless ``CPU_ONLY`` says otherwise."""
    if "engine_kind" in metafunc.fixturenames:
        name = metafunc.function.__name__
        cpu_only = {Path(str(metafunc.definition.path)).name, name} & CPU_ONLY.keys()
        kinds = ["cpu"] if cpu_only else getattr(metafunc.module, "ENGINE_KINDS", ["cpu", "rtx"])
        metafunc.parametrize("engine_kind", kinds, indirect=True, scope="session")


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
    target: str = "cpu"
    engine: dict[str, Any] = field(default_factory=dict)
    shape_values: tuple[dict[str, ValueBounds], ...] = ()
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


def build(work: Path, recipe: Recipe) -> BuiltEngine:
    work.mkdir(parents=True, exist_ok=True)
    (work / "engine").mkdir()
    (work / "model.onnx").write_bytes(recipe.model.SerializeToString())
    request = EngineRequest(
        work / "model.onnx",
        work / "engine",
        recipe.signature(),
        recipe.ladder(),
        target=parse_target(recipe.target),
        shape_values=recipe.shape_values,
    )
    built: BuiltEngine = backend_named(recipe.backend).build_module().build_engine(request)
    return built


def write(path: Path, recipe: Recipe, built: BuiltEngine) -> Path:
    signature, ladder = recipe.signature(), recipe.ladder()
    files = tuple(
        BlobFile(path=name, size_bytes=p.stat().st_size, sha256=hashlib.sha256(p.read_bytes()).hexdigest())
        for name, p in built.files.items()
    )
    record = {
        "name": recipe.target,
        "backend": recipe.backend,
        "target": recipe.target,
        "precision": built.precision,
        "entry": built.entry,
        "files": files,
        "requirements": built.requirements,
        "verified": True,
        "options": built.options,
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
def engine_kind(request: pytest.FixtureRequest) -> str:
    """The target that bundles are built for: ``cpu`` or ``rtx``."""
    return getattr(request, "param", "cpu")


@pytest.fixture(scope="session")
def engine_store() -> EngineStore:
    """What the simulator can run: everything that ``make_bundle`` built for it."""
    return EngineStore()


@pytest.fixture(autouse=True)
def machine(request: pytest.FixtureRequest, engine_store: EngineStore) -> Iterator[Machine | None]:
    """The simulated machine of a test that runs on ``rtx``; every test must leave it empty."""
    if "engine_kind" not in request.fixturenames or request.getfixturevalue("engine_kind") != "rtx":
        yield None
        return
    import tensorrt_rtx

    simulated = Machine(tensorrt_rtx, engine_store)
    with pytest.MonkeyPatch.context() as patch:
        simulated.install(patch)
        yield simulated
        gc.collect()
        simulated.leave()


@pytest.fixture(scope="session")
def make_bundle(
    engine_kind: str, engine_store: EngineStore, tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., Path]:
    """Build a bundle: ``make_bundle(model, profiles=({"batch": (1, 4)},), mode="bucket", padding=(...))``.

    Engines are built once: tests that differ in other things share them.
    """
    engines: dict[Any, BuiltEngine] = {}

    def built_for_rtx(recipe: Recipe, work: Path) -> BuiltEngine:
        data = recipe.model.SerializeToString()
        key = (data, repr(recipe.profiles), repr(recipe.signature()), repr(recipe.shape_values))
        if key not in engines:
            with pytest.MonkeyPatch.context() as patch:  # the real builder, in this process: that is faster
                patch.setattr("trtc.engines.tensorrt.build.run_job", lambda job, _, tell: build_here(job, tell))
                built = engines[key] = build(work, recipe)
            engine_store.add(built.files[built.entry].read_bytes(), built_model(recipe, built))
        return engines[key]

    def make(model: onnx.ModelProto, **options: Any) -> Path:
        folder = tmp_path_factory.mktemp("bundle")
        recipe = Recipe(model, **options)
        if engine_kind == "rtx":
            recipe = replace(recipe, backend="tensorrt_rtx", target="rtx:sm89", profiles=closed(recipe.profiles))
            built = built_for_rtx(recipe, folder / "work")
        else:
            built = build(folder / "work", recipe)
        return write(folder / "model.trtc", recipe, built)

    return make


CLOSED = 16
"""Where a range is open for the CPU, it ends here for a target that needs ranges."""


def closed(profiles: tuple[dict[str, tuple[int, int | None]], ...]) -> tuple[dict[str, tuple[int, int | None]], ...]:
    return tuple(
        {symbol: (low, CLOSED if high is None else high) for symbol, (low, high) in ranges.items()}
        for ranges in profiles
    )


def built_model(recipe: Recipe, built: BuiltEngine) -> BuiltModel:
    """Tell the simulator what was built, in terms of the model and the ranges only."""
    used = [spec for spec in recipe.signature().inputs if spec.used]

    def shape(dims: tuple[Any, ...], profile: Profile, end: str) -> tuple[int, ...]:
        return tuple(d if isinstance(d, int) else getattr(profile.ranges[d], end) for d in dims)

    model = onnx.ModelProto()
    model.CopyFrom(recipe.model)
    kept = [value for value in model.graph.input if value.name in {spec.name for spec in used}]
    del model.graph.input[:]
    model.graph.input.extend(kept)
    return BuiltModel(
        model.SerializeToString(),
        tuple(
            {s.name: (shape(s.dims, p, "min"), shape(s.dims, p, "max")) for s in used} for p in recipe.ladder().profiles
        ),
        frozenset(built.options.get("shape_inputs", "").split()),
    )


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
