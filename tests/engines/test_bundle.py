"""Bundles on disk: what is written is read, what is not whole is refused, what is not ours stays."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import msgspec
import pytest

from trtc.engines.bundle import bundle_size_bytes, open_engine, read_manifest, write_bundle
from trtc.engines.checksum import sealed
from trtc.engines.errors import BundleError
from trtc.engines.files import TEMPORARY_PREFIX
from trtc.engines.manifest_json import MAX_MANIFEST_BYTES
from trtc.profiles import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from trtc.engines.manifest import EngineRecord, Manifest


def first(manifest: Manifest) -> EngineRecord:
    return manifest.engines[0]


def blob_names(bundle: Path) -> set[str]:
    return {f"blobs/{path.name}" for path in (bundle / "blobs").iterdir()}


def everything_in(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_what_is_written_is_read_back(make_parts: Callable, tmp_path: Path) -> None:
    manifest, sources = make_parts("a", b"graph", b"weights")
    bundle = tmp_path / "deep" / "a.trtc"
    write_bundle(bundle, manifest, sources)
    assert read_manifest(bundle) == manifest
    with open_engine(bundle, first) as reader:
        assert reader.manifest == manifest
        assert {path: file.read_bytes() for path, file in reader.files.items()} == {
            path: source.read_bytes() for path, source in sources.items()
        }


def test_a_bundle_without_blobs_is_a_bundle(make_parts: Callable, tmp_path: Path) -> None:
    manifest, _ = make_parts("a")
    write_bundle(tmp_path / "a.trtc", manifest, {})
    with open_engine(tmp_path / "a.trtc", first) as reader:
        assert reader.files == {}


def test_an_empty_blob_and_two_engines_that_share_a_blob_are_kept_once(make_parts: Callable, tmp_path: Path) -> None:
    manifest, sources = make_parts("a", b"", b"shared")
    engines = (manifest.engines[0], msgspec.structs.replace(manifest.engines[0], name="e1"))
    manifest = msgspec.structs.replace(manifest, engines=engines)
    write_bundle(tmp_path / "a.trtc", manifest, sources)
    assert blob_names(tmp_path / "a.trtc") == set(sources)
    with open_engine(tmp_path / "a.trtc", lambda m: m.engines[1]) as reader:
        assert reader.record.name == "e1"


def test_the_size_is_that_of_the_files_on_disk(make_parts: Callable, tmp_path: Path) -> None:
    manifest, sources = make_parts("a", b"graph", bytes(5000))
    write_bundle(tmp_path / "a.trtc", manifest, sources)
    assert bundle_size_bytes(manifest) == sum(len(data) for data in everything_in(tmp_path / "a.trtc").values())


def test_the_sources_may_vanish_after_the_write(make_parts: Callable, tmp_path: Path) -> None:
    manifest, sources = make_parts("a", b"graph")
    write_bundle(tmp_path / "a.trtc", manifest, sources)
    for source in sources.values():
        source.unlink()
    with open_engine(tmp_path / "a.trtc", first) as reader:
        assert [file.read_bytes() for file in reader.files.values()] == [b"graph"]


def test_editing_a_source_after_the_write_does_not_reach_the_bundle(make_parts: Callable, tmp_path: Path) -> None:
    manifest, sources = make_parts("a", b"graph")
    write_bundle(tmp_path / "a.trtc", manifest, sources)
    for source in sources.values():
        source.write_bytes(b"other")
    with open_engine(tmp_path / "a.trtc", first) as reader:
        assert [file.read_bytes() for file in reader.files.values()] == [b"graph"]


def test_a_replacement_keeps_shared_blobs_and_removes_the_others(make_parts: Callable, tmp_path: Path) -> None:
    bundle = tmp_path / "a.trtc"
    old, old_sources = make_parts("old", b"kept", b"dropped")
    new, new_sources = make_parts("new", b"kept", b"added")
    write_bundle(bundle, old, old_sources)
    kept = bundle / old.engines[0].files[0].path
    before = kept.stat()
    write_bundle(bundle, new, new_sources)
    assert blob_names(bundle) == set(new_sources)
    assert (kept.stat().st_ino, kept.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_a_blob_that_is_there_needs_no_source(make_parts: Callable, tmp_path: Path) -> None:
    bundle = tmp_path / "a.trtc"
    manifest, sources = make_parts("a", b"graph")
    write_bundle(bundle, manifest, sources)
    changed = msgspec.structs.replace(manifest, metadata={"name": "checked elsewhere"})
    write_bundle(bundle, changed, {})
    assert read_manifest(bundle) == changed


def test_a_damaged_blob_is_repaired_by_writing_again(make_parts: Callable, tmp_path: Path) -> None:
    bundle = tmp_path / "a.trtc"
    manifest, sources = make_parts("a", b"graph")
    write_bundle(bundle, manifest, sources)
    (bundle / manifest.engines[0].files[0].path).write_bytes(b"grap!")
    write_bundle(bundle, manifest, sources)
    with open_engine(bundle, first) as reader:
        assert [file.read_bytes() for file in reader.files.values()] == [b"graph"]


def test_a_truncated_manifest_can_be_written_over(make_parts: Callable, tmp_path: Path) -> None:
    bundle = tmp_path / "a.trtc"
    manifest, sources = make_parts("a", b"graph")
    write_bundle(bundle, manifest, sources)
    os.truncate(bundle / "manifest.json", 20)
    write_bundle(bundle, manifest, sources)
    assert read_manifest(bundle) == manifest


def test_a_copy_without_lock_files_is_read_and_replaced(make_parts: Callable, tmp_path: Path) -> None:
    bundle = tmp_path / "a.trtc"
    old, old_sources = make_parts("old", b"graph")
    new, new_sources = make_parts("new", b"other")
    write_bundle(bundle, old, old_sources)
    (bundle / ".trtc-writer").unlink()
    (bundle / ".trtc-readers").unlink()
    with open_engine(bundle, first) as reader:
        assert reader.manifest == old
    assert not (bundle / ".trtc-readers").exists(), "readers write nothing"
    write_bundle(bundle, new, new_sources)
    assert read_manifest(bundle) == new


def test_a_link_to_a_bundle_is_read_and_replaced_where_it_points(make_parts: Callable, tmp_path: Path) -> None:
    old, old_sources = make_parts("old", b"graph")
    new, new_sources = make_parts("new", b"other")
    write_bundle(tmp_path / "v1.trtc", old, old_sources)
    link = tmp_path / "current.trtc"
    link.symlink_to("v1.trtc")
    write_bundle(link, new, new_sources)
    assert link.is_symlink()
    assert read_manifest(link) == read_manifest(tmp_path / "v1.trtc") == new


@pytest.mark.parametrize("contents", [b"other", b"graph and more", b""], ids=["digest", "longer", "empty"])
@pytest.mark.parametrize("replaces", [True, False], ids=["replacement", "new"])
def test_a_source_that_is_not_what_the_manifest_says_commits_nothing(
    make_parts: Callable,
    tmp_path: Path,
    contents: bytes,
    replaces: bool,  # noqa: FBT001 (a parameter of the test)
) -> None:
    bundle = tmp_path / "a.trtc"
    if replaces:
        write_bundle(bundle, *make_parts("old", b"old graph"))
    before = everything_in(tmp_path)
    manifest, sources = make_parts("new", b"fine", b"graph")
    sources[manifest.engines[0].files[1].path].write_bytes(contents)
    before = everything_in(tmp_path)
    with pytest.raises(BundleError, match=r"1\.bin has (SHA-256 [0-9a-f]{64}|\d+ bytes), the manifest says"):
        write_bundle(bundle, manifest, sources)
    assert everything_in(tmp_path) == before
    assert bundle.exists() == replaces


def test_a_missing_source_commits_nothing(make_parts: Callable, tmp_path: Path) -> None:
    manifest, sources = make_parts("a", b"graph")
    next(iter(sources.values())).unlink()
    with pytest.raises(BundleError, match="cannot be read"):
        write_bundle(tmp_path / "a.trtc", manifest, sources)
    with pytest.raises(BundleError, match="has no source"):
        write_bundle(tmp_path / "a.trtc", manifest, {})
    assert not (tmp_path / "a.trtc").exists()


def test_a_source_that_the_manifest_does_not_name_is_refused(make_parts: Callable, tmp_path: Path) -> None:
    manifest, sources = make_parts("a", b"graph")
    with pytest.raises(UsageError, match=r"source '\.\./x' is no file of the manifest"):
        write_bundle(tmp_path / "a.trtc", manifest, {**sources, "../x": tmp_path})
    assert not (tmp_path / "a.trtc").exists()


def test_a_manifest_that_could_not_be_read_back_is_not_written(make_parts: Callable, tmp_path: Path) -> None:
    manifest, sources = make_parts("a", b"graph")
    with pytest.raises(BundleError, match=r"reads 1\.x"):
        write_bundle(tmp_path / "a.trtc", msgspec.structs.replace(manifest, schema="9.0"), sources)
    assert not (tmp_path / "a.trtc").exists()


def a_file(path: Path) -> None:
    path.write_text("precious")


def a_folder_with_files(path: Path) -> None:
    path.mkdir()
    (path / "thesis.txt").write_text("precious")


def a_folder_with_a_foreign_manifest(path: Path) -> None:
    path.mkdir()
    (path / "manifest.json").write_text('{"name": "browser extension", "schema": 3}')


def a_folder_with_blobs(path: Path) -> None:
    (path / "blobs").mkdir(parents=True)
    (path / "blobs" / "data").write_text("precious")


@pytest.mark.parametrize("make", [a_file, a_folder_with_files, a_folder_with_a_foreign_manifest, a_folder_with_blobs])
def test_what_is_not_a_bundle_is_left_alone(make_parts: Callable, tmp_path: Path, make: Callable) -> None:
    place = tmp_path / "a.trtc"
    make(place)
    manifest, sources = make_parts("a", b"graph")
    before = everything_in(tmp_path)
    with pytest.raises(UsageError, match=r"a file is in the way|is not a bundle, it holds '"):
        write_bundle(place, manifest, sources)
    assert everything_in(tmp_path) == before


def test_an_empty_folder_is_written_to_and_stays_when_that_fails(make_parts: Callable, tmp_path: Path) -> None:
    manifest, sources = make_parts("a", b"graph")
    place = tmp_path / "a.trtc"
    place.mkdir()
    with pytest.raises(BundleError, match="has no source"):
        write_bundle(place, manifest, {})
    assert list(place.iterdir()) == []
    write_bundle(place, manifest, sources)
    assert read_manifest(place) == manifest


def test_files_that_people_put_into_a_bundle_stay(make_parts: Callable, tmp_path: Path) -> None:
    bundle = tmp_path / "a.trtc"
    write_bundle(bundle, *make_parts("old", b"graph"))
    (bundle / "NOTES.md").write_text("ours")
    (bundle / "blobs" / "notes").write_text("ours")
    write_bundle(bundle, *make_parts("new", b"other"))
    assert (bundle / "NOTES.md").read_text() == (bundle / "blobs" / "notes").read_text() == "ours"


def test_blobs_behind_a_link_are_not_written_to(make_parts: Callable, tmp_path: Path) -> None:
    bundle = tmp_path / "a.trtc"
    write_bundle(bundle, *make_parts("old", b"graph"))
    (bundle / "blobs").rename(tmp_path / "elsewhere")
    (bundle / "blobs").symlink_to(tmp_path / "elsewhere")
    before = everything_in(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match="is a symlink"):
        write_bundle(bundle, *make_parts("new", b"other"))
    assert everything_in(tmp_path / "elsewhere") == before


def no_manifest_yet(bundle: Path) -> None:
    (bundle / "manifest.json").unlink()


def huge(bundle: Path) -> None:
    os.truncate(bundle / "manifest.json", MAX_MANIFEST_BYTES + 1)


def linked(bundle: Path) -> None:
    (bundle / "manifest.json").rename(bundle.parent / "m.json")
    (bundle / "manifest.json").symlink_to(bundle.parent / "m.json")


def a_pipe(bundle: Path) -> None:
    (bundle / "manifest.json").unlink()
    os.mkfifo(bundle / "manifest.json")


def a_folder(bundle: Path) -> None:
    (bundle / "manifest.json").unlink()
    (bundle / "manifest.json").mkdir()


def not_json(bundle: Path) -> None:
    (bundle / "manifest.json").write_text("hello")


def outside(bundle: Path) -> None:
    file = bundle / "manifest.json"
    file.write_bytes(sealed(file.read_bytes().replace(b'"blobs/', b'"../blobs/')))


@pytest.mark.parametrize(
    ("alter", "reason"),
    [
        pytest.param(no_manifest_yet, "is half-written", id="half-written"),
        pytest.param(huge, "more than 67108864 bytes", id="huge"),
        pytest.param(linked, "a symlink", id="symlink"),
        pytest.param(a_pipe, "not a regular file", id="named-pipe"),
        pytest.param(a_folder, "not a regular file", id="folder"),
        pytest.param(not_json, "not a manifest of schema", id="not-json"),
        pytest.param(outside, r"file '\.\./blobs/", id="path-outside"),
    ],
)
def test_a_bundle_that_is_not_whole_is_refused_with_the_reason(
    make_parts: Callable, tmp_path: Path, alter: Callable, reason: str
) -> None:
    bundle = tmp_path / "a.trtc"
    write_bundle(bundle, *make_parts("a", b"graph"))
    alter(bundle)
    with pytest.raises(BundleError, match=reason):
        read_manifest(bundle)
    with pytest.raises(BundleError, match=reason), open_engine(bundle, first):
        pytest.fail("opened")


def test_nothing_at_the_path_is_wrong_use(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is nothing"):
        read_manifest(tmp_path / "a.trtc")
    with pytest.raises(UsageError, match="there is nothing"):
        read_manifest(tmp_path / ("a" * 300))


def test_a_file_or_another_folder_is_no_bundle(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"graph")
    with pytest.raises(UsageError, match="is a file, a bundle is a folder"):
        read_manifest(tmp_path / "model.onnx")
    with pytest.raises(UsageError, match=r"is no bundle.* it has no manifest\.json"):
        read_manifest(tmp_path)


def test_a_reader_keeps_its_files_through_a_replacement(make_parts: Callable, tmp_path: Path) -> None:
    bundle = tmp_path / "a.trtc"
    old, old_sources = make_parts("old", b"old")
    new, new_sources = make_parts("new", b"new")
    newest, newest_sources = make_parts("newest", b"newest")
    write_bundle(bundle, old, old_sources)
    with open_engine(bundle, first) as reader:
        write_bundle(bundle, new, new_sources)
        assert read_manifest(bundle) == new
        assert [file.read_bytes() for file in reader.files.values()] == [b"old"]
    write_bundle(bundle, newest, newest_sources)
    assert blob_names(bundle) == set(newest_sources), "the writer after the reader removes what the reader held"


def test_a_reader_that_cannot_lock_and_loses_a_race_reads_again(make_parts: Callable, tmp_path: Path) -> None:
    bundle = tmp_path / "a.trtc"
    old, old_sources = make_parts("old", b"old")
    new, new_sources = make_parts("new", b"new")
    write_bundle(bundle, old, old_sources)
    (bundle / ".trtc-readers").unlink()
    seen: list[str] = []

    def replaced_meanwhile(manifest: Manifest) -> EngineRecord:
        seen.append(manifest.metadata["name"])
        if len(seen) == 1:
            write_bundle(bundle, new, new_sources)
        return manifest.engines[0]

    with open_engine(bundle, replaced_meanwhile) as reader:
        assert reader.manifest == new
        assert [file.read_bytes() for file in reader.files.values()] == [b"new"]
    assert seen == ["old", "new"]


def test_a_reader_gives_up_when_it_loses_every_race(make_parts: Callable, tmp_path: Path) -> None:
    bundle = tmp_path / "a.trtc"
    write_bundle(bundle, *make_parts("0", b"0"))
    (bundle / ".trtc-readers").unlink()
    turns: list[int] = []

    def replaced_every_time(manifest: Manifest) -> EngineRecord:
        turns.append(len(turns) + 1)
        write_bundle(bundle, *make_parts(str(turns[-1]), str(turns[-1]).encode()))
        return manifest.engines[0]

    with pytest.raises(BundleError, match=r"was replaced \d+ times"), open_engine(bundle, replaced_every_time):
        pytest.fail("opened")
    assert len(turns) < 20


def test_leftovers_of_killed_writers_are_removed_by_the_next(make_parts: Callable, tmp_path: Path) -> None:
    bundle = tmp_path / "a.trtc"
    write_bundle(bundle, *make_parts("old", b"old"))
    for folder in (bundle, bundle / "blobs"):
        (folder / f"{TEMPORARY_PREFIX}123-abc").write_bytes(b"half")
    write_bundle(bundle, *make_parts("new", b"new"))
    assert not [path for path in bundle.rglob("*") if path.name.startswith(TEMPORARY_PREFIX)]


def test_reading_bundles_loads_no_library_beyond_numpy_and_msgspec() -> None:
    # msgspec itself imports typing_extensions where that is installed.
    code = (
        "import sys; before = set(sys.modules); import trtc.engines.bundle;"
        "new = {name.partition('.')[0] for name in set(sys.modules) - before} - set(sys.stdlib_module_names);"
        "print(sorted(new - {'trtc', 'numpy', 'msgspec', 'typing_extensions'} - {n for n in new if n[0] == '_'}))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
