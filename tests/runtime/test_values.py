"""Values of a request: every array gives its own numbers, everything else fits exactly or is refused."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto

from trtc.engines.signature import TensorSpec
from trtc.runtime import RequestError
from trtc.runtime.values import as_value

GRID = np.arange(12, dtype=np.float32).reshape(3, 4)


class OnlyDlpack:
    """Hides that it is a numpy array; offers DLPack alone."""

    def __init__(self, array):
        self._array = array

    def __dlpack__(self, **options):
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()


class OnlyArray:
    def __init__(self, array):
        self._array = array

    def __array__(self, dtype=None, copy=None):
        return np.array(self._array, dtype=dtype, copy=copy)


class Refuses:
    """Like a tensor that lies on a device or still needs its gradient."""

    def __dlpack_device__(self):
        return (2, 0)

    def __dlpack__(self, **_):
        raise BufferError("on a device")


def mapped(tmp_path):
    np.save(tmp_path / "x.npy", GRID)
    return np.load(tmp_path / "x.npy", mmap_mode="r")


def broadcast(_):
    return np.broadcast_to(np.float32(7), (3, 4))


LAYOUTS = {
    "contiguous": lambda _: GRID,
    "transposed": lambda _: np.ascontiguousarray(GRID.T).T,
    "fortran": lambda _: np.asfortranarray(GRID),
    "rows-reversed": lambda _: GRID[::-1],
    "both-reversed": lambda _: GRID[::-1, ::-1],
    "column-strided": lambda _: np.repeat(GRID, 2, axis=1)[:, ::2],
    "read-only-broadcast": broadcast,
    "big-endian": lambda _: GRID.astype(">f4"),
    "big-endian-strided": lambda _: GRID.astype(">f4")[::-1, ::2].repeat(2, axis=1),
    "memory-mapped": mapped,
    "unaligned": lambda _: np.frombuffer(b"\0" + GRID.tobytes(), np.uint8)[1:].view(np.float32).reshape(3, 4),
    "matrix": lambda _: np.asmatrix(GRID),
    "masked-without-masked-items": lambda _: np.ma.masked_array(GRID, mask=False),
    "dlpack": lambda _: OnlyDlpack(GRID),
    "array-protocol": lambda _: OnlyArray(GRID),
    "nested-lists": lambda _: GRID.tolist(),
    "list-of-arrays": lambda _: list(GRID),
    "memoryview": lambda _: memoryview(GRID),
}


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_an_array_of_any_layout_gives_its_own_numbers(open_bundle, identity_model, tmp_path, layout):
    session = open_bundle(identity_model(dims=("n", "m")), profiles=({"n": (1, 4), "m": (1, 4)},), slots=1)
    array = LAYOUTS[layout](tmp_path)
    expected = (
        broadcast(None)
        if layout == "read-only-broadcast"
        else np.asarray(LAYOUTS[layout](tmp_path).__array__())
        if hasattr(array, "__array__")
        else GRID
    )
    for _ in range(3):  # the careful path, the run that checks shapes, the bound run
        y = session.run({"x": array})["y"]
        assert y.dtype == np.float32
        np.testing.assert_array_equal(y, expected)
        with session.borrow({"x": array}) as views:
            np.testing.assert_array_equal(views["y"], expected)


@pytest.mark.parametrize("scalar", [np.float32(2.5), np.array(2.5, np.float32), 2.5, 2, np.array(2.5, ">f4")])
def test_a_scalar_keeps_rank_zero(open_bundle, identity_model, scalar):
    session = open_bundle(identity_model(dims=()))
    y = session.run({"x": scalar})["y"]
    assert isinstance(y, np.ndarray)
    assert y.shape == ()
    assert y == np.float32(scalar)


@pytest.mark.parametrize(
    ("onnx_type", "array", "said"),
    [
        ("float", GRID.astype(np.float64), "dtype float64, but the model takes float32; convert it with .astype"),
        ("float", GRID.astype(np.int64), "dtype int64, but the model takes float32"),
        ("float", GRID.astype(np.float16), "dtype float16, but the model takes float32"),
        ("float", np.float64(1.5), "dtype float64, but the model takes float32"),
        ("int64", np.arange(3, dtype=np.int32), "dtype int32, but the model takes int64"),
        ("int64", np.arange(3, dtype=np.uint64), "dtype uint64, but the model takes int64"),
        ("bool", np.arange(3, dtype=np.uint8), "dtype uint8, but the model takes bool"),
        ("float16", np.zeros(3, ml_dtypes.bfloat16), "dtype bfloat16, but the model takes float16"),
        ("bfloat16", np.zeros(3, np.uint16), "dtype uint16, but the model takes bfloat16"),
        ("float", np.array([1.0, 2.0], object), "dtype object, but the model takes float32"),
        ("float", np.array(["1.0"]), "dtype <U3, but the model takes float32"),
        ("float", np.zeros(2, [("a", "f4")]), "but the model takes float32"),
        ("float", np.zeros(2, [("a", "f4")]).view(np.recarray), "but the model takes float32"),
        ("int64", np.zeros(2, "M8[s]"), "but the model takes int64"),
        ("string", np.zeros(2, np.float32), "float32 values, but the model takes strings"),
        ("string", np.array(["a", None], object), "object values, but the model takes strings"),
    ],
)
def test_an_array_of_another_type_is_refused_naming_both_types(onnx_type, array, said):
    with pytest.raises(RequestError) as caught:
        as_value(TensorSpec("x", onnx_type, None), array)
    assert "input 'x'" in str(caught.value)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("onnx_type", "value", "expected"),
    [
        ("float", 1, 1.0),
        ("float", [1, 2.5], [1.0, 2.5]),
        ("float", [float("nan"), float("inf")], [float("nan"), float("inf")]),
        ("float", [0.1], [np.float32(0.1)]),
        ("float16", [65504], [65504]),
        ("int64", [1.0, 2.0], [1, 2]),
        ("int64", 2**63 - 1, 2**63 - 1),
        ("int64", -(2**63), -(2**63)),
        ("int64", 9007199254740993, 9007199254740993),
        ("uint64", 2**64 - 1, 2**64 - 1),
        ("uint8", [0, 255], [0, 255]),
        ("int8", [-128, 127], [-128, 127]),
        ("bool", [True, False], [True, False]),
        ("bool", [], []),
        ("int64", [], []),
        ("int64", [[], []], [[], []]),
        ("complex64", 1 + 2j, 1 + 2j),
        ("bfloat16", [1.0, 2.0], [1.0, 2.0]),
        ("float8e4m3fn", [448.0], [448.0]),
        ("int4", [-8, 7], [-8, 7]),
        ("string", ["a", "héé"], ["a", "héé"]),
        ("string", "a", "a"),
        ("string", [b"a", "h\u00e9".encode()], ["a", "h\u00e9"]),
    ],
)
def test_numbers_and_lists_take_the_models_type_when_they_fit(onnx_type, value, expected):
    from trtc.engines.signature import numpy_dtype

    found = as_value(TensorSpec("x", onnx_type, None), value)
    assert found.dtype == numpy_dtype(onnx_type)
    np.testing.assert_array_equal(found, np.array(expected, numpy_dtype(onnx_type)))


@pytest.mark.parametrize(
    ("onnx_type", "value"),
    [
        pytest.param("int64", 1.5, id="fraction-for-int"),
        pytest.param("int64", [1, 2.5], id="fractions-in-a-list-for-int"),
        pytest.param("int64", float("nan"), id="nan-for-int"),
        pytest.param("int64", float("inf"), id="infinity-for-int"),
        pytest.param("int64", 2**63, id="too-large-for-int64"),
        pytest.param("int64", [9007199254740993, 1.5], id="large-integer-beside-a-fraction"),
        pytest.param("uint64", -1, id="negative-for-unsigned"),
        pytest.param("uint64", 2**64, id="too-large-for-uint64"),
        pytest.param("uint8", 300, id="300-for-uint8"),
        pytest.param("uint8", -1, id="negative-for-uint8"),
        pytest.param("int8", [127, 128], id="128-for-int8"),
        pytest.param("float16", 1e5, id="overflow-float16"),
        pytest.param("float", 1e39, id="overflow-float32"),
        pytest.param("bfloat16", 1e39, id="overflow-bfloat16"),
        pytest.param("float8e4m3fn", 1e5, id="overflow-float8"),
        pytest.param("int4", 9, id="overflow-int4"),
        pytest.param("int4", 1.5, id="fraction-for-int4"),
        pytest.param("float", True, id="bool-for-float"),
        pytest.param("int64", True, id="bool-for-int"),
        pytest.param("bool", 1, id="number-for-bool"),
        pytest.param("bool", 2, id="two-for-bool"),
        pytest.param("bool", "true", id="text-for-bool"),
        pytest.param("float", "1.5", id="text-for-float"),
        pytest.param("float", None, id="none"),
        pytest.param("float", [1.0, None], id="none-in-a-list"),
        pytest.param("float", 1 + 2j, id="complex-for-float"),
        pytest.param("float", Decimal("1.5"), id="decimal"),
        pytest.param("float", Fraction(1, 2), id="fraction-object"),
        pytest.param("float", [[1, 2], [3]], id="ragged"),
        pytest.param("float", {"a": 1}, id="dict"),
        pytest.param("float", object(), id="object"),
        pytest.param("string", [["a"], ["b", "c"]], id="ragged-strings"),
        pytest.param("string", [1], id="number-for-string"),
        pytest.param("string", [b"\xff"], id="bytes-that-are-no-text"),
        pytest.param("float", np.ma.masked_array([1, 2], [True, False], np.float32), id="masked-items"),
        pytest.param("float", np.ma.masked, id="masked-constant"),
        pytest.param("float", Refuses(), id="an-export-that-refuses"),
    ],
)
def test_a_value_that_the_type_cannot_hold_is_refused_and_never_changed(onnx_type, value):
    with pytest.raises(RequestError, match="input 'x'"):
        as_value(TensorSpec("x", onnx_type, None), value)


def test_a_list_that_contains_itself_is_refused():
    value = []
    value.append(value)
    with pytest.raises(RequestError, match="input 'x'"):
        as_value(TensorSpec("x", "float", None), value)


def test_a_large_value_is_shortened_in_the_message():
    with pytest.raises(RequestError) as caught:
        as_value(TensorSpec("x", "uint8", None), [300] * 1000)
    assert len(str(caught.value)) < 200


@given(st.lists(st.integers(-(2**70), 2**70), max_size=5))
def test_integers_arrive_exactly_or_not_at_all(numbers):
    try:
        found = as_value(TensorSpec("x", "int64", None), numbers)
    except RequestError:
        assert any(not -(2**63) <= n < 2**63 for n in numbers)
    else:
        assert found.tolist() == numbers


def test_equal_types_under_another_name_reach_the_engine_under_its_own():
    array = np.arange(3, dtype=np.longlong)
    found = as_value(TensorSpec("x", "int64", None), array)
    assert found.dtype.char == np.dtype(np.int64).char
    assert found.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    "layout", ["transposed", "both-reversed", "big-endian-strided", "read-only-broadcast", "dlpack"]
)
def test_an_input_without_a_place_reaches_the_engine_native_and_in_c_order(tmp_path, layout):
    array = LAYOUTS[layout](tmp_path)
    found = as_value(TensorSpec("x", "float", None), array)
    assert found.dtype.isnative
    assert found.flags.c_contiguous
    np.testing.assert_array_equal(found, GRID if layout == "dlpack" else array)


def test_items_of_a_sequence_are_checked_like_tensors():
    spec = TensorSpec("s", "seq(tensor(float))", None)
    found = as_value(spec, [np.array([1, 2], ">f4"), np.ones((2, 2), np.float32)[:, ::2]])
    assert [item.dtype for item in found] == [np.float32, np.float32]
    assert [item.tolist() for item in found] == [[1, 2], [[1], [1]]]
    assert all(item.dtype.isnative and item.flags.c_contiguous for item in found)
    with pytest.raises(RequestError, match=r"input 's', item 1: dtype float64, but the model takes float32"):
        as_value(spec, [np.ones(1, np.float32), np.ones(1)])
    with pytest.raises(RequestError, match="give a list"):
        as_value(spec, np.ones(1, np.float32))


@pytest.mark.parametrize("onnx_type", [TensorProto.INT64, TensorProto.BOOL, TensorProto.FLOAT16, TensorProto.UINT8])
def test_every_memory_type_comes_back_as_it_went_in(open_bundle, identity_model, onnx_type):
    from onnx.helper import tensor_dtype_to_np_dtype

    session = open_bundle(identity_model(onnx_type), profiles=({"n": (1, 4)},))
    x = np.array([[0, 1], [1, 0]], tensor_dtype_to_np_dtype(onnx_type))
    for _ in range(2):
        y = session.run({"x": x})["y"]
        assert y.dtype == x.dtype
        assert y.tolist() == x.tolist()
