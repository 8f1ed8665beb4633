"""Arrays in ``.npy`` and ``.npz`` files, by tensor name: read without ever running code of theirs, written in one step.

A tensor name is any text, a member name is not. ``member_name`` writes the characters that a member cannot hold
percent-encoded, as in URLs: ``../x`` becomes ``..%2Fx``. ``tensor_name`` reads that back. Strings are numpy ``U``
arrays; object arrays are pickles and are refused.
"""

from __future__ import annotations

import os
import zipfile
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING, Any, BinaryIO
from urllib.parse import quote, unquote

import numpy as np

from trtc.engines.files import host_error, replacing, sync_folder
from trtc.engines.signature import numpy_dtype
from trtc.profiles import UsageError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from pathlib import Path

_HEADER_LIMIT_BYTES = 10_000
_NOT_IN_MEMBERS = frozenset("/\\%")


@dataclass(slots=True)
class ReadBudget:
    """Bytes that may still be read; files are refused before they fill the memory.

    Attributes:
        left: bytes.
        what: is read, for the message, in the plural.
    """

    left: int
    what: str = "inputs"
    limit: int = field(init=False)

    def __post_init__(self) -> None:
        self.limit = self.left

    def take(self, size_bytes: int, where: str) -> None:
        """Count bytes that are about to be read.

        Raises:
            UsageError: when they are more than is left.
        """
        if size_bytes > self.left:
            raise UsageError(
                f"{where}: {size_bytes} bytes, but {self.what} may hold {self.limit} bytes together; "
                f"give fewer or smaller {self.what}"
            )
        self.left -= size_bytes


def member_name(name: str) -> str:
    """Write a tensor name as a member name, without the suffix; different names stay different."""
    return "".join(quote(c, safe="") if c in _NOT_IN_MEMBERS or not c.isprintable() else c for c in name)


def tensor_name(file_name: str, known: Collection[str] = frozenset()) -> str:
    """Read the tensor name back from a file or member name; one that is exactly a known name is not decoded."""
    plain = file_name.removesuffix(".npy")
    return plain if plain in known else unquote(plain)


def read_npz(path: Path, budget: ReadBudget) -> Iterator[tuple[str, np.ndarray]]:
    """Read the members of a ``.npz`` file: member name and array, native byte order, C order.

    Raises:
        UsageError: for what is no such file, pickled objects, members that leave their place, or too much data.
    """
    count = 0
    try:
        with zipfile.ZipFile(path) as archive:
            for member in archive.infolist():
                where = f"{path}: member {member.filename!r}"
                _refuse_leaving(member.filename, where)
                with archive.open(member) as stream:
                    array = read_npy_stream(stream, member.file_size, where, budget)  # type: ignore[arg-type,unused-ignore]
                count += 1
                yield member.filename, array
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError) as error:
        raise UsageError(f"{path}: not a .npz file ({error}); write it with numpy.savez") from error
    if not count:
        raise UsageError(f"{path}: holds no arrays; write one member for each input with numpy.savez")


def read_npy(path: Path, budget: ReadBudget) -> np.ndarray:
    """Read one ``.npy`` file.

    Raises:
        UsageError: as ``read_npz``.
    """
    with path.open("rb") as stream:
        return read_npy_stream(stream, path.stat().st_size, str(path), budget)


def stored_as(array: np.ndarray, dtype: str) -> np.ndarray | None:
    """View an array from a file as an ONNX element type, or None where it holds another one.

    Types that numpy lacks are stored as ``V``, and strings as ``U``.
    """
    if dtype == "string":
        return array.astype(object) if array.dtype.kind == "U" else None
    wanted = numpy_dtype(dtype)
    if array.dtype == wanted:
        return array
    if array.dtype.kind == "V" and _numpy_lacks(wanted) and array.dtype.itemsize == wanted.itemsize:
        return array.view(wanted)
    return None


def write_npz(path: Path, arrays: Mapping[str, Any]) -> None:
    """Write arrays by tensor name; the file is there wholly or not at all. Object arrays are stored as strings.

    Raises:
        UsageError: when a folder is in the way, or the file's folder is not there.
        HostError: when the file system refuses; it names the bytes that were needed.
    """
    if path.is_dir() or not path.parent.is_dir():
        problem = "is a folder" if path.is_dir() else f"cannot be written: there is no folder {path.parent}"
        raise UsageError(f"{path} {problem}; give the path of a .npz file in a folder that exists")
    plain = {name: _plain(value) for name, value in arrays.items()}
    try:
        with replacing(path) as fd, os.fdopen(os.dup(fd), "wb") as stream, zipfile.ZipFile(stream, "w") as archive:
            for name, array in plain.items():
                with archive.open(f"{member_name(name)}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, array, allow_pickle=False)
        sync_folder(path.parent)
    except OSError as error:
        raise host_error(error, path, sum(array.nbytes for array in plain.values())) from error


def _plain(value: Any) -> np.ndarray:
    """Return an array that numpy writes without a pickle."""
    array = np.asarray(value)
    if _numpy_lacks(array.dtype):
        # Each kind of these has another spelling in a header, and numpy reads back only some of them.
        array = array.view(f"V{array.dtype.itemsize}")
    if array.dtype.hasobject:
        array = np.array([str(item) for item in array.reshape(-1)], dtype=np.str_).reshape(array.shape)
    return array


def _numpy_lacks(dtype: np.dtype[Any]) -> bool:
    """Tell whether a dtype comes from ml_dtypes."""
    return dtype.type.__module__ == "ml_dtypes"


def read_npy_stream(stream: BinaryIO, size_bytes: int, where: str, budget: ReadBudget) -> np.ndarray:
    """Read one array: the header first, and the values only when they are as many as the file holds.

    Args:
        stream: at the beginning of the array.
        size_bytes: that there are.
        where: what to call it in errors.
        budget: that the values are counted in.

    Raises:
        UsageError: as ``read_npz``.
    """
    try:
        shape, fortran, dtype = _read_header(stream)
    except (ValueError, EOFError, UnicodeDecodeError) as error:
        raise UsageError(f"{where}: not a .npy array ({error}); write it with numpy.save") from error
    if dtype.hasobject:
        raise UsageError(
            f"{where}: holds Python objects (a pickle), which are never loaded; "
            'store strings as a numpy "U" array: np.array(values, dtype=np.str_)'
        )
    if dtype.fields is not None or dtype.kind in "Mm":
        raise UsageError(f"{where}: dtype {dtype}, models take plain numbers, bools and strings; convert it")
    needed = prod(shape) * dtype.itemsize
    if needed > size_bytes:
        raise UsageError(f"{where}: the header claims {needed} bytes in shape {shape}, the file has {size_bytes}")
    budget.take(needed, where)
    data = stream.read(needed)
    if len(data) != needed:
        raise UsageError(f"{where}: {len(data)} of {needed} bytes are there; the file is truncated")
    array = np.frombuffer(data, dtype) if needed else np.empty(prod(shape), dtype)
    array = array.reshape(shape[::-1]).T if fortran else array.reshape(shape)
    return np.ascontiguousarray(array, dtype.newbyteorder("=")).reshape(shape)


def _read_header(stream: BinaryIO) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = np.lib.format.read_magic(stream)
    if version == (1, 0):
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(stream, max_header_size=_HEADER_LIMIT_BYTES)
    elif version == (2, 0):
        shape, fortran, dtype = np.lib.format.read_array_header_2_0(stream, max_header_size=_HEADER_LIMIT_BYTES)
    else:
        raise ValueError(f"format version {version}, versions 1.0 and 2.0 are read")
    if any(size < 0 for size in shape):
        raise ValueError(f"shape {shape}")
    return shape, fortran, dtype


def _refuse_leaving(name: str, where: str) -> None:
    parts = name.replace("\\", "/").split("/")
    if ".." in parts or name.startswith(("/", "\\")) or not name.endswith(".npy"):
        raise UsageError(
            f"{where}: not a plain <input>.npy; names with '/', '..' or the like are written percent-encoded, "
            f"here {quote(name.removesuffix('.npy').replace('..', '%2E%2E'), safe='%')}.npy"
        )
