"""ONNX Runtime's session class with bundles standing in: for programs that stay as they are.

``trtc exec`` puts it in place of the real one. A program may also take it itself:
``from trtc.runtime.compat import InferenceSession`` where ``trtc exec`` started it, or a class of its own bundles with
``session_class_for("model.trtc")``. ONNX Runtime is imported when the class is made.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import os

    InferenceSession: Any

__all__ = ["InferenceSession", "session_class_for"]


def session_class_for(*bundles: str | os.PathLike[str]) -> Any:
    """Make a session class that these bundles stand in for.

    Raises:
        UsageError: when there is no bundle at a path.
        BundleError: when one cannot be read.
    """
    from trtc.runtime.compat.desk import Desk
    from trtc.runtime.compat.session_class import session_class
    from trtc.runtime.compat.settings import settings_for

    return session_class(_collection(), Desk(settings_for(*bundles)))


def __getattr__(name: str) -> Any:
    if name != "InferenceSession":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _collection().InferenceSession


def _collection() -> Any:
    import_module("trtc.engines.onnxruntime")  # which settles what ONNX Runtime sends home
    return import_module("onnxruntime.capi.onnxruntime_inference_collection")
