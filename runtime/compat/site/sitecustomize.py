"""Run by Python when it starts, under ``trtc exec``: waits for ONNX Runtime to be imported, and goes out of the way.

Any Python 3 may run this, also an old one without trtc: standard library and plain syntax only, nothing heavy.
"""

# Finders and modules are typed as plain objects: typing is not imported for them.
# mypy: disable-error-code="arg-type"

import os
import sys

_FOLDER = os.path.dirname(os.path.abspath(__file__))
_COLLECTION = "onnxruntime.capi.onnxruntime_inference_collection"


class _Watcher:
    """Finds one module as everybody else would, and looks at it right after it was run, each time it is."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> object:
        if name != _COLLECTION:
            return None
        this: object = self
        for finder in list(sys.meta_path):
            ask = None if finder is this else getattr(finder, "find_spec", None)
            spec: object = None if ask is None else ask(name, path, target)
            if spec is not None:
                _look_after(getattr(spec, "loader", None))
                return spec
        return None


def _look_after(loader: object) -> None:
    """Let a loader of the module tell when it has run it."""
    run = getattr(loader, "exec_module", None)
    if run is not None:

        def run_and_install(module: object) -> None:
            run(module)
            _install(module)

        loader.exec_module = run_and_install  # type: ignore[attr-defined]


def _install(module: object) -> None:
    try:
        from trtc.runtime.compat.install import install

        install(module)
    except Exception as error:  # noqa: BLE001 (the program runs plain, whatever is wrong here)
        _tell(f"{sys.executable} runs plain ONNX Runtime: {type(error).__name__}: {error}")


def _tell(note: str) -> None:
    """Append a note to the report of ``trtc exec``, while that is there to read it."""
    import json

    try:
        path = json.loads(os.environ["TRTC_EXEC"])["report"]
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)
        try:
            os.write(descriptor, (json.dumps({"note": note}) + "\n").encode())
        finally:
            os.close(descriptor)
    except (OSError, KeyError, ValueError, TypeError):
        return


def _run_the_next_sitecustomize() -> None:
    """Run the module of this name that would have been found without us, under its own name."""
    paths = [entry for entry in sys.path if os.path.abspath(entry) != _FOLDER]
    sys.path[:] = paths
    for finder in sys.meta_path:
        if getattr(finder, "__name__", "") == "PathFinder":
            spec = finder.find_spec("sitecustomize", paths)
            if spec is not None and spec.loader is not None:
                import importlib.util  # most have none, and programs wait for this

                module = importlib.util.module_from_spec(spec)
                sys.modules["sitecustomize"] = module
                spec.loader.exec_module(module)
            return


if "TRTC_EXEC" in os.environ:
    sys.meta_path.insert(0, _Watcher())
_run_the_next_sitecustomize()
