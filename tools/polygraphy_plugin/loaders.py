"""Loaders of Polygraphy that make bundles; they compose with runners and with each other."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polygraphy import util
from polygraphy.backend.base import BaseLoader

from trtc.profiles import UsageError
from trtc.tools.polygraphy_plugin.errors import told_by_polygraphy

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from trtc.compiler import BuildOptions


class BundleFromOnnx(BaseLoader):  # type: ignore[misc]
    """Compiles a model into a bundle, and returns the path of the bundle.

    Args:
        model: path of an ``.onnx`` file, an ``onnx.ModelProto``, or a callable that returns one of these. External
            data must lie beside the file; a ``ModelProto`` holds its weights itself.
        options: of the build; None for the defaults of ``trtc build``, measuring nothing.
        output: path of the bundle; None for a temporary folder, which lives as long as this loader.
    """

    def __init__(
        self, model: Any, options: BuildOptions | None = None, output: str | os.PathLike[str] | None = None
    ) -> None:
        self._model = model
        self._options = options
        self._output = output
        self._folder = tempfile.mkdtemp(prefix="trtc-polygraphy-")
        self._removed = weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)

    def call_impl(self) -> str:
        """Build; a second call returns a bundle with the same content, from the cache where there is one."""
        from trtc.compiler import BuildOptions, build

        model, _ = util.invoke_if_callable(self._model)
        path = Path(self._folder) / "model.onnx"
        if isinstance(model, str | Path):
            path = Path(model)
        else:
            path.write_bytes(model.SerializeToString())
        output = Path(self._output) if self._output is not None else Path(self._folder) / "model.trtc"
        with told_by_polygraphy():
            build(path, output, self._options or BuildOptions(measure_s=0.0))
        return str(output)


class SaveBundle(BaseLoader):  # type: ignore[misc]
    """Keeps a copy of a bundle that another loader made, and returns the path of the copy.

    Args:
        bundle: path of a bundle, or a callable that returns one.
        path: where the copy goes; nothing may be there.
    """

    def __init__(self, bundle: str | Callable[[], str], path: str | os.PathLike[str]) -> None:
        self._bundle = bundle
        self._path = Path(path)

    def call_impl(self) -> str:
        """Copy the bundle."""
        made, _ = util.invoke_if_callable(self._bundle)
        with told_by_polygraphy():
            if self._path.exists():
                raise UsageError(f"{self._path} is there already; remove it, or give another path")
            try:
                shutil.copytree(made, self._path)
            except OSError as error:
                raise UsageError(
                    f"{self._path} cannot be written ({error.strerror}); give a path in a folder that exists"
                ) from error
        return str(self._path)
