"""Backends by name, imported only when they are used."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from trtc.engines.value import Value
from trtc.profiles import UsageError, unknown_name

if TYPE_CHECKING:
    from trtc.engines.opening import Opening
    from trtc.engines.protocol import Engine


class Backend(Value, frozen=True):
    """One backend: a folder with ``build.py`` and ``load.py``.

    Attributes:
        name: as in the manifest.
        module: package that holds ``build`` and ``load``.
        needs: the library's import name; empty when it needs none.
        install: the command that brings the library.
        target: the word of ``--target`` that stands for the backend as it is; ``engines/target.py`` has them all.
        computes: False for the null backend, which has no numbers to verify.
        device: kind of accelerator that every engine of it needs; empty where that is up to the engine.
    """

    name: str
    module: str
    needs: str
    install: str
    target: str
    computes: bool = True
    device: str = ""

    @property
    def installed(self) -> bool:
        """Whether the library can be found (it is not imported)."""
        return not self.needs or find_spec(self.needs) is not None

    def build_module(self) -> Any:
        """Import and return the ``build`` module (compiler only)."""
        return import_module(f"{self.module}.build")

    def load(self, opening: Opening) -> Engine:
        """Open an engine whose files were checked."""
        engine: Engine = import_module(f"{self.module}.load").load_engine(opening)
        return engine


BACKENDS = (
    Backend("onnxruntime", "trtc.engines.onnxruntime", "onnxruntime", "pip install 'trtc[cpu]'", "cpu"),
    Backend("tensorrt_rtx", "trtc.engines.tensorrt", "tensorrt_rtx", "pip install 'trtc[rtx]'", "rtx", device="cuda"),
    Backend("tensorrt", "trtc.engines.tensorrt", "tensorrt", "pip install 'trtc[tensorrt]'", "tensorrt", device="cuda"),
    Backend("null", "trtc.engines.null", "", "", "null", computes=False),
)


def backend_named(name: str) -> Backend:
    """Find a backend by the name that a manifest uses.

    Raises:
        UsageError: for an unknown name.
    """
    for backend in BACKENDS:
        if backend.name == name:
            return backend
    raise UsageError(unknown_name("backend", name, [b.name for b in BACKENDS]))
