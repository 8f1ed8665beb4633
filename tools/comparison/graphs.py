"""Graphs whose inner tensors can be looked at: each run returns the ones that are asked for, as outputs."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from trtc.profiles import HostError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import onnx

    from trtc.compiler.model import Model


@dataclass(frozen=True, slots=True)
class Node:
    """What makes a tensor.

    Attributes:
        name: of the node; may be empty.
        operator: its type.
        inputs: tensors that it reads, those of its branches included.
    """

    name: str
    operator: str
    inputs: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.operator} {self.name!r}" if self.name else f"an unnamed {self.operator}"


@dataclass(frozen=True)
class Graph:
    """A graph in ONNX Runtime, without optimizations.

    Attributes:
        name: for people.
        folder: that the file's weights lie in.
        proto: the graph, without its weights.
        threads: of one run.
        makers: the node that makes each tensor, in the order in which they run.
    """

    name: str
    folder: Path
    proto: onnx.ModelProto
    threads: int
    makers: dict[str, Node] = field(init=False)

    def __post_init__(self) -> None:
        from trtc.compiler.onnx_types import all_nodes, subgraphs

        makers = {}
        for node in self.proto.graph.node:
            inner = [name for graph in subgraphs(node) for n in all_nodes(graph) for name in n.input]
            reads = tuple(dict.fromkeys(name for name in (*node.input, *inner) if name))
            for output in node.output:
                if output:
                    makers[output] = Node(node.name, node.op_type, reads)
        object.__setattr__(self, "makers", makers)

    @property
    def outputs(self) -> list[str]:
        """Names of the outputs."""
        return [output.name for output in self.proto.graph.output]

    def inferred_bytes(self, feeds: Mapping[str, Any]) -> dict[str, int]:
        """Infer how large tensors are at the sizes of these inputs; those that inference cannot tell are absent."""
        import onnx

        from trtc.compiler.onnx_types import dtype_text, tensor_dims
        from trtc.engines.signature import TENSOR_TYPES, numpy_dtype

        sized = onnx.ModelProto()
        sized.CopyFrom(self.proto)
        del sized.graph.value_info[:]
        for value in sized.graph.input:
            if value.name in feeds and value.type.HasField("tensor_type"):
                del value.type.tensor_type.shape.dim[:]
                for size in np.shape(feeds[value.name]):
                    value.type.tensor_type.shape.dim.add(dim_value=size)
        try:
            inferred = onnx.shape_inference.infer_shapes(sized, data_prop=True).graph
        except Exception:  # noqa: BLE001 (what is not inferred is looked at one by one)
            return {}
        found = {}
        for value in (*inferred.value_info, *inferred.output):
            dims, dtype = tensor_dims(value.type), dtype_text(value.type)
            if dims is not None and dtype in TENSOR_TYPES and all(isinstance(dim, int) for dim in dims):
                found[value.name] = prod(int(dim) for dim in dims if isinstance(dim, int)) * numpy_dtype(dtype).itemsize
        return found

    def run(self, feeds: Mapping[str, Any], wanted: Sequence[str]) -> dict[str, np.ndarray]:
        """Run once and return these tensors.

        Args:
            feeds: inputs by name; those that the graph does not have are left out.
            wanted: names of tensors.

        Raises:
            EngineError: when the library refuses the marked graph, or fails.
        """
        import onnx

        from trtc.engines.onnxruntime import onnxruntime
        from trtc.engines.onnxruntime.errors import ORT_ERRORS, engine_error
        from trtc.engines.onnxruntime.load import session_options

        marked = onnx.ModelProto()
        marked.CopyFrom(self.proto)
        declared = {output.name: output for output in self.proto.graph.output}
        del marked.graph.output[:]
        marked.graph.output.extend(declared.get(name) or onnx.ValueInfoProto(name=name) for name in wanted)
        options = session_options(self.threads, spinning=False)
        options.enable_cpu_mem_arena = False
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(self.folder))
        known = {value.name for value in self.proto.graph.input}
        try:
            session = onnxruntime.InferenceSession(
                marked.SerializeToString(), options, providers=["CPUExecutionProvider"]
            )
            values = session.run(list(wanted), {name: value for name, value in feeds.items() if name in known})
        except ORT_ERRORS as error:
            raise engine_error(error, f"running {self.name} with inner tensors as outputs") from error
        return dict(zip(wanted, values, strict=True))


def model_graph(model: Model, name: str, threads: int) -> Graph:
    """Take a model's own graph."""
    return Graph(name, model.folder, model.proto, threads)


def engine_graph(bundle: Path, engine: str, threads: int) -> Graph:
    """Take the graph of a bundle's engine, its files checked.

    Args:
        bundle: its path; its files must stay while the graph is used.
        engine: name, or ``auto``.
        threads: of one run.

    Raises:
        UsageError: when the engine is no ONNX graph.
        HostError: when no engine fits this host.
    """
    import onnx

    from trtc.engines.bundle import open_engine
    from trtc.engines.host import this_host
    from trtc.runtime.choice import AUTO, Wish, choose

    # An engine for a GPU has no tensors to look at: it counts only when it is asked for, and is then refused by name.
    wish = Wish(engine, "cpu" if engine == AUTO else "")
    with open_engine(bundle, lambda manifest: choose(manifest, this_host(), wish).record) as reader:
        if reader.record.backend != "onnxruntime":
            raise UsageError(
                f"--localize: engine {reader.record.name} of {bundle} is compiled for {reader.record.target} and has "
                "no tensors that can be looked at; localize in an engine for target cpu"
            )
        entry = reader.files[reader.record.entry]
        proto = onnx.load(entry, load_external_data=False)
    return Graph(f"engine {reader.record.name} of {bundle}", entry.parent, proto, threads)


def require_room(size_bytes: int, limit_bytes: int, what: str) -> None:
    """Refuse tensors that are larger than the limit.

    Raises:
        HostError: naming both.
    """
    if size_bytes > limit_bytes:
        raise HostError(
            f"{what} takes {size_bytes} bytes on both sides together, the limit is {limit_bytes}; "
            "raise --localize-memory, or give a smaller request"
        )
