"""The build cache keeps to its size, and removes what killed builders left."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from cached_build import Builder, contents, entries, key, used_at

from trtc.compiler.cache import BuildCache
from trtc.engines.bundle import bundle_size_bytes
from trtc.engines.files import lock, unlock

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def cache(tmp_path: Path) -> BuildCache:
    return BuildCache(tmp_path / "cache")


def test_the_entry_that_was_not_used_for_the_longest_time_goes_first(tmp_path: Path) -> None:
    size_bytes = bundle_size_bytes(Builder(b"a" * 1000).manifest)
    cache = BuildCache(tmp_path / "cache", max_bytes=2 * size_bytes)
    for i, name in enumerate("ab"):
        cache.get_or_build(key(name), tmp_path / f"{name}.trtc", Builder(name.encode() * 1000))
        used_at(cache, name, i)
    assert cache.get_or_build(key("a"), tmp_path / "again.trtc", Builder(b"a" * 1000)).hit
    cache.get_or_build(key("c"), tmp_path / "c.trtc", Builder(b"c" * 1000))
    assert entries(cache) == {key("a"), key("c")}
    assert {path.stem for path in (cache.folder / "records").iterdir()} == entries(cache)
    assert {path.name for path in (cache.folder / "locks").iterdir()} == entries(cache)


def test_an_entry_that_is_in_use_is_not_removed(tmp_path: Path) -> None:
    size_bytes = bundle_size_bytes(Builder(b"a" * 1000).manifest)
    cache = BuildCache(tmp_path / "cache", max_bytes=2 * size_bytes)
    for i, name in enumerate("ab"):
        cache.get_or_build(key(name), tmp_path / f"{name}.trtc", Builder(name.encode() * 1000))
        used_at(cache, name, i)
    held = lock(cache.folder / "locks" / key("a"), "shared")
    cache.get_or_build(key("c"), tmp_path / "c.trtc", Builder(b"c" * 1000))
    unlock(held)
    assert entries(cache) == {key("a"), key("c")}


def test_a_cache_of_no_bytes_builds_keeps_nothing_and_has_nothing_to_say(tmp_path: Path) -> None:
    cache = BuildCache(tmp_path / "cache", max_bytes=0)
    made = cache.get_or_build(key("a"), tmp_path / "a.trtc", Builder())
    assert made.notes == ()
    assert not any(path.is_file() for path in (cache.folder / "entries").rglob("*"))
    assert contents(tmp_path / "a.trtc") == [b"engine"]


def test_a_bundle_larger_than_the_cache_is_not_kept_and_a_note_says_so(tmp_path: Path) -> None:
    cache = BuildCache(tmp_path / "cache", max_bytes=100)
    made = cache.get_or_build(key("a"), tmp_path / "a.trtc", Builder())
    assert len(made.notes) == 1
    assert "the cache may hold 100 (TRTC_CACHE_MAX_BYTES)" in made.notes[0]
    assert entries(cache) == set()
    assert contents(tmp_path / "a.trtc") == [b"engine"]


def test_what_killed_builders_left_is_removed_by_the_next_build(cache: BuildCache, tmp_path: Path) -> None:
    cache.get_or_build(key("a"), tmp_path / "a.trtc", Builder())
    (cache.folder / "scratch" / key("dead")).mkdir()
    (cache.folder / "scratch" / key("dead") / "half").write_bytes(b"half")
    (cache.folder / "entries" / key("dead") / "blobs").mkdir(parents=True)
    (cache.folder / "scratch" / key("alive")).mkdir()
    held = lock(cache.folder / "locks" / key("alive"), "alone")
    cache.get_or_build(key("b"), tmp_path / "b.trtc", Builder(b"b"))
    unlock(held)
    assert entries(cache) == {key("a"), key("b")}
    assert [path.name for path in (cache.folder / "scratch").iterdir()] == [key("alive")]


def test_the_folder_of_a_builder_that_was_killed_after_its_entry_was_finished_is_removed_too(
    cache: BuildCache, tmp_path: Path
) -> None:
    cache.get_or_build(key("a"), tmp_path / "a.trtc", Builder())
    (cache.folder / "scratch" / key("a")).mkdir()
    (cache.folder / "scratch" / key("a") / "weights.bin").write_bytes(bytes(1000))
    in_use = cache.folder / "scratch" / key("c")
    cache.get_or_build(key("c"), tmp_path / "c.trtc", Builder(b"c"))
    in_use.mkdir()
    held = lock(cache.folder / "locks" / key("c"), "alone")
    cache.get_or_build(key("b"), tmp_path / "b.trtc", Builder(b"b"))
    unlock(held)
    assert list((cache.folder / "scratch").iterdir()) == [in_use]
    assert entries(cache) == {key("a"), key("b"), key("c")}


def test_a_record_is_made_where_what_a_killed_builder_leaves_is_found(
    cache: BuildCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[Path] = []

    def seen(path: Path, data: bytes) -> None:
        written.append(path)
        path.write_bytes(data)

    monkeypatch.setattr("trtc.compiler.cache.write_file", seen)
    cache.get_or_build(key("a"), tmp_path / "a.trtc", Builder())
    assert [path.parent for path in written] == [cache.folder / "scratch" / key("a")]
    assert [path.name for path in (cache.folder / "records").iterdir()] == [f"{key('a')}.json"]


def test_an_entry_that_is_finished_while_leftovers_are_removed_stays(
    cache: BuildCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.get_or_build(key("late"), tmp_path / "late.trtc", Builder(b"late"))
    record = cache.folder / "records" / f"{key('late')}.json"
    written = record.read_bytes()
    record.unlink()

    def finish_then_lock(path: Path, access: Any, **options: bool) -> int | None:
        if path.name == key("late"):
            record.write_bytes(written)
        return lock(path, access, **options)

    monkeypatch.setattr("trtc.compiler.cache_entries.lock", finish_then_lock)
    cache.get_or_build(key("b"), tmp_path / "b.trtc", Builder(b"b"))
    assert entries(cache) == {key("late"), key("b")}


def test_an_entry_whose_record_cannot_be_written_is_taken_back(
    cache: BuildCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("trtc.compiler.cache.write_file", full)
        made = cache.get_or_build(key("a"), tmp_path / "a.trtc", Builder())
    assert ["was not kept in the cache" in note for note in made.notes] == [True]
    assert entries(cache) == set()
    assert contents(tmp_path / "a.trtc") == [b"engine"]
