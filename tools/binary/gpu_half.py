"""The Python half of NVIDIA's libraries, packed for the standalone program; the large libraries stay on the host.

``later`` unpacks it at run time. It is packed as pip installed it: Cython modules hide from PyInstaller what they
import.
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

from trtc.tools.binary.later import ARCHIVE, PACKAGES

REQUIREMENTS = (
    *("cuda-core", "cuda-bindings", "cuda-pathfinder"),
    *("tensorrt_rtx_cu13", "tensorrt_rtx_cu13_bindings", "tensorrt_lean_cu13", "tensorrt_lean_cu13_bindings"),
)
"""Installed without what they depend on: that is numpy, and the large libraries."""
FRONTS = ("tensorrt_rtx", "tensorrt_lean")
"""Packages of one small file that import the bindings; they lie open, so that looking for them unpacks nothing."""
UNUSED = ("cuda/core/cu12/", "cuda/bindings/_v2/", "tensorrt_lean_bindings/plugin/")
UNUSED_WORDS = ("cudla", "cufile", "nvfatbin")
"""Modules of ``cuda.bindings`` that neither ``cuda.core`` nor trtc imports, by a part of their name."""
SITE = Path(sysconfig.get_path("platlib"))
_FIXED_TIME = (1980, 1, 1, 0, 0, 0)
_LOADED = """
import ctypes, sys, numpy
before = set(sys.modules)
import cuda.core, cuda.bindings.driver, cuda.bindings.nvml
print(*sorted(m for m in set(sys.modules) - before if m.partition(".")[0] in sys.stdlib_module_names))
"""


def pack(folder: Path) -> Path:
    """Write the archive from what this interpreter has installed: the same files give the same bytes.

    Args:
        folder: where the archive goes.

    Returns:
        The archive.
    """
    target = folder / ARCHIVE
    files = sorted(file for name in PACKAGES for file in (SITE / name).rglob("*") if is_used(file.relative_to(SITE)))
    with zipfile.ZipFile(target, "w") as archive:
        for file in files:
            info = zipfile.ZipInfo(file.relative_to(SITE).as_posix(), _FIXED_TIME)
            archive.writestr(info, file.read_bytes(), zipfile.ZIP_DEFLATED, compresslevel=9)
    return target


def is_used(file: Path) -> bool:
    """Whether a file of the packages, named from where they are installed, is needed to run engines."""
    name = file.as_posix()
    in_bindings = name.startswith("cuda/bindings/")
    return (
        file.suffix in {".py", ".so"}
        and not name.startswith(UNUSED)
        and not (in_bindings and any(word in file.name for word in UNUSED_WORDS))
    )


def imported() -> list[str]:
    """Name the modules of Python's own library that the packed ones import, which PyInstaller cannot see."""
    return subprocess.run([sys.executable, "-c", _LOADED], check=True, capture_output=True, text=True).stdout.split()  # noqa: S603 (code of this file)
