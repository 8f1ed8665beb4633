"""What cannot be built is found before the build, by node; and the real library agrees with every rule."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from trtc.engines.build import unheard
from trtc.engines.tensorrt.build import build_job, examine
from trtc.engines.tensorrt.process import run_job

FLOAT, INT64, STRING = TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING
N = helper.make_node


def constant(name, *values, dtype=np.float32):
    return numpy_helper.from_array(np.array(values, dtype), name)


def branch(operator, name):
    out = helper.make_tensor_value_info(name, FLOAT, None)
    return helper.make_graph([N(operator, ["x"], [name], name=f"{name}_node")], name, [], [out])


def nested_if():
    inner = N("If", ["c"], ["t"], name="inner", then_branch=branch("Relu", "a"), else_branch=branch("Neg", "b"))
    outer = helper.make_graph([inner], "outer", [], [helper.make_tensor_value_info("t", FLOAT, None)])
    return [N("If", ["c"], ["y"], name="outer", then_branch=outer, else_branch=branch("Abs", "d"))]


X, Y = {"x": (FLOAT, ["n", 4])}, {"y": (FLOAT, ["n", 4])}
CASES = {
    "NonZero": ("nz", ([N("NonZero", ["x"], ["y"], name="nz")], X, {"y": (INT64, [2, None])})),
    "NonMaxSuppression": (
        "nms",
        (
            [N("NonMaxSuppression", ["b", "s", "count", "iou"], ["y"], name="nms")],
            {"b": (FLOAT, [1, "n", 4]), "s": (FLOAT, [1, 1, "n"])},
            {"y": (INT64, [None, 3])},
            (constant("count", 10, dtype=np.int64), constant("iou", 0.5)),
        ),
    ),
    "SequenceConstruct": (
        "pair",
        (
            [N("SequenceConstruct", ["x", "x"], ["s"], name="pair"), N("SequenceAt", ["s", "zero"], ["y"], name="at")],
            X,
            Y,
            (numpy_helper.from_array(np.array(0), "zero"),),
        ),
    ),
    "DynamicQuantizeLinear": (
        "quantize",
        (
            [
                N("DynamicQuantizeLinear", ["x"], ["q", "scale", "zero"], name="quantize"),
                N("DequantizeLinear", ["q", "scale", "zero"], ["y"], name="back"),
            ],
            X,
            Y,
        ),
    ),
    "MatMulInteger": (
        "product",
        (
            [N("MatMulInteger", ["x", "w"], ["y"], name="product")],
            {"x": (TensorProto.INT8, ["n", 2])},
            {"y": (TensorProto.INT32, ["n", 2])},
            (numpy_helper.from_array(np.ones((2, 2), np.int8), "w"),),
        ),
    ),
    "If": ("inner", (nested_if(), X | {"c": (TensorProto.BOOL, [])}, Y)),
}
"""Operator, its node, and a model that holds it."""


@pytest.fixture
def looked_at(request_for):
    def look(model, target="rtx:sm89"):
        request = request_for(model, {"n": (1, 2, 4)}, target=target)
        return request, examine(request.model_path, request.target, request.folder)

    return look


@pytest.mark.parametrize("operator", CASES)
def test_what_cannot_be_built_is_named_and_the_library_agrees(looked_at, graph, operator):
    node, parts = CASES[operator]
    request, problems = looked_at(graph(*parts))
    assert (node, operator) in [(problem.node, problem.operator) for problem in problems]
    assert run_job(build_job(request), request.folder / "log", unheard).failure is not None


def test_one_if_is_no_problem(looked_at, graph):
    nodes = [N("If", ["c"], ["y"], name="only", then_branch=branch("Relu", "a"), else_branch=branch("Neg", "b"))]
    _, problems = looked_at(graph(nodes, X | {"c": (TensorProto.BOOL, [])}, Y))
    assert problems == ()


def test_every_problem_is_listed_and_not_only_the_first(looked_at, graph):
    nodes = [
        N("NonZero", ["x"], ["i"], name="first"),
        N("DynamicQuantizeLinear", ["x"], ["q", "scale", "zero"], name="second"),
        N("NonZero", ["scale"], ["j"], name="third"),
    ]
    _, problems = looked_at(graph(nodes, X, {"i": (INT64, [2, None]), "j": (INT64, [0, None])}))
    assert [problem.node for problem in problems] == ["first", "second", "third"]


@pytest.mark.parametrize(("name", "said"), [("STRING", "no string tensors"), ("UINT16", "no uint16 tensors")])
def test_types_that_the_library_does_not_have_are_named_by_input_and_output(looked_at, graph, name, said):
    dtype = getattr(TensorProto, name)
    model = graph([N("Identity", ["x"], ["y"], name="same")], {"x": (dtype, ["n"])}, {"y": (dtype, ["n"])})
    _, problems = looked_at(model)
    assert [problem.operator for problem in problems] == ["input 'x'", "output 'y'"]
    assert said in problems[0].message


class TestDouble:
    def test_computing_in_double_is_a_problem_because_the_library_computes_in_float(self, looked_at, graph):
        nodes = [
            N("Cast", ["x"], ["wide"], name="up", to=TensorProto.DOUBLE),
            N("Exp", ["wide"], ["big"], name="exponential"),
            N("Cast", ["big"], ["y"], name="down", to=FLOAT),
        ]
        request, problems = looked_at(graph(nodes, X, Y))
        assert [problem.node for problem in problems] == ["exponential"]
        # Asked directly, the library builds it without an error.
        assert run_job(build_job(request), request.folder / "log", unheard).failure is None

    def test_a_double_constant_that_is_cast_at_once_is_none(self, looked_at, graph):
        nodes = [N("Cast", ["two"], ["small"], name="down", to=FLOAT), N("Mul", ["x", "small"], ["y"], name="times")]
        _, problems = looked_at(graph(nodes, X, Y, (numpy_helper.from_array(np.array(2.0), "two"),)))
        assert problems == ()


class TestAttention:
    half = TensorProto.FLOAT16

    def model(self, graph, more=(), opset=24, **attributes):
        heads = {name: (self.half, ["n", 4, 8, 32]) for name in "qkv"}
        nodes = [N("Attention", ["q", "k", "v", *more], ["y"], name="attention", **attributes)]
        given = {"lengths": (INT64, ["n"])} if more else {}
        return graph(nodes, heads | given, {"y": (self.half, ["n", 4, 8, 32])}, opset=opset)

    def test_its_lengths_are_a_problem_because_the_parser_passes_over_them(self, looked_at, graph):
        _, problems = looked_at(self.model(graph, ("", "", "", "lengths")))
        assert [problem.node for problem in problems] == ["attention"]
        assert "use an explicit mask" in problems[0].message

    def test_an_attribute_that_the_parser_does_not_read_is_a_problem(self, looked_at, graph):
        schema = onnx.defs.get_schema("Attention")
        known = {"is_causal", "kv_num_heads", "q_num_heads", "qk_matmul_output_mode", "scale", "softcap"}
        new = sorted(schema.attributes.keys() - known - {"softmax_precision"})
        if not new:
            pytest.skip("this onnx knows no newer attribute of Attention")
        proto = self.model(graph, opset=schema.since_version, **{new[0]: 4})
        _, problems = looked_at(proto)
        assert f"its attribute {new[0]} would be ignored" in str(problems)


def test_operators_of_an_opset_that_the_library_does_not_know_are_named(looked_at, graph):
    newest = onnx.defs.onnx_opset_version()
    changed = [s.name for s in onnx.defs.get_all_schemas() if s.domain == "" and s.since_version == newest]
    if "Celu" not in changed:
        pytest.skip(f"opset {newest} did not change Celu")
    _, problems = looked_at(graph([N("Celu", ["x"], ["y"], name="celu")], X, Y, opset=newest))
    assert [problem.node for problem in problems] == ["celu"]
    assert f"it changed in opset {newest}" in problems[0].message


@pytest.mark.parametrize("fixture", ["ppocr_rec_path", "ppocr_det_path", "silero_ifless_path", "magika_path"])
def test_real_models_that_build_have_no_problem(request, request_for, fixture):
    made = request_for(request.getfixturevalue(fixture), {})
    assert examine(made.model_path, made.target, made.folder) == ()


def test_silero_is_refused_for_its_nested_ifs(silero_path, request_for):
    made = request_for(silero_path, {})
    problems = examine(made.model_path, made.target, made.folder)
    assert problems
    assert {problem.operator for problem in problems} == {"If"}
