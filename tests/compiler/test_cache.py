"""The build cache: one build for each content, and never a damaged or foreign entry."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import msgspec
import pytest
from cached_build import MODEL, Builder, contents, key, used_at

from trtc.compiler.cache import BuildCache, Built
from trtc.engines.bundle import read_manifest
from trtc.engines.manifest_json import encode_manifest
from trtc.profiles import HostError, ModelError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def cache(tmp_path: Path) -> BuildCache:
    return BuildCache(tmp_path / "cache")


def test_the_second_build_of_a_key_is_a_hit_with_the_same_bundle(cache: BuildCache, tmp_path: Path) -> None:
    build = Builder()
    one = cache.get_or_build(key("a"), tmp_path / "one.trtc", build)
    two = cache.get_or_build(key("a"), tmp_path / "two.trtc", build)
    assert (one.hit, two.hit, len(build.folders)) == (False, True, 1)
    assert (one.notes, two.notes) == ((), ())
    assert two.build_s == one.build_s
    assert contents(tmp_path / "one.trtc") == contents(tmp_path / "two.trtc") == [b"engine"]
    assert read_manifest(tmp_path / "two.trtc") == one.manifest == two.manifest == build.manifest


def test_another_key_is_built(cache: BuildCache, tmp_path: Path) -> None:
    cache.get_or_build(key("a"), tmp_path / "a.trtc", Builder(b"a"))
    assert not cache.get_or_build(key("b"), tmp_path / "b.trtc", Builder(b"b")).hit
    assert contents(tmp_path / "b.trtc") == [b"b"]


def test_a_bundle_and_its_cache_entry_do_not_share_a_file(cache: BuildCache, tmp_path: Path) -> None:
    build = Builder()
    cache.get_or_build(key("a"), tmp_path / "one.trtc", build)
    (tmp_path / "one.trtc" / build.manifest.engines[0].entry).write_bytes(b"edited")
    assert cache.get_or_build(key("a"), tmp_path / "two.trtc", build).hit
    assert contents(tmp_path / "two.trtc") == [b"engine"]


def test_the_folder_of_a_build_is_private_and_gone_afterwards(cache: BuildCache, tmp_path: Path) -> None:
    modes: list[int] = []

    def build(folder: Path) -> Built:
        modes.append(folder.stat().st_mode & 0o777)
        assert list(folder.iterdir()) == []
        return builder(folder)

    builder = Builder()
    cache.get_or_build(key("a"), tmp_path / "a.trtc", build)
    assert modes == [0o700]
    assert not builder.folders[0].exists()


def test_a_failed_build_leaves_nothing_and_is_tried_again(cache: BuildCache, tmp_path: Path) -> None:
    def fail(folder: Path) -> Built:
        (folder / "half").write_bytes(b"half")
        raise ModelError("not supported")

    with pytest.raises(ModelError, match="not supported"):
        cache.get_or_build(key("a"), tmp_path / "a.trtc", fail)
    assert not (tmp_path / "a.trtc").exists()
    assert [path for path in cache.folder.rglob("*") if path.name == "half"] == []
    assert not cache.get_or_build(key("a"), tmp_path / "a.trtc", Builder()).hit


def test_a_cache_folder_that_is_removed_during_a_build_is_told_with_what_to_do(
    cache: BuildCache, tmp_path: Path
) -> None:
    def build(folder: Path) -> Built:
        shutil.rmtree(cache.folder)
        return Builder()(folder)

    with pytest.raises(HostError, match=r"was removed meanwhile; build again, and leave .*or set TRTC_CACHE_DIR"):
        cache.get_or_build(key("a"), tmp_path / "a.trtc", build)
    assert not (tmp_path / "a.trtc").exists()
    assert not cache.get_or_build(key("a"), tmp_path / "a.trtc", Builder()).hit


@pytest.mark.parametrize("bad", ["", "a", "../" + "0" * 61, "A" * 64, "0" * 64 + "\n"])
def test_a_key_that_is_no_digest_is_refused(cache: BuildCache, tmp_path: Path, bad: str) -> None:
    with pytest.raises(UsageError, match="give 64 lower-case hexadecimal digits"):
        cache.get_or_build(bad, tmp_path / "a.trtc", Builder())


def blob_in(cache: BuildCache, name: str) -> Path:
    (blob,) = (cache.folder / "entries" / key(name) / "blobs").iterdir()
    return blob


def flip_a_byte(cache: BuildCache) -> None:
    blob_in(cache, "a").write_bytes(b"enginE")


def halve(cache: BuildCache) -> None:
    os.truncate(blob_in(cache, "a"), 3)


def remove_a_blob(cache: BuildCache) -> None:
    blob_in(cache, "a").unlink()


def remove_the_manifest(cache: BuildCache) -> None:
    (cache.folder / "entries" / key("a") / "manifest.json").unlink()


def edit_the_manifest(cache: BuildCache) -> None:
    manifest = cache.folder / "entries" / key("a") / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"size_bytes": 10', '"size_bytes": 11'))


def remove_the_record(cache: BuildCache) -> None:
    (cache.folder / "records" / f"{key('a')}.json").unlink()


def spoil_the_record(cache: BuildCache) -> None:
    (cache.folder / "records" / f"{key('a')}.json").write_bytes(b"\xff{}")


def put_a_file_in_its_place(cache: BuildCache) -> None:
    entry = cache.folder / "entries" / key("a")
    entry.rename(cache.folder / "elsewhere")
    entry.write_bytes(b"text")


@pytest.mark.parametrize(
    "damage",
    [
        flip_a_byte,
        halve,
        remove_a_blob,
        remove_the_manifest,
        edit_the_manifest,
        remove_the_record,
        spoil_the_record,
        put_a_file_in_its_place,
    ],
)
def test_a_damaged_entry_is_built_again_with_a_note(
    cache: BuildCache, tmp_path: Path, damage: Callable[[BuildCache], None]
) -> None:
    build = Builder()
    cache.get_or_build(key("a"), tmp_path / "one.trtc", build)
    damage(cache)
    again = cache.get_or_build(key("a"), tmp_path / "two.trtc", build)
    assert (again.hit, len(build.folders)) == (False, 2)
    assert len(again.notes) == 1
    assert "damaged and is built again" in again.notes[0]
    assert contents(tmp_path / "two.trtc") == [b"engine"]
    third = cache.get_or_build(key("a"), tmp_path / "three.trtc", build)
    assert (third.hit, third.notes) == (True, ())


def test_a_destination_that_is_not_a_bundle_is_refused_and_the_entry_stays(cache: BuildCache, tmp_path: Path) -> None:
    build = Builder()
    cache.get_or_build(key("a"), tmp_path / "one.trtc", build)
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "thesis.txt").write_text("precious")
    with pytest.raises(UsageError, match="is not a bundle"):
        cache.get_or_build(key("a"), tmp_path / "home", build)
    assert cache.get_or_build(key("a"), tmp_path / "two.trtc", build).hit


def test_a_manifest_of_another_build_in_an_entry_is_not_taken(cache: BuildCache, tmp_path: Path) -> None:
    build = Builder()
    cache.get_or_build(key("a"), tmp_path / "a.trtc", build)
    entry = cache.folder / "entries" / key("a") / "manifest.json"
    entry.write_bytes(encode_manifest(msgspec.structs.replace(build.manifest, metadata={"from": "elsewhere"})))
    made = cache.get_or_build(key("a"), tmp_path / "again.trtc", build)
    assert not made.hit
    assert ["its record says" in note for note in made.notes] == [True]


def test_the_duration_of_the_last_build_is_known_by_key_and_by_likeness(
    cache: BuildCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cache.last_duration_s(key("a")) is None
    assert cache.like_duration_s(MODEL, "null") is None
    clock = iter([100.0, 102.5, 200.0, 207.0])
    monkeypatch.setattr("trtc.compiler.cache.time.monotonic", lambda: next(clock))
    for name in ("a", "b"):
        cache.get_or_build(key(name), tmp_path / f"{name}.trtc", Builder(name.encode()))
        used_at(cache, name, 1 if name == "a" else 2)
    assert (cache.last_duration_s(key("a")), cache.last_duration_s(key("b"))) == (2.5, 7.0)
    assert cache.like_duration_s(MODEL, "null") == 7.0
    assert cache.like_duration_s(MODEL, "cpu") is None
    assert cache.like_duration_s("4" * 64, "null") is None


def test_the_duration_is_no_part_of_the_bundle(cache: BuildCache, tmp_path: Path) -> None:
    build = Builder()
    cache.get_or_build(key("a"), tmp_path / "a.trtc", build)
    assert (tmp_path / "a.trtc" / "manifest.json").read_bytes() == encode_manifest(build.manifest)
