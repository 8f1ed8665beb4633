"""What is not a model is named for what it is, with its size."""

import os
import zipfile

import onnxruntime
import pytest

from trtc.profiles import ModelError, UsageError

LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"a" * 64 + b"\nsize 90405214\n"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        pytest.param(b"", ["0 bytes", "empty file"], id="empty"),
        pytest.param(LFS, [f"{len(LFS)} bytes", "git-LFS pointer", "90405214 bytes", "git lfs pull"], id="lfs"),
        pytest.param(b"  <!DOCTYPE html><html></html>", ["30 bytes", "HTML page", "download"], id="html"),
        pytest.param(b"Entry not found", ["15 bytes", "text", "Entry not found"], id="text"),
        pytest.param("ключ: é\n".encode(), ["text that begins with", "ключ"], id="unicode-text"),
        pytest.param(b"\x18\0\0\0ORTM" + bytes(40), ["48 bytes", "ONNX Runtime", ".ort"], id="ort"),
        pytest.param(b"ftrt" + bytes(60), ["64 bytes", "TensorRT engine"], id="engine"),
        pytest.param(b"\x80\x02}q\0.", ["pickle"], id="pickle"),
        pytest.param(bytes(range(240, 256)), ["16 bytes", "f0 f1 f2", "unknown kind"], id="noise"),
    ],
)
def test_a_file_that_is_no_model_is_named(imported, tmp_path, content, words):
    path = tmp_path / "model.onnx"
    path.write_bytes(content)
    with pytest.raises(ModelError) as caught:
        imported(path)
    for word in [str(path), *words]:
        assert word in str(caught.value)


def test_a_zip_is_named(imported, tmp_path):
    path = tmp_path / "model.onnx"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("data.pkl", "x")
    with pytest.raises(ModelError, match="zip archive"):
        imported(path)


@pytest.mark.parametrize("kept", [1, 10, 0.5, -1])
def test_a_truncated_model_is_named_with_its_size(imported, tmp_path, minilm_path, kept):
    whole = minilm_path.read_bytes()
    cut = whole[: int(len(whole) * kept) if isinstance(kept, float) else kept]
    path = tmp_path / "model.onnx"
    path.write_bytes(cut)
    with pytest.raises(ModelError, match=rf"{len(cut)} bytes.*(cut short|without a graph)"):
        imported(path)


def test_every_cut_of_a_model_is_refused(imported, relu):
    whole = relu.SerializeToString()
    for kept in range(len(whole)):
        with pytest.raises(ModelError, match=f"{kept} bytes|versions|no outputs"):
            imported(whole[:kept])


def test_a_missing_path_is_wrong_use(imported, tmp_path):
    with pytest.raises(UsageError, match="no such file"):
        imported(tmp_path / "absent.onnx")


def test_a_folder_is_refused_and_its_models_are_offered(imported, tmp_path):
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "encoder.onnx").write_bytes(b"x")
    with pytest.raises(UsageError, match=r"a folder.*encoder\.onnx"):
        imported(tmp_path / "inner")


def test_a_pipe_is_refused_without_waiting_for_a_writer(imported, tmp_path):
    os.mkfifo(tmp_path / "pipe.onnx")
    with pytest.raises(UsageError, match="a pipe"):
        imported(tmp_path / "pipe.onnx")


def test_a_device_is_refused_without_reading_it(imported):
    from pathlib import Path

    with pytest.raises(UsageError, match="a device"):
        imported(Path("/dev/zero"))


def test_a_file_beyond_the_protobuf_limit_is_refused_before_it_is_read(imported, tmp_path):
    path = tmp_path / "model.onnx"
    with path.open("wb") as file:
        file.truncate(2**31)  # a hole: no disk is used
    with pytest.raises(ModelError, match=r"2147483648 bytes.*external data"):
        imported(path)


def test_a_graph_without_outputs_is_refused(imported, relu):
    del relu.graph.output[:]
    with pytest.raises(ModelError, match="no outputs"):
        imported(relu)


def test_a_protobuf_without_a_graph_is_refused(imported, relu):
    relu.ClearField("graph")
    with pytest.raises(ModelError, match="without a graph"):
        imported(relu)


def test_a_model_that_onnx_runtime_saved_in_its_own_format_is_named(imported, relu, tmp_path):
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "saved.ort")
    options.add_session_config_entry("session.save_model_format", "ORT")
    onnxruntime.InferenceSession(relu.SerializeToString(), options, providers=["CPUExecutionProvider"])
    with pytest.raises(ModelError, match=r"ONNX Runtime's own \.ort format"):
        imported(tmp_path / "saved.ort")
