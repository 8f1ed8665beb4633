"""The build cache between processes, and where it cannot be written: never in the way."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from cached_build import Builder, contents, entries, key

from trtc.compiler.cache import BuildCache
from trtc.engines.manifest_json import encode_manifest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


CHILD = Path(__file__).with_name("cache_child.py")
NOBODY = 65534


@pytest.fixture
def cache(tmp_path: Path) -> BuildCache:
    return BuildCache(tmp_path / "cache")


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
