"""Lets ``onnxruntime.IOBinding(session)`` make a binding that a bundle serves, or that is recorded.

The class stays where it is and what it is: only what binds a session of this package is made of a subclass. Those are
defined when the first binding is made, so that a program without bindings does not pay for them.
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
    ours: tuple[type, type] | None = None

    def make(cls: type, session: Any = None, *args: Any, **kwargs: Any) -> Any:
        nonlocal ours
        del args, kwargs  # `__init__` sees them
        if cls is not real or getattr(session, "_trtc_counts", None) is None:
            return object.__new__(cls)
        if ours is None:
            ours = _classes(collection)
        binding: Any = object.__new__(ours[session._trtc_served is not None])  # noqa: SLF001 (these classes are one thing)
        binding._trtc_session, binding._trtc_inputs = session, {}  # noqa: SLF001
        return binding

    real.__new__ = make


def _classes(collection: Any) -> tuple[type, type]:
    """Make the classes of bindings that are recorded, and of those that a bundle serves."""
    from trtc.runtime.compat.recorded_binding import RecordedBinding
    from trtc.runtime.compat.served_binding import ServedBinding

    real = collection.IOBinding
    names = {"__doc__": real.__doc__, "__module__": real.__module__, "_trtc_session": None}
    recorded = type(real.__name__, (RecordedBinding, real), names)
    more = {"_trtc_kind": collection.OrtValue, "_trtc_recorded": recorded}
    return recorded, type(real.__name__, (ServedBinding, real), {**names, **more})
