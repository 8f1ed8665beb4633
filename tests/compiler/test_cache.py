"""The build cache: one build for each content, never a damaged or foreign entry, never in the way."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from trtc.compiler.cache import DEFAULT_MAX_BYTES, BuildCache, Built, key_of
from trtc.engines.blobs import blob_path
from trtc.engines.bundle import bundle_size_bytes, open_engine, read_manifest
from trtc.engines.cachedir import cache_dir
from trtc.engines.files import lock, unlock
from trtc.engines.manifest import BlobFile, BuildRecord, EngineRecord, Execution, Manifest, Requirements, Source
from trtc.engines.manifest_json import encode_manifest
from trtc.engines.signature import Signature, TensorSpec
from trtc.profiles import HostError, Ladder, ModelError, Profile, Range, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CHILD = Path(__file__).with_name("cache_child.py")
NOBODY = 65534
MODEL = "0" * 64


class Builder:
    """Builds a bundle of one blob, and counts how often it was asked to."""

    def __init__(self, content: bytes = b"engine", model_sha256: str = MODEL) -> None:
        self.content = content
        self.folders: list[Path] = []
        sha256 = hashlib.sha256(content).hexdigest()
        file = BlobFile(path=blob_path(sha256, ".bin"), size_bytes=len(content), sha256=sha256)
        self.manifest = Manifest(
            schema="1.0",
            source=Source(sha256=model_sha256, size_bytes=10, ir_version=10, opsets={}),
            build=BuildRecord(key="1" * 64, trtc="0.1.0", libraries={}, machine={}, options={}),
            signature=Signature((TensorSpec("x", "float", ("batch",)),), ()),
            ladder=Ladder((Profile("p0", {"batch": Range(0, None, None)}),)),
            execution=Execution(),
            engines=(
                EngineRecord(
                    name="e0",
                    backend="null",
                    target="null",
                    precision="none",
                    entry=file.path,
                    files=(file,),
                    requirements=Requirements(),
                    verified=False,
                ),
            ),
        )

    def __call__(self, folder: Path) -> Built:
        self.folders.append(folder)
        source = folder / "engine.bin"
        source.write_bytes(self.content)
        return Built(self.manifest, {self.manifest.engines[0].files[0].path: source})


@pytest.fixture
def cache(tmp_path: Path) -> BuildCache:
    return BuildCache(tmp_path / "cache")


def contents(bundle: Path) -> list[bytes]:
    with open_engine(bundle, lambda manifest: manifest.engines[0]) as reader:
        return [file.read_bytes() for file in reader.files.values()]


def key(name: str) -> str:
    return key_of({"name of this test's content": name})


# ---- hits and misses


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


# ---- durations


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


# ---- size


def used_at(cache: BuildCache, name: str, seconds: int) -> None:
    os.utime(cache.folder / "records" / f"{key(name)}.json", (seconds, seconds))


def entries(cache: BuildCache) -> set[str]:
    return {path.name for path in (cache.folder / "entries").iterdir()}


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


# ---- where it is, and whether it may be used


@pytest.mark.parametrize(
    ("environ", "folder"),
    [
        pytest.param({"TRTC_CACHE_DIR": "/c", "XDG_CACHE_HOME": "/x", "HOME": "/h"}, "/c", id="chosen"),
        pytest.param({"TRTC_CACHE_DIR": "", "XDG_CACHE_HOME": "/x", "HOME": "/h"}, "/x/trtc", id="xdg"),
        pytest.param({"XDG_CACHE_HOME": "relative", "HOME": "/h"}, "/h/.cache/trtc", id="relative-xdg"),
        pytest.param({"HOME": "/h"}, "/h/.cache/trtc", id="home"),
    ],
)
def test_the_folder_comes_from_the_environment(environ: dict[str, str], folder: str) -> None:
    assert cache_dir(environ) == BuildCache.from_environment(environ).folder == Path(folder)


def test_a_relative_folder_is_taken_from_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert cache_dir({"TRTC_CACHE_DIR": "here"}) == tmp_path / "here"


def test_the_size_comes_from_the_environment() -> None:
    assert BuildCache.from_environment({"HOME": "/h"}).max_bytes == DEFAULT_MAX_BYTES == 20 * 2**30
    assert BuildCache.from_environment({"HOME": "/h", "TRTC_CACHE_MAX_BYTES": "123"}).max_bytes == 123


@pytest.mark.parametrize("size", ["-1", "20G", "1e9", "٣", " 5"])
def test_a_size_that_is_no_number_of_bytes_is_refused(size: str) -> None:
    with pytest.raises(UsageError, match=r"TRTC_CACHE_MAX_BYTES='.*' is no number of bytes"):
        BuildCache.from_environment({"HOME": "/h", "TRTC_CACHE_MAX_BYTES": size})


def test_a_folder_that_the_cache_makes_is_for_its_user_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        BuildCache(tmp_path / "deep" / "cache").get_or_build(key("a"), tmp_path / "a.trtc", Builder())
    finally:
        os.umask(before)
    folder = tmp_path / "deep" / "cache"
    assert {path.stat().st_mode & 0o777 for path in (folder, *folder.iterdir())} == {0o700}


def a_symlink(folder: Path) -> None:
    (folder.parent / "real").mkdir()
    folder.symlink_to(folder.parent / "real")


def a_dangling_symlink(folder: Path) -> None:
    folder.symlink_to(folder.parent / "nowhere")


def writable_by_all(folder: Path) -> None:
    folder.mkdir()
    folder.chmod(0o777)


def writable_by_the_group(folder: Path) -> None:
    folder.mkdir()
    folder.chmod(0o770)


def a_file(folder: Path) -> None:
    folder.write_text("text")


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        pytest.param(a_symlink, "is a symlink", id="symlink"),
        pytest.param(a_dangling_symlink, "is a symlink", id="dangling-symlink"),
        pytest.param(writable_by_all, r"can be written by others \(mode 0777\)", id="world-writable"),
        pytest.param(writable_by_the_group, r"can be written by others \(mode 0770\)", id="group-writable"),
        pytest.param(a_file, "is not a folder", id="file"),
    ],
)
def test_a_folder_that_others_could_have_filled_is_refused(
    cache: BuildCache, tmp_path: Path, make: Callable[[Path], None], reason: str
) -> None:
    make(cache.folder)
    build = Builder()
    with pytest.raises(HostError, match=rf"{reason}.*set TRTC_CACHE_DIR to a folder of your own with mode 0700"):
        cache.get_or_build(key("a"), tmp_path / "a.trtc", build)
    assert build.folders == []


def test_a_folder_of_another_user_is_refused(
    cache: BuildCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.folder.mkdir(mode=0o700)
    monkeypatch.setattr("os.geteuid", lambda: cache.folder.stat().st_uid + 1)
    with pytest.raises(HostError, match="belongs to user"):
        cache.get_or_build(key("a"), tmp_path / "a.trtc", Builder())


def test_a_user_without_a_home_builds_without_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made = BuildCache(Path("~/.cache/trtc")).get_or_build(key("a"), tmp_path / "a.trtc", Builder())
    assert ["no home folder is known" in note for note in made.notes] == [True]
    assert contents(tmp_path / "a.trtc") == [b"engine"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.trtc"]


def test_a_cache_without_locks_is_read_but_not_written(
    cache: BuildCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.get_or_build(key("a"), tmp_path / "a.trtc", Builder())

    def no_locks(*_: object, **__: object) -> int:
        raise OSError(37, "No locks available")

    monkeypatch.setattr("trtc.compiler.cache.lock", no_locks)
    assert cache.get_or_build(key("a"), tmp_path / "again.trtc", Builder()).hit
    made = cache.get_or_build(key("b"), tmp_path / "b.trtc", Builder(b"b"))
    assert ["has no file locks" in note for note in made.notes] == [True]
    assert entries(cache) == {key("a")}


# ---- processes


@pytest.fixture
def open_to_all() -> Iterator[Path]:
    """Give a folder that every user may look into; the test's own belongs to one user alone."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture
def start_child() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start a process that asks a cache for a key: ``start_child(folder, destination, **orders)``."""
    started: list[subprocess.Popen[str]] = []

    def start(folder: Path, destination: Path, **orders: Any) -> subprocess.Popen[str]:
        build = Builder()
        (folder / "manifest.json").write_bytes(encode_manifest(build.manifest))
        (folder / "engine.bin").write_bytes(build.content)
        written = folder / f"orders-{len(started)}.json"
        orders |= {
            "cache": str(folder / "cache"),
            "key": key("a"),
            "destination": str(destination),
            "manifest": str(folder / "manifest.json"),
            "sources": {build.manifest.engines[0].entry: str(folder / "engine.bin")},
        }
        written.write_text(json.dumps(orders))
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        started.append(subprocess.Popen([sys.executable, str(CHILD), str(written)], text=True, **pipes))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def outcome(process: subprocess.Popen[str]) -> Any:
    out, errors = process.communicate("\n", timeout=60)
    assert process.returncode == 0, errors
    return json.loads(out.splitlines()[-1])


def test_of_two_processes_on_one_key_one_builds_and_the_other_waits_and_hits(
    tmp_path: Path, start_child: Callable[..., subprocess.Popen[str]]
) -> None:
    log = tmp_path / "log"
    one = start_child(tmp_path, tmp_path / "one.trtc", log=str(log), pause=True)
    assert line(one) == "building"
    two = start_child(tmp_path, tmp_path / "two.trtc", log=str(log))
    assert line(two) == "waiting"
    assert outcome(one) == [False, []]
    assert outcome(two) == [True, []]
    assert log.read_text() == "built\n"
    assert contents(tmp_path / "one.trtc") == contents(tmp_path / "two.trtc") == [b"engine"]


def test_a_builder_that_is_killed_leaves_the_key_to_the_next(
    cache: BuildCache, tmp_path: Path, start_child: Callable[..., subprocess.Popen[str]]
) -> None:
    process = start_child(tmp_path, tmp_path / "one.trtc", die=True)
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    assert [path.name for path in (cache.folder / "scratch" / key("a")).iterdir()] == ["0"]
    build = Builder()
    made = cache.get_or_build(key("a"), tmp_path / "two.trtc", build)
    assert (made.hit, made.notes) == (False, ())
    assert list((cache.folder / "scratch").iterdir()) == []


def as_nobody(*folders: Path) -> dict[str, int]:
    """Take away what root may do: the child becomes nobody, who then owns the folders."""
    if os.geteuid():
        return {}
    for folder in folders:
        for path in (folder, *folder.rglob("*")):
            os.chown(path, NOBODY, NOBODY)
    return {"user": NOBODY}


def test_a_read_only_cache_serves_its_entries_and_a_note_says_that_it_keeps_none(
    open_to_all: Path, start_child: Callable[..., subprocess.Popen[str]]
) -> None:
    cache = BuildCache(open_to_all / "cache")
    cache.get_or_build(key("a"), open_to_all / "first.trtc", Builder())
    (open_to_all / "out").mkdir()
    orders = as_nobody(cache.folder, open_to_all / "out")
    for path in (cache.folder, *cache.folder.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    hit, notes = outcome(start_child(open_to_all, open_to_all / "out" / "a.trtc", **orders))
    assert hit
    assert ["cannot be written" in note for note in notes] == [True]
    for path in (cache.folder, *cache.folder.iterdir()):
        path.chmod(0o755)


def test_a_cache_that_cannot_be_made_is_no_error(
    open_to_all: Path, start_child: Callable[..., subprocess.Popen[str]]
) -> None:
    (open_to_all / "out").mkdir()
    orders = as_nobody(open_to_all / "out")
    process = start_child(open_to_all, open_to_all / "out" / "a.trtc", **orders)
    if not orders:
        pytest.skip("only root can take the right to make the folder away from a child")
    hit, notes = outcome(process)
    assert not hit
    assert ["cannot be written (Permission denied)" in note for note in notes] == [True]
    assert not (open_to_all / "cache").exists()
    assert (open_to_all / "out" / "a.trtc" / "manifest.json").exists()


def test_a_cache_on_a_full_disk_is_no_error(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=512k,mode=700", "tmpfs", str(disk)],
        capture_output=True,
        text=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip(f"a small file system cannot be mounted here: {mounted.stderr.strip()}")
    try:
        cache = BuildCache(disk)
        made = cache.get_or_build(key("a"), tmp_path / "a.trtc", Builder(bytes(300_000)))
        assert ["was not kept in the cache: 3" in note and "full" in note for note in made.notes] == [True]
        assert entries(cache) == set()
        assert contents(tmp_path / "a.trtc") == [bytes(300_000)]
        assert cache.get_or_build(key("b"), tmp_path / "b.trtc", Builder(b"small")).notes == ()
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_manifest_of_another_build_in_an_entry_is_not_taken(cache: BuildCache, tmp_path: Path) -> None:
    build = Builder()
    cache.get_or_build(key("a"), tmp_path / "a.trtc", build)
    entry = cache.folder / "entries" / key("a") / "manifest.json"
    entry.write_bytes(encode_manifest(msgspec.structs.replace(build.manifest, metadata={"from": "elsewhere"})))
    made = cache.get_or_build(key("a"), tmp_path / "again.trtc", build)
    assert not made.hit
    assert ["its record says" in note for note in made.notes] == [True]
