"""Kernels that TensorRT for RTX compiles on the machine that runs: kept between processes, so that starts are fast."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from trtc.engines.cachedir import cache_dir, cache_fault

if TYPE_CHECKING:
    from pathlib import Path

FOLDER = "kernels"


class RuntimeCache:
    """The library's cache, and its file. Used under the engine's lock.

    Its content is executable, so a folder that others may write is neither read nor written; and its use is a matter of
    speed only, so nothing here fails.

    Args:
        config: an ``IRuntimeConfig`` of the engine, which makes the cache.
        key: what the kernels depend on: engine, device, version of the library.
    """

    def __init__(self, config: Any, key: str) -> None:
        self._cache = config.create_runtime_cache()
        self._path = cache_dir() / FOLDER / f"{key}.bin"
        self._saved_bytes = 0
        self.loaded = False
        with suppress(OSError):
            if not cache_fault(self._path.parent):
                data = self._path.read_bytes()
                self.loaded = bool(self._cache.deserialize(data))
                self._saved_bytes = len(data)

    def attach(self, config: Any) -> None:
        """Let the contexts of a configuration use it."""
        config.set_runtime_cache(self._cache)

    def save(self) -> None:
        """Write what was added since the last time."""
        data = bytes(self._cache.serialize() or b"")
        if len(data) == self._saved_bytes:
            return
        with suppress(OSError):
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not cache_fault(self._path.parent):
                _replace(self._path, data)
                self._saved_bytes = len(data)


def _replace(path: Path, data: bytes) -> None:
    """Write a file as a whole or not at all."""
    handle, name = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
        os.replace(name, path)  # noqa: PTH105 (a name that mkstemp gave)
    except BaseException:
        os.unlink(name)  # noqa: PTH108 (as above)
        raise
