"""Writers that die, run out of room or lack rights, and readers beside them: real processes, no timing."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from trtc.engines.bundle import open_engine, read_manifest, write_bundle
from trtc.engines.errors import BundleError
from trtc.engines.manifest_json import encode_manifest
from trtc.profiles import HostError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.engines.conftest import Parts
    from trtc.engines.manifest import EngineRecord, Manifest

CHILD = Path(__file__).with_name("write_child.py")
NOBODY = 65534


def first(manifest: Manifest) -> EngineRecord:
    return manifest.engines[0]


@pytest.fixture
def start_writer(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start a process that writes ``bundles`` to ``path``: ``start_writer(path, bundles, **orders)``."""
    started: list[subprocess.Popen[str]] = []

    def start(path: Path, bundles: list[Parts], **orders: Any) -> subprocess.Popen[str]:
        folder = tmp_path / f"orders-{len(started)}"
        folder.mkdir()
        written = []
        for i, (manifest, sources) in enumerate(bundles):
            (folder / f"{i}.json").write_bytes(encode_manifest(manifest))
            written.append([str(folder / f"{i}.json"), {name: str(source) for name, source in sources.items()}])
        (folder / "orders.json").write_text(json.dumps({"path": str(path), "bundles": written, **orders}))
        command = [sys.executable, str(CHILD), str(folder / "orders.json")]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        started.append(subprocess.Popen(command, text=True, **pipes))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def outcome(process: subprocess.Popen[str]) -> Any:
    """Wait for a writer; return its error as (exit code, text), or None."""
    out, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    return json.loads(out.splitlines()[-1])


def contents(bundle: Path) -> tuple[str, list[bytes]]:
    """Read a bundle as a runtime would: its name, and what its files hold."""
    with open_engine(bundle, first) as reader:
        return reader.manifest.metadata["name"], [file.read_bytes() for file in reader.files.values()]


def files_in(bundle: Path) -> set[str]:
    return {str(path.relative_to(bundle)) for path in bundle.rglob("*") if path.is_file()}


def whole(manifest: Manifest) -> set[str]:
    """Name the files of a bundle that has nothing left over."""
    blobs = {blob.path for engine in manifest.engines for blob in engine.files}
    return blobs | {"manifest.json", ".trtc-writer", ".trtc-readers"}


def steps_of(path: Path, *bundles: Parts) -> list[str]:
    """List the steps that the last of these writes takes."""
    steps: list[str] = []
    for manifest, sources in bundles:
        steps.clear()
        write_bundle(path, manifest, sources, on_step=steps.append)
    return steps


def test_a_new_bundle_whose_writer_is_killed_at_any_step_is_there_wholly_or_not_at_all(
    make_parts: Callable[..., Parts], start_writer: Callable[..., subprocess.Popen[str]], tmp_path: Path
) -> None:
    parts = make_parts("new", b"graph", b"weights")
    steps = steps_of(tmp_path / "steps.trtc", parts)
    committed = steps.index("rename manifest.json") + 1
    for kill_at in range(1, len(steps) + 1):
        bundle = tmp_path / f"{kill_at}.trtc"
        process = start_writer(bundle, [parts], kill_at=kill_at)
        process.communicate(timeout=60)
        assert process.returncode == -signal.SIGKILL
        if kill_at < committed:
            with pytest.raises(BundleError, match="half-written"):
                read_manifest(bundle)
        else:
            assert contents(bundle) == ("new", [b"graph", b"weights"])
        write_bundle(bundle, *make_parts("later", b"graph"))
        assert contents(bundle) == ("later", [b"graph"])
        assert files_in(bundle) == whole(read_manifest(bundle))


def test_a_replacement_whose_writer_is_killed_at_any_step_leaves_the_old_bundle_or_the_new_one(
    make_parts: Callable[..., Parts], start_writer: Callable[..., subprocess.Popen[str]], tmp_path: Path
) -> None:
    old = make_parts("old", b"shared", b"old weights")
    new = make_parts("new", b"shared", b"new weights")
    steps = steps_of(tmp_path / "steps.trtc", old, new)
    committed = steps.index("rename manifest.json") + 1
    for kill_at in range(1, len(steps) + 1):
        bundle = tmp_path / f"{kill_at}.trtc"
        write_bundle(bundle, *old)
        process = start_writer(bundle, [new], kill_at=kill_at)
        process.communicate(timeout=60)
        assert process.returncode == -signal.SIGKILL
        kept = "old" if kill_at < committed else "new"
        assert contents(bundle) == (kept, [b"shared", f"{kept} weights".encode()])
        write_bundle(bundle, *make_parts("later", b"shared"))
        assert files_in(bundle) == whole(read_manifest(bundle))


def test_an_error_at_any_step_before_the_commit_leaves_no_trace(
    make_parts: Callable[..., Parts], tmp_path: Path
) -> None:
    old = make_parts("old", b"shared", b"old weights")
    new = make_parts("new", b"shared", b"new weights")
    steps = steps_of(tmp_path / "steps.trtc", old, new)
    bundle = tmp_path / "a.trtc"
    write_bundle(bundle, *old)
    for stop_at in range(1, steps.index("rename manifest.json") + 1):
        seen: list[str] = []

        def stop(name: str, seen: list[str] = seen, stop_at: int = stop_at) -> None:
            seen.append(name)
            if len(seen) == stop_at:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            write_bundle(bundle, *new, on_step=stop)
        assert files_in(bundle) == whole(old[0])
        seen.clear()
        with pytest.raises(KeyboardInterrupt):
            write_bundle(tmp_path / "fresh.trtc", *new, on_step=stop)
        assert not (tmp_path / "fresh.trtc").exists()


def test_an_error_after_the_commit_leaves_the_new_bundle_whole(
    make_parts: Callable[..., Parts], tmp_path: Path
) -> None:
    bundle = tmp_path / "a.trtc"
    write_bundle(bundle, *make_parts("old", b"old"))

    def stop(name: str) -> None:
        if name == "rename manifest.json":
            raise OSError(5, "Input/output error")

    with pytest.raises(HostError):
        write_bundle(bundle, *make_parts("new", b"new"), on_step=stop)
    assert contents(bundle) == ("new", [b"new"])


@pytest.mark.parametrize("replaces", [True, False], ids=["replacement", "new"])
def test_a_file_size_limit_below_the_blob_is_reported_with_the_bytes_needed(
    make_parts: Callable[..., Parts],
    start_writer: Callable[..., subprocess.Popen[str]],
    tmp_path: Path,
    replaces: bool,  # noqa: FBT001 (a parameter of the test)
) -> None:
    bundle = tmp_path / "a.trtc"
    old, new = make_parts("old", b"old"), make_parts("new", b"small", bytes(300_000))
    if replaces:
        write_bundle(bundle, *old)
    exit_code, text = outcome(start_writer(bundle, [new], limit_bytes=200_000))
    assert exit_code == HostError.exit_code
    assert f"{len(encode_manifest(new[0])) + 300_005} bytes are needed in {bundle}" in text
    assert "File too large" in text
    if replaces:
        assert contents(bundle) == ("old", [b"old"])
        assert files_in(bundle) == whole(old[0])
    else:
        assert not bundle.exists()


def test_a_full_disk_is_reported_with_the_bytes_needed(make_parts: Callable[..., Parts], tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(disk)], capture_output=True, text=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"a small file system cannot be mounted here: {mounted.stderr.strip()}")
    try:
        old, new = make_parts("old", b"old"), make_parts("new", bytes(300_000))
        write_bundle(disk / "a.trtc", *old)
        with pytest.raises(HostError, match=r"3\d\d\d\d\d bytes are needed in .*full"):
            write_bundle(disk / "a.trtc", *new)
        assert contents(disk / "a.trtc") == ("old", [b"old"])
        assert files_in(disk / "a.trtc") == whole(old[0])
    finally:
        subprocess.run(["umount", str(disk)], check=True)


@pytest.fixture
def open_to_all() -> Iterator[Path]:
    """Give a folder that every user may look into; the test's own belongs to one user alone."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


def without_rights(folder: Path) -> dict[str, int]:
    """Make a folder read-only for the child: by its rights, and for root also by becoming nobody."""
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    return {"user": NOBODY} if os.geteuid() == 0 else {}


def test_a_bundle_that_may_not_be_written_is_reported_and_stays(
    make_parts: Callable[..., Parts], start_writer: Callable[..., subprocess.Popen[str]], open_to_all: Path
) -> None:
    bundle = open_to_all / "a.trtc"
    old = make_parts("old", b"old")
    write_bundle(bundle, *old)
    orders = without_rights(open_to_all)
    replaced = outcome(start_writer(bundle, [make_parts("new", b"new")], **orders))
    fresh = outcome(start_writer(open_to_all / "b.trtc", [make_parts("new", b"new")], **orders))
    open_to_all.chmod(0o755)
    for exit_code, text in (replaced, fresh):
        assert exit_code == HostError.exit_code
        assert "bytes are needed in" in text
        assert "writing there is not allowed" in text
    assert contents(bundle) == ("old", [b"old"])
    assert files_in(open_to_all) == {f"a.trtc/{name}" for name in whole(old[0])}
    for path in (bundle, *bundle.rglob("*")):
        path.chmod(0o755)


def test_a_bundle_is_read_without_the_right_to_write_but_not_without_the_right_to_read(
    make_parts: Callable[..., Parts], open_to_all: Path
) -> None:
    bundle = open_to_all / "a.trtc"
    write_bundle(bundle, *make_parts("old", b"old"))
    user = without_rights(open_to_all)
    reader = (
        "import os, sys; from pathlib import Path; from trtc.engines.bundle import open_engine\n"
        f"if {user!r}: os.setgid({NOBODY}); os.setuid({NOBODY})\n"
        f"with open_engine(Path({str(bundle)!r}), lambda m: m.engines[0]) as r:\n"
        "    print([f.read_bytes() for f in r.files.values()])"
    )
    allowed = subprocess.run([sys.executable, "-c", reader], capture_output=True, text=True, check=False)
    next((bundle / "blobs").iterdir()).chmod(0)
    denied = subprocess.run([sys.executable, "-c", reader], capture_output=True, text=True, check=False)
    for path in (open_to_all, bundle, *bundle.rglob("*")):
        path.chmod(0o755)
    assert allowed.stdout.strip() == "[b'old']", allowed.stderr
    assert "HostError" in denied.stderr
    assert ".bin: reading is not allowed" in denied.stderr


def test_a_manifest_that_may_not_be_read_is_the_hosts_fault(
    make_parts: Callable[..., Parts], start_writer: Callable[..., subprocess.Popen[str]], open_to_all: Path
) -> None:
    bundle = open_to_all / "a.trtc"
    write_bundle(bundle, *make_parts("old", b"old"))
    (bundle / ".trtc-writer").unlink()
    orders = without_rights(open_to_all)
    (bundle / "manifest.json").chmod(0)
    exit_code, text = outcome(start_writer(bundle, [make_parts("new", b"new")], **orders))
    for path in (open_to_all, bundle, *bundle.rglob("*")):
        path.chmod(0o755)
    assert (exit_code, "reading manifest.json is not allowed" in text) == (HostError.exit_code, True)


def wait_until_blocked(process: subprocess.Popen[str]) -> None:
    """Return when the kernel lists the process as waiting for a lock; fail when it ends instead."""
    locks = Path("/proc/locks")
    if not locks.exists():
        pytest.skip("this kernel does not list its locks, so a waiting process cannot be told from a slow one")
    while not any(" -> " in line and f" {process.pid} " in line for line in locks.read_text().splitlines()):
        assert process.poll() is None, process.communicate()


def test_a_second_writer_waits_for_the_first(
    make_parts: Callable[..., Parts], start_writer: Callable[..., subprocess.Popen[str]], tmp_path: Path
) -> None:
    bundle = tmp_path / "a.trtc"
    one = start_writer(bundle, [make_parts("one", b"shared", b"one")], pause=True)
    assert one.stdout is not None
    assert one.stdout.readline() == "locked\n"
    two = start_writer(bundle, [make_parts("two", b"shared", b"two")])
    wait_until_blocked(two)
    assert outcome(one) is None
    assert outcome(two) is None
    assert contents(bundle) == ("two", [b"shared", b"two"])
    assert files_in(bundle) == whole(read_manifest(bundle))


def test_a_writer_that_waited_for_one_that_failed_starts_over(
    make_parts: Callable[..., Parts], start_writer: Callable[..., subprocess.Popen[str]], tmp_path: Path
) -> None:
    bundle = tmp_path / "a.trtc"
    manifest, sources = make_parts("one", b"one")
    one = start_writer(bundle, [(manifest, sources)], pause=True)
    assert one.stdout is not None
    assert one.stdout.readline() == "locked\n"
    two = start_writer(bundle, [make_parts("two", b"two")])
    wait_until_blocked(two)
    next(iter(sources.values())).write_bytes(b"changed")
    assert outcome(one)[0] == BundleError.exit_code
    assert outcome(two) is None
    assert contents(bundle) == ("two", [b"two"])
    assert files_in(bundle) == whole(read_manifest(bundle))


@pytest.mark.parametrize("lockable", [True, False], ids=["with-locks", "without-locks"])
def test_a_reader_beside_many_replacements_always_gets_a_whole_bundle(
    make_parts: Callable[..., Parts],
    start_writer: Callable[..., subprocess.Popen[str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    lockable: bool,  # noqa: FBT001 (a parameter of the test)
) -> None:
    bundle = tmp_path / "a.trtc"
    expected = {name: [b"shared", name.encode() * 50_000] for name in ("a", "b", "c")}
    bundles = [make_parts(name, *files) for name, files in expected.items()]
    write_bundle(bundle, *bundles[0])
    if not lockable:
        monkeypatch.setattr("trtc.engines.bundle._lock_for_reading", lambda _: None)
    writer = start_writer(bundle, bundles * 20)
    reads = 0
    while writer.poll() is None or reads == 0:
        with open_engine(bundle, first) as reader:
            name = reader.manifest.metadata["name"]
            assert list(reader.files) == [blob.path for blob in first(reader.manifest).files]
            # Without locks a file may go once it was checked; with them it may not.
            with contextlib.nullcontext() if lockable else contextlib.suppress(FileNotFoundError):
                assert [file.read_bytes() for file in reader.files.values()] == expected[name]
        reads += 1
    assert outcome(writer) is None
    assert contents(bundle) == ("c", expected["c"])


def test_a_folder_that_others_filled_is_refused_by_a_process_too(
    make_parts: Callable[..., Parts], start_writer: Callable[..., subprocess.Popen[str]], tmp_path: Path
) -> None:
    place = tmp_path / "home"
    place.mkdir()
    (place / "thesis.txt").write_text("precious")
    exit_code, _ = outcome(start_writer(place, [make_parts("a", b"a")]))
    assert exit_code == UsageError.exit_code
    assert files_in(place) == {"thesis.txt"}
