"""Build for ONNX Runtime. On the CPU: fuse, optimise once, keep the optimised graph and its packed weights.

That engine is a plain ``.onnx`` file with its weights beside it, so that any ONNX Runtime of the same version opens
it, and loading neither optimises nor packs: weights are mapped from the file. Layout and packing follow the
processor's features, which therefore become requirements.

For a GPU the engine is the canonical model: what ONNX Runtime fuses depends on the provider, so it optimises when it
opens the engine, where the provider is. An optimised graph of the CPU would hold operators that no GPU provider has.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import onnx

from trtc.engines.build import BuiltEngine, Effort
from trtc.engines.errors import EngineError
from trtc.engines.host import this_host
from trtc.engines.manifest import Requirements
from trtc.engines.onnxruntime import onnxruntime
from trtc.engines.onnxruntime.canonical import build_for_gpu, graphs_of
from trtc.engines.onnxruntime.errors import ORT_ERRORS, engine_error
from trtc.engines.onnxruntime.fusions import fuse
from trtc.engines.onnxruntime.providers import wanted_provider

if TYPE_CHECKING:
    from pathlib import Path

    from trtc.engines.build import EngineRequest
    from trtc.engines.signature import Signature

EXTERNAL_MIN_BYTES = 1024
"""Initializers from this size on lie in the weights file; smaller ones stay in the graph."""


@dataclass(frozen=True, slots=True)
class _Way:
    """How the optimised graph is saved.

    Attributes:
        name: of the file.
        packed: weights in the layout that the kernels want.
        apart: weights in a file of their own.
    """

    name: str
    packed: bool
    apart: bool


_WAYS = (
    _Way("packed", packed=True, apart=True),
    # Saving packed weights is the newest part of this path: a model that it cannot serve is kept unpacked.
    _Way("plain", packed=False, apart=True),
    # ONNX Runtime 1.32 defines a constant of a nested branch twice when weights go to a file of their own.
    _Way("single", packed=False, apart=False),
)


def build_engine(request: EngineRequest) -> BuiltEngine:
    """Optimise the model for this processor, or keep it for a GPU.

    Raises:
        EngineError: when ONNX Runtime refuses the model.
    """
    provider = wanted_provider(request.target.options)
    source = _source(request)
    if provider != "cpu":
        return build_for_gpu(source, request, provider)
    effort = request.effort
    fused = None if effort.fuse == "none" else fuse(source, effort.fuse)
    if fused is not None:
        try:
            return _build(fused.path, request, fused.counts)
        except EngineError:
            # What ONNX Runtime refuses in a model of ours says nothing about the model.
            pass
    return _build(source, request, {})


def _build(model: Path, request: EngineRequest, fusions: dict[str, int]) -> BuiltEngine:
    for way in _WAYS:
        try:
            graph = _optimise(model, request, way)
            _open(graph)
        except ORT_ERRORS as error:
            if way is _WAYS[-1]:
                raise engine_error(error, "building the engine for target cpu") from error
        else:
            break
    options = {"packed_weights": str(way.packed).lower()}
    if fusions:
        options["fusions"] = ", ".join(f"{name} {count}" for name, count in fusions.items())
    if not request.effort.layout:
        options["optimization"] = "extended"
    return _as_blobs(graph, options, _less(request.effort, fusions))


def _less(effort: Effort, fusions: dict[str, int]) -> Effort | None:
    """What to leave out first: our rewrites, then ONNX Runtime's layouts, which round otherwise than the model."""
    if fusions:
        return Effort("none", effort.layout, "rewriting the graph")
    return Effort("none", layout=False, left_out="ONNX Runtime's own layouts of tensors") if effort.layout else None


def _source(request: EngineRequest) -> Path:
    """Return the model with the inputs that are read and the output shapes that runs found."""
    proto = onnx.load(request.model_path, load_external_data=False)
    dropped = _drop_unused_inputs(proto.graph, request.signature)
    if not _drop_wrong_shapes(proto.graph, request.signature) and not dropped:
        return request.model_path
    path = request.model_path.with_name("as-found.onnx")
    path.write_bytes(proto.SerializeToString())
    return path


def _drop_unused_inputs(graph: onnx.GraphProto, signature: Signature) -> bool:
    """Drop declared inputs that no node reads: callers may leave them out, so the engine must not ask for them."""
    unused = {spec.name for spec in signature.inputs if not spec.used}
    kept = [value for value in graph.input if value.name not in unused]
    del graph.input[:]
    graph.input.extend(kept)
    return bool(unused)


def _drop_wrong_shapes(graph: onnx.GraphProto, signature: Signature) -> bool:
    """Drop output shapes that do not hold: ONNX Runtime refuses to write into memory of another size than declared."""
    found = {spec.name: spec.dims for spec in signature.outputs}
    dropped = False
    for output in graph.output:
        if not output.type.HasField("tensor_type") or not output.type.tensor_type.HasField("shape"):
            continue
        declared, dims = output.type.tensor_type.shape.dim, found[output.name]
        if (
            dims is None
            or len(dims) != len(declared)
            or any(d.HasField("dim_value") and d.dim_value != dim for d, dim in zip(declared, dims, strict=True))
        ):
            output.type.tensor_type.ClearField("shape")
            dropped = True
    return dropped


def _optimise(source: Path, request: EngineRequest, way: _Way) -> Path:
    target = request.folder / f"{way.name}.onnx"
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = request.threads
    options.optimized_model_filepath = str(target)
    if not request.effort.layout:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    if way.apart:
        for name, value in {
            "session.optimized_model_external_initializers_file_name": target.stem + ".weights",
            "session.optimized_model_external_initializers_min_size_in_bytes": str(EXTERNAL_MIN_BYTES),
            "session.save_external_prepacked_constant_initializers": "1" if way.packed else "0",
        }.items():
            options.add_session_config_entry(name, value)
    onnxruntime.InferenceSession(str(source), options, providers=["CPUExecutionProvider"])
    return target


def _open(graph: Path) -> None:
    """Open the saved engine once: what cannot be opened here must not reach a bundle."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    onnxruntime.InferenceSession(str(graph), options, providers=["CPUExecutionProvider"])


def _as_blobs(graph: Path, options: dict[str, str], less: Effort | None) -> BuiltEngine:
    """Name the files by their digests, as in a bundle; the graph refers to its weights by that name."""
    files: dict[str, Path] = {}
    weights = graph.with_suffix(".weights")
    proto = onnx.load(graph, load_external_data=False)
    if weights.exists() and weights.stat().st_size:
        with weights.open("rb") as stream:
            name = hashlib.file_digest(stream, "sha256").hexdigest() + ".weights"
        files[f"blobs/{name}"] = weights.rename(weights.with_name(name))
        for graph_proto in graphs_of(proto.graph):
            for tensor in graph_proto.initializer:
                for entry in tensor.external_data:
                    if entry.key == "location":
                        entry.value = name
    data = proto.SerializeToString(deterministic=True)
    name = f"{hashlib.sha256(data).hexdigest()}.onnx"
    graph.unlink()
    entry = f"blobs/{name}"
    files[entry] = graph.with_name(name)
    files[entry].write_bytes(data)
    host = this_host()
    needs = Requirements(
        system=host.system,
        architecture=host.architecture,
        library="onnxruntime",
        library_version=onnxruntime.__version__,
        cpu_features=host.cpu_features,
    )
    return BuiltEngine(entry, files, needs, "model", options, less=less)
