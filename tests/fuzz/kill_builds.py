"""Kill a build just before each of its changes to the disk: ``python tests/fuzz/kill_builds.py --every 1``.

Changes are seen by an audit hook: files opened for writing, renames, removals, folders made and removed; of the
bundle, of the cache and of temporary folders. After each kill the bundle must be the old one or the new one, the next
build must work without help, and what the killed one left in the bundle and in the cache must be gone.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from seeds import projection

from trtc.compiler import BuildOptions, ShapeOptions, build
from trtc.engines.bundle import read_manifest
from trtc.profiles import TrtcError
from trtc.runtime import Arena, load

X = np.arange(12, dtype=np.float32).reshape(3, 4)
CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.truncate", "os.utime"}
_OVER = {False: "nothing", True: "an old bundle"}
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC


def options(rows: int) -> BuildOptions:
    shapes = ShapeOptions(dim=(f"B=1..{rows}",))
    return BuildOptions(shapes=shapes, measure_s=0.0, verify_s=0.2, threads=1)


def apart(work: Any) -> int:
    """Run a function in a forked child; return its exit code, negative for a signal."""
    sys.stdout.flush()
    child = os.fork()
    if not child:
        code = 1
        try:
            code = work() or 0
        except TrtcError as error:
            print(f"    {error}", file=sys.stderr, flush=True)
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


class Place:
    """A model, a bundle and a cache of their own."""

    def __init__(self, folder: Path, *, old: bool) -> None:
        self.folder, self.old = folder, old
        self.bundle, self.model, self.cache = folder / "m.trtc", folder / "m.onnx", folder / "cache"
        onnx.save(projection(), self.model)
        self.expected = X @ np.arange(64, dtype=np.float32).reshape(4, 16)
        if old:
            self.build(2)

    def build(self, rows: int) -> int:
        def work() -> None:
            os.environ["TRTC_CACHE_DIR"] = str(self.cache)
            build(self.model, self.bundle, options(rows))

        return apart(work)

    def changes(self) -> int:
        """Count the changes of a build that nothing disturbs."""
        counter = self.folder / "count"

        def work() -> None:
            seen = self._armed(0)
            build(self.model, self.bundle, options(3))
            total = seen[0]
            counter.write_text(str(total))

        if apart(work):
            raise RuntimeError("a build that nothing disturbs failed")
        return int(counter.read_text())

    def killed_at(self, number: int) -> int:
        def work() -> None:
            self._armed(number)
            build(self.model, self.bundle, options(3))

        return apart(work)

    def _armed(self, number: int) -> list[int]:
        os.environ["TRTC_CACHE_DIR"] = str(self.cache)
        tempfile.tempdir = str(self.folder / "tmp")
        Path(tempfile.tempdir).mkdir(exist_ok=True)
        seen = [0]
        me = os.getpid()

        def hook(event: str, args: tuple[Any, ...]) -> None:
            changes = event in CHANGES or (event == "open" and isinstance(args[2], int) and args[2] & WRITING)
            if changes and os.getpid() == me:
                seen[0] += 1
                if seen[0] == number:
                    os.kill(me, signal.SIGKILL)

        sys.addaudithook(hook)
        return seen

    def answers(self) -> int:
        """Return how many rows the bundle serves, after it answered rightly for them; 0 for no bundle."""
        found = self.folder / "rows"

        def work() -> None:
            if not (self.bundle / "manifest.json").exists():
                found.write_text("0")
                return
            with load(self.bundle, slots=1, threads=1, arena=Arena()) as session:
                rows = session.manifest.ladder.profiles[0].ranges["B"].max or 0
                np.testing.assert_array_equal(session.run({"x": X[:rows]})["y"], self.expected[:rows])
            found.write_text(str(rows))

        return int(found.read_text()) if not apart(work) else -1

    def leftovers(self) -> list[str]:
        """Name what a killed build left where trtc looks after things itself."""
        files = [file for engine in read_manifest(self.bundle).engines for file in engine.files]
        whole = {file.path for file in files}
        inside = {str(p.relative_to(self.bundle)) for p in self.bundle.rglob("*") if p.is_file()}
        extra = inside - whole - {"manifest.json", ".trtc-writer", ".trtc-readers"}
        cached = [p for p in self.cache.rglob("*") if p.name.startswith(".tmp-")]
        cached += (self.cache / "scratch").iterdir()
        records = {p.stem for p in (self.cache / "records").iterdir()}
        cached += [p for p in (self.cache / "entries").iterdir() if p.name not in records]
        return sorted([*extra, *(str(p.relative_to(self.folder)) for p in cached)])


def problems(pristine: Place, folder: Path, number: int) -> list[str]:
    """Kill one build, and look at everything afterwards."""
    shutil.copytree(pristine.folder, folder, symlinks=True)
    place = Place.__new__(Place)
    place.__dict__.update(pristine.__dict__, folder=folder)
    place.bundle, place.model, place.cache = folder / "m.trtc", folder / "m.onnx", folder / "cache"
    found = []
    if place.killed_at(number) != -signal.SIGKILL:
        found.append("was not killed there")
    rows = place.answers()
    if rows not in ({2, 3} if place.old else {0, 3}):
        found.append(f"the bundle then serves {rows} rows")
    if place.build(3):
        found.append("the next build failed")
    elif place.answers() != 3:
        found.append("the next build made a bundle that does not answer")
    if place.build(4):  # another key: its build looks after what others left in the cache
        found.append("the build after that failed")
    elif left := place.leftovers():
        found.append(f"left over: {left}")
    shutil.rmtree(folder)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--every", type=int, default=1, help="kill at every change, or at every so many")
    parser.add_argument("--over", choices=["nothing", "an old bundle"], help="both when left out")
    given = parser.parse_args()
    status = 0
    for old in [old for old in (False, True) if given.over in {None, _OVER[old]}]:
        start_s = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="trtc-kill-") as work:
            (Path(work) / "pristine").mkdir()
            pristine = Place(Path(work) / "pristine", old=old)
            shutil.copytree(pristine.folder, Path(work) / "counted")
            counted = Place.__new__(Place)
            counted.__dict__.update(pristine.__dict__, folder=Path(work) / "counted")
            counted.bundle, counted.model = counted.folder / "m.trtc", counted.folder / "m.onnx"
            counted.cache = counted.folder / "cache"
            total = counted.changes()
            numbers = range(1, total + 1, given.every)
            bad = {n: found for n in numbers if (found := problems(pristine, Path(work) / f"k{n}", n))}
        figures = {
            "over": _OVER[old],
            "changes": total,
            "kills": len(numbers),
            "seconds": round(time.monotonic() - start_s, 1),
            "problems": bad,
        }
        print(json.dumps(figures), flush=True)
        status |= bool(bad)
    return status


if __name__ == "__main__":
    sys.exit(main())
