"""Puts the session class in the place of ONNX Runtime's, while that library is being imported."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from trtc.runtime.compat.desk import Desk
from trtc.runtime.compat.session_class import session_class
from trtc.runtime.compat.settings import settings_from_environment

if TYPE_CHECKING:
    from types import ModuleType


def install(collection: ModuleType) -> None:
    """Replace the class in the module that defines it, before any other module takes it from there.

    Args:
        collection: ``onnxruntime.capi.onnxruntime_inference_collection``, just imported, or again.
    """
    desk = _desk()
    if not desk.idle:
        module: Any = collection
        module.InferenceSession = session_class(collection, desk)


@cache
def _desk() -> Desk:
    return Desk(settings_from_environment())
