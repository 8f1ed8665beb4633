"""Samples: what is read, what is refused, and that no file can run code or reach elsewhere."""

from __future__ import annotations

import io
import zipfile

import ml_dtypes
import numpy as np
import pytest

from trtc.compiler.samples import SampleOptions, check_samples, load_samples
from trtc.engines.array_files import write_npz
from trtc.engines.signature import TensorSpec
from trtc.profiles import UsageError

IDS = TensorSpec("ids", "int64", ("batch", "seq"))


def npy(array: np.ndarray, *, allow_pickle: bool = False) -> bytes:
    memory = io.BytesIO()
    np.lib.format.write_array(memory, array, allow_pickle=allow_pickle)
    return memory.getvalue()


def write_zip(path, members):
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def test_an_npz_is_one_sample_and_a_folder_of_them_is_many(tmp_path):
    np.savez(tmp_path / "b.npz", ids=np.array([[2]]))
    np.savez(tmp_path / "a.npz", ids=np.array([[1, 1]]))
    found = load_samples([tmp_path])
    assert [feed["ids"].tolist() for feed in found.feeds] == [[[1, 1]], [[2]]]
    assert load_samples([tmp_path / "b.npz"]).feeds[0]["ids"].tolist() == [[2]]


@pytest.mark.parametrize("name", ["a/b:0.π é", "../../x", "file", "plain", "50%"])
def test_any_input_name_survives_writing_and_reading(tmp_path, name):
    write_npz(tmp_path / "s.npz", {name: np.array([1.0, 2.0])})
    assert load_samples([tmp_path / "s.npz"]).feeds[0][name].tolist() == [1, 2]


def test_a_folder_of_npy_files_decodes_percent_encoded_names(tmp_path):
    (tmp_path / "first").mkdir()
    np.save(tmp_path / "first" / "a%2Fb%3A0.npy", np.array([7]))
    assert load_samples([tmp_path]).feeds[0]["a/b:0"].tolist() == [7]


def test_a_member_that_is_an_input_by_its_plain_name_is_that_input(tmp_path):
    write_zip(tmp_path / "s.npz", {"a%20b.npy": npy(np.array([1]))})
    options = SampleOptions(known_inputs=frozenset(["a%20b"]))
    assert list(load_samples([tmp_path / "s.npz"], options).feeds[0]) == ["a%20b"]
    assert list(load_samples([tmp_path / "s.npz"]).feeds[0]) == ["a b"]


def test_strings_are_stored_as_text_arrays(tmp_path):
    write_npz(tmp_path / "s.npz", {"t": np.array(["a", "héé"], object)})
    checked = check_samples(load_samples([tmp_path / "s.npz"]), [TensorSpec("t", "string", ("n",))])
    assert checked.feeds[0]["t"].dtype == object
    assert checked.feeds[0]["t"].tolist() == ["a", "héé"]


class _Touch:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (str(self.path), "w"))


def test_pickled_objects_are_refused_unread_with_the_way_to_store_strings(tmp_path):
    trap = np.array([_Touch(tmp_path / "ran")], object)
    write_zip(tmp_path / "s.npz", {"t.npy": npy(trap, allow_pickle=True)})
    with pytest.raises(UsageError, match=r"pickle.*np\.array\(values, dtype=np\.str_\)"):
        load_samples([tmp_path / "s.npz"])
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("member", ["../x.npy", "/x.npy", "a/../../x.npy", "..\\x.npy", "x.txt"])
def test_member_names_that_lead_elsewhere_are_refused(tmp_path, member):
    write_zip(tmp_path / "s.npz", {member: npy(np.array([1]))})
    with pytest.raises(UsageError, match="percent-encoded"):
        load_samples([tmp_path / "s.npz"])


def test_links_out_of_the_samples_folder_are_refused(tmp_path):
    (tmp_path / "outside").mkdir()
    np.save(tmp_path / "outside" / "ids.npy", np.array([1]))
    (tmp_path / "samples").mkdir()
    (tmp_path / "samples" / "one").symlink_to(tmp_path / "outside")
    with pytest.raises(UsageError, match="leads out"):
        load_samples([tmp_path / "samples"])


def test_a_header_that_claims_more_than_the_file_holds_is_refused_before_allocating(tmp_path):
    memory = io.BytesIO()
    header = {"descr": "<f4", "fortran_order": False, "shape": (2**40,)}
    np.lib.format.write_array_header_1_0(memory, header)
    write_zip(tmp_path / "s.npz", {"x.npy": memory.getvalue() + bytes(16)})
    with pytest.raises(UsageError, match="claims 4398046511104 bytes"):
        load_samples([tmp_path / "s.npz"])


def test_samples_beyond_the_byte_limit_are_refused(tmp_path):
    np.savez(tmp_path / "s.npz", x=np.zeros(100))
    with pytest.raises(UsageError, match="800 bytes, but samples may hold 799"):
        load_samples([tmp_path / "s.npz"], SampleOptions(max_bytes=799))


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04 cut", b"\x93NUMPY\x01\x00"])
def test_broken_files_are_named(tmp_path, data):
    (tmp_path / "s.npz").write_bytes(data)
    with pytest.raises(UsageError, match=r"s\.npz: not a \.npz file"):
        load_samples([tmp_path / "s.npz"])


def test_a_truncated_array_is_refused(tmp_path):
    write_zip(tmp_path / "s.npz", {"x.npy": npy(np.zeros(4))[:-8]})
    with pytest.raises(UsageError, match="24 of 32 bytes"):
        load_samples([tmp_path / "s.npz"])


def test_nan_names_file_input_and_count_unless_allowed(tmp_path):
    np.savez(tmp_path / "s.npz", x=np.array([np.nan, 1, np.nan]))
    with pytest.raises(UsageError, match=r"s\.npz: input 'x' holds NaN at 2 of 3 positions"):
        load_samples([tmp_path / "s.npz"])
    assert len(load_samples([tmp_path / "s.npz"], SampleOptions(allow_nan=True)).feeds) == 1


def test_big_endian_and_column_order_give_the_same_values(tmp_path):
    expected = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.savez(tmp_path / "s.npz", x=np.asfortranarray(expected).astype(">f4"))
    found = load_samples([tmp_path / "s.npz"]).feeds[0]["x"]
    assert found.dtype == np.float32
    assert found.tolist() == expected.tolist()


def test_the_digest_is_of_content_not_of_names_and_times(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.array([1]), y=np.array([2]))
    np.savez_compressed(tmp_path / "other.npz", y=np.array([2]), x=np.array([1]))
    np.savez(tmp_path / "changed.npz", x=np.array([1]), y=np.array([3]))
    digests = [load_samples([tmp_path / name]).digest for name in ("a.npz", "other.npz", "changed.npz")]
    assert digests[0] == digests[1] != digests[2]


def test_all_misfits_come_in_one_error(tmp_path):
    np.savez(tmp_path / "s.npz", idz=np.array([[1]]), mask=np.zeros((2, 3), np.float64), flat=np.array([1, 2]))
    specs = [IDS, TensorSpec("mask", "float", ("batch", "seq")), TensorSpec("flat", "int64", ("batch", 4))]
    with pytest.raises(UsageError) as caught:
        check_samples(load_samples([tmp_path / "s.npz"]), specs)
    for part in ("did you mean 'ids'", "'ids' is missing", "float64, the model takes float", "has 1 axes"):
        assert part in str(caught.value)


def test_static_sizes_and_equal_symbols_are_checked(tmp_path):
    np.savez(tmp_path / "s.npz", ids=np.zeros((2, 3), np.int64), x=np.zeros((3, 5), np.float32))
    with pytest.raises(UsageError, match="axis 1 has size 5, the model takes 4") as caught:
        check_samples(load_samples([tmp_path / "s.npz"]), [IDS, TensorSpec("x", "float", ("batch", 4))])
    assert "batch is 2 in input 'ids' and 3 in input 'x'" in str(caught.value)


def test_bfloat16_samples_keep_their_values(tmp_path):
    values = np.array([1.5, -2], ml_dtypes.bfloat16)
    np.savez(tmp_path / "s.npz", x=values)
    checked = check_samples(load_samples([tmp_path / "s.npz"]), [TensorSpec("x", "bfloat16", ("n",))])
    assert checked.feeds[0]["x"].dtype == values.dtype
    assert checked.feeds[0]["x"].tolist() == [1.5, -2]


def test_unused_and_optional_inputs_may_be_left_out(tmp_path):
    np.savez(tmp_path / "s.npz", ids=np.array([[1]]))
    specs = [IDS, TensorSpec("u", "float", (1,), used=False), TensorSpec("w", "float", (1,), has_default=True)]
    assert list(check_samples(load_samples([tmp_path / "s.npz"]), specs).feeds[0]) == ["ids"]
