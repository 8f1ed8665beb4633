"""The engine of a GPU provider: the canonical model as it is, its weights named by their digests."""

from __future__ import annotations

import hashlib
import shutil
from typing import TYPE_CHECKING

import onnx

from trtc.engines.build import BuiltEngine
from trtc.engines.gpu import DEVICE_KIND
from trtc.engines.manifest import Requirements
from trtc.engines.onnxruntime import onnxruntime
from trtc.engines.onnxruntime.providers import PROVIDER, PROVIDERS, shapes_text

if TYPE_CHECKING:
    from pathlib import Path

    from trtc.engines.build import EngineRequest

LIBRARY = "onnxruntime-gpu"


def build_for_gpu(source: Path, request: EngineRequest, provider: str) -> BuiltEngine:
    """Keep the model for a GPU provider, which optimises it when it is opened.

    Args:
        source: the canonical model with the inputs that are read; external data lies beside it.
        request: what is built.
        provider: a key of ``PROVIDERS``.

    Raises:
        UsageError: for open ranges, with TensorRT.
        EngineError: for inputs that cannot be named to TensorRT's provider.
    """
    options = {PROVIDER: provider}
    if provider == "tensorrt":
        options |= shapes_text(request.signature, request.ladder)
    proto = onnx.load(source, load_external_data=False)
    files: dict[str, Path] = {}
    named: dict[str, str] = {}
    for graph in graphs_of(proto.graph):
        for tensor in _tensors(graph):
            for entry in tensor.external_data:
                if entry.key == "location":
                    if entry.value not in named:
                        named[entry.value] = _keep(source.parent / entry.value, request.folder, files)
                    entry.value = named[entry.value]
    data = proto.SerializeToString(deterministic=True)
    entry_name = f"{hashlib.sha256(data).hexdigest()}.onnx"
    files[f"blobs/{entry_name}"] = request.folder / entry_name
    files[f"blobs/{entry_name}"].write_bytes(data)
    return BuiltEngine(f"blobs/{entry_name}", files, _requirements(provider), "model", options)


def graphs_of(graph: onnx.GraphProto) -> list[onnx.GraphProto]:
    """Return a graph and all graphs inside its nodes."""
    found = [graph]
    for node in graph.node:
        for attribute in node.attribute:
            inner = [attribute.g] if attribute.type == onnx.AttributeProto.GRAPH else list(attribute.graphs)
            found += [deep for each in inner for deep in graphs_of(each)]
    return found


def _tensors(graph: onnx.GraphProto) -> list[onnx.TensorProto]:
    """Return the tensors of a graph that may lie in other files: initializers, and values of nodes."""
    values = [attribute for node in graph.node for attribute in node.attribute]
    return [*graph.initializer, *(value.t for value in values if value.HasField("t"))]


def _keep(weights: Path, folder: Path, files: dict[str, Path]) -> str:
    """Put one file of weights among the engine's, under the name of its digest; return that name."""
    with weights.open("rb") as stream:
        name = hashlib.file_digest(stream, "sha256").hexdigest() + ".weights"
    kept = folder / name
    if not kept.exists():
        # No hard link: other targets are built from the same file, and readers of external data refuse two names.
        shutil.copyfile(weights, kept)
    files[f"blobs/{name}"] = kept
    return name


def _requirements(provider: str) -> Requirements:
    """The model runs with any version; one that has the provider and built the engine is what the results are from."""
    has_it = PROVIDERS[provider] in onnxruntime.get_available_providers()
    return Requirements(library=LIBRARY, library_version=onnxruntime.__version__ if has_it else "", device=DEVICE_KIND)
