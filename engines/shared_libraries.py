"""TensorRT's shared libraries where no Python package brought them: found as every program finds its libraries.

NVIDIA's Python packages come in halves, small bindings and large libraries. Where only the bindings are there (the
standalone program holds no more), the libraries are opened from the host before the bindings are imported.
"""

from __future__ import annotations

import ctypes
import os
import sys
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from trtc.engines.distributions import find_distribution
from trtc.profiles import HostError

if TYPE_CHECKING:
    from collections.abc import Mapping

FOLDERS = "TRTC_LIBRARY_PATH"
"""Environment variable: folders to look in first, with colons between them."""
SYSTEM = "the folders that the system's loader knows (ldconfig -p lists what is in them)"

_PARTS = ("Major", "Minor", "Patch", "Build")


@dataclass(frozen=True, slots=True)
class Needed:
    """What the Python bindings of one library link to.

    Attributes:
        package: the Python package that brings the libraries, where they were installed by pip.
        names: of the libraries, without ``.so`` and the major version; the first one tells which version it is.
    """

    package: str
    names: tuple[str, ...]


NEEDED = {
    "tensorrt_rtx": Needed("tensorrt_rtx_libs", ("libtensorrt_rtx", "libtensorrt_onnxparser_rtx")),
    "tensorrt_lean": Needed("tensorrt_lean_libs", ("libnvinfer_lean",)),
}
"""By the import name of the bindings. Full TensorRT's are left to its own package: it cannot be had without them."""


@dataclass(frozen=True, slots=True)
class SharedLibrary:
    """A library of the host that was opened.

    Attributes:
        path: as the loader took it.
        version: such as ``1.7.1.116``, as the library says.
    """

    path: str
    version: str


@cache
def shared_library(module: str) -> SharedLibrary | None:
    """Open the libraries that the bindings ``module`` link to, once a process, so that importing it finds them.

    Returns:
        The library that was found; None where nothing is to be found, because pip brought the libraries, or because
        these bindings are not installed.

    Raises:
        HostError: when they are nowhere, cannot be opened, or are not of the version of the bindings.
    """
    needed = NEEDED.get(module)
    if needed is None or find_spec(needed.package) is not None:
        return None
    bindings = find_distribution(module)
    return None if bindings is None else open_shared(module, bindings.version, os.environ)


def open_shared(module: str, version: str, environ: Mapping[str, str]) -> SharedLibrary:
    """Open the libraries that the bindings ``module`` of this version link to.

    Args:
        module: a key of ``NEEDED``.
        version: of the bindings; the libraries must have the same in every part, as NVIDIA's packages demand.
        environ: holds ``TRTC_LIBRARY_PATH``. The rest of the search is the loader's, with what it was started with.

    Raises:
        HostError: as ``shared_library``.
    """
    first, *others = (f"{name}.so.{version.partition('.')[0]}" for name in NEEDED[module].names)
    library = _opened(first, module, version, environ)
    found = SharedLibrary(_origin(library) or first, ".".join(str(_number(library, part)) for part in _PARTS))
    if found.version != version:
        raise HostError(
            f"{found.path} is {module} {found.version}, and the Python bindings here are of {version}; both must be "
            f"the same: name a folder that holds {version}, {FOLDERS}=DIR"
        )
    for name in others:
        _opened(name, module, version, environ)
    return found


def folders(environ: Mapping[str, str]) -> tuple[Path, ...]:
    """Return the folders that the user named; an empty entry names none."""
    return tuple(Path(text) for text in environ.get(FOLDERS, "").split(os.pathsep) if text)


def searched(environ: Mapping[str, str], unpacked: str | None = None) -> str:
    """Say where libraries are looked for.

    Args:
        environ: as for ``open_shared``.
        unpacked: the folder that the standalone program unpacks itself into, which it adds to ``LD_LIBRARY_PATH``.
    """
    given = [text for text in environ.get("LD_LIBRARY_PATH", "").split(os.pathsep) if text and text != unpacked]
    named = [str(folder) for folder in folders(environ)]
    places = [
        f"{', '.join(named)} ({FOLDERS})" if named else f"{FOLDERS} (not set)",
        f"{', '.join(given)} (LD_LIBRARY_PATH)" if given else "LD_LIBRARY_PATH (not set)",
    ]
    return f"{', '.join(places)}, and {SYSTEM}"


def _opened(name: str, module: str, version: str, environ: Mapping[str, str]) -> ctypes.CDLL:
    """Open one library: from the first folder that was named and holds it, else by the loader's own search."""
    # `os.path` takes a name that is too long, or a folder that may not be read, for one that does not hold it.
    named = [str((folder / name).absolute()) for folder in folders(environ)]
    path = next(filter(os.path.isfile, named), name)
    try:
        return ctypes.CDLL(path)
    except (OSError, UnicodeDecodeError) as error:  # the latter: the loader's words name a path that is no UTF-8
        said = str(error.__cause__ or error)  # PyInstaller words it anew, and keeps the loader's words as the cause
        if not said.startswith(f"{name}: cannot open shared object file: No such file"):
            raise HostError(f"{path}, which {module} needs, cannot be opened: {said}") from error
        where = searched(environ, getattr(sys, "_MEIPASS", None))
        raise HostError(
            f"{name} of {module} {version} is not on this machine; looked in {where}; "
            f"name the folder that holds it: {FOLDERS}=DIR"
        ) from error


def _number(library: ctypes.CDLL, part: str) -> int:
    try:
        return int(library[f"getInferLib{part}Version"]())
    except AttributeError as error:
        name = library._name  # noqa: SLF001 (as it was opened; nothing else tells)
        raise HostError(f"{name} does not say its version; it is no TensorRT library") from error


class _Info(ctypes.Structure):
    """``Dl_info`` of dladdr(3)."""

    _fields_ = (
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("symbol", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
    )


def _origin(library: ctypes.CDLL) -> str:
    """Return the file that a library was opened from; empty where the loader does not tell."""
    info = _Info()
    try:
        address = ctypes.cast(library["getInferLibVersion"], ctypes.c_void_p)
        found = ctypes.CDLL(None).dladdr(address, ctypes.byref(info))
    except AttributeError:
        return ""
    return os.fsdecode(info.file) if found and info.file else ""
