"""Lets ``onnxruntime.IOBinding(session)`` make a binding that a bundle serves, or that is recorded.

The class stays where it is and what it is: only what binds a session of this package is made of a subclass. That is
defined when the first binding is made, so that a program without bindings does not pay for it.
"""

from __future__ import annotations

from typing import Any


def open_bindings(collection: Any) -> None:
    """Teach the class of bindings about sessions of this package; done once for a process.

    Args:
        collection: the module ``onnxruntime.capi.onnxruntime_inference_collection``.
    """
    real = collection.IOBinding
    if "__new__" in vars(real):
        return

    def make(cls: type, session: Any = None, *args: Any, **kwargs: Any) -> Any:
        del args, kwargs  # `__init__` sees them
        if cls is real and getattr(session, "_trtc_counts", None) is not None:
            from trtc.runtime.compat.binding import binding_class

            cls = binding_class(collection)
        return object.__new__(cls)

    real.__new__ = make
