"""Graphs: subgraphs, constants, values that decide shapes, outputs that the data sizes, odd declarations."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from onnx import TensorProto, helper

from trtc.engines.signature import numpy_dtype
from trtc.profiles import CheckError, ModelError, RequestError, TrtcError
from trtc.runtime import load


def floats(*values):
    return np.array(values, np.float32)


@pytest.mark.case("A clean-up removes what only a branch reads")
def test_branches_read_values_of_the_graph_around_them(serve):
    """Both branches answer: one reads an inner value, the other a constant of the main graph."""
    graph = """g (bool c, float[N] x) => (float[N] y) <float[1] w = {5}> {
        a = Identity (x)
        y = If (c) <then_branch = t () => (float[N] p) { p = Neg (a) },
                    else_branch = e () => (float[N] q) { q = Add (x, w) }>
    }"""
    session = serve(graph, dim=("N=1..4",))
    assert_array_equal(session.run({"c": True, "x": floats(1, 2)})["y"], [-1, -2])
    assert_array_equal(session.run({"c": False, "x": floats(1, 2)})["y"], [6, 7])


@pytest.mark.case("A value that only a branch inside a branch reads")
def test_nested_branches_read_values_two_graphs_out(serve):
    """Names are followed through every level; equal names of unrelated branches do not meet."""
    graph = """g (bool c, bool d, float[N] x) => (float[N] y) <float[1] w = {5}> {
        a = Add (x, w)
        y = If (c) <then_branch = t () => (float[N] p) {
                        p = If (d) <then_branch = tt () => (float[N] r) { s = Neg (a)  r = Mul (s, w) },
                                    else_branch = te () => (float[N] r) { s = Abs (x)  r = Mul (s, w) }>
                    },
                    else_branch = e () => (float[N] p) { s = Neg (x)  p = Identity (s) }>
    }"""
    session = serve(graph, dim=("N=1..4",))
    right = {(True, True): [-30], (True, False): [5], (False, True): [-1], (False, False): [-1]}
    for (c, d), y in right.items():
        assert_array_equal(session.run({"c": c, "d": d, "x": floats(1)})["y"], y)


@pytest.mark.case("A branch returns an outer value directly")
def test_a_branch_may_return_an_outer_value(serve):
    """ONNX Runtime refuses such a branch; an Identity is put in, and the answer is the value."""
    graph = """g (bool c, float[N] x) => (float[N] y) {
        a = Neg (x)
        y = If (c) <then_branch = t () => (float[N] a) { unused = Neg (x) },
                    else_branch = e () => (float[N] q) { q = Abs (x) }>
    }"""
    session = serve(graph, dim=("N=1..4",))
    assert_array_equal(session.run({"c": True, "x": floats(1, -2)})["y"], [-1, 2])
    assert_array_equal(session.run({"c": False, "x": floats(1, -2)})["y"], [1, 2])


@pytest.mark.case("Branches of different rank")
def test_branches_may_differ_in_rank(serve):
    """The output has no fixed rank and is sized after each run."""
    graph = """g (bool c, float[2] x) => (y) {
        y = If (c) <then_branch = t () => (float[2] p) { p = Neg (x) },
                    else_branch = e () => (float q) { q = ReduceSum <keepdims = 0> (x) }>
    }"""
    session = serve(graph)
    for _ in range(2):
        assert_array_equal(session.run({"c": True, "x": floats(1, 2)})["y"], [-1, -2])
        total = session.run({"c": False, "x": floats(1, 2)})["y"]
        assert total.shape == ()
        assert total == 3


LOOP = """g (int64 n, float[1] x, float[1] start) => (float[1] y) <bool go = {1}> {
    y = Loop (n, go, start) <body = b (int64 i, bool c, float[1] s) => (bool d, float[1] t) {
        d = Identity (c)
        t = Add (s, x)
    }>
}"""


@pytest.mark.case("A loop reads the graph around it, and may not turn at all")
@pytest.mark.parametrize(("count", "right"), [(3, 3), (0, 0), (1, 1)])
def test_a_loop_turns_as_often_as_asked(serve, count, right):
    """No turn returns the initial value unchanged."""
    got = serve(LOOP, val_ranges=("n:[0,5]",)).run({"n": count, "x": floats(1), "start": floats(0)})
    assert_array_equal(got["y"], [right])


@pytest.mark.case("A loop that returns one value for each turn")
@pytest.mark.parametrize("count", [0, 1, 4])
def test_a_loop_that_gathers_values_is_sized_after_the_run(serve, count):
    """The number of turns is data: the output has as many rows, none for none."""
    graph = """g (int64 n, float[2] x) => (float[T,2] y) <bool go = {1}> {
        y = Loop (n, go) <body = b (int64 i, bool c) => (bool d, float[2] t) { d = Identity (c)  t = Neg (x) }>
    }"""
    got = serve(graph, val_ranges=("n:[0,5]",)).run({"n": count, "x": floats(1, 2)})["y"]
    assert_array_equal(got, np.tile(floats(-1, -2), (count, 1)).reshape(count, 2))


@pytest.mark.case("An input is an output as well")
def test_an_input_that_is_an_output_comes_back_as_a_copy(serve):
    """Names stay; the answer is the value, in memory of its own."""
    session = serve("g (float[B,2] x) => (float[B,2] x) { unused = Neg (x) }", dim=("B=1..4",))
    x = np.ones((2, 2), np.float32)
    got = session.run({"x": x})["x"]
    assert_array_equal(got, x)
    assert not np.shares_memory(got, x)
    x[:] = 5
    assert_array_equal(got, np.ones((2, 2)))


@pytest.mark.case("A model without inputs")
def test_a_model_without_inputs_runs_in_python_and_on_the_command_line(build, trtc):
    """A constant and an initializer that are outputs keep their names; the empty request is a request."""
    graph = "g () => (float[2] y, float[1] w) <float[1] w = {3}> { y = Constant <value_floats = [1.0, 2.0]> () }"
    bundle = build(graph).path
    with load(bundle) as session:
        for _ in range(2):
            got = session.run({})
            assert_array_equal(got["y"], [1, 2])
            assert_array_equal(got["w"], [3])
    said = trtc("run", bundle)
    assert said.code == 0, said.err


@pytest.mark.case("Two outputs are one value")
def test_outputs_that_are_the_same_value_have_memory_of_their_own(serve):
    """Neither is lost, and changing one leaves the other."""
    session = serve("g (float[B] x) => (float[B] y, float[B] z) { a = Neg (x) y = Identity (a) z = Identity (a) }")
    got = session.run({"x": floats(1, 2)})
    assert_array_equal(got["y"], [-1, -2])
    assert_array_equal(got["z"], [-1, -2])
    assert not np.shares_memory(got["y"], got["z"])


def with_default(parsed, ir):
    proto = parsed("g (float[1] x, float[1] w) => (float[1] y) <float[1] w = {5}> { y = Add (x, w) }")
    proto.ir_version = ir
    if not any(value.name == "w" for value in proto.graph.input):
        proto.graph.input.append(helper.make_tensor_value_info("w", TensorProto.FLOAT, [1]))
    return proto


@pytest.mark.case("A weight is listed as an input")
def test_before_ir_4_a_listed_weight_is_a_constant(serve, parsed):
    """It is no input: giving it is an error, and never silently without effect."""
    session = serve(with_default(parsed, 3))
    assert [spec.name for spec in session.signature.inputs] == ["x"]
    assert_array_equal(session.run({"x": floats(0)})["y"], [5])
    with pytest.raises(RequestError, match="there is no input 'w'"):
        session.run({"x": floats(0), "w": floats(9)})


@pytest.mark.case("A weight is an input with a default")
def test_since_ir_4_a_listed_weight_may_be_given_or_left_out(serve, parsed):
    """The override works on every call, and the default comes back after it."""
    session = serve(with_default(parsed, 8))
    for _ in range(2):
        assert_array_equal(session.run({"x": floats(0)})["y"], [5])
        assert_array_equal(session.run({"x": floats(0), "w": floats(9)})["y"], [9])


@pytest.mark.case("An input says which shape to make")
@pytest.mark.parametrize(
    ("graph", "val_range", "values", "right"),
    [
        pytest.param(
            "(float[6] x, int64[2] s) => (float[A,C] y) { y = Reshape (x, s) }",
            "s:[1,6]",
            [[2, 3], [-1, 3]],
            (2, 3),
            id="reshape",
        ),
        pytest.param(
            "(float[6] x, int64[2] s) => (float[A,C] y) { y = Expand (x, s) }",
            "s:[1,6]",
            [[2, 6], [2, 1]],
            (2, 6),
            id="expand",
        ),
        pytest.param(
            "(float[6] x, int64[1] s) => (float[A] y) { y = Tile (x, s) }", "s:[0,4]", [[2]], (12,), id="tile"
        ),
        pytest.param(
            "(float[6] x, int64[1] s) => (float[A] y) { y = Tile (x, s) }", "s:[0,4]", [[0]], (0,), id="tile-0"
        ),
        pytest.param(
            "(float[6] x, int64[2] s) => (float[A,C] y) { z = ConstantOfShape (s)  a = ReduceSum(x)  y = Add (z, a) }",
            "s:[0,4]",
            [[2, 3]],
            (2, 3),
            id="constant-of-shape",
        ),
        pytest.param(
            "(float[1,1,2,3] x, int64[4] s) => (float[A,C,H,W] y) { y = Resize (x, , , s) }",
            "s:[1,6]",
            [[1, 1, 4, 6]],
            (1, 1, 4, 6),
            id="resize",
        ),
    ],
)
def test_values_that_decide_a_shape_are_followed(serve, graph, val_range, values, right):
    """Such an input is told in the notes; the output has the size that its values ask for."""
    session = serve(f"g {graph}", val_ranges=(val_range,))
    spec = session.signature.inputs[0]
    x = np.arange(6, dtype=np.float32).reshape(spec.dims)
    for value in values:
        for _ in range(2):
            assert session.run({"x": x, "s": np.array(value)})["y"].shape == right


@pytest.mark.case("An input that decides a shape is padded or batched")
def test_values_that_decide_a_shape_are_neither_padded_nor_batched(build):
    """Its values would be padding as well: refused, naming the input; notes ask for its range."""
    graph = "g (float[N] x, int64[R] s) => (y) { y = Reshape (x, s) }"
    report = build(graph)
    assert any("'s' decides shapes" in note and "--val-range 's:[" in note for note in report.notes), report.notes
    with pytest.raises(CheckError, match=r"'s'|N is refused"):
        build(graph, buckets=("N=8",), pads=("N:right",), fills=("x=0",), mode="bucket")


@pytest.mark.case("An input asks for an impossible shape")
@pytest.mark.parametrize("repeats", [-1, 2**62])
def test_a_shape_that_cannot_be_is_an_error_and_the_next_call_is_right(serve, repeats):
    """No crash and no garbage: one error, and the session goes on."""
    session = serve("g (float[6] x, int64[1] s) => (float[A] y) { y = Tile (x, s) }", val_ranges=("s:[0,4]",))
    x = np.arange(6, dtype=np.float32)
    with pytest.raises(TrtcError, match="Tile"):
        session.run({"x": x, "s": np.array([repeats])})
    assert_array_equal(session.run({"x": x, "s": np.array([2])})["y"], np.tile(x, 2))


@pytest.mark.case("The data decides how large an output is")
def test_outputs_that_the_data_sizes_are_sized_after_the_run(build, serve):
    """As many columns as there are hits, none for none; padding and batching are refused for such a model."""
    graph = "g (float[B,4] x) => (int64[2,N] y) { y = NonZero (x) }"
    session = serve(graph, dim=("B=1..4",))
    for _ in range(2):
        assert_array_equal(session.run({"x": floats([0, 1, 0, 2])})["y"], [[0, 0], [1, 3]])
        assert session.run({"x": np.zeros((1, 4), np.float32)})["y"].shape == (2, 0)
        assert session.run({"x": np.ones((4, 4), np.float32)})["y"].shape == (2, 16)
    with pytest.raises(CheckError, match="B is refused"):
        build(graph, buckets=("B=4",), pads=("B",), mode="bucket")


@pytest.mark.case("Nothing is detected")
def test_no_boxes_are_an_empty_answer(serve):
    """(0, 3) for no kept box, and the next call finds its boxes."""
    graph = """g (float[1,N,4] boxes, float[1,1,N] scores) => (int64[K,3] y) <int64 most = {9}, float iou = {0.5},
        float least = {0.5}> { y = NonMaxSuppression (boxes, scores, most, iou, least) }"""
    session = serve(graph, dim=("N=1..8",))
    boxes = floats([[0, 0, 1, 1], [2, 2, 3, 3]])
    assert session.run({"boxes": boxes, "scores": floats([[0.1, 0.2]])})["y"].shape == (0, 3)
    assert_array_equal(session.run({"boxes": boxes, "scores": floats([[0.1, 0.9]])})["y"], [[0, 0, 1]])


@pytest.mark.case("A declared shape does not hold")
@pytest.mark.parametrize(
    ("graph", "shape"),
    [
        pytest.param("(float[B,4] x) => (float[B,5] y) { y = Relu (x) }", (2, 4), id="another-size"),
        pytest.param("(float[B,4] x) => (float[B,4,1] y) { y = Relu (x) }", (2, 4), id="another-rank"),
        pytest.param("(float[B,4] x) => (float[7,4] y) { y = Relu (x) }", (2, 4), id="fixed-batch"),
        pytest.param("(float[B,4] x) => (int64[2,3] y) { y = NonZero (x) }", (2, 8), id="sized-by-the-data"),
    ],
)
def test_sizes_come_from_runs_and_contradictions_are_reported(build, graph, shape):
    """The answer has its real shape, and the build says which declaration is wrong."""
    report = build(f"g {graph}", dim=("B=1..8",))
    assert any("'y'" in note for note in report.notes), report.notes
    with load(report.path) as session:
        for _ in range(2):
            assert session.run({"x": np.ones((2, 4), np.float32)})["y"].shape == shape


@pytest.mark.case("An inner shape or type is declared wrongly")
@pytest.mark.parametrize("info", [("a", TensorProto.FLOAT, ["B", 7]), ("a", TensorProto.INT64, ["B", 4])])
def test_claims_about_inner_values_are_not_believed(serve, parsed, info):
    """They are dropped: only runs and inference count."""
    proto = parsed("g (float[B,4] x) => (float[B,4] y) { a = Relu (x)  y = Neg (a) }")
    proto.graph.value_info.append(helper.make_tensor_value_info(*info))
    assert_array_equal(serve(proto, dim=("B=1..4",)).run({"x": np.ones((3, 4), np.float32)})["y"], np.full((3, 4), -1))


@pytest.mark.case("An output has only a name")
@pytest.mark.parametrize(
    ("node", "text"),
    [
        ("y = ReduceMean <axes = [1], keepdims = 0> (x)", "y: float [B]"),
        ("y = ArgMax <axis = 1, keepdims = 0> (x)", "y: int64 [B]"),
        ("y = Cast <to = 16> (x)", "y: bfloat16 [B, S]"),
        ("y = SequenceConstruct (x, x)", "y: seq(tensor(float))"),
    ],
)
def test_an_output_without_a_type_gets_the_one_that_it_has(serve, node, text):
    """Its type is inferred and its sizes come from runs, so that it lies in planned memory like any other."""
    session = serve(f"g (float[B,S] x) => (y) {{ {node} }}", dim=("B=1..4", "S=1..4"))
    assert str(session.signature.outputs[0]) == text
    got = session.run({"x": np.ones((2, 3), np.float32)})["y"]
    assert len(got) == 2


@pytest.mark.case("An element type that numpy does not have")
@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float8e4m3fn", "float8e5m2"])
def test_narrow_types_go_in_and_come_out_as_they_are(serve, parsed, dtype):
    """As arrays of ml_dtypes, with every bit kept."""
    proto = parsed(f"g ({dtype}[B,3] x) => ({dtype}[B,3] y) {{ y = Identity (x) }}")
    proto.opset_import[0].version = 21
    x = np.array([[1, 2, 7]]).astype(numpy_dtype(dtype))
    session = serve(proto, dim=("B=1..4",))
    for array in (x, x[:, ::-1], np.concatenate([x, x])):
        got = session.run({"x": array})["y"]
        assert got.dtype == x.dtype
        assert_array_equal(got.astype(np.float32), array.astype(np.float32))


@pytest.mark.case("NaN and infinities")
def test_values_that_are_not_finite_keep_their_bits(serve):
    """NaN, -Inf and 0 come out of a logarithm as they are."""
    with np.errstate(all="ignore"):
        got = serve("g (float[B] x) => (float[B] y) { y = Log (x) }", dim=("B=1..4",)).run({"x": floats(-1, 0, 1)})["y"]
    assert_array_equal(got, [np.nan, -np.inf, 0])


@pytest.mark.case("Functions of the model's own")
def test_local_functions_are_inlined_each_with_its_own_constants(serve, parsed):
    """Two functions that each hold a constant c (1 and 2): x + 1 + 2, never one constant twice."""
    head = '<ir_version: 10, opset_import: ["" : 17, "my.dom" : 1]>'
    functions = "".join(
        f'<domain: "my.dom", opset_import: ["" : 17]> {name} (a) => (b) {{ c = Constant <value_float = {value}> ()'
        " b = Add (a, c) }\n"
        for name, value in (("One", 1.0), ("Two", 2.0))
    )
    proto = parsed("g (float[N] x) => (float[N] y) { a = my.dom.One (x)  y = my.dom.Two (a) }\n" + functions, head)
    assert_array_equal(serve(proto, dim=("N=1..4",)).run({"x": floats(0, 1)})["y"], [3, 4])


@pytest.mark.case("A function whose domain is not imported")
def test_a_missing_import_is_named(build, parsed):
    """The error names the domain; it is not guessed."""
    head = '<ir_version: 10, opset_import: ["" : 17]>'
    function = '<domain: "my.dom", opset_import: ["" : 17]> Twice (a) => (b) { b = Add (a, a) }'
    proto = parsed("g (float[N] x) => (float[N] y) { y = my.dom.Twice (x) }\n" + function, head)
    with pytest.raises(ModelError, match=r"my\.dom"):
        build(proto)


@pytest.mark.case("The standard domain is spelled ai.onnx")
def test_both_spellings_of_the_standard_domain_are_one(serve, parsed):
    """In the import as on nodes."""
    proto = parsed("g (float[N] x) => (float[N] y) { y = Relu (x) }")
    proto.opset_import[0].domain = proto.graph.node[0].domain = "ai.onnx"
    assert_array_equal(serve(proto, dim=("N=1..4",)).run({"x": floats(-1, 1)})["y"], [0, 1])


@pytest.mark.case("Versions newer than the libraries, or none")
@pytest.mark.parametrize(
    ("ir", "opset", "words"),
    [
        pytest.param(99, 17, r"99.*\d", id="ir-99"),
        pytest.param(10, 99, r"99.*\d", id="opset-99"),
        pytest.param(0, 17, r"ir_version is not set.*\d", id="ir-unset"),
        pytest.param(10, None, "opset", id="no-opset-at-all"),
    ],
)
def test_a_version_that_is_not_supported_is_told_with_both_numbers(build, parsed, ir, opset, words):
    """Read before anything else; the number is never silently lowered."""
    proto = parsed("g (float[N] x) => (float[N] y) { y = Relu (x) }")
    proto.ir_version = ir
    if opset is None:
        del proto.opset_import[:]
    else:
        proto.opset_import[0].version = opset
    with pytest.raises(ModelError, match=words):
        build(proto)


@pytest.mark.case("An old opset")
def test_an_old_opset_works_where_its_operators_do(serve, parsed):
    """Relu at opset 6 with IR 3."""
    proto = parsed("g (float[N] x) => (float[N] y) { y = Relu (x) }")
    proto.ir_version, proto.opset_import[0].version = 3, 6
    assert_array_equal(serve(proto, dim=("N=1..4",)).run({"x": floats(-1, 1)})["y"], [0, 1])


@pytest.mark.case("An old operator without a kernel")
def test_an_operator_that_is_too_old_to_run_is_named(build, parsed):
    """BatchNormalization at opset 6: the error names the node, not a number of the library."""
    graph = """g (float[B,1] x) => (float[B,1] y) <float[1] one = {1}> {
        y = BatchNormalization (x, one, one, one, one)
    }"""
    proto = parsed(graph)
    proto.opset_import[0].version = 6
    with pytest.raises(ModelError, match="BatchNormalization"):
        build(proto)


@pytest.mark.case("Operators of other libraries")
def test_all_unknown_operators_are_listed_at_once(build, parsed):
    """Domain, operator and node of each, apart from those that ONNX Runtime adds."""
    head = '<ir_version: 10, opset_import: ["" : 17, "acme" : 1, "com.microsoft" : 1]>'
    proto = parsed(
        "g (float[N] x) => (float[N] y) { a = acme.Foo (x)  b = acme.Bar (a)  y = com.microsoft.Nope (b) }", head
    )
    for node, name in zip(proto.graph.node, "abc", strict=True):
        node.name = f"node_{name}"
    with pytest.raises(ModelError) as error:
        build(proto)
    assert all(word in str(error.value) for word in ("Foo", "Bar", "Nope", "node_a", "node_b", "node_c", "acme"))


@pytest.mark.case("An operator of ONNX Runtime without its import")
@pytest.mark.parametrize("imported", [True, False])
def test_operators_that_onnx_runtime_adds_run_with_and_without_their_import(serve, parsed, imported):
    """The import is added: 0.8413 for 1."""
    head = '<ir_version: 10, opset_import: ["" : 17' + (', "com.microsoft" : 1]>' if imported else "]>")
    proto = parsed("g (float[N] x) => (float[N] y) { y = com.microsoft.Gelu (x) }", head)
    assert_allclose(serve(proto, dim=("N=1..4",)).run({"x": floats(1)})["y"], [0.8413447], rtol=1e-5)


@pytest.mark.case("Two tensors of one name")
@pytest.mark.parametrize("how", ["initializers", "nodes", "initializer-and-node"])
def test_two_definitions_of_one_value_are_refused(build, parsed, how):
    """One rule for all of them, with the name: no library decides which one counts."""
    proto = parsed("g (float[N] x) => (float[N] y) <float[1] w = {1}> { a = Add (x, w)  y = Neg (a) }")
    if how == "initializers":
        proto.graph.initializer.append(helper.make_tensor("w", TensorProto.FLOAT, [1], [2.0]))
    elif how == "nodes":
        proto.graph.node.append(helper.make_node("Abs", ["x"], ["a"]))
    else:
        proto.graph.node.append(helper.make_node("Abs", ["x"], ["w"]))
    with pytest.raises(ModelError, match=r"'w'|'a'"):
        build(proto)


@pytest.mark.case("Two nodes of one name, and nodes in reverse order")
def test_node_names_and_node_order_do_not_matter(serve, parsed):
    """Names are made unique and nodes are sorted before any library sees the model."""
    proto = parsed("g (float[N] x) => (float[N] y) { a = Neg (x)  b = Exp (a)  y = Neg (b) }")
    nodes = [*reversed(proto.graph.node)]
    for node in nodes:
        node.name = "n"
    del proto.graph.node[:]
    proto.graph.node.extend(nodes)
    assert_allclose(serve(proto, dim=("N=1..4",)).run({"x": floats(0)})["y"], [-1])


@pytest.mark.case("A model draws random numbers")
@pytest.mark.parametrize(
    "nodes",
    [
        "r = RandomNormalLike (x)  y = Add (x, r)",
        "r = RandomUniformLike <seed = 1.0> (x)  y = Add (x, r)",
        "h = Sigmoid (x)  b = Bernoulli (h)  y = Add (x, b)",
    ],
    ids=["normal", "uniform-with-a-seed", "truth-values"],
)
def test_a_model_whose_answers_are_drawn_is_refused_with_the_node(build, nodes):
    """It is told apart from an engine that differs: equal inputs give other answers in the model itself."""
    with pytest.raises(ModelError, match=r"'y' differs between two runs of equal inputs, as (Random|Bern)\w+ node"):
        build(f"g (float[B,8] x) => (float[B,8] y) {{ {nodes} }}", dim=("B=2..4",))


@pytest.mark.case("Dropout that was exported for inference")
def test_dropout_outside_of_training_is_nothing(serve):
    """It draws nothing, and its input comes out."""
    session = serve("g (float[B,2] x) => (float[B,2] y) { y = Dropout (x) }", dim=("B=1..4",))
    assert_array_equal(session.run({"x": floats([1, 2])})["y"], [[1, 2]])
