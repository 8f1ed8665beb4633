"""Arrays by tensor name in files: any name survives, nothing but arrays is read, files are whole or not there."""

from __future__ import annotations

import io
import zipfile

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trtc.engines.array_files import ReadBudget, member_name, read_npy, read_npz, stored_as, tensor_name, write_npz
from trtc.profiles import UsageError

NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)


@given(NAMES)
def test_a_member_name_leads_back_to_its_tensor(name):
    member = member_name(name)
    assert tensor_name(member) == name
    assert not {"/", "\\", "\0"} & set(member)


@given(NAMES, NAMES)
def test_different_tensors_have_different_members(first, second):
    assert (member_name(first) == member_name(second)) == (first == second)


@pytest.mark.parametrize(
    ("array", "dtype"),
    [
        pytest.param(np.arange(6, dtype=">f4").reshape(2, 3), "float", id="big-endian"),
        pytest.param(np.asfortranarray(np.arange(6).reshape(2, 3)), "int64", id="fortran"),
        pytest.param(np.array(3.5), "double", id="scalar"),
        pytest.param(np.zeros((0, 3), np.float32), "float", id="empty"),
        pytest.param(np.array([1.5, -2], ml_dtypes.bfloat16), "bfloat16", id="bfloat16"),
        pytest.param(np.array([1.5, -2], ml_dtypes.float8_e5m2), "float8e5m2", id="float8e5m2"),
        pytest.param(np.array([1.5, -2], ml_dtypes.float8_e4m3fn), "float8e4m3fn", id="float8e4m3fn"),
        pytest.param(np.array([0.5, 2], ml_dtypes.float8_e8m0fnu), "float8e8m0", id="float8e8m0"),
        pytest.param(np.array([7, -8], ml_dtypes.int4), "int4", id="int4"),
        pytest.param(np.array(3, ml_dtypes.uint2), "uint2", id="uint2-scalar"),
        pytest.param(np.array([["a", "héé"]], object), "string", id="strings"),
        pytest.param(np.array([True, False]), "bool", id="bools"),
    ],
)
def test_what_is_written_is_read_back(tmp_path, array, dtype):
    write_npz(tmp_path / "a.npz", {"../x": array})
    ((member, found),) = read_npz(tmp_path / "a.npz", ReadBudget(10**6))
    value = stored_as(found, dtype)
    assert tensor_name(member) == "../x"
    assert value is not None
    assert value.shape == array.shape
    assert (value == array).all()
    assert value.dtype.isnative


def test_another_type_is_not_taken_for_it(tmp_path):
    write_npz(tmp_path / "a.npz", {"x": np.zeros(2, np.float64)})
    ((_, found),) = read_npz(tmp_path / "a.npz", ReadBudget(10**6))
    assert stored_as(found, "float") is None


def pickled() -> bytes:
    memory = io.BytesIO()
    np.save(memory, np.array([object()], dtype=object), allow_pickle=True)
    return memory.getvalue()


def plain() -> bytes:
    memory = io.BytesIO()
    np.save(memory, np.zeros(100))
    return memory.getvalue()


@pytest.mark.parametrize(
    ("member", "data", "fragment"),
    [
        pytest.param("x.npy", pickled(), "never loaded", id="pickle"),
        pytest.param("../x.npy", plain(), "percent-encoded", id="leaving"),
        pytest.param("/x.npy", plain(), "percent-encoded", id="absolute"),
        pytest.param("x.npy", plain()[:200], "the header claims 800 bytes", id="truncated"),
        pytest.param("x.npy", b"text", "not a .npy array", id="text"),
    ],
)
def test_what_is_no_plain_array_is_refused(tmp_path, member, data, fragment):
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr(member, data)
    with pytest.raises(UsageError, match=fragment):
        list(read_npz(tmp_path / "a.npz", ReadBudget(10**6)))


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04", b"no zip"])
def test_what_is_no_archive_is_refused(tmp_path, data):
    (tmp_path / "a.npz").write_bytes(data)
    with pytest.raises(UsageError, match=r"not a \.npz file"):
        list(read_npz(tmp_path / "a.npz", ReadBudget(10**6)))


def test_files_are_refused_before_they_fill_the_memory(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros(100))
    budget = ReadBudget(1000)
    read_npy(tmp_path / "x.npy", budget)
    with pytest.raises(UsageError, match="800 bytes, but inputs may hold 1000 bytes together"):
        read_npy(tmp_path / "x.npy", budget)


def test_a_value_that_cannot_be_written_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.npz"
    path.write_text("old")
    with pytest.raises(ValueError, match="inhomogeneous"):
        write_npz(path, {"x": np.zeros(2), "y": [[1], [1, 2]]})
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.npz"]
