"""What mutations start from: small models with something of each kind, and real bundles built from two of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from trtc.compiler import BuildOptions, ShapeOptions, build

if TYPE_CHECKING:
    from pathlib import Path

FLOAT, INT64, BOOL, STRING = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL, TensorProto.STRING


def value(name: str, dims: Any = ("B", 4), dtype: int = FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, dtype, dims)


def model(nodes: list[Any], inputs: list[Any], outputs: list[Any], **rest: Any) -> onnx.ModelProto:
    graph = helper.make_graph(nodes, "g", inputs, outputs, rest.get("initializers", []))
    opsets = [helper.make_opsetid(name, version) for name, version in rest.get("opsets", {"": 17}).items()]
    made = helper.make_model(graph, opset_imports=opsets, functions=rest.get("functions", []), ir_version=9)
    made.metadata_props.add(key="labels", value="a,b")
    return made


def external(name: str, dims: list[int], **entries: Any) -> onnx.TensorProto:
    tensor = TensorProto(name=name, data_type=FLOAT, dims=dims, data_location=TensorProto.EXTERNAL)
    for key, text in entries.items():
        tensor.external_data.add(key=key, value=str(text))
    return tensor


def branches() -> onnx.ModelProto:
    """Two branches, a function, external data."""
    two = numpy_helper.from_array(np.array([2.0], np.float32), "k")
    one = numpy_helper.from_array(np.array([1.0], np.float32), "i")
    then_nodes = [helper.make_node("Constant", [], ["k"], value=two), helper.make_node("Mul", ["t", "k"], ["a"])]
    then = helper.make_graph(then_nodes, "then", [], [value("a")])
    other = helper.make_graph([helper.make_node("Add", ["t", "i"], ["b"])], "else", [], [value("b")], [one])
    negate = helper.make_node("Neg", ["p"], ["q"])
    function = helper.make_function("my", "F", ["p"], ["q"], [negate], [helper.make_opsetid("", 17)])
    nodes = [
        helper.make_node("F", ["x"], ["u"], "call", domain="my"),
        helper.make_node("ReduceSum", ["w"], ["r"], keepdims=0),
        helper.make_node("Add", ["u", "r"], ["t"]),
        helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=other),
    ]
    weights = [external("w", [20, 30], location="w.bin", offset=0, length=2400)]
    inputs = [value("x"), value("c", [], BOOL)]
    return model(nodes, inputs, [value("y")], initializers=weights, opsets={"": 17, "my": 1}, functions=[function])


def loops() -> onnx.ModelProto:
    """A loop over a state, and a shape that is computed."""
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["go"], ["go_on"]),
            helper.make_node("Add", ["v", "v"], ["v_next"]),
        ],
        "body",
        [value("i", [], INT64), value("go", [], BOOL), value("v")],
        [value("go_on", [], BOOL), value("v_next")],
    )
    limit = numpy_helper.from_array(np.array(2, np.int64), "n")
    shape = numpy_helper.from_array(np.array([-1], np.int64), "flat")
    nodes = [
        helper.make_node("Loop", ["n", "", "x"], ["s"], body=body),
        helper.make_node("Reshape", ["s", "flat"], ["y"]),
        helper.make_node("Shape", ["x"], ["size"]),
    ]
    outputs = [value("y", ["m"]), value("size", [2], INT64)]
    return model(nodes, [value("x", ("B", "W"))], outputs, initializers=[limit, shape])


def kinds() -> onnx.ModelProto:
    """Strings, sequences, half precision, a sparse constant, convolution with attributes."""
    sparse = helper.make_sparse_tensor(
        helper.make_tensor("v", FLOAT, [2], [1.0, 2.0]), helper.make_tensor("p", INT64, [2], [0, 3]), [4]
    )
    filters = numpy_helper.from_array(np.ones((2, 1, 3), np.float32), "f")
    half = numpy_helper.from_array(np.ones(4, np.float16), "h")
    nodes = [
        helper.make_node("Constant", [], ["sp"], sparse_value=sparse),
        helper.make_node("Add", ["x", "sp"], ["a"]),
        helper.make_node("Cast", ["h"], ["hf"], to=FLOAT),
        helper.make_node("Mul", ["a", "hf"], ["b"]),
        helper.make_node("Unsqueeze", ["b", "one"], ["c"]),
        helper.make_node("Conv", ["c", "f"], ["d"], pads=[1, 1], strides=[1]),
        helper.make_node("SplitToSequence", ["d", "two"], ["parts"], axis=1),
        helper.make_node("Identity", ["words"], ["same"]),
    ]
    one = numpy_helper.from_array(np.array([1], np.int64), "one")
    parts = helper.make_tensor_sequence_value_info("parts", FLOAT, ["B", 1, 4])
    return model(
        nodes,
        [value("x"), value("words", ["N"], STRING)],
        [value("d", ["B", 2, 4]), parts, value("same", ["N"], STRING)],
        initializers=[filters, half, one, numpy_helper.from_array(np.array(1, np.int64), "two")],
    )


def masked_sum() -> onnx.ModelProto:
    """``y[batch] = sum over seq of x * mask``: padding is neutral."""
    nodes = [
        helper.make_node("Cast", ["mask"], ["m"], to=FLOAT),
        helper.make_node("Mul", ["x", "m"], ["each"]),
        helper.make_node("ReduceSum", ["each", "axes"], ["y"], keepdims=0),
    ]
    axes = helper.make_tensor("axes", INT64, [1], [1])
    inputs = [value("x", ("batch", "seq")), value("mask", ("batch", "seq"), INT64)]
    outputs = [value("y", ("batch",)), value("each", ("batch", "seq"))]
    return model(nodes, inputs, outputs, initializers=[axes])


def projection() -> onnx.ModelProto:
    """``y = x @ w``: one dynamic axis, weights beside the graph."""
    weights = numpy_helper.from_array(np.arange(64, dtype=np.float32).reshape(4, 16), "w")
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    return model([node], [value("x")], [value("y", ("B", 16))], initializers=[weights])


def models() -> list[onnx.ModelProto]:
    return [branches(), loops(), kinds(), masked_sum(), projection()]


def model_folder(folder: Path) -> Path:
    """Make the folder that mutated models lie in: their weights, links that lead out, a pipe; secrets beside it."""
    outside = folder / "outside"
    outside.mkdir(parents=True)
    (outside / "secret.txt").write_bytes(b"secret" * 500)
    inside = folder / "inside"
    (inside / "deep").mkdir(parents=True)
    (inside / "w.bin").write_bytes(np.arange(600, dtype="<f4").tobytes())
    (inside / "link").symlink_to(outside / "secret.txt")
    (inside / "up").symlink_to(outside)
    (inside / "twice").hardlink_to(outside / "secret.txt")
    return inside


def bundle(folder: Path, name: str) -> Path:
    """Build a bundle: ``padded`` with buckets and evidence, ``exact`` with open sizes."""
    proto = masked_sum() if name == "padded" else projection()
    path = folder / f"{name}.onnx"
    onnx.save(proto, path)
    declared: dict[str, Any] = {"measure_s": 0.0, "verify_s": 1.0, "use_cache": False, "threads": 1}
    if name == "padded":
        shapes = ShapeOptions(dim=("batch=1..4",), buckets=("seq=4,8",))
        pads = {"pads": ("seq", "batch"), "fills": ("x=0", "mask=0")}
        declared |= {"shapes": shapes, "mode": "bucket", **pads}
    build(path, folder / f"{name}.trtc", BuildOptions(**declared))
    return folder / f"{name}.trtc"
