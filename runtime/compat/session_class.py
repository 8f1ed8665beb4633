"""ONNX Runtime's session class, with bundles standing in where they can.

The class is a subclass of the real one, so that programs may test for it and derive from it. Its real part is made at
the first thing that only ONNX Runtime can do: a method that is not here, a private attribute, a call that the bundle
does not take. Such a call runs again there, with the same outcome as ever, and is counted with its reason.
"""

from __future__ import annotations

import os
import sys
import weakref
from threading import Lock
from time import perf_counter
from typing import TYPE_CHECKING, Any

from trtc.profiles import TrtcError
from trtc.runtime.compat.binding_door import open_bindings
from trtc.runtime.compat.demands import watch_options
from trtc.runtime.compat.exact import InexactError
from trtc.runtime.compat.ort_values import host_array, host_value
from trtc.runtime.compat.stand_in import Asked, loading, stand_in
from trtc.runtime.errors import SessionClosedError

if TYPE_CHECKING:
    from trtc.runtime.compat.counts import ModelCounts
    from trtc.runtime.compat.desk import Desk
    from trtc.runtime.compat.facts import Facts
    from trtc.runtime.compat.served import Answer, Served

    Real = Any
else:
    Real = object

_LIVE: weakref.WeakSet[Any] = weakref.WeakSet()
_ONLY_THERE = "only ONNX Runtime has it"
_UNSEEN = "its sizes are not recorded"
_ANOTHER = "its binding is of another session, or of a class of its own"


def session_class(collection: Any, desk: Desk) -> type:
    """Make the class.

    Args:
        collection: the module ``onnxruntime.capi.onnxruntime_inference_collection``.
        desk: knows the bundles, and counts.
    """
    real = collection.InferenceSession
    if desk.bundles:
        watch_options(collection.C.SessionOptions)
        watch_options(collection.C.RunOptions)
    open_bindings(collection)
    names = {
        "_trtc_collection": collection,
        "_trtc_desk": desk,
        "_trtc_real": real,
        "__doc__": Bridge.__doc__,
        "__module__": real.__module__,
    }
    for name in ("run", "run_async", "run_with_ort_values", "run_with_iobinding", "set_providers", "__init__"):
        # Python names the function in its complaints about arguments.
        getattr(Bridge, name).__qualname__ = getattr(real, name).__qualname__
    return type(real.__name__, (Bridge, real), names)


class Bridge(Real):  # type: ignore[misc]
    """A session of ONNX Runtime, served by a bundle where that gives the same answers."""

    _trtc_served: Served | None = None
    _trtc_counts: ModelCounts | None = None
    _trtc_arguments: tuple[Any, ...] | None = None
    _trtc_needs: frozenset[str] = frozenset()

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """Make a session; one that the engine of a bundle asks for is ONNX Runtime's own."""
        return cls._trtc_real(*args, **kwargs) if getattr(loading, "now", False) else super().__new__(cls)

    def __init__(
        self,
        path_or_bytes: Any,
        sess_options: Any = None,
        providers: Any = None,
        provider_options: Any = None,
        **kwargs: Any,
    ) -> None:
        arguments = (path_or_bytes, sess_options, providers, provider_options)
        counts = self._trtc_desk.model(path_or_bytes)
        if counts is None:
            super().__init__(*arguments, **kwargs)
            return
        self._trtc_counts = counts
        asked = Asked(*arguments, kwargs, self._trtc_collection)
        served = stand_in(asked, counts, self._trtc_desk.bundles)
        if served is None:
            begin = perf_counter()
            super().__init__(*arguments, **kwargs)
            counts.opened(perf_counter() - begin, "")
            if counts.sampler is not None:
                counts.sampler.types = {arg.name: arg.type for arg in super().get_inputs()}
            return
        self._trtc_lock = Lock()
        self._trtc_arguments = (arguments, kwargs)
        self._trtc_served = served
        _LIVE.add(self)

    def run(self, output_names: Any, input_feed: Any, run_options: Any = None) -> Any:
        """Run once, as ``onnxruntime.InferenceSession.run``."""
        served, counts = self._trtc_served, self._trtc_counts
        if counts is None:
            return super().run(output_names, input_feed, run_options)
        begin = perf_counter()
        if served is not None:
            try:
                if run_options is None:
                    results, shapes, arrays = served.run(output_names, input_feed)
                else:
                    request = output_names, input_feed
                    results, shapes, arrays = self._trtc_answer("run", served, request, run_options)
            except (InexactError, TrtcError) as error:
                self._trtc_through("run", error)
                begin = perf_counter()
            else:
                counts.answered(served.order, shapes, begin, arrays)
                return results
        found = super().run(output_names, input_feed, run_options)
        counts.note_feeds(input_feed, begin)
        return found

    def run_with_ort_values(self, output_names: Any, input_dict_ort_values: Any, run_options: Any = None) -> Any:
        """Run once, as ``onnxruntime.InferenceSession.run_with_ort_values``."""
        served, counts = self._trtc_served, self._trtc_counts
        if counts is None:
            return super().run_with_ort_values(output_names, input_dict_ort_values, run_options)
        begin = perf_counter()
        if served is not None:
            method, kind = "run_with_ort_values", self._trtc_collection.OrtValue
            try:
                feeds = {name: host_array(value, kind) for name, value in input_dict_ort_values.items()}
                request = output_names, feeds
                results, shapes, arrays = self._trtc_answer(method, served, request, run_options)
                values = [host_value(result, kind) for result in results]
            except (InexactError, TrtcError, AttributeError) as error:
                self._trtc_through(method, error)
                begin = perf_counter()
            else:
                counts.answered(served.order, shapes, begin, arrays)
                return values
        found = super().run_with_ort_values(output_names, input_dict_ort_values, run_options)
        counts.note_feeds(input_dict_ort_values, begin)
        return found

    def run_with_iobinding(self, iobinding: Any, run_options: Any = None) -> None:
        """Run once, as ``onnxruntime.InferenceSession.run_with_iobinding``."""
        counts = self._trtc_counts
        if counts is None:
            super().run_with_iobinding(iobinding, run_options)
        elif getattr(iobinding, "_trtc_session", None) is self:
            iobinding._trtc_run(run_options)  # noqa: SLF001 (the two classes are one thing, as in ONNX Runtime)
        else:
            if self._trtc_served is None:
                counts.fell_through("run_with_iobinding", _UNSEEN)
            else:
                self._trtc_make("run_with_iobinding", _ANOTHER)
            super().run_with_iobinding(iobinding, run_options)

    def run_async(
        self, output_names: Any, input_feed: Any, callback: Any, user_data: Any, run_options: Any = None
    ) -> Any:
        """Start a run, as ``onnxruntime.InferenceSession.run_async``."""
        counts = self._trtc_counts
        if counts is None:
            return super().run_async(output_names, input_feed, callback, user_data, run_options)
        if self._trtc_served is not None:
            self._trtc_make("run_async", _ONLY_THERE)
        given = dict(input_feed) if isinstance(input_feed, dict) else ()
        begin = perf_counter()

        def noted(results: Any, data: Any, failure: str) -> Any:
            if not failure:
                counts.note_feeds(given, begin)
            return callback(results, data, failure)

        called = noted if callable(callback) else callback
        return super().run_async(output_names, input_feed, called, user_data, run_options)

    def get_inputs(self) -> Any:
        """Return what the model takes."""
        facts = self._trtc_facts()
        return super().get_inputs() if facts is None else facts.inputs

    def get_outputs(self) -> Any:
        """Return what the model gives."""
        facts = self._trtc_facts()
        return super().get_outputs() if facts is None else facts.outputs

    def get_overridable_initializers(self) -> Any:
        """Return the inputs that have a value already."""
        facts = self._trtc_facts()
        return super().get_overridable_initializers() if facts is None else facts.overridable

    def get_modelmeta(self) -> Any:
        """Return the model's words about itself."""
        facts = self._trtc_facts()
        return super().get_modelmeta() if facts is None or facts.meta is None else facts.meta

    def get_providers(self) -> Any:
        """Return the providers that the session has."""
        served = self._trtc_served
        return super().get_providers() if served is None else served.providers

    def set_providers(self, providers: Any = None, provider_options: Any = None) -> None:
        """Make the session anew with other providers: from then on it is ONNX Runtime's alone."""
        self._trtc_leave("set_providers", "other providers are asked for")
        super().set_providers(providers, provider_options)

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") or name.startswith(("__", "_trtc")) or self._trtc_arguments is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        frame = sys._getframe(1)  # noqa: SLF001 (whoever asks: the method of the library, or the program)
        inside = frame.f_code.co_filename == self._trtc_collection.__file__
        asked = frame.f_code.co_name if inside else name
        if "_sess" not in self.__dict__:
            # A binding takes the session when it is made.
            self._trtc_make("io_binding" if asked == "__init__" else asked, _ONLY_THERE)
        return super().__getattribute__(name)  # which does not come here again for what is not there either

    def __getstate__(self) -> Any:
        """Return what can be pickled, which ONNX Runtime then refuses as ever."""
        self._trtc_make("pickle", _ONLY_THERE)
        return {name: value for name, value in self.__dict__.items() if not name.startswith("_trtc")}

    def _trtc_facts(self) -> Facts | None:
        served = self._trtc_served
        return None if served is None else served.facts

    def _trtc_bindings(self) -> weakref.WeakSet[Any]:
        """Return the bindings that the bundle serves, to be added to."""
        bindings: weakref.WeakSet[Any] = self.__dict__.setdefault("_trtc_bound", weakref.WeakSet())
        return bindings

    def _trtc_required(self) -> frozenset[str]:
        """Return the inputs that a call must give."""
        names = [arg.name for arg in self.get_inputs() if not arg.type.startswith("optional")]
        self._trtc_needs = frozenset(names)
        return self._trtc_needs

    def _trtc_answer(self, method: str, served: Served, request: tuple[Any, Any], options: Any) -> Answer:
        """Let the bundle answer one call (see ``Served.run``), with options of the run or None."""
        if options is None:
            return served.run(*request)
        from trtc.runtime.compat.run_options import run_with

        return run_with(options, self._trtc_collection.C, method, served, request)

    def _trtc_through(self, method: str, error: Exception) -> None:
        """Leave one call to ONNX Runtime."""
        if isinstance(error, SessionClosedError):
            self._trtc_leave(method, "after a fork, a bundle that was opened before it cannot run")
        elif isinstance(error, TrtcError):
            self._trtc_make(method, f"the bundle refuses: {error}")
        else:
            self._trtc_make(method, str(error))

    def _trtc_leave(self, method: str, reason: str) -> None:
        """Leave everything from now on to ONNX Runtime."""
        self._trtc_make(method, reason)
        for binding in tuple(self._trtc_bindings()):
            binding._trtc_settle()  # noqa: SLF001 (as above)
        self._trtc_served = None

    def _trtc_make(self, method: str, reason: str) -> None:
        """Make the real part, unless it is there, and count what it is needed for."""
        if self._trtc_arguments is None:
            return
        if self._trtc_counts is not None:
            self._trtc_counts.fell_through(method, reason)
        with self._trtc_lock:
            if "_sess" in self.__dict__:
                return
            arguments, keywords = self._trtc_arguments
            # Made whole elsewhere and taken over in one step: another thread never sees half of it.
            twin = self._trtc_real(*arguments, **keywords)
            self.__dict__.update({**twin.__dict__, **self.__dict__})


def _fresh_locks() -> None:
    """Give sessions in a forked child locks that no thread of the parent holds."""
    for session in list(_LIVE):
        session.__dict__["_trtc_lock"] = Lock()


os.register_at_fork(after_in_child=_fresh_locks)
