"""External data: copied into one file in one pass, hashed on the way. ``external_source.py`` says what may be read."""

from __future__ import annotations

import hashlib
import os
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

from onnx import TensorProto

from trtc.compiler.external_source import Reference, SourceRoot, open_checked, reference_of
from trtc.compiler.passes.tensors import model_tensors
from trtc.profiles import HostError, ModelError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from io import FileIO
    from pathlib import Path

    import onnx

DATA_FILE = "weights.bin"
INLINE_BYTES = 1024
"""Tensors up to this size move into the model file, where shape inference sees them."""

_CHUNK_BYTES = 4 * 2**20
_ALIGNMENT_BYTES = 64
_PAGE_BYTES = 4096
_PAGED_FROM_BYTES = 2**20


@dataclass(frozen=True, slots=True)
class Piece:
    """A range of one file that is copied as a whole; ranges of tensors that overlap are one piece."""

    location: str
    start: int
    stop: int
    target: int

    @property
    def size_bytes(self) -> int:
        """Bytes to copy."""
        return self.stop - self.start


@dataclass(frozen=True, slots=True)
class StoredData:
    """What was copied.

    Attributes:
        digest: over all pieces, in order of location and offset.
        size_bytes: of all pieces.
        pieces: that were copied, in that order.
    """

    digest: bytes
    size_bytes: int
    pieces: tuple[Piece, ...] = ()


def store_external_data(model: onnx.ModelProto, source: SourceRoot, folder: Path) -> StoredData:
    """Copy all external data into ``folder``/weights.bin, and make the model's tensors point there.

    Every file is checked before the first byte is copied, and again when it is opened for the copy.

    Args:
        model: its tensors are rewritten.
        source: where data may lie.
        folder: private to this build, exists; must not hold the data file yet.

    Raises:
        ModelError: for a location, range or file that is not allowed, missing or too short.
        HostError: when the disk is full.
        UsageError: when ``folder`` holds such a file already.
    """
    tensors = [(t, where) for t, where in model_tensors(model) if t.data_location == TensorProto.EXTERNAL]
    references = [reference_of(tensor, where, source) for tensor, where in tensors]
    by_location: dict[str, list[Reference]] = {}
    for reference in references:
        by_location.setdefault(reference.location, []).append(reference)
    for location, users in by_location.items():
        os.close(open_checked(source, location, users))
    pieces = plan_pieces(references)
    if not pieces:
        for tensor, _ in tensors:
            _store_inline(tensor, b"")
        return StoredData(b"", 0)
    stored = _copy(pieces, by_location, source, folder)
    with (folder / DATA_FILE).open("rb") as data:
        for (tensor, _), reference in zip(tensors, references, strict=True):
            _rewrite(tensor, reference, pieces, data)
    return stored


def plan_pieces(references: Iterable[Reference]) -> list[Piece]:
    """Merge overlapping ranges and lay them out, so that no byte of a file is copied twice."""
    pieces: list[Piece] = []
    target = 0
    for reference in sorted(references, key=lambda r: (r.location, r.start, r.stop)):
        if reference.start == reference.stop:
            continue
        last = pieces[-1] if pieces else None
        if last and last.location == reference.location and reference.start < last.stop:
            stop = max(last.stop, reference.stop)
            pieces[-1] = Piece(last.location, last.start, stop, last.target)
        else:
            size = reference.stop - reference.start
            step = _PAGE_BYTES if size >= _PAGED_FROM_BYTES else _ALIGNMENT_BYTES
            target = -(-target // step) * step
            pieces.append(Piece(reference.location, reference.start, reference.stop, target))
        target = pieces[-1].target + pieces[-1].size_bytes
    return pieces


def _copy(pieces: list[Piece], users: dict[str, list[Reference]], source: SourceRoot, folder: Path) -> StoredData:
    """Copy pieces, hashing each while its bytes pass through."""
    total = pieces[-1].target + pieces[-1].size_bytes
    free = shutil.disk_usage(folder).free
    if total > free:
        raise HostError(
            f"{folder}: the model's weights need {total} bytes, {free} are free; free space or name another work folder"
        )
    digest = hashlib.sha256()
    try:
        with (folder / DATA_FILE).open("xb", buffering=0) as output:
            for location in dict.fromkeys(piece.location for piece in pieces):
                descriptor = open_checked(source, location, users[location])
                with open(descriptor, "rb", buffering=0) as file:  # noqa: PTH123 (a descriptor, checked)
                    for piece in pieces:
                        if piece.location == location:
                            digest.update(_copy_piece(file, output, piece))
    except FileExistsError as error:
        raise UsageError(f"{folder / DATA_FILE} exists already; give an empty work folder") from error
    except OSError as error:
        raise HostError(
            f"{folder}: copying {total} bytes of weights failed ({error}); check disk and permissions"
        ) from error
    return StoredData(digest.digest(), sum(piece.size_bytes for piece in pieces), tuple(pieces))


def _copy_piece(file: FileIO, output: FileIO, piece: Piece) -> bytes:
    """Copy one piece; return its digest."""
    digest = hashlib.sha256()
    buffer = memoryview(bytearray(min(_CHUNK_BYTES, piece.size_bytes)))
    file.seek(piece.start)
    output.seek(piece.target)
    left = piece.size_bytes
    while left:
        count = file.readinto(buffer[: min(left, len(buffer))])
        if not count:
            raise ModelError(
                f"external data file {piece.location!r} became shorter while it was read; do not change it meanwhile"
            )
        digest.update(buffer[:count])
        written = 0
        while written < count:
            written += output.write(buffer[written:count])
        left -= count
    return digest.digest()


def _rewrite(tensor: onnx.TensorProto, reference: Reference, pieces: list[Piece], data: BinaryIO) -> None:
    """Point a tensor at its copy, or move it into the model file where it is small."""
    size_bytes = reference.stop - reference.start
    if not size_bytes:
        _store_inline(tensor, b"")
        return
    piece = next(p for p in pieces if p.location == reference.location and p.start <= reference.start < p.stop)
    offset = piece.target + reference.start - piece.start
    if size_bytes <= INLINE_BYTES:
        data.seek(offset)
        _store_inline(tensor, data.read(size_bytes))
        return
    del tensor.external_data[:]
    for key, value in (("location", DATA_FILE), ("offset", str(offset)), ("length", str(size_bytes))):
        tensor.external_data.add(key=key, value=value)


def _store_inline(tensor: onnx.TensorProto, data: bytes) -> None:
    del tensor.external_data[:]
    tensor.ClearField("data_location")
    tensor.raw_data = data
