"""What is seldom needed stays packed until it is imported: the program unpacks itself at each start, which takes time.

The Python half of NVIDIA's libraries (``cuda.core`` and TensorRT's bindings) lies in one zip file inside the program.
It is unpacked beside the rest, and goes with it, when an engine for a GPU first asks for it.
"""

from __future__ import annotations

import importlib
import sys
import zipfile
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from pathlib import Path
    from types import ModuleType

ARCHIVE = "gpu.zip"
PACKAGES = frozenset(["cuda", "tensorrt_rtx_bindings", "tensorrt_lean_bindings"])
"""What is in it, by import name."""


class Later:
    """A finder of modules that finds none: it unpacks the archive when one of its packages is asked for.

    Args:
        folder: holds the archive, and is one that modules are found in.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = Lock()
        self._packed = True

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> None:
        """Unpack once, then leave the module to the finders that follow.

        Raises:
            ImportError: when the folder takes no more.
        """
        del path, target
        if name not in PACKAGES:
            return
        with self._lock:
            if not self._packed:
                return
            try:
                with zipfile.ZipFile(self._folder / ARCHIVE) as archive:
                    archive.extractall(self._folder)
            except OSError as error:
                raise ImportError(f"{name} cannot be unpacked to {self._folder}: {error.strerror or error}") from error
            importlib.invalidate_caches()
            self._packed = False

    def install(self) -> None:
        """Let it see every import from here on."""
        finders: list[ModuleSpec | object] = sys.meta_path  # type: ignore[assignment]  # it finds nothing, by design
        finders.insert(0, self)
