"""Blobs: their names keep them inside the bundle, their bytes are what the manifest says."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec
import pytest

from trtc.engines.blobs import blob_path, blobs_of, check_blobs
from trtc.engines.bundle import write_bundle
from trtc.engines.errors import BundleError
from trtc.engines.manifest import BlobFile

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from trtc.engines.manifest import Manifest

SHA = "0123456789abcdef" * 4


def with_files(manifest: Manifest, entry: str, *files: BlobFile) -> Manifest:
    engine = msgspec.structs.replace(manifest.engines[0], entry=entry, files=files)
    return msgspec.structs.replace(manifest, engines=(engine,))


@pytest.mark.parametrize(
    "plugins", [(f"blobs/{SHA}.so",), (f"blobs/{SHA}.plan",), (f"blobs/{SHA[::-1]}.so",) * 2],
    ids=["no-file-of-it", "its-entry", "twice"],
)  # fmt: skip
def test_plugins_are_other_files_of_their_engine(make_parts: Callable, plugins: tuple[str, ...]) -> None:
    manifest, _ = make_parts("a", b"x")
    entry = BlobFile(path=f"blobs/{SHA}.plan", size_bytes=1, sha256=SHA)
    library = BlobFile(path=f"blobs/{SHA[::-1]}.so", size_bytes=1, sha256=SHA[::-1])
    engine = with_files(manifest, entry.path, entry, library).engines[0]
    good = msgspec.structs.replace(engine, plugins=(library.path,))
    assert library.path in blobs_of(msgspec.structs.replace(manifest, engines=(good,)))
    bad = msgspec.structs.replace(engine, plugins=plugins)
    with pytest.raises(BundleError, match=r"has the plug-ins .*rebuild the bundle"):
        blobs_of(msgspec.structs.replace(manifest, engines=(bad,)))


@pytest.mark.parametrize("suffix", ["", ".onnx", ".weights", ".tar.gz", ".plan_2-a"])
def test_a_blob_is_named_by_its_digest(suffix: str) -> None:
    assert blob_path(SHA, suffix) == f"blobs/{SHA}{suffix}"


@pytest.mark.parametrize(
    ("sha256", "suffix"),
    [
        pytest.param(SHA.upper(), ".onnx", id="upper-case"),
        pytest.param(SHA[:-1], "0", id="digit-in-the-suffix"),
        pytest.param(SHA, "/../x", id="leaves-the-folder"),
        pytest.param(SHA, ".", id="dot-alone"),
        pytest.param(SHA, ".onnx\n", id="line-feed"),
        pytest.param(SHA, ".π", id="not-ascii"),
    ],
)
def test_what_is_no_digest_or_suffix_names_no_blob(sha256: str, suffix: str) -> None:
    with pytest.raises(BundleError, match="is no blob"):
        blob_path(sha256, suffix)


@pytest.mark.parametrize(
    "path",
    [
        f"../{SHA}.bin",
        f"/blobs/{SHA}.bin",
        f"blobs/../{SHA}.bin",
        f"blobs//{SHA}.bin",
        f"blobs\\{SHA}.bin",
        f"./blobs/{SHA}.bin",
        f"blobs/sub/{SHA}.bin",
        f"blobs/{SHA[::-1]}.bin",
        f"blobs/{SHA}.bin\0",
        "blobs/model.onnx",
        "manifest.json",
        "",
    ],
)
def test_a_path_that_is_not_the_files_own_digest_is_refused(make_parts: Callable, path: str) -> None:
    manifest, _ = make_parts("a", b"x")
    blob = msgspec.structs.replace(manifest.engines[0].files[0], path=path, sha256=SHA)
    with pytest.raises(BundleError, match="a file of a bundle is blobs/<its SHA-256><suffix>"):
        blobs_of(with_files(manifest, "", blob))


def test_one_path_with_two_sizes_is_refused(make_parts: Callable) -> None:
    manifest, _ = make_parts("a", b"x")
    blob = manifest.engines[0].files[0]
    with pytest.raises(BundleError, match="has size 2, elsewhere 1"):
        blobs_of(with_files(manifest, "", blob, msgspec.structs.replace(blob, size_bytes=2)))


def test_a_negative_size_is_refused(make_parts: Callable) -> None:
    manifest, _ = make_parts("a", b"x")
    blob = msgspec.structs.replace(manifest.engines[0].files[0], size_bytes=-1)
    with pytest.raises(BundleError, match="has size -1"):
        blobs_of(with_files(manifest, "", blob))


def test_an_entry_that_is_no_file_of_its_engine_is_refused(make_parts: Callable) -> None:
    manifest, _ = make_parts("a", b"x")
    with pytest.raises(BundleError, match="starts at 'blobs/other'"):
        blobs_of(with_files(manifest, "blobs/other", *manifest.engines[0].files))


def halve(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def flip_one_byte(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[5000] ^= 1
    file.write_bytes(data)


def replace_by_text(file: Path) -> None:
    file.write_text("version https://example.org/spec\n")


def empty(file: Path) -> None:
    os.truncate(file, 0)


def remove(file: Path) -> None:
    file.unlink()


def link_to_a_copy(file: Path) -> None:
    other = file.parents[2] / "copy"
    file.rename(other)
    file.symlink_to(other)


def link_the_folder(file: Path) -> None:
    other = file.parents[2] / "moved"
    file.parent.rename(other)
    file.parent.symlink_to(other)


def make_a_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def make_a_pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


@pytest.mark.parametrize(
    ("alter", "found"),
    [
        pytest.param(halve, "has 5000 bytes, the manifest says 10000", id="halved"),
        pytest.param(flip_one_byte, "has SHA-256 [0-9a-f]{64}, the manifest says [0-9a-f]{64}", id="one-bit"),
        pytest.param(replace_by_text, "has 33 bytes, the manifest says 10000", id="text"),
        pytest.param(empty, "has 0 bytes, the manifest says 10000", id="empty"),
        pytest.param(remove, "is missing; the manifest says 10000 bytes with SHA-256", id="missing"),
        pytest.param(link_to_a_copy, "is a symlink; the manifest says 10000", id="symlink"),
        pytest.param(link_the_folder, "is not a file in a real folder", id="symlinked-folder"),
        pytest.param(make_a_folder, "is not a regular file", id="folder"),
        pytest.param(make_a_pipe, "is not a regular file", id="named-pipe"),
    ],
)
def test_an_altered_blob_is_refused_with_both_values(
    make_parts: Callable, tmp_path: Path, alter: Callable[[Path], None], found: str
) -> None:
    manifest, sources = make_parts("a", bytes(10_000), b"another")
    bundle = tmp_path / "a.trtc"
    write_bundle(bundle, manifest, sources)
    files = manifest.engines[0].files
    assert check_blobs(bundle, files).keys() == sources.keys()

    alter(bundle / files[0].path)

    with pytest.raises(BundleError, match=found):
        check_blobs(bundle, files)


def test_sizes_are_compared_before_anything_is_hashed(
    make_parts: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest, sources = make_parts("a", b"first", b"second")
    bundle = tmp_path / "a.trtc"
    write_bundle(bundle, manifest, sources)
    files = manifest.engines[0].files
    empty(bundle / files[1].path)
    hashed: list[int] = []
    monkeypatch.setattr("trtc.engines.blobs._digests", hashed.extend)
    with pytest.raises(BundleError, match="has 0 bytes"):
        check_blobs(bundle, files)
    assert hashed == []


def test_sizes_alone_are_checked_when_digests_are_off(make_parts: Callable, tmp_path: Path) -> None:
    manifest, sources = make_parts("a", bytes(10_000))
    bundle = tmp_path / "a.trtc"
    write_bundle(bundle, manifest, sources)
    files = manifest.engines[0].files
    flip_one_byte(bundle / files[0].path)
    assert check_blobs(bundle, files, digests=False) == {files[0].path: bundle / files[0].path}
    halve(bundle / files[0].path)
    with pytest.raises(BundleError, match="has 5000 bytes"):
        check_blobs(bundle, files, digests=False)
