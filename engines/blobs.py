"""Blobs: the files of engines inside a bundle, named by the SHA-256 of their bytes.

One name means one content, so a blob is never edited: a changed engine is another blob beside the old one.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import re
import stat
from typing import TYPE_CHECKING

from trtc.engines.errors import BundleError
from trtc.engines.files import open_regular, write_all
from trtc.engines.host import usable_threads
from trtc.profiles import HostError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from trtc.engines.manifest import BlobFile, EngineRecord, Manifest

BLOBS = "blobs"
"""The folder of the blobs inside a bundle."""

SHA256_TEXT = re.compile(r"[0-9a-f]{64}\Z")
BLOB_NAME = re.compile(r"([0-9a-f]{64})((?:\.[A-Za-z0-9_-]{1,32}){0,3})\Z")

_CHUNK_BYTES = 2**20
_WORTH_THREADS_BYTES = 16 * 2**20
"""Beside the largest file: to hash as much takes about 10 ms, to import and start threads about half of that."""
_FICLONE = 0x40049409
"""``FICLONE`` of linux/fs.h: share the blocks of another file until one of the two is written."""
_NO_CLONE = frozenset([errno.EOPNOTSUPP, errno.EXDEV, errno.EINVAL, errno.ENOTTY, errno.ENOSYS, errno.EPERM])


def blob_path(sha256: str, suffix: str) -> str:
    """Name a blob: its path relative to the bundle.

    Args:
        sha256: of its bytes, as 64 lower-case hexadecimal digits.
        suffix: such as ``.onnx``; may be empty.

    Raises:
        BundleError: for anything else.
    """
    if BLOB_NAME.match(sha256 + suffix) is None or SHA256_TEXT.match(sha256) is None:
        raise BundleError(
            f"digest {sha256!r} with suffix {suffix!r} is no blob; give 64 hexadecimal digits and a suffix like .onnx"
        )
    return f"{BLOBS}/{sha256}{suffix}"


def blobs_of(manifest: Manifest) -> dict[str, BlobFile]:
    """Return every blob of a manifest by its path, checked.

    Raises:
        BundleError: for a path that is not ``blobs/<sha256><suffix>`` of its own digest (so it could leave the
            bundle, or change under its name), a negative or contradictory size, or an entry that is no file of
            its engine.
    """
    blobs: dict[str, BlobFile] = {}
    for record in manifest.engines:
        _check_entry(record)
        for blob in record.files:
            folder, _, name = blob.path.partition("/")
            match = BLOB_NAME.match(name)
            if folder != BLOBS or match is None or match[1] != blob.sha256:
                raise BundleError(
                    f"engine {record.name!r}: file {blob.path!r} with SHA-256 {blob.sha256!r}; "
                    f"a file of a bundle is {BLOBS}/<its SHA-256><suffix>; rebuild the bundle"
                )
            if blob.size_bytes < 0 or blobs.setdefault(blob.path, blob) != blob:
                raise BundleError(
                    f"engine {record.name!r}: file {blob.path} has size {blob.size_bytes}, elsewhere "
                    f"{blobs.get(blob.path, blob).size_bytes}; rebuild the bundle"
                )
    return blobs


def _check_entry(record: EngineRecord) -> None:
    paths = [blob.path for blob in record.files]
    if (lost := [path for path in record.plugins if path not in paths or path == record.entry]) or (
        len(set(record.plugins)) != len(record.plugins)
    ):
        raise BundleError(
            f"engine {record.name!r} has the plug-ins {lost or list(record.plugins)}; each is another one of its files "
            f"{paths} than its entry, and stands there once; rebuild the bundle"
        )
    if record.entry and record.entry not in paths:
        raise BundleError(
            f"engine {record.name!r} starts at {record.entry!r}, which is none of its files {paths}; rebuild the bundle"
        )


def check_blobs(folder: Path, blobs: Iterable[BlobFile], *, digests: bool = True) -> dict[str, Path]:
    """Check files of a bundle: all sizes first, then the digests, several files at a time.

    Args:
        folder: of the bundle.
        blobs: checked by ``blobs_of``.
        digests: False checks that the files are there with the right sizes.

    Returns:
        The file of each blob by its path in the manifest.

    Raises:
        BundleError: for a file that is missing, no regular file, of another size or with other bytes; both
            sizes or digests are named.
        HostError: when reading is not allowed.
    """
    wanted = list(blobs)
    opened: list[int] = []
    try:
        for blob in wanted:
            opened.append(_open_blob(folder, blob))
            size_bytes = os.fstat(opened[-1]).st_size
            if size_bytes != blob.size_bytes:
                raise BundleError(
                    f"{folder / blob.path} has {size_bytes} bytes, the manifest says {blob.size_bytes}; "
                    "copy the bundle again or rebuild it"
                )
        if digests:
            for blob, sha256 in zip(wanted, _digests(opened), strict=True):
                if sha256 != blob.sha256:
                    raise BundleError(
                        f"{folder / blob.path} has SHA-256 {sha256}, the manifest says {blob.sha256}; "
                        "copy the bundle again or rebuild it"
                    )
    finally:
        for fd in opened:
            os.close(fd)
    return {blob.path: folder / blob.path for blob in wanted}


def holds_blob(folder: Path, blob: BlobFile) -> bool:
    """Tell whether a bundle already holds exactly these bytes."""
    try:
        check_blobs(folder, [blob])
    except BundleError:
        return False
    return True


def copy_blob(source: Path, fd: int, blob: BlobFile) -> None:
    """Copy a file into an open one and check what arrives, in one pass.

    Where the file system can share blocks, nothing is copied, and the new file is read for its digest.

    Args:
        source: the file to copy.
        fd: of the new, empty file; open for reading and writing.
        blob: what it must be.

    Raises:
        BundleError: when the source cannot be read or is not what ``blob`` says; both are named.
        OSError: when writing fails.
    """
    try:
        source_fd = os.open(source, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise BundleError(f"{source}, the source of {blob.path}, cannot be read ({error.strerror})") from error
    try:
        status = os.fstat(source_fd)
        size_bytes = status.st_size
        if not stat.S_ISREG(status.st_mode):
            raise BundleError(f"{source}, the source of {blob.path}, is not a regular file")
        if size_bytes != blob.size_bytes:
            raise BundleError(f"{source} has {size_bytes} bytes, the manifest says {blob.size_bytes} for {blob.path}")
        sha256 = _sha256(fd) if _clone(source_fd, fd) else _copy(source_fd, fd, source, size_bytes)
    finally:
        os.close(source_fd)
    if sha256 != blob.sha256:
        raise BundleError(f"{source} has SHA-256 {sha256}, the manifest says {blob.sha256} for {blob.path}")


def _open_blob(folder: Path, blob: BlobFile) -> int:
    """Open a blob without following links, neither the file nor its folder."""
    try:
        blobs_fd = os.open(folder / BLOBS, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            return open_regular(blob.path.partition("/")[2], blobs_fd)
        finally:
            os.close(blobs_fd)
    except PermissionError as error:
        raise HostError(f"{folder / blob.path}: reading is not allowed; give this user the right to read it") from error
    except OSError as error:
        reason = {
            errno.ENOENT: "is missing",
            errno.ENOTDIR: "is not a file in a real folder",
            errno.ELOOP: "is a symlink",
            errno.EINVAL: "is not a regular file",
        }.get(error.errno or 0, f"cannot be opened ({error.strerror})")
        raise BundleError(
            f"{folder / blob.path} {reason}; the manifest says {blob.size_bytes} bytes with SHA-256 {blob.sha256}; "
            "copy the bundle with real files (cp -rL) or rebuild it"
        ) from error


def _digests(fds: list[int]) -> list[str]:
    """Hash open files; hashing releases the interpreter lock, so threads work side by side."""
    sizes_bytes = [os.fstat(fd).st_size for fd in fds]
    threads = min(len(fds), usable_threads())
    if threads <= 1 or sum(sizes_bytes) - max(sizes_bytes) < _WORTH_THREADS_BYTES:
        return [_sha256(fd) for fd in fds]
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(_sha256, fds))


def _sha256(fd: int) -> str:
    os.lseek(fd, 0, os.SEEK_SET)
    with open(fd, "rb", buffering=0, closefd=False) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _clone(source_fd: int, fd: int) -> bool:
    try:
        fcntl.ioctl(fd, _FICLONE, source_fd)
    except OSError as error:
        if error.errno in _NO_CLONE:
            return False
        raise
    return True


def _copy(source_fd: int, fd: int, source: Path, size_bytes: int) -> str:
    """Copy and hash chunks that fit the processor's cache; return the digest of what was written."""
    digest = hashlib.sha256()
    buffer = bytearray(_CHUNK_BYTES)
    view = memoryview(buffer)
    while True:
        try:
            count = os.readv(source_fd, [buffer])
        except OSError as error:
            raise BundleError(f"{source} cannot be read ({error.strerror})") from error
        if not count:
            return digest.hexdigest()
        size_bytes -= count
        if size_bytes < 0:
            raise BundleError(f"{source} grows while it is copied; build again without touching it")
        digest.update(view[:count])
        write_all(fd, view[:count])
