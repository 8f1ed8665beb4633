"""Padding: what may be padded, and what comes back."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from trtc.compiler import PaddingRefusedError
from trtc.profiles import CheckError, TrtcError

LINE = {"buckets": ("S=4,8",), "dim": ("B=1..4",)}

# Graph, values, and the answer at exact sizes. Zeros on the right give another answer in each of them.
MOVED = {
    "mean": ("(float[B,S] x) => (float[B] y) { y = ReduceMean <axes = [1], keepdims = 0> (x) }", [[1, 1, 1]], [1.0]),
    "softmax": ("(float[B,S] x) => (float[B,S] y) { y = Softmax <axis = 1> (x) }", [[0, 0, 0]], [[1 / 3] * 3]),
    "argmax": (
        "(float[B,S] x) => (int64[B] y) { y = ArgMax <axis = 1, keepdims = 0> (x) }",
        [[-3, -1, -2]],
        [1],
    ),
    "pool": (
        "(float[B,1,S,2] x) => (float[B,1,1,1] y) { y = GlobalAveragePool (x) }",
        [[[[1, 1], [1, 1], [1, 1]]]],
        [[[[1.0]]]],
    ),
    "flatten": ("(float[B,S] x) => (float[1,N] y) { y = Flatten <axis = 0> (x) }", [[1, 2], [3, 4]], [[1, 2, 3, 4]]),
    "minimum": ("(float[B,S] x) => (float[B] y) { y = ReduceMin <axes = [1], keepdims = 0> (x) }", [[3, 2, 5]], [2]),
}


@pytest.mark.case("An axis is padded, and the answer changes")
@pytest.mark.parametrize("kind", MOVED)
def test_padding_that_moves_an_answer_is_refused_and_exact_sizes_stay_right(build, serve, kind):
    """The build refuses the padding and names the output and its error; without `--pad` the request runs exact."""
    graph, values, right = MOVED[kind]
    with pytest.raises(PaddingRefusedError, match=r"padding S is refused: .*output 'y'") as error:
        build(f"g {graph}", pads=("S",), fills=("x=0",), mode="bucket", **LINE)
    assert "build without --pad S" in str(error.value)
    got = serve(f"g {graph}", mode="bucket", **LINE).run({"x": np.array(values, np.float32)})
    assert_allclose(got["y"], right, rtol=1e-6)


@pytest.mark.case("A padded axis is where the answer does not look")
def test_padding_that_moves_nothing_is_accepted(serve):
    """A causal sum reads nothing that comes later: the padding is accepted, and the answer is the exact one."""
    graph = "g (float[B,S] x) => (float[B,S] y) <int64 one = {1}> { y = CumSum (x, one) }"
    session = serve(graph, pads=("S",), fills=("x=7",), mode="bucket", **LINE)
    assert session.explain({"B": 1, "S": 3}).run_sizes == {"B": 1, "S": 4}
    assert_array_equal(session.run({"x": np.array([[1, 2, 3]], np.float32)})["y"], [[1, 3, 6]])


@pytest.mark.case("An axis is padded although nobody asked for it")
def test_nothing_is_padded_without_a_declaration(serve):
    """A symbolic axis alone is no reason to pad: buckets without `--pad` run at the sizes that come."""
    session = serve("g (float[B,S] x) => (float[B,S] y) { y = Relu (x) }", mode="bucket", **LINE)
    assert session.explain({"B": 3, "S": 5}).run_sizes == {"B": 3, "S": 5}


@pytest.mark.case("The wrong axis of an output is cut, or none")
@pytest.mark.parametrize(
    ("outputs", "node", "right"),
    [
        pytest.param("float[S,B] y", "y = Transpose <perm = [1, 0]> (x)", lambda x: x.T, id="transposed"),
        pytest.param("float[B,S] y", "y = Abs (x)", np.abs, id="in-place"),
        pytest.param("float[B,1,S] y", "y = Unsqueeze (x, one)", lambda x: x[:, None], id="moved-by-a-new-axis"),
        pytest.param("float[B,T] y", "y = Concat <axis = 1> (x, x)", lambda x: np.concatenate([x, x], 1), id="2*S"),
    ],
)
def test_outputs_are_cut_along_the_symbol_wherever_it_lies(serve, build, outputs, node, right):
    """Every axis that carries a padded symbol has the size that follows from the request; others keep theirs.

    An axis where padding would lie between real values cannot be cut: such padding is refused.
    """
    graph = f"g (float[B,S] x) => ({outputs}) <int64[1] one = {{1}}> {{ {node} }}"
    padded = {"pads": ("B:rows", "S"), "fills": ("x=0",), "buckets": ("B=4", "S=8"), "mode": "bucket"}
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    if "Concat" in node:
        with pytest.raises(CheckError, match="padding S is refused"):
            build(graph, **padded)
        padded = {"pads": ("B:rows",), "buckets": ("B=4", "S=8"), "mode": "bucket"}
    session = serve(graph, **padded)
    assert session.explain({"B": 2, "S": 3}).run_sizes["B"] == 4
    assert_array_equal(session.run({"x": x})["y"], right(x))


@pytest.mark.case("An axis that merely has the size of the bucket is cut")
def test_a_fixed_axis_of_the_buckets_size_is_not_cut(serve):
    """Sizes are cut by symbol, never because a number is equal."""
    graph = "g (float[B,8] x) => (float[B,8] y, float[8,B] z) { y = Neg (x)  z = Transpose <perm = [1, 0]> (x) }"
    session = serve(graph, buckets=("B=8",), pads=("B",), mode="bucket")
    x = np.arange(24, dtype=np.float32).reshape(3, 8)
    got = session.run({"x": x})
    assert_array_equal(got["y"], -x)
    assert_array_equal(got["z"], x.T)


@pytest.mark.case("An output tells the padded size")
@pytest.mark.parametrize(
    ("outputs", "nodes", "right"),
    [
        pytest.param("int64[2] y", "y = Shape (x)", [3, 5], id="shape"),
        pytest.param("int64 y", "y = Size (x)", 15, id="size"),
        pytest.param("int64[1] y", "s = Shape (x)  y = Gather (s, one)", [5], id="one-axis"),
        pytest.param(
            "float[B,S] y",
            "s = Shape (x)  n = Gather (s, one)  f = Cast <to = 1> (n)  y = Div (x, f)",
            np.full((3, 5), 0.2),
            id="divided-by-its-length",
        ),
    ],
)
def test_a_model_that_reads_its_own_sizes_is_not_padded(build, serve, outputs, nodes, right):
    """A padded run could only report the bucket, so the padding is refused; exact sizes give the real ones."""
    graph = f"g (float[B,S] x) => ({outputs}) <int64[1] one = {{1}}> {{ {nodes} }}"
    sizes = {"dim": ("B=1..4",), "buckets": ("S=8",), "mode": "bucket"}
    with pytest.raises(CheckError, match="padding S is refused"):
        build(graph, pads=("S",), fills=("x=0",), **sizes)
    assert_allclose(serve(graph, **sizes).run({"x": np.ones((3, 5), np.float32)})["y"], right)


@pytest.mark.case("An output axis is the sum of two symbols")
def test_an_axis_that_is_a_sum_of_symbols_is_never_trimmed_wrongly(build, serve):
    """`P + S` follows from both inputs: exact runs have it right, and padding that would lie inside is refused."""
    graph = "g (float[P,2] past, float[S,2] x) => (float[T,2] y) { y = Concat <axis = 0> (past, x) }"
    sizes = {"buckets": ("P=4", "S=4"), "mode": "bucket"}
    session = serve(graph, **sizes)
    past, x = np.full((3, 2), 1, np.float32), np.full((2, 2), 2, np.float32)
    assert_array_equal(session.run({"past": past, "x": x})["y"], np.concatenate([past, x]))
    assert str(session.signature.outputs[0]) == "y: float [P+S, 2]"
    with pytest.raises(CheckError, match="padding P is refused"):
        build(graph, pads=("P:right",), fills=("past=0",), **sizes)
    with pytest.raises(CheckError, match="rows along P is refused"):
        build(graph, pads=("P:rows",), **sizes)
    right = serve(graph, pads=("S:right",), fills=("x=0",), **sizes)  # the padding lies behind everything real
    assert_array_equal(right.run({"past": past, "x": x})["y"], np.concatenate([past, x]))


@pytest.mark.case("A row's answer depends on the other rows of its batch")
@pytest.mark.parametrize(
    "nodes",
    [
        pytest.param(
            "q, s, z = DynamicQuantizeLinear (x)  y = DequantizeLinear (q, s, z)", id="quantized-by-the-batch's-range"
        ),
        pytest.param("m = ReduceMean <axes = [0]> (x)  y = Sub (x, m)", id="centred-on-the-batch"),
        pytest.param("m = ReduceMax <axes = [0]> (x)  y = Div (x, m)", id="divided-by-the-batch's-maximum"),
        pytest.param("y = CumSum (x, zero)", id="summed-along-the-batch"),
        pytest.param("y = Softmax <axis = 0> (x)", id="softmax-along-the-batch"),
    ],
)
def test_rows_that_influence_each_other_are_neither_padded_nor_batched(build, serve, nodes):
    """The build compares each row alone with the same row among unlike neighbours, and refuses to pad rows."""
    graph = f"g (float[B,2] x) => (float[B,2] y) <int64 zero = {{0}}> {{ {nodes} }}"
    with pytest.raises(PaddingRefusedError, match=r"rows along B is refused|padding B is refused"):
        build(graph, buckets=("B=4",), pads=("B",), mode="bucket")
    session = serve(graph, dim=("B=1..4",))
    row = np.array([[0.1, 0.2]], np.float32)
    alone = session.run({"x": row})["y"]
    session.run({"x": np.array([[0.1, 0.2], [100, -100]], np.float32)})
    assert_array_equal(session.run({"x": row})["y"], alone)


@pytest.mark.case("Rows are independent up to rounding")
def test_independent_rows_are_padded_and_cut(serve):
    """Rows that only share weights pass the comparison, which allows rounding; a padded batch answers as its rows."""
    graph = (
        "g (float[B,3] x) => (float[B,2] y) <float[3,2] w = {1, 2, 3, 4, 5, 6}>"
        "{ m = MatMul (x, w)  y = Softmax <axis = 1> (m) }"
    )
    session = serve(graph, buckets=("B=1,4",), pads=("B",), mode="bucket")
    x = np.random.default_rng(0).standard_normal((3, 3)).astype(np.float32)
    together = session.run({"x": x})["y"]
    assert session.explain({"B": 3}).run_sizes == {"B": 4}
    alone = np.concatenate([session.run({"x": row[None]})["y"] for row in x])
    assert_allclose(together, alone, rtol=1e-5)


LAST = "g (float[B,S,2] x) => (float[B,2] y) <int64 last = {-1}> { y = Gather <axis = 1> (x, last) }"
POSITIONS = [[[1, 1], [2, 2]]]


@pytest.mark.case("A model that reads the last position is padded on the right")
def test_padding_on_the_side_that_the_model_reads_is_refused(build):
    """Right padding would put a fill where the model reads its answer: refused, with the error."""
    with pytest.raises(PaddingRefusedError, match="padding S is refused: output 'y' moved"):
        build(LAST, dim=("B=1..2",), buckets=("S=3",), pads=("S:right",), fills=("x=0",), mode="bucket")


@pytest.mark.case("A model that reads the last position is padded on the left")
def test_padding_on_the_other_side_is_accepted_and_right(serve):
    """The side is part of the declaration: on the left the last position stays the last."""
    session = serve(LAST, dim=("B=1..2",), buckets=("S=3",), pads=("S:left",), fills=("x=0",), mode="bucket")
    assert session.explain({"B": 1, "S": 2}).run_sizes == {"B": 1, "S": 3}
    assert_array_equal(session.run({"x": np.array(POSITIONS, np.float32)})["y"], [[2, 2]])


@pytest.mark.case("Padding holds what an earlier call left in memory")
def test_padding_holds_the_declared_fill_whatever_ran_before(serve):
    """A sum shows every element: with a fill of 0 it is right after any other call, in both directions of size."""
    graph = "g (float[B,S] x) => (float[B] y) { y = ReduceL1 <axes = [1], keepdims = 0> (x) }"
    session = serve(graph, dim=("B=1..2",), buckets=("S=8",), pads=("S",), fills=("x=0",), mode="bucket")
    for width in (8, 1, 5, 2, 8, 3):
        assert_array_equal(session.run({"x": np.full((1, width), width, np.float32)})["y"], [width * width])


@pytest.mark.case("A request holds values that the experiments never saw")
@pytest.mark.parametrize("values", [[-2000, -3000], [-3e38, -2e38], [-np.inf, -np.inf], [np.nan, -5]])
def test_values_outside_of_what_was_shown_run_at_their_exact_sizes(serve, values):
    """A fill of -1000 is harmless for a maximum of larger values only: others are not padded, and stay right."""
    graph = "g (float[B,S] x) => (float[B] y) { y = ReduceMax <axes = [1], keepdims = 0> (x) }"
    session = serve(graph, pads=("S",), fills=("x=-1000",), mode="bucket", dim=("B=1..4", "S=1..8"))
    x = np.array([values], np.float32)
    for _ in range(2):
        assert_array_equal(session.run({"x": x})["y"], [x[0].max()])
        assert_array_equal(session.run({"x": np.array([[-3, -7]], np.float32)})["y"], [-3])


@pytest.mark.case("Nothing to repeat, or nothing but padding")
@pytest.mark.parametrize("shape", [(0, 3), (2, 0), (0, 0)])
def test_an_empty_request_of_a_padded_bundle_is_empty(serve, shape):
    """No row is invented from padding, and a sum over padding alone is 0."""
    graph = "g (float[B,S] x) => (float[B] y) { y = ReduceL1 <axes = [1], keepdims = 0> (x) }"
    sizes = {"dim": ("B=0..4", "S=0..8"), "pads": ("B", "S"), "fills": ("x=0",), "mode": "bucket"}
    session = serve(graph, **sizes)
    for _ in range(2):
        assert_array_equal(session.run({"x": np.ones(shape, np.float32)})["y"], np.zeros(shape[0]))
        assert_array_equal(session.run({"x": np.ones((3, 2), np.float32)})["y"], [2, 2, 2])


@pytest.mark.case("Integers, truth values and narrow floats are padded")
@pytest.mark.parametrize(
    ("dtype", "row"), [("int64", [3, 1]), ("int32", [3, 1]), ("float16", [3, 1]), ("double", [3, 1]), ("uint8", [3, 1])]
)
def test_fills_have_the_inputs_type(serve, dtype, row):
    """A fill of 0 is a 0 of the type: a maximum of what is not negative stays what it was."""
    graph = f"g ({dtype}[B,S] x) => ({dtype}[B] y) {{ y = ReduceMax <axes = [1], keepdims = 0> (x) }}"
    options = {"val_ranges": ("x:[0,9]",), "dim": ("B=1..4", "S=1..8"), "pads": ("S",), "fills": ("x=0",)}
    session = serve(graph, mode="bucket", **options)
    x = np.array([row], dtype)
    assert session.explain({"B": 1, "S": 2}).run_sizes == {"B": 1, "S": 8}
    got = session.run({"x": x})["y"]
    assert got.dtype == x.dtype
    assert_array_equal(got, [3])


@pytest.mark.case("A fill that the input's type cannot hold")
@pytest.mark.parametrize(("dtype", "fill"), [("uint8", "-1"), ("uint8", "256"), ("int64", "0.5"), ("bool", "2")])
def test_a_fill_that_does_not_fit_is_refused(build, dtype, fill):
    """Not wrapped, cut or rounded: the message names the input and the fill."""
    graph = f"g ({dtype}[B,S] x) => ({dtype}[B,S] y) {{ y = Identity (x) }}"
    with pytest.raises(TrtcError, match="'x'") as error:
        build(graph, dim=("B=1..4", "S=1..8"), pads=("S",), fills=(f"x={fill}",), mode="bucket")
    assert fill in str(error.value)
