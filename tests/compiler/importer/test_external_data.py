"""External data stays in its folder, fits its tensor, and is copied once."""

import os

import numpy as np
import pytest
from onnx import TensorProto, external_data_helper, helper

from trtc.compiler.external_data import DATA_FILE, plan_pieces
from trtc.compiler.external_source import Reference
from trtc.profiles import ModelError, UsageError

X = np.ones((1, 2), np.float32)


@pytest.fixture
def folder(tmp_path):
    """A model folder with ok.bin (two floats), a sub folder, and a secret beside the folder."""
    inside = tmp_path / "m"
    (inside / "sub").mkdir(parents=True)
    (inside / "ok.bin").write_bytes(np.array([1, 2], "<f4").tobytes())
    (tmp_path / "s.bin").write_bytes(np.array([7, 7], "<f4").tobytes())
    return inside


@pytest.fixture
def add(model, value):
    """Build y = x + w for a tensor w."""

    def make(tensor):
        node = helper.make_node("Add", ["x", "w"], ["y"])
        return model([node], [value("x", ["B", 2])], [value("y", ["B", 2])], initializers=[tensor])

    return make


@pytest.fixture
def placed(folder, add, external):
    """Write the model with w at a location into the folder; return its path."""

    def write(location, dims=(2,), **entries):
        path = folder / "model.onnx"
        path.write_bytes(add(external("w", dims, location, **entries)).SerializeToString())
        return path

    return write


def test_plain_external_data_becomes_part_of_the_private_copy(imported, run, placed):
    assert run(imported(placed("ok.bin")), {"x": X})["y"].tolist() == [[2, 3]]


def test_a_step_back_that_stays_inside_is_fine(imported, run, placed):
    assert run(imported(placed("sub/../ok.bin")), {"x": X})["y"].tolist() == [[2, 3]]


def test_a_link_inside_the_folder_is_fine(imported, run, folder, placed):
    (folder / "link.bin").symlink_to("ok.bin")
    assert run(imported(placed("link.bin")), {"x": X})["y"].tolist() == [[2, 3]]


@pytest.mark.parametrize(
    ("location", "words"),
    [
        pytest.param("../s.bin", "leads out of", id="parent"),
        pytest.param("sub/../../s.bin", "leads out of", id="hidden-parent"),
        pytest.param("/etc/hostname", "absolute path", id="absolute"),
        pytest.param("C:\\w.bin", "absolute path", id="drive"),
        pytest.param("", "without a usable location", id="empty"),
        pytest.param("a\0b", "without a usable location", id="nul"),
        pytest.param("absent.bin", "missing", id="missing"),
        pytest.param("sub", "not a regular file", id="folder"),
        pytest.param(".", "regular file", id="dot"),
        pytest.param("out.bin", "leads out of", id="symlink-out"),
        pytest.param("outdir/s.bin", "leads out of", id="folder-symlink-out"),
        pytest.param("outdir/../ok.bin", "steps back over a symbolic link", id="ambiguous"),
        pytest.param("loop.bin", "missing|cannot be opened|leads out", id="symlink-loop"),
        pytest.param("hard.bin", "2 hard links", id="hard-link"),
        pytest.param("pipe.bin", "not a regular file", id="pipe"),
        pytest.param("ok.bin/x", "missing|cannot be opened", id="file-as-folder"),
        pytest.param("n" * 5000, "cannot be opened|too long", id="long"),
        pytest.param("*/_ORT_MEM_ADDR_/*", "missing", id="memory-address"),
    ],
)
def test_a_location_that_is_not_allowed_is_refused(imported, folder, placed, location, words):
    (folder / "out.bin").symlink_to("../s.bin")
    (folder / "outdir").symlink_to("..")
    (folder / "loop.bin").symlink_to("loop.bin")
    os.link(folder.parent / "s.bin", folder / "hard.bin")
    os.mkfifo(folder / "pipe.bin")
    with pytest.raises(ModelError, match=words) as caught:
        imported(placed(location))
    assert "'w'" in str(caught.value)


def test_a_model_root_allows_links_inside_it(imported, run, folder, placed):
    blobs = folder.parent / "blobs"
    blobs.mkdir()
    (folder / "ok.bin").rename(blobs / "123")
    os.link(blobs / "123", blobs / "other-name")
    (folder / "ok.bin").symlink_to("../blobs/123")
    path = placed("ok.bin")
    with pytest.raises(ModelError, match="model root"):
        imported(path)
    assert run(imported(path, root=folder.parent), {"x": X})["y"].tolist() == [[2, 3]]


def test_a_model_root_must_hold_the_model(imported, folder, placed):
    with pytest.raises(UsageError, match="does not hold"):
        imported(placed("ok.bin"), root=folder / "sub")


@pytest.mark.parametrize(
    ("dims", "entries", "words"),
    [
        pytest.param((3,), {}, "0..12 of 'ok.bin', which has only 8 bytes", id="short-file"),
        pytest.param((2,), {"offset": 4}, "4..12", id="offset-too-far"),
        pytest.param((2,), {"length": 4}, "of 4 bytes, but dims .* need 8", id="short-length"),
        pytest.param((1,), {"length": 8}, "of 8 bytes, but dims .* need 4", id="long-length"),
        pytest.param((2,), {"offset": -1}, "not a whole number", id="negative"),
        pytest.param((2,), {"offset": "٣"}, "not a whole number", id="other-digits"),
        pytest.param((2,), {"length": "1_0"}, "not a whole number", id="underscore"),
        pytest.param((2**40, 2**40), {}, "has only 8 bytes", id="huge"),
    ],
)
def test_a_range_that_does_not_fit_is_refused(imported, placed, dims, entries, words):
    with pytest.raises(ModelError, match=words):
        imported(placed("ok.bin", dims, **entries))


def test_every_tensor_is_checked_wherever_it_stands(imported, folder, model, value, external):
    secret = external("k", [2], "../s.bin")
    constant = helper.make_node("Constant", [], ["k"], "c", value=secret)
    branch = helper.make_graph([helper.make_node("Neg", ["x"], ["b"])], "b", [], [value("b")], [secret])
    body = [constant, helper.make_node("Identity", ["a"], ["b"])]
    function = helper.make_function("my", "F", ["a"], ["b"], body, [helper.make_opsetid("", 17)])
    condition = value("c", [], TensorProto.BOOL)
    plain = helper.make_node("Relu", ["x"], ["y"])
    for proto in (
        model([plain, constant]),
        model([helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=branch)], ["x", condition]),
        model([helper.make_node("F", ["x"], ["y"], domain="my")], opsets={"": 17, "my": 1}, functions=[function]),
    ):
        with pytest.raises(ModelError, match="leads out of"):
            imported(proto, base=folder)


def test_bytes_without_a_folder_never_look_into_the_current_one(imported, folder, monkeypatch, add, external):
    monkeypatch.chdir(folder)
    with pytest.raises(ModelError, match="base_folder"):
        imported(add(external("w", [2], "ok.bin")))


def test_bytes_with_a_folder_load_from_anywhere(*, imported, run, folder, monkeypatch, tmp_path, add, external):
    monkeypatch.chdir(tmp_path)
    assert run(imported(add(external("w", [2], "ok.bin")), base=folder), {"x": X})["y"].tolist() == [[2, 3]]


def test_a_swap_between_check_and_use_is_refused(imported, folder, placed, monkeypatch):
    from trtc.compiler import external_data

    path = placed("ok.bin")
    plan = external_data.plan_pieces

    def swap(references):
        (folder / "ok.bin").unlink()
        (folder / "ok.bin").symlink_to("../s.bin")
        return plan(references)

    monkeypatch.setattr(external_data, "plan_pieces", swap)
    with pytest.raises(ModelError, match="leads out of"):
        imported(path)


@pytest.fixture
def large(folder, model, value):
    """A model with 300x300 weights in an external file."""
    w = helper.make_tensor("w", TensorProto.FLOAT, [300, 300], np.eye(300, dtype="<f4").tobytes(), raw=True)
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    proto = model([node], [value("x", ["B", 300])], [value("y", ["B", 300])], initializers=[w])
    external_data_helper.convert_model_to_external_data(proto, location="w.data", size_threshold=0)
    external_data_helper.write_external_data_tensors(proto, str(folder))
    (folder / "model.onnx").write_bytes(proto.SerializeToString())
    return folder / "model.onnx"


def test_later_edits_of_the_source_have_no_effect(imported, run, large):
    loaded = imported(large)
    x = np.arange(300, dtype=np.float32)[None]
    (large.parent / "w.data").write_bytes(bytes(360_000))
    assert np.array_equal(run(loaded, {"x": x})["y"], x)
    (large.parent / "w.data").unlink()
    large.unlink()
    assert np.array_equal(run(loaded, {"x": x})["y"], x)
    assert {entry.key: entry.value for entry in loaded.proto.graph.initializer[0].external_data} == {
        "location": DATA_FILE,
        "offset": "0",
        "length": "360000",
    }
    assert (loaded.folder.stat().st_mode & 0o777) == 0o700


def test_a_work_folder_that_holds_a_model_is_refused_and_the_model_kept(large):
    from trtc.compiler.importer import load_model

    before = large.read_bytes()
    with pytest.raises(UsageError, match=r"holds a model\.onnx already"):
        load_model(large, work_folder=large.parent)
    assert large.read_bytes() == before


def test_overlapping_ranges_are_copied_once():
    references = [Reference("w", "a", i, i + 1000) for i in range(500)] + [Reference("v", "b", 5, 9)]
    pieces = plan_pieces(references)
    assert [(p.location, p.start, p.stop) for p in pieces] == [("a", 0, 1499), ("b", 5, 9)]
    assert pieces[1].target % 64 == 0
    assert pieces[1].target >= pieces[0].stop


def test_tensors_that_share_bytes_read_the_same_values(*, imported, run, folder, model, value, external):
    (folder / "big.bin").write_bytes(np.arange(2000, dtype="<f4").tobytes())
    tensors = [external("a", [1000], "big.bin", offset=0), external("b", [1000], "./big.bin", offset=2000)]
    nodes = [helper.make_node("Add", ["a", "x"], ["y"]), helper.make_node("Add", ["b", "x"], ["z"])]
    outputs = [value("y", [1000]), value("z", [1000])]
    loaded = imported(model(nodes, [value("x", [1])], outputs, initializers=tensors), base=folder)
    results = run(loaded, {"x": np.zeros(1, np.float32)})
    assert np.array_equal(results["y"], np.arange(1000))
    assert np.array_equal(results["z"], np.arange(500, 1500))
    assert (loaded.folder / DATA_FILE).stat().st_size == 6000


@pytest.mark.parametrize("parts", [("out.bin",), ("outdir", "s.bin")])
def test_a_link_swapped_in_after_the_path_was_resolved_is_not_followed(folder, monkeypatch, parts):
    from trtc.compiler import external_source

    (folder / "out.bin").symlink_to("../s.bin")
    (folder / "outdir").symlink_to("..")
    regular = os.stat(folder / "ok.bin")  # noqa: PTH116 (the plain call, before it is replaced)
    monkeypatch.setattr(external_source.os, "stat", lambda *_args, **_named: regular)  # as if swapped right after
    with pytest.raises(OSError, match=r"symbolic links|Not a directory"):
        external_source._open_below(folder, parts)
