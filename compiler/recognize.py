"""What kind of file is this: read a model file with every surprise named, and decode its protobuf.

Nothing here hands bytes to a native ONNX Runtime or TensorRT parser.
"""

from __future__ import annotations

import os
import re
import stat
from typing import TYPE_CHECKING

import onnx
from google.protobuf.message import DecodeError

from trtc.profiles import ModelError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

MAX_PROTO_BYTES = 2**31 - 1
"""A protobuf message cannot be larger; bigger models keep their weights in external data."""

_HEAD_BYTES = 4096
_LFS_HEAD = b"version https://git-lfs"
_SIGNATURES: tuple[tuple[int, bytes, str, str], ...] = (
    (0, b"PK\x03\x04", "a zip archive (perhaps a PyTorch or numpy file)", "unpack it, or export the model to ONNX"),
    (4, b"ORTM", "a model in ONNX Runtime's own .ort format", "give the .onnx file that it was made from"),
    (0, b"ftrt", "a TensorRT engine", "give the .onnx file that it was built from"),
    (0, b"ptrt", "a TensorRT engine", "give the .onnx file that it was built from"),
    (4, b"TFL3", "a TensorFlow Lite model", "convert it to ONNX first"),
    (0, b"GGUF", "a GGUF file", "export the model to ONNX first"),
    (0, b"\x89HDF\r\n\x1a\n", "an HDF5 file (perhaps a Keras model)", "export the model to ONNX first"),
    (0, b"\x1f\x8b", "a gzip file", "unpack it first"),
    (0, b"\x28\xb5\x2f\xfd", "a zstd file", "unpack it first"),
    (0, b"\xfd7zXZ\x00", "an xz file", "unpack it first"),
    (0, b"\x80\x02", "a Python pickle (perhaps PyTorch weights)", "export the model to ONNX first"),
    (0, b"\x7fELF", "a program or shared library", "give an .onnx file"),
    (8, b'{"', "a safetensors file", "export the model to ONNX first"),
)
_MODEL_FIELDS = {field.number: field.name for field in onnx.ModelProto.DESCRIPTOR.fields}
_VARINT_BYTES = 10
_SKIP_BYTES = {1: 8, 5: 4}
_VARINT, _LENGTH = 0, 2


def read_model_file(path: Path) -> bytes:
    """Read a model file; its size is checked before its bytes are.

    Raises:
        UsageError: for anything but a regular file that can be read. Never blocks on a pipe or a device.
        ModelError: when it has 2 GiB or more.
    """
    try:
        if (found := _odd_kind(path, os.stat(path).st_mode)) is not None:  # noqa: PTH116 (open_regular has no twin in pathlib)
            raise UsageError(found)
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:  # noqa: PTH123 (a descriptor, so that check and use are one file)
            status = os.fstat(descriptor)
            if (found := _odd_kind(path, status.st_mode)) is not None:
                raise UsageError(found)
            if status.st_size > MAX_PROTO_BYTES:
                raise ModelError(
                    f"{path}: {status.st_size} bytes, but a protobuf holds at most {MAX_PROTO_BYTES}; "
                    "save the model with its weights as external data"
                )
            return file.read(MAX_PROTO_BYTES + 1)
    except FileNotFoundError as error:
        raise UsageError(f"{path}: no such file; give the path of an .onnx file") from error
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: cannot be read ({error}); give the path of a readable .onnx file") from error


def decode_model(data: bytes, name: str) -> onnx.ModelProto:
    """Decode a model's protobuf, external data left alone.

    Args:
        data: the file's bytes.
        name: what to call the file in errors.

    Raises:
        ModelError: when the bytes are something else, cut short, damaged, or hold no graph with outputs.
    """
    if len(data) > MAX_PROTO_BYTES:
        raise ModelError(f"{name}: {len(data)} bytes, but a protobuf holds at most {MAX_PROTO_BYTES}")
    if (other := _other_kind(data)) is not None:
        looks, advice = other
        raise ModelError(f"{name}: {len(data)} bytes, not an ONNX model but {looks}; {advice}")
    if (broken := _broken_protobuf(data)) is not None:
        raise ModelError(f"{name}: {len(data)} bytes, {broken}")
    model = onnx.ModelProto()
    try:
        model.ParseFromString(data)
    except (DecodeError, ValueError, RuntimeError) as error:
        raise ModelError(
            f"{name}: {len(data)} bytes, a damaged or too deeply nested protobuf ({error}); "
            "fetch or export the model again"
        ) from error
    if not model.HasField("graph"):
        raise ModelError(
            f"{name}: {len(data)} bytes, a protobuf without a graph, so not an ONNX model; give an .onnx file"
        )
    if not model.graph.output:
        raise ModelError(f"{name}: the graph has no outputs, so there is nothing to compute; export it with outputs")
    return model


def _odd_kind(path: Path, mode: int) -> str | None:
    """Say why something at ``path`` is not a model file, or None for a regular file."""
    if stat.S_ISREG(mode):
        return None
    if stat.S_ISDIR(mode):
        if (path / "manifest.json").is_file():
            return f"{path}: a folder that holds a bundle, not a model; give the .onnx file that it was built from"
        models = sorted(p.name for p in path.glob("*.onnx"))[:5]
        inside = f"; it holds {', '.join(models)}: give one of them" if models else "; give the .onnx file itself"
        return f"{path}: a folder, not a model file{inside}"
    kinds = {stat.S_IFIFO: "a pipe", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device", stat.S_IFSOCK: "a socket"}
    return f"{path}: {kinds.get(stat.S_IFMT(mode), 'not a regular file')}; copy the model into a regular file first"


def _other_kind(data: bytes) -> tuple[str, str] | None:
    """Name what the bytes are when they are surely no ONNX model, and what to do; None otherwise."""
    if not data:
        return "an empty file", "fetch or export the model again"
    head = data[:_HEAD_BYTES]
    if head.startswith(_LFS_HEAD):
        size = re.search(rb"^size (\d+)", head, re.MULTILINE)
        declared = f"{int(size[1])} bytes" if size else "unknown size"
        return f"a git-LFS pointer to a file of {declared}", "run `git lfs pull` to fetch the model itself"
    for offset, magic, looks, advice in _SIGNATURES:
        if head[offset:].startswith(magic):
            return looks, advice
    if _is_text(head):
        start = head.lstrip().lower()
        if start.startswith((b"<!doctype html", b"<html")):
            return "an HTML page (perhaps a login or error page saved as the model)", "download the file again"
        return f"text that begins with {_beginning(head)}", "give the binary .onnx file"
    return None


def _is_text(head: bytes) -> bool:
    try:
        text = head.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.start < len(head) - 3:  # not merely a character that the cut split
            return False
        text = head[: error.start].decode("utf-8")
    return all(char.isprintable() or char in "\t\n\r\f\ufeff" for char in text) and bool(text.strip())


def _beginning(head: bytes) -> str:
    line = head.decode("utf-8", "replace").strip().splitlines()[0]
    return repr(line[:40] + "..." if len(line) > 40 else line)  # noqa: PLR2004 (enough to know a file by)


def _broken_protobuf(data: bytes) -> str | None:
    """Hop over the top-level fields; say what is wrong with them, or None when they end where the data ends."""
    at = 0
    while at < len(data):
        begin = at
        tag, at = _varint(data, at)
        if tag is None and len(data) - begin < _VARINT_BYTES:
            return f"cut short: the last field is incomplete; {_AGAIN}"
        number, wire = (0, 0) if tag is None else (tag >> 3, tag & 7)
        if number not in _MODEL_FIELDS or wire not in {_VARINT, _LENGTH, *_SKIP_BYTES}:
            return f"not an ONNX model (unknown kind of file, it begins with {data[:8].hex(' ')}); give an .onnx file"
        length: int | None = _SKIP_BYTES.get(wire, 0)
        if wire in {_VARINT, _LENGTH}:
            value, at = _varint(data, at)
            if value is None:
                return f"cut short inside {_MODEL_FIELDS[number]!r}; {_AGAIN}"
            length = value if wire == _LENGTH else 0
        at += length or 0
    if at > len(data):
        return f"cut short: its {_MODEL_FIELDS[number]!r} alone reaches to byte {at}; {_AGAIN}"
    return None


_AGAIN = "the file looks truncated, fetch or copy it again"


def _varint(data: bytes, at: int) -> tuple[int | None, int]:
    """Read a variable-length number at ``at``; None when the data ends, or the number never does."""
    value = 0
    for i, byte in enumerate(data[at : at + _VARINT_BYTES]):
        value |= (byte & 0x7F) << (7 * i)
        if byte < 0x80:  # noqa: PLR2004 (the continuation bit)
            return value, at + i + 1
    return None, len(data)
