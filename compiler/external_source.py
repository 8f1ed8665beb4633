"""Where external data lies: what tensors say, and files inside the model's folder only, opened and checked.

Rules, each because a library was seen to break it:

- A location is relative and stays inside the model's folder, or inside ``model_root`` where the caller names one;
  symbolic links are followed only as far as that.
- A file with several hard links is refused, because its other name may lie anywhere, and an archive can plant one.
  Caches do use hard links: naming a ``model_root`` says that everything in it is trusted, and allows them.
- What is checked is the opened descriptor, and that same descriptor is read.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from trtc.compiler.passes.tensors import LAYOUTS
from trtc.profiles import ModelError, UsageError

if TYPE_CHECKING:
    import onnx

_WHOLE_NUMBER = re.compile(r"[0-9]{1,19}")


@dataclass(frozen=True, slots=True)
class SourceRoot:
    """Where external data may lie.

    Attributes:
        base: folder that locations are relative to; resolved. None when the model came as bytes without one.
        root: folder that nothing may leave; resolved, ``base`` lies in it.
        linked: whether files with several hard links are accepted.
    """

    base: Path | None
    root: Path | None
    linked: bool

    @staticmethod
    def of(base: Path | None, model_root: Path | None) -> SourceRoot:
        """Resolve the folders.

        Raises:
            UsageError: when a folder is missing, or ``model_root`` does not hold the model.
        """
        if base is None:
            return SourceRoot(None, None, linked=False)
        try:
            inside = base.resolve(strict=True)
            root = inside if model_root is None else model_root.resolve(strict=True)
        except OSError as error:
            raise UsageError(
                f"{error.filename or base}: no such folder; give the folder that holds the model"
            ) from error
        if not inside.is_relative_to(root):
            raise UsageError(f"model root {root} does not hold the model's folder {inside}; give a folder above it")
        return SourceRoot(inside, root, linked=model_root is not None)


@dataclass(frozen=True, slots=True)
class Reference:
    """One tensor's data.

    Attributes:
        where: the tensor, for messages.
        location: as normalized path relative to the model's folder.
        start, stop: bytes inside the file.
    """

    where: str
    location: str
    start: int
    stop: int


def reference_of(tensor: onnx.TensorProto, where: str, source: SourceRoot) -> Reference:
    """Read what a tensor says about its data; the file is not touched."""
    entries: dict[str, str] = {}
    for entry in tensor.external_data:
        if entry.key in entries:
            raise ModelError(f"{where}: external data says {entry.key!r} twice; export the model again")
        entries[entry.key] = entry.value
    size_bytes = LAYOUTS[tensor.data_type].size_bytes(_count(tensor))
    offset = _number(entries, "offset", where) or 0
    length = _number(entries, "length", where)
    if length is not None and length != size_bytes:
        raise ModelError(
            f"{where}: external data of {length} bytes, but dims {list(tensor.dims)} and its type need {size_bytes}; "
            "the model is damaged, fetch or export it again"
        )
    return Reference(where, _location(entries.get("location", ""), where, source), offset, offset + size_bytes)


def _count(tensor: onnx.TensorProto) -> int:
    count = 1
    for dim in tensor.dims:
        count *= dim
    return count


def _number(entries: dict[str, str], key: str, where: str) -> int | None:
    text = entries.get(key)
    if text is None:
        return None
    if _WHOLE_NUMBER.fullmatch(text) is None:
        raise ModelError(f"{where}: external data {key} {text[:40]!r} is not a whole number; export the model again")
    return int(text)


def _location(location: str, where: str, source: SourceRoot) -> str:
    """Check a location as text; return it in one spelling."""
    if source.base is None:
        raise ModelError(
            f"{where}: external data {location!r}, but the model came as bytes without a folder; give base_folder"
        )
    if not location or "\0" in location:
        raise ModelError(f"{where}: external data without a usable location ({location!r}); export the model again")
    if location.startswith(("/", "\\")) or re.match(r"[A-Za-z]:", location):
        raise ModelError(
            f"{where}: external data at the absolute path {location!r}; a location is relative to the model"
        )
    plain = os.path.normpath(location)
    if os.path.realpath(source.base / location) != os.path.realpath(source.base / plain):
        raise ModelError(f"{where}: external data {location!r} steps back over a symbolic link; export the model again")
    return plain


def open_checked(source: SourceRoot, location: str, users: list[Reference]) -> int:
    """Open a data file and check it on the open descriptor; the caller closes it."""
    where = users[0].where
    if source.base is None or source.root is None:
        raise ModelError(f"{where}: external data {location!r}, but no folder to look in; give base_folder")
    real = Path(os.path.realpath(source.base / location))
    if not real.is_relative_to(source.root):
        raise ModelError(
            f"{where}: external data {location!r} leads out of {source.root} (to {real}); "
            "put the file beside the model, or name a folder that holds both as the model root"
        )
    try:
        descriptor = _open_below(source.root, real.relative_to(source.root).parts)
    except FileNotFoundError as error:
        raise ModelError(
            f"{where}: external data file {location!r} is missing from {source.base}; fetch it beside the model"
        ) from error
    except (OSError, ValueError) as error:
        raise ModelError(f"{where}: external data file {location!r} cannot be opened ({error})") from error
    try:
        _check_file(os.fstat(descriptor), source, location, users)
    except ModelError:
        os.close(descriptor)
        raise
    return descriptor


def _open_below(root: Path, parts: tuple[str, ...]) -> int:
    """Open a regular file step by step below ``root``, following no link: a path swapped in meanwhile fails."""
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in parts[:-1]:
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
            inner = os.open(part, flags, dir_fd=folder)
            os.close(folder)
            folder = inner
        name = parts[-1] if parts else "."
        if not stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        return os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    finally:
        os.close(folder)


def _check_file(status: os.stat_result, source: SourceRoot, location: str, users: list[Reference]) -> None:
    where = users[0].where
    if not stat.S_ISREG(status.st_mode):
        raise ModelError(f"{where}: external data {location!r} is not a regular file; copy the data into one")
    if status.st_nlink > 1 and not source.linked:
        raise ModelError(
            f"{where}: external data file {location!r} has {status.st_nlink} hard links, so it may be another file's "
            "content; copy it, or name the folder that you trust as the model root"
        )
    for user in users:
        if user.stop > status.st_size:
            raise ModelError(
                f"{user.where}: external data is bytes {user.start}..{user.stop} of {location!r}, which has only "
                f"{status.st_size} bytes; fetch the file again"
            )
