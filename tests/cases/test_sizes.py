"""Sizes: what a build takes, what a request may have, and which profile it runs in."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from onnx import numpy_helper

from trtc.profiles import CheckError, HostError, ModelError, ProfileError, RequestError, UsageError
from trtc.runtime import load

ADD = "g (float[N,2] a, float[N,2] b) => (float[N,2] y) { y = Add (a, b) }"
RELU = "g (float[B,4] x) => (float[B,4] y) { y = Relu (x) }"


def ones(*shape, dtype=np.float32):
    return np.ones(shape, dtype)


@pytest.mark.case("Two inputs share a symbol and come with different sizes")
@pytest.mark.parametrize("node", ["y = Add (a, b)", "y = Concat <axis = 0> (a, b)", "y = MatMul (a, b)"])
@pytest.mark.parametrize(("a", "b"), [(1, 3), (3, 1), (0, 2), (2, 3)])
def test_a_symbol_has_one_size_in_a_request(serve, node, a, b):
    """Refused before anything runs, naming both inputs, the axis, the symbol and both sizes; nothing is broadcast."""
    if "MatMul" in node:
        graph = "g (float[N,2] a, float[2,N] b) => (float[N,N] y) { y = MatMul (a, b) }"
        feeds, where = {"a": ones(a, 2), "b": ones(2, b)}, r"input 'b': axis 1 \(N\)"
    else:
        graph = f"g (float[N,2] a, float[N,2] b) => (float[M,2] y) {{ {node} }}"
        feeds, where = {"a": ones(a, 2), "b": ones(b, 2)}, r"input 'b': axis 0 \(N\)"
    session = serve(graph, dim=("N=0..8",))
    with pytest.raises(RequestError, match=rf"{where} is {b}, but input 'a' has N={a}; they must be equal"):
        session.run(feeds)


@pytest.mark.case("Two inputs share a symbol and are given different ranges")
def test_ranges_of_one_symbol_are_intersected(serve):
    """The bundle offers the sizes that both inputs allow, and refuses others."""
    session = serve(ADD, shape=("a[1..4,2],b[1..8,2]",))
    (profile,) = session.manifest.ladder.profiles
    assert str(profile.ranges["N"]).startswith("1")
    assert profile.ranges["N"].max == 4
    assert session.run({"a": ones(4, 2), "b": ones(4, 2)})["y"].shape == (4, 2)
    with pytest.raises(RequestError, match=r"N=5"):
        session.run({"a": ones(5, 2), "b": ones(5, 2)})


@pytest.mark.case("Two inputs share a symbol and no size fits both ranges")
@pytest.mark.parametrize(
    "shapes",
    [
        pytest.param({"shape": ("a[1,2],b[3,2]",)}, id="fixed-at-1-and-at-3"),
        pytest.param({"shape": ("a[1..2,2],b[3..4,2]",)}, id="disjoint"),
        pytest.param(
            {
                "trtexec": (
                    ("--minShapes", "a:1x2,b:1x2"),
                    ("--optShapes", "a:2x2,b:3x2"),
                    ("--maxShapes", "a:4x2,b:4x2"),
                )
            },
            id="unequal-opt",
        ),
    ],
)
def test_ranges_that_contradict_each_other_are_refused(build, shapes):
    """Refused before anything is built, naming both inputs."""
    with pytest.raises(ProfileError, match=r"'a'.*'b'|'b'.*'a'"):
        build(ADD, **shapes)


@pytest.mark.case("A range is out of order")
@pytest.mark.parametrize("numbers", [(4, 2, 8), (1, 9, 8), (9, 9, 8)])
@pytest.mark.parametrize("grammar", ["dim", "trtexec", "polygraphy"])
def test_numbers_out_of_order_are_refused_with_all_three(build, numbers, grammar):
    """The message names the input or symbol and min, opt and max as they came."""
    low, opt, high = numbers
    shapes = {
        "dim": {"dim": (f"B={low}:{opt}:{high}",)},
        "trtexec": {
            "trtexec": (("--minShapes", f"x:{low}x4"), ("--optShapes", f"x:{opt}x4"), ("--maxShapes", f"x:{high}x4"))
        },
        "polygraphy": {
            "trt_min_shapes": (f"x:[{low},4]",),
            "trt_opt_shapes": (f"x:[{opt},4]",),
            "trt_max_shapes": (f"x:[{high},4]",),
        },
    }[grammar]
    with pytest.raises(ProfileError) as error:
        build(RELU, **shapes)
    assert all(str(number) in str(error.value) for number in numbers)
    assert ("B" if grammar == "dim" else "'x'") in str(error.value)


@pytest.mark.case("A range starts at 0")
def test_a_range_may_start_at_zero(serve):
    """0 is a size: the empty request has an empty answer."""
    session = serve(RELU, dim=("B=0:2:8",))
    assert session.run({"x": ones(0, 4)})["y"].shape == (0, 4)


@pytest.mark.case("A range has a lower and an upper end only")
@pytest.mark.parametrize(("text", "low", "high"), [("1000..1200", 1000, 1200), ("1..8", 1, 8), ("3..4", 3, 4)])
def test_a_derived_opt_lies_inside_its_range(serve, text, low, high):
    """What is chosen for the missing number lies between the two that were given."""
    profile = serve(RELU, dim=(f"B={text}",)).manifest.ladder.profiles[0].ranges["B"]
    assert (profile.min, profile.max) == (low, high)
    assert low <= profile.opt <= high


@pytest.mark.case("A shape is given for an input that does not exist, or not for one that does")
@pytest.mark.parametrize(
    ("shapes", "words"),
    [
        pytest.param({"shape": ("a[1..4,2],b[1..4,2],zzz[1]",)}, "'zzz'", id="unknown-input"),
        pytest.param({"shape": ("A[1..4,2],b[1..4,2]",)}, "did you mean 'a'", id="other-case"),
        pytest.param({"dim": ("n=1..4",)}, "did you mean 'N'", id="unknown-symbol"),
        pytest.param({"buckets": ("M=4,8",)}, "'M'", id="unknown-bucket-symbol"),
        pytest.param({"shape": ("a[1..4],b[1..4,2]",)}, r"'a'", id="wrong-rank"),
        pytest.param({"shape": ("a[1..4,3],b[1..4,2]",)}, r"'a'.*2|2.*'a'", id="static-axis"),
    ],
)
def test_a_shape_that_does_not_fit_the_model_is_refused(build, shapes, words):
    """Nothing is ignored and nothing becomes 1: the message names what there is, and the nearest name."""
    with pytest.raises(UsageError, match=words):
        build(ADD, **shapes)


@pytest.mark.case("A shape is given for one of two dynamic inputs")
@pytest.mark.parametrize(
    "shapes", [{"trtexec": (("--shapes", "a:2x2"),)}, {"shape": ("a[1..4,2]",)}, {"trt_max_shapes": ("a:[4,2]",)}]
)
def test_a_dynamic_axis_without_a_size_is_asked_for(build, shapes):
    """No silent default: the error names the input, its axis and its symbol, and how to give the size."""
    graph = "g (float[N,2] a, float[M,2] b) => (float[N,2] y, float[M,2] z) { y = Neg (a)  z = Neg (b) }"
    with pytest.raises(ProfileError, match=r"input 'b', axis 0 \(M\).*--dim M="):
        build(graph, **shapes)


@pytest.mark.case("Two inputs name the same size differently")
@pytest.mark.parametrize("name", ["batch ", "Batch", "batch_size"])
def test_sizes_that_must_be_equal_are_one_symbol(build, parsed, name):
    """Runs show that both sizes must agree: they become one symbol, a note says so, and unequal sizes are refused."""
    proto = parsed("g (float[batch,2] a, float[other,2] b) => (float[batch,2] y) { y = Add (a, b) }")
    proto.graph.input[1].type.tensor_type.shape.dim[0].dim_param = name
    report = build(proto)
    with load(report.path) as session:
        assert len(session.signature.symbols) == 1
        assert_array_equal(session.run({"a": ones(2, 2), "b": ones(2, 2)})["y"], np.full((2, 2), 2))
        for a, b in ((2, 3), (1, 3), (3, 1)):
            with pytest.raises(RequestError, match="input 'b': axis 0"):
                session.run({"a": ones(a, 2), "b": ones(b, 2)})
    if name != "batch_size":
        assert any("differ only in" in note for note in report.notes), report.notes


@pytest.mark.case("Profiles overlap")
def test_overlapping_profiles_have_one_documented_choice(serve):
    """Of the profiles that fit, the cheapest; then the one with the least padding; then the first."""
    shapes = {"trtexec": tuple(pair for low, high in ((1, 8), (4, 16)) for pair in _profile(low, high))}
    session = serve(RELU, pads=("B",), mode="bucket", **shapes)
    assert [session.explain({"B": b}).profile for b in (1, 6, 8, 9, 16)] == ["p0", "p0", "p0", "p1", "p1"]
    assert_array_equal(session.run({"x": ones(6, 4)})["y"], ones(6, 4))


@pytest.mark.case("Profiles leave a gap")
def test_a_gap_between_profiles_is_filled_by_allowed_padding_only(serve):
    """A size in the gap is padded up where rows may be padded; else the error lists the ranges."""
    shapes = {"trtexec": tuple(pair for low, high in ((1, 4), (8, 16)) for pair in _profile(low, high))}
    padded = serve(RELU, pads=("B",), mode="bucket", **shapes)
    assert padded.explain({"B": 6}).profile == "p1"
    assert_array_equal(padded.run({"x": ones(6, 4)})["y"], ones(6, 4))
    exact = serve(RELU, **shapes)
    with pytest.raises(RequestError, match=r"B=6.*1\.\.4.*8\.\.16"):
        exact.run({"x": ones(6, 4)})
    assert_array_equal(exact.run({"x": ones(8, 4)})["y"], ones(8, 4))


@pytest.mark.case("Every input fits some profile, but not the same one")
def test_a_request_fits_a_profile_with_all_its_inputs_or_not_at_all(serve):
    """Profiles are not mixed: the request is refused, with the ranges."""
    graph = "g (float[A] a, float[B] b) => (float[A] y, float[B] z) { y = Relu (a)  z = Relu (b) }"
    session = serve(graph, trtexec=tuple(p for low, high in ((1, 2), (5, 6)) for p in _profile_of_two(low, high)))
    assert session.run({"a": ones(5), "b": ones(6)})["z"].shape == (6,)
    with pytest.raises(RequestError, match=r"A=1, B=5|B=5"):
        session.run({"a": ones(1), "b": ones(5)})


def _profile(low, high):
    return (
        ("--profile", "0" if low == 1 else "1"),
        ("--minShapes", f"x:{low}x4"),
        ("--optShapes", f"x:{high}x4"),
        ("--maxShapes", f"x:{high}x4"),
    )


def _profile_of_two(low, high):
    return (
        ("--profile", "0" if low == 1 else "1"),
        ("--minShapes", f"a:{low},b:{low}"),
        ("--optShapes", f"a:{high},b:{high}"),
        ("--maxShapes", f"a:{high},b:{high}"),
    )


@pytest.mark.case("A request lies outside of every profile")
@pytest.mark.parametrize(
    ("pads", "refused"), [(("B",), (9, 0, 1000)), ((), (9, 0, 1, 3, 1000))], ids=["padded", "exact"]
)
def test_a_size_outside_of_every_profile_is_refused_and_the_next_call_is_right(serve, pads, refused):
    """The message names symbol, size and range; a size below the range is padded up where that is allowed."""
    session = serve(RELU, dim=("B=4..8",), pads=pads, mode="bucket")
    for size in refused:
        with pytest.raises(RequestError, match=rf"B={size}\b.*4\.\.8"):
            session.run({"x": ones(size, 4)})
        assert_array_equal(session.run({"x": np.full((5, 4), size, np.float32)})["y"], np.full((5, 4), size))
    if pads:
        assert_array_equal(session.run({"x": ones(1, 4)})["y"], ones(1, 4))


@pytest.mark.case("Shapes are given for a model without symbols")
def test_a_fixed_model_takes_its_own_shape_only(build, serve, trtc, model_file):
    """Equal shapes are accepted, others are refused with the model's; there is one profile, and one size runs."""
    graph = "g (float[2,4] x) => (float[2,4] y) { y = Relu (x) }"
    session = serve(graph, shape=("x[2,4]",))
    assert len(session.manifest.ladder.profiles) == 1
    with pytest.raises(RequestError, match="axis 0 is 1, but the model takes exactly 2"):
        session.run({"x": ones(1, 4)})
    with pytest.raises(ProfileError, match=r"'x'.*2"):
        build(graph, shape=("x[4,4]",))
    path = model_file(graph)
    for shapes in ("2x4", "4x4"):
        said = trtc("build", path, f"--shapes=x:{shapes}", "--measure-seconds", 0, "--no-cache", "-q")
        assert (said.code, "Traceback" in said.err) == (0 if shapes == "2x4" else 2, False)


@pytest.mark.case("A convolution does not run at the smallest size of a range")
@pytest.mark.parametrize(
    ("node", "smallest"),
    [
        pytest.param("y = Conv <kernel_shape = [3, 3]> (x, w)", 3, id="convolution"),
        pytest.param("y = Conv <kernel_shape = [3, 3], dilations = [2, 2]> (x, w)", 5, id="dilated"),
        pytest.param("a = Conv <kernel_shape = [3, 3]> (x, w)  y = Conv <kernel_shape = [3, 3]> (a, w)", 5, id="two"),
    ],
)
def test_a_range_that_the_model_cannot_run_is_refused_with_the_smallest_size_that_works(build, serve, node, smallest):
    """Found by running the model before anything is built; the message names the node and the size."""
    graph = f"g (float[1,1,H,8] x) => (float[1,1,P,Q] y) <float[1,1,3,3] w = {{1,1,1,1,1,1,1,1,1}}> {{ {node} }}"
    with pytest.raises(ModelError, match=rf"Conv.*H.*{smallest}|H.*{smallest}.*Conv"):
        build(graph, dim=("H=1..8",))
    session = serve(graph, dim=(f"H={smallest}..8",))
    assert session.run({"x": ones(1, 1, smallest, 8)})["y"].shape[2] == 1


def reshape(shape):
    return f"g (float[B,2,3] x) => (float[B,6] y) <int64[2] s = {{{shape}}}> {{ y = Reshape (x, s) }}"


TWO_ROWS = np.arange(12, dtype=np.float32).reshape(2, 2, 3)


@pytest.mark.case("A constant inside merges the rows of a symbolic batch")
@pytest.mark.parametrize("options", [{}, {"dim": ("B=1..4",)}], ids=["open", "closed"])
def test_rows_that_a_constant_merges_are_reported_with_the_node(build, options):
    """Found by running several rows: the build names the Reshape and its constant, and offers a batch of 1."""
    (note,) = [n for n in build(reshape("1, -1"), **options).notes if "Reshape" in n]
    assert "output 'y' axis 0 stays 1 whatever B is" in note
    assert "constant shape [1, -1]" in note
    assert "--dim B=1" in note
    with pytest.raises(CheckError, match="B is refused"):
        build(reshape("1, -1"), buckets=("B=4",), pads=("B:rows",), mode="bucket")
    with load(build(reshape("1, -1"), dim=("B=1",)).path) as session:
        assert_array_equal(session.run({"x": TWO_ROWS[:1]})["y"], TWO_ROWS[:1].reshape(1, 6))


@pytest.mark.case("A constant inside fails for every batch but its own")
def test_a_batch_that_a_constant_does_not_allow_is_refused_with_the_node(build):
    """The error names the Reshape, its constant, and the batch that works."""
    with pytest.raises(ModelError, match=r"Reshape node .*s=\[1, 6\].*--dim B=1"):
        build(reshape("1, 6"), dim=("B=1..4",))
    with load(build(reshape("1, 6")).path) as session:  # without a range: what runs
        assert session.run({"x": TWO_ROWS[:1]})["y"].shape == (1, 6)
        with pytest.raises(RequestError, match="B=2"):
            session.run({"x": TWO_ROWS})


@pytest.mark.case("A Reshape that leaves the batch open")
@pytest.mark.parametrize("shape", ["-1, 6", "0, 6", "0, -1"])
def test_a_reshape_that_keeps_rows_apart_is_no_reason_for_a_note(build, shape):
    """Rows stay rows, and nothing is reported."""
    report = build(reshape(shape), dim=("B=1..4",))
    assert report.notes == ()
    with load(report.path) as session:
        assert_array_equal(session.run({"x": TWO_ROWS})["y"], TWO_ROWS.reshape(2, 6))


@pytest.mark.case("A dim of -1, 0, or an empty text")
@pytest.mark.parametrize("dim", [-1, "", None, "-1", "?"])
def test_unnamed_axes_are_symbols_of_their_own(serve, parsed, dim):
    """Two unnamed axes may differ: each has a symbol, named after its input and axis."""
    proto = parsed("g (float[A,2] a, float[A,2] b) => (float[M,2] y) { y = Concat <axis = 0> (a, b) }")
    for value in proto.graph.input:
        axis = value.type.tensor_type.shape.dim[0]
        axis.ClearField("dim_param")
        if isinstance(dim, int):
            axis.dim_value = dim
        elif dim is not None:
            axis.dim_param = dim
    session = serve(proto, dim=("a_0=1..4", "b_0=1..4"))
    assert session.signature.symbols == ("a_0", "b_0")
    assert session.run({"a": ones(1, 2), "b": ones(3, 2)})["y"].shape == (4, 2)


@pytest.mark.case("A dim of 0 is read as any size")
def test_a_zero_in_the_model_is_the_size_zero(build):
    """0 is kept as 0, and a note says so; three rows are refused."""
    report = build("g (float[0,2] x) => (float[0,2] y) { y = Relu (x) }")
    assert any("0" in note and "'x'" in note for note in report.notes)
    with load(report.path) as session:
        assert session.run({"x": ones(0, 2)})["y"].shape == (0, 2)
        with pytest.raises(RequestError, match="axis 0 is 3, but the model takes exactly 0"):
            session.run({"x": ones(3, 2)})


EMPTY = {
    "matmul-and-softmax": ("float[B,2] x", "float[B,3] y", "m = MatMul (x, w)  y = Softmax <axis = 1> (m)", (0, 3)),
    "reshape": ("float[B,4] x", "float[B,2,2] y", "y = Reshape (x, s)", (0, 2, 2)),
    "convolution": ("float[B,1,4,4] x", "float[B,1,2,2] y", "y = Conv <kernel_shape = [3, 3]> (x, k)", (0, 1, 2, 2)),
    "gather": ("int64[B] x", "float[B,3] y", "y = Gather (w, x)", (0, 3)),
}


@pytest.mark.case("No rows at all")
@pytest.mark.parametrize("kind", EMPTY)
def test_an_empty_batch_has_an_empty_answer_with_the_right_axes(serve, kind):
    """Nothing becomes one invented row."""
    given, output, nodes, right = EMPTY[kind]
    graph = (
        f"g ({given}) => ({output}) <float[2,3] w = {{1,2,3,4,5,6}}, int64[3] s = {{0,2,2}},"
        f" float[1,1,3,3] k = {{1,1,1,1,1,1,1,1,1}}> {{ {nodes} }}"
    )
    session = serve(graph, dim=("B=0..4",))
    spec = session.signature.inputs[0]
    shape = tuple(0 if d == "B" else d for d in spec.dims)
    dtype = np.int64 if spec.dtype == "int64" else np.float32
    assert session.run({"x": np.zeros(shape, dtype)})["y"].shape == right
    assert session.run({"x": np.zeros((2, *shape[1:]), dtype)})["y"].shape == (2, *right[1:])


@pytest.mark.case("A sum over nothing")
@pytest.mark.parametrize(
    ("node", "right"),
    [
        ("y = ReduceMax <axes = [0], keepdims = 0> (x)", -np.inf),
        ("y = ReduceSum <keepdims = 0> (x, zero)", 0),
        ("y = ReduceMean <axes = [0], keepdims = 0> (x)", 0),
        ("y = MatMul (x, e)", 0),
    ],
    ids=["maximum", "sum", "mean", "inner-size-0"],
)
def test_reductions_over_an_empty_axis_have_the_models_answer(serve, node, right):
    """The neutral element of the operator, as the model gives it."""
    if "MatMul" in node:
        graph = "g (float[2,K] x, float[K,3] e) => (float[2,3] y) { y = MatMul (x, e) }"
        feeds = {"x": ones(2, 0), "e": ones(0, 3)}
        got = serve(graph, dim=("K=0..4",)).run(feeds)["y"]
        assert got.shape == (2, 3)
    else:
        graph = f"g (float[B,4] x) => (float[4] y) <int64[1] zero = {{0}}> {{ {node} }}"
        got = serve(graph, dim=("B=0..4",)).run({"x": ones(0, 4)})["y"]
        assert got.shape == (4,)
    assert_array_equal(got, np.full(got.shape, right))


@pytest.mark.case("Libraries print warnings during a build")
def test_a_build_warns_of_nothing_that_it_does_not_mean(build):
    """A mean over nothing is tried on purpose; what libraries think of it reaches nobody."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        build("g (float[B,S] x) => (float[B] y) { y = ReduceMean <axes = [1], keepdims = 0> (x) }", dim=("S=0..4",))
    assert heard == []


@pytest.mark.case("An operator that has no answer over nothing")
def test_a_model_that_cannot_run_without_rows_says_so_at_build_and_in_a_request(build, serve):
    """A range from 0 is refused with the node's name; without ranges, the size 0 is outside of what is served."""
    graph = "g (float[B,4] x) => (int64[4] y) { y = ArgMax <axis = 0, keepdims = 0> (x) }"
    with pytest.raises(ModelError, match=r"B: the range starts at 0, but .*ArgMax node .*--dim B=1\.\.4"):
        build(graph, dim=("B=0..4",))
    session = serve(graph)
    with pytest.raises(RequestError, match="B=0"):
        session.run({"x": ones(0, 4)})
    assert session.run({"x": ones(1, 4)})["y"].shape == (4,)


@pytest.mark.case("An operator that ends the process over nothing")
def test_a_kernel_that_crashes_without_rows_is_found_apart(build, parsed):
    """ONNX Runtime ends the process for an LSTM without rows: tried in a process of its own, and refused in words."""
    graph = """g (float[T,B,3] x) => (float[1,B,2] y) { , y = LSTM <hidden_size = 2> (x, w, r) }"""
    proto = parsed(graph)
    for name, shape in (("w", (1, 8, 3)), ("r", (1, 8, 2))):
        proto.graph.initializer.append(numpy_helper.from_array(ones(*shape), name))
    with pytest.raises(ModelError, match="B: the range starts at 0"):
        build(proto, dim=("T=1..2", "B=0..2"))
    with load(build(proto).path) as session:
        with pytest.raises(RequestError, match="B=0"):
            session.run({"x": ones(1, 0, 3)})
        assert session.run({"x": ones(2, 1, 3)})["y"].shape == (1, 1, 2)


@pytest.mark.case("Names of symbols beyond ASCII")
@pytest.mark.parametrize("name", ["größe", "序列", "batch size", "a:b", "N", "n+1", "x.y/z"])
def test_symbols_of_any_name_can_be_typed(parsed, trtc, model_file, name):
    """As `trtc inspect` shows them: in ranges, in paddings, and in the sizes of a run."""
    proto = parsed("g (float[B,S] x) => (float[B,S] y) { y = Neg (x) }")
    for value in (proto.graph.input[0], proto.graph.output[0]):
        value.type.tensor_type.shape.dim[0].dim_param = name
    path = model_file(proto)
    said = trtc("inspect", path, "--json")
    typed = json.loads(said.out)["symbols"][0]["typed"]
    bundle = path.with_suffix(".trtc")
    options = (
        "--dim",
        f"{typed}=1..4",
        "--dim",
        "S=1..4",
        "--pad",
        f"{typed}:rows",
        "--measure-seconds",
        0,
        "--no-cache",
        "-q",
    )
    said = trtc("build", path, "-o", bundle, "--mode", "bucket", *options)
    assert said.code == 0, said.err
    said = trtc("run", bundle, "--sizes", f"{typed}=3,S=2", "--json")
    assert said.code == 0, said.err
    assert list(json.loads(said.out)["runs"][0]["run_sizes"].values()) == [4, 2]


@pytest.mark.case("A target that needs ranges, and none are given")
def test_a_target_that_needs_ranges_lists_what_is_missing(build):
    """Nothing becomes 1: the error lists the symbols and the ways to give them."""
    with pytest.raises(ProfileError, match=r"B.*--dim"):
        build(RELU, targets=("null",))


@pytest.mark.case("One size for two axes of one input")
def test_two_axes_of_one_symbol_are_equal(serve):
    """A square is a square: refused otherwise, with both sizes."""
    session = serve("g (float[N,N] x) => (float[N,N] y) { y = Neg (x) }", dim=("N=1..4",))
    assert session.run({"x": ones(2, 2)})["y"].shape == (2, 2)
    with pytest.raises(RequestError, match=r"axis 1 \(N\) is 3, but input 'x' has N=2"):
        session.run({"x": ones(2, 3)})


@pytest.mark.case("A range that no machine can hold")
@pytest.mark.parametrize("top", [10**12, 2**63 - 1])
def test_a_range_that_is_too_wide_for_this_machine_is_refused_before_memory_is_taken(build, top):
    """The message names the size, the bytes that it needs, and those that are left."""
    with pytest.raises(HostError, match=rf"B={top} take \d+ bytes to make, and \d+ are left"):
        build(RELU, dim=(f"B=1..{top}",))
