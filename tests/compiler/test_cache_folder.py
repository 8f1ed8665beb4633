"""Where the build cache is, how large it may become, and whether a folder may be trusted."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from cached_build import Builder, contents, entries, key

from trtc.compiler.cache import DEFAULT_MAX_BYTES, BuildCache
from trtc.engines.cachedir import cache_dir
from trtc.profiles import HostError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def cache(tmp_path: Path) -> BuildCache:
    return BuildCache(tmp_path / "cache")


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
