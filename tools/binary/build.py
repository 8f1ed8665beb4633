"""Build ``dist/trtc-bench``: one file that runs without Python.

    python tools/binary/build.py [--twice]

The program is frozen by PyInstaller from a regular install in an environment of its own: what is inside is what a
user's ``pip install`` gives, and nothing of the checkout. Then it is looked at: no library of the compiler, of a
driver or of TensorRT may be inside; the size, the oldest glibc that it runs on, and the median time that it takes to
start are printed.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

from trtc.tools.binary import gpu_half
from trtc.tools.binary.contents import FORBIDDEN, HOST_LIBRARIES, NEEDS
from trtc.tools.binary.later import ARCHIVE

CHECKOUT = Path(__file__).resolve().parents[2]
SPEC = CHECKOUT / "tools/binary/trtc-bench.spec"
WORK = CHECKOUT / "build/binary"
CONSTRAINTS = CHECKOUT / "requirements/constraints.txt"
STARTS = 7


def main() -> int:
    """Build and report; return the exit code."""
    parser = argparse.ArgumentParser(description="Build dist/trtc-bench.")
    parser.add_argument("--twice", action="store_true", help="build a second time, and say which bytes differ")
    twice = parser.parse_args().twice
    python = installed()
    program = frozen(python, CHECKOUT / "dist")
    names = contents(python, program)
    inside = [name for name in names if any(name == bad or name.startswith(f"{bad}.") for bad in FORBIDDEN)]
    inside += [name for name in names if HOST_LIBRARIES.search(name)]
    if inside:
        sys.stderr.write(f"libraries that do not belong there are inside: {', '.join(inside[:10])}\n")
        return 1
    starts = sorted(started_s(program) for _ in range(STARTS))
    sys.stdout.write(
        f"{program.relative_to(CHECKOUT)}: {program.stat().st_size / 2**20:.1f} MiB, {len(names)} modules\n"
    )
    sys.stdout.write(
        f"starts in {statistics.median(starts):.2f} s (median of {STARTS}, {starts[0]:.2f}..{starts[-1]:.2f})\n"
    )
    sys.stdout.write(f"oldest glibc: {oldest_glibc(python, program)}\n")
    return compare(python, program) if twice else 0


def installed() -> Path:
    """Make an environment with the program and what it needs, and nothing else; return its interpreter."""
    venv = WORK / "venv"
    python = venv / "bin/python"
    if not python.is_file():
        shutil.rmtree(venv, ignore_errors=True)
        _run(sys.executable, "-m", "venv", str(venv))
    pip = (
        str(python),
        "-m",
        "pip",
        "--disable-pip-version-check",
        "--no-input",
        "-qq",
        "install",
        "-c",
        str(CONSTRAINTS),
    )
    _run(*pip, "setuptools", "wheel", "pyinstaller", *NEEDS)
    _run(*pip, "--no-deps", "--no-build-isolation", *gpu_half.REQUIREMENTS)
    # From a copy of what git knows, so that neither leftovers nor the editable install take part.
    source = WORK / "source"
    shutil.rmtree(source, ignore_errors=True)
    for name in _output("git", "-C", str(CHECKOUT), "ls-files", "-co", "--exclude-standard", "-z").split("\0"):
        if name and (CHECKOUT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(CHECKOUT / name, source / name)
    _run(*pip, "--no-deps", "--no-build-isolation", "--force-reinstall", str(source))
    return python


def frozen(python: Path, target: Path) -> Path:
    """Freeze the program into one file in ``target``."""
    work = WORK / f"work-{target.name}"
    shutil.rmtree(work, ignore_errors=True)
    options = ["--clean", "--noconfirm", "--log-level", "ERROR", "--distpath", str(target), "--workpath", str(work)]
    _run(str(python), "-m", "PyInstaller", *options, str(SPEC), cwd=WORK)
    return target / "trtc-bench"


def contents(python: Path, program: Path) -> list[str]:
    """Return the names of the modules and files inside, with dots."""
    code = (
        "import io, sys, zipfile\n"
        "from PyInstaller.archive.readers import CArchiveReader\n"
        "archive = CArchiveReader(sys.argv[1])\n"
        "inner = [name for name, entry in archive.toc.items() if entry[-1] == 'z']\n"
        "print(*archive.toc, *(n for name in inner for n in archive.open_embedded_archive(name).toc), sep='\\n')\n"
        "print(*zipfile.ZipFile(io.BytesIO(archive.extract(sys.argv[2]))).namelist(), sep='\\n')\n"
    )
    listed = _output(str(python), "-c", code, str(program), ARCHIVE).splitlines()
    return [name.replace("/", ".") for name in listed]


def started_s(program: Path) -> float:
    """Seconds until the program has said its version, with an empty environment."""
    begun_s = time.perf_counter()
    subprocess.run([str(program), "--version"], check=True, env={}, capture_output=True)  # noqa: S603 (what was just built)
    return time.perf_counter() - begun_s


def oldest_glibc(python: Path, program: Path) -> str:
    """Return the newest symbol version of glibc that any library inside asks for."""
    out = WORK / "extracted"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    code = (
        "import sys, pathlib\n"
        "from PyInstaller.archive.readers import CArchiveReader\n"
        "archive = CArchiveReader(sys.argv[1])\n"
        "for i, (name, entry) in enumerate(archive.toc.items()):\n"
        "    if entry[-1] == 'b':\n"
        "        pathlib.Path(sys.argv[2], f'{i}.so').write_bytes(archive.extract(name))\n"
    )
    _run(str(python), "-c", code, str(program), str(out))
    found = {(2, 0)}
    for path in (program, *out.iterdir()):
        data = path.read_bytes()[: 64 * 2**20]
        found |= {(int(a), int(b)) for a, b in re.findall(rb"\0GLIBC_([0-9]+)\.([0-9]+)", data)}
    shutil.rmtree(out)
    return ".".join(map(str, max(found)))


def compare(python: Path, program: Path) -> int:
    """Build again and say what differs; return 1 when anything does."""
    second = frozen(python, WORK / "second")
    one, two = program.read_bytes(), second.read_bytes()
    if one == two:
        sys.stdout.write("a second build is the same, byte for byte\n")
        return 0
    differ = sum(a != b for a, b in zip(one, two, strict=False)) + abs(len(one) - len(two))
    sys.stdout.write(f"a second build differs in {differ} of {len(one)} bytes\n")
    return 1


def _run(*command: str, cwd: Path | None = None) -> None:
    # Fixed times and hashes: the same source gives the same bytes.
    environ = {**os.environ, "SOURCE_DATE_EPOCH": "315532800", "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run(command, check=True, env=environ, cwd=cwd)  # noqa: S603 (commands of this file)


def _output(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout  # noqa: S603 (commands of this file)


if __name__ == "__main__":
    sys.exit(main())
