"""Libraries that are not installed: which extra of trtc brings them."""

from __future__ import annotations

import sys

from trtc.profiles import HostError

_INSTALL = {
    "onnx": "pip install 'trtc[cpu]'",
    "onnx_ir": "pip install 'trtc[cpu]'",
    "onnxruntime": "pip install 'trtc[cpu]'",
    "ml_dtypes": "pip install 'trtc[cpu]'",
    "google": "pip install 'trtc[cpu]'",  # protobuf, which onnx brings
    "polygraphy": "pip install 'trtc[polygraphy]'",
    "tokenizers": "pip install 'trtc[examples]'",
    "matplotlib": "pip install 'trtc[report]'",
    "scipy": "pip install 'trtc[plan]'",
}


def missing_library(error: ImportError) -> HostError | None:
    """Turn a failed import of a library of an extra into an error that says how to install it; None for any other."""
    library = (error.name or "").partition(".")[0]
    if library not in _INSTALL:
        return None
    shown = "protobuf" if library == "google" else library
    problem = "is not installed" if isinstance(error, ModuleNotFoundError) else f"cannot be imported ({error})"
    return HostError(f"this command needs {shown}, which {problem}; {install(_INSTALL[library])}")


def install(command: str) -> str:
    """Say how to install a library; nothing can be added to the standalone program, so there it takes trtc itself."""
    if getattr(sys, "frozen", False):
        return f"this program is one file and holds no more: install trtc, then {command}, and use trtc bench"
    return command
