"""Arrays in and arrays out: types, strides, byte order, ownership, names, files."""

from __future__ import annotations

import zipfile

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from trtc.profiles import RequestError
from trtc.runtime import load
from trtc.runtime.errors import KeptViewWarning

TWICE = "g (float[B,2] x) => (float[B,2] y) { y = Add (x, x) }"
TYPES = ["float", "double", "float16", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "bool"]


def identity(dtype):
    return f"g ({dtype}[B,2] x) => ({dtype}[B,2] y) {{ y = Identity (x) }}"


@pytest.fixture(scope="module")
def same(serve):
    """A session that returns what it is given, for an element type."""
    return lambda dtype: serve(identity(dtype), dim=("B=1..4",))


@pytest.mark.case("An array that the caller kept changes with the next call")
def test_results_stay_as_they_were_returned(serve):
    """Results are memory of the caller: later calls, of this model or of another, leave them alone."""
    session, other = serve(TWICE, dim=("B=1..4",)), serve(identity("float"), dim=("B=1..4",))
    x = np.ones((1, 2), np.float32)
    kept = session.run({"x": x})["y"]
    session.run({"x": np.full((1, 2), 5, np.float32)})
    other.run({"x": np.full((1, 2), 7, np.float32)})
    assert_array_equal(kept, [[2, 2]])
    assert kept.flags.owndata
    assert kept.flags.writeable
    kept[:] = 9
    assert_array_equal(session.run({"x": x})["y"], [[2, 2]])
    assert_array_equal(x, [[1, 1]])


@pytest.mark.case("A borrowed view is read after its block")
def test_a_view_that_outlives_its_block_keeps_its_values(serve):
    """The zero-copy way is opt-in; a view that is kept is noticed, warned about, and never overwritten."""
    session = serve(TWICE, dim=("B=1..4",))
    with pytest.warns(KeptViewWarning, match="outlived its block"):  # noqa: SIM117 (the warning comes when the block is left)
        with session.borrow({"x": np.ones((1, 2), np.float32)}) as views:
            kept = views["y"]
    session.run({"x": np.full((1, 2), 5, np.float32)})
    assert_array_equal(kept, [[2, 2]])


@pytest.mark.case("Big-endian arrays")
@pytest.mark.parametrize("dtype", TYPES)
def test_byte_order_does_not_change_values(same, dtype):
    """Swapped arrays are read by value, for every element type, also as scalars of numpy."""
    values = np.array([[1, 2]], np.dtype(dtype if dtype != "float" else "f4"))
    swapped = values.astype(values.dtype.newbyteorder(">"))
    assert_array_equal(same(dtype).run({"x": swapped})["y"], values)
    assert_array_equal(same(dtype).run({"x": swapped[:, ::-1]})["y"], values[:, ::-1])


@pytest.mark.case("Big-endian arrays in files")
@pytest.mark.parametrize("suffix", ["npy", "npz"])
def test_byte_order_in_files_does_not_change_values(build, trtc, tmp_path, suffix):
    """`trtc run` reads `.npy` and `.npz` files of either byte order."""
    bundle = build(identity("float"), dim=("B=1..4",)).path
    values = np.array([[1, 2]], ">f4")
    path = tmp_path / f"x.{suffix}"
    np.save(path, values) if suffix == "npy" else np.savez(path, x=values)
    given = ("--inputs", path) if suffix == "npz" else ("--input", f"x={path}")
    said = trtc("run", bundle, *given, "--save-outputs", tmp_path / "out.npz")
    assert said.code == 0, said.err
    with np.load(tmp_path / "out.npz") as out:
        assert_array_equal(out["y"], [[1, 2]])


BASE = np.arange(16, dtype=np.float32).reshape(4, 4)


@pytest.mark.case("Arrays that are not contiguous")
@pytest.mark.parametrize(
    "array",
    [
        pytest.param(BASE[:2, :2].T, id="transposed"),
        pytest.param(np.asfortranarray(BASE[:3, :2]), id="fortran"),
        pytest.param(BASE[::-1, :2], id="rows-reversed"),
        pytest.param(BASE[:, ::2], id="columns-strided"),
        pytest.param(BASE[::-2, ::-2], id="both-reversed"),
        pytest.param(np.broadcast_to(np.float32(3), (3, 2)), id="one-number-broadcast"),
        pytest.param(np.ma.masked_array(BASE[:2, :2], mask=False), id="masked-array-without-masked-items"),
        pytest.param(np.ndarray((2, 2), np.float32, b"\0" + BASE.tobytes(), 1), id="unaligned-and-read-only"),
        pytest.param(BASE.view(np.matrix)[:2, :2], id="matrix"),
        pytest.param(np.lib.stride_tricks.sliding_window_view(BASE[0], 2), id="overlapping-windows"),
        pytest.param(memoryview(BASE[:2, :2].copy()), id="buffer"),
    ],
)
@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
def test_any_strides_give_the_same_values(same, array):
    """Values are copied as numpy sees them; read-only arrays are fine, and the caller's array is left alone."""
    right = np.array(array)
    for _ in range(2):  # the second call takes the prepared route
        assert_array_equal(same("float").run({"x": array})["y"], right)
    assert_array_equal(np.array(array), right)


@pytest.mark.case("A masked array")
def test_masked_items_are_refused(same):
    """What is masked has no value: the request is refused, and the message says what to do."""
    with pytest.raises(RequestError, match=r"input 'x': a masked array with masked items; fill them with \.filled"):
        same("float").run({"x": np.ma.masked_array([[1, 2]], mask=[[0, 1]], dtype=np.float32)})


@pytest.mark.case("Another element type than the model's")
@pytest.mark.parametrize("given", ["f8", "i8", "f2", "i4", "?", "c8", "U3", "O", "M8[s]"])
def test_arrays_of_another_type_are_refused_not_cast(same, given):
    """The message names both types; nothing is rounded."""
    with pytest.raises(RequestError, match=r"input 'x': .*float32"):
        same("float").run({"x": np.zeros((1, 2), given)})


@pytest.mark.case("Numbers that do not fit the model's type")
@pytest.mark.parametrize(
    ("dtype", "values"),
    [
        ("int64", [[1.9, 2]]),
        ("uint8", [[300, 0]]),
        ("uint8", [[-1, 0]]),
        ("float16", [[1e5, 0]]),
        ("bool", [[2, 0]]),
        ("bool", [["true", ""]]),
        ("int64", [[2**63, 0]]),
        ("int32", [[2**31, 0]]),
        ("float", [[1e39, 0]]),
        ("int64", [[9007199254740993, 0.5]]),
        ("float", [["1", "2"]]),
        ("float", [[None, 1]]),
        ("float", [[1], [1, 2]]),
    ],
)
def test_python_numbers_that_lose_their_value_are_refused(same, dtype, values):
    """Fractions for integers, numbers out of range, texts, and lists that are no rectangle."""
    with pytest.raises(RequestError, match="input 'x'"):
        same(dtype).run({"x": values})


@pytest.mark.case("Python numbers that fit")
@pytest.mark.parametrize(
    ("dtype", "values"),
    [
        ("int64", [[9007199254740993, -1]]),
        ("uint64", [[2**64 - 1, 0]]),
        ("float", [[1, 2.5]]),
        ("float", [[float("nan"), float("inf")]]),
        ("bool", [[True, False]]),
        ("int64", [[2.0, 3.0]]),
    ],
)
def test_python_numbers_keep_their_value(same, dtype, values):
    """Lists and numbers take the model's type when they fit it exactly."""
    got = same(dtype).run({"x": values})["y"]
    assert got.tolist() == values or np.isnan(values).any()
    assert_array_equal(got, np.array(values))


SCALAR = """g (float[B,2] x, float k) => (float[B,2] y, float total) {
    y = Mul (x, k)
    total = ReduceSum <keepdims = 0> (y)
}"""


@pytest.mark.case("A scalar becomes one element, or the other way round")
@pytest.mark.parametrize("value", [3, 3.0, np.float32(3), np.array(3, np.float32), np.array(3, ">f4")])
def test_a_scalar_stays_a_scalar(serve, value):
    """Rank 0 is rank 0 at both ends, however the number is given."""
    session = serve(SCALAR, dim=("B=1..4",))
    for _ in range(2):
        got = session.run({"x": np.ones((2, 2), np.float32), "k": value})
        assert_array_equal(got["y"], np.full((2, 2), 3))
        assert got["total"].shape == ()
        assert got["total"] == 12
    assert str(session.signature.inputs[1]) == "k: float []"


@pytest.mark.case("One element is given for a scalar")
def test_one_element_is_no_scalar(serve):
    """The rank is part of the request: `[1]` for `[]` is refused, and a scalar for an axis as well."""
    session = serve(SCALAR, dim=("B=1..4",))
    with pytest.raises(RequestError, match=r"input 'k': shape \[1\], but the model takes \[\]"):
        session.run({"x": np.ones((2, 2), np.float32), "k": np.ones(1, np.float32)})
    with pytest.raises(RequestError, match=r"input 'x': shape \[\], but the model takes \[B, 2\]"):
        session.run({"x": 1.0, "k": 1.0})


@pytest.mark.case("An input of unknown rank is taken for a scalar")
@pytest.mark.parametrize("shape", [(3, 2), (), (1,), (2, 0, 3)])
def test_an_input_of_unknown_rank_takes_any_shape(serve, shape):
    """The rank is read from the model: no shape at all is not the shape of a scalar."""
    session = serve("g (float[] x) => (float[] y) { y = Relu (x) }")
    assert session.signature.inputs[0].dims is None
    x = np.full(shape, 2, np.float32)
    got = session.run({"x": x})["y"]
    assert got.shape == shape
    assert_array_equal(got, x)


PAIR = """g (float[B,3] a, float[B,3] b, float[B,3] unused) => (float[B,3] y, float[B,3] z) {
    y = Add (a, b)
    z = Sub (a, b)
}"""


@pytest.fixture(scope="module")
def pair(serve):
    return serve(PAIR, dim=("B=1..4",))


@pytest.mark.case("Inputs are missing or unknown")
def test_everything_wrong_with_a_request_is_in_one_error(pair):
    """Missing names, unknown names with the nearest, types, ranks and sizes, all at once."""
    with pytest.raises(RequestError) as error:
        pair.run({"A": np.ones((2, 3), np.float32), "b": np.ones((2, 4), np.float32), "zz": 1})
    text = str(error.value)
    assert "input 'a' is missing" in text
    assert "there is no input 'A', did you mean 'a'?" in text
    assert "there is no input 'zz'" in text
    assert "input 'b': axis 1 is 4, but the model takes exactly 3" in text


@pytest.mark.case("An input that no node reads")
def test_an_input_that_no_node_reads_may_be_given_or_left_out(pair):
    """It stays in the list of inputs, and has no effect."""
    a, b = np.full((2, 3), 2, np.float32), np.ones((2, 3), np.float32)
    assert [spec.name for spec in pair.signature.inputs] == ["a", "b", "unused"]
    for more in ({}, {"unused": np.ones((2, 3), np.float32)}, {"unused": np.zeros((2, 3), np.float32)}):
        assert_array_equal(pair.run({"a": a, "b": b, **more})["y"], np.full((2, 3), 3))


@pytest.mark.case("Outputs are selected")
def test_outputs_come_as_they_are_asked_for(pair):
    """In the order asked; all for none or an empty list; unknown and repeated names are refused."""
    feeds = {"a": np.full((1, 3), 2, np.float32), "b": np.ones((1, 3), np.float32)}
    for asked, got in (
        (["z"], ["z"]),
        (["z", "y"], ["z", "y"]),
        ([], ["y", "z"]),
        (None, ["y", "z"]),
    ):
        answer = pair.run(feeds, asked)
        assert list(answer) == got
        assert all(np.all(value == {"y": 3, "z": 1}[name]) for name, value in answer.items())
    with pytest.raises(RequestError, match=r"'nope'.*'y'.*'z'"):
        pair.run(feeds, ["z", "nope"])
    with pytest.raises(RequestError, match="repeat a name; ask for each once"):
        pair.run(feeds, ["y", "y"])


@pytest.mark.case("Outputs are selected by the command")
@pytest.mark.parametrize(("asked", "got"), [("z", ["z"]), ("z,y", ["z", "y"]), ("y,y", None), ("nope", None)])
def test_the_command_prints_the_outputs_that_are_asked_for(build, trtc, asked, got):
    """The same rules as in Python; unknown and repeated names are wrong use."""
    import json

    bundle = build(PAIR, dim=("B=1..4",)).path
    said = trtc("run", bundle, "--sizes", "B=1", "--outputs", asked, "--json")
    if got is None:
        assert said.code == 2
        assert asked.split(",")[0] in said.err
        return
    assert [out["name"] for out in json.loads(said.out)["runs"][0]["outputs"]] == got


@pytest.mark.case("Pickles in files of inputs")
def test_a_file_that_holds_objects_is_refused_without_unpickling(build, trtc, tmp_path):
    """The message says how to store strings; a member whose name leaves the folder creates no file."""
    bundle = build(identity("string"), dim=("B=1..4",)).path
    np.savez(tmp_path / "objects.npz", x=np.array([["a", "b"]], object))
    said = trtc("run", bundle, "--inputs", tmp_path / "objects.npz")
    assert said.code == 2
    assert "pickle" in said.err
    assert "U" in said.err
    np.savez(tmp_path / "texts.npz", x=np.array([["a", "hé€"]]))
    said = trtc("run", bundle, "--inputs", tmp_path / "texts.npz", "--save-outputs", tmp_path / "out.npz")
    assert said.code == 0, said.err
    with np.load(tmp_path / "out.npz") as out:
        assert out["y"].tolist() == [["a", "hé€"]]
    inner = tmp_path / "in"
    inner.mkdir()
    with zipfile.ZipFile(inner / "outside.npz", "w") as file:
        file.writestr("../x.npy", b"not an array")
    said = trtc("run", bundle, "--inputs", inner / "outside.npz")
    assert said.code == 2
    assert "Traceback" not in said.err
    assert not (tmp_path / "x.npy").exists()


ODD = [
    "a/b:0.π é",
    "../../x",
    "file",
    "x y",
    "arr,0[1]",
    'quote"d',
    "C:\\x",
    "allow_pickle",
    "-x",
    "a=b",
    "ß.npy",
    " x",
]


@pytest.mark.case("Names with colons, slashes, dots, blanks, quotes, or letters beyond ASCII")
@pytest.mark.parametrize("name", ODD)
def test_odd_names_work_in_python_on_the_command_line_and_in_files(build, parsed, trtc, tmp_path, name):
    """Quoted where the grammar uses their characters; no file is ever named after a tensor."""
    proto = parsed("g (float[B,3] x) => (float[B,3] y) { y = Add (x, x) }")
    output = name + ":0"
    proto.graph.input[0].name = proto.graph.node[0].input[0] = proto.graph.node[0].input[1] = name
    proto.graph.output[0].name = proto.graph.node[0].output[0] = output
    bundle = build(proto, dim=("B=1..4",)).path
    with load(bundle) as session:
        assert_array_equal(session.run({name: np.ones((2, 3), np.float32)})[output], np.full((2, 3), 2))
    folder = tmp_path / "deep" / "er"
    folder.mkdir(parents=True)
    np.save(folder / "values.npy", np.full((2, 3), 4, np.float32))
    quoted = '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'
    given = (f"--input={quoted}={folder / 'values.npy'}",)
    said = trtc("run", bundle, *given, "--save-outputs", folder / "out.npz")
    assert said.code == 0, said.err
    said = trtc("run", bundle, f"--shapes={quoted}:2x3")
    assert said.code == 0, said.err
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == ["out.npz", "values.npy"]
    with zipfile.ZipFile(folder / "out.npz") as file:
        (member,) = file.namelist()
        assert "/" not in member
    again = trtc("run", bundle, "--inputs", _renamed(folder / "out.npz", output, name), "--json")
    assert again.code == 0, again.err


def _renamed(path, old, new):
    """Write an output as the input of the next run, in the documented way."""
    from urllib.parse import quote

    with np.load(path) as file:
        (values,) = (file[key] for key in file.files)
    assert_array_equal(values, np.full((2, 3), 8))
    del old
    target = path.with_name("again.npz")
    with zipfile.ZipFile(target, "w") as file, file.open(quote(new, safe=" ") + ".npy", "w") as member:
        np.lib.format.write_array(member, values)
    return target
