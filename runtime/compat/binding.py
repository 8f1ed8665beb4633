"""ONNX Runtime's class of bindings, with bundles standing in where they can, and with sizes seen where they cannot.

On a session that a bundle serves, a binding is a list of what was bound, and a run reads and writes that memory. At the
first thing that only ONNX Runtime can do, everything is bound again on a binding of its own, which does the work from
then on. On any other session a binding is ONNX Runtime's from the start, and the shapes of its inputs are noted.
"""

from __future__ import annotations

from functools import cache
from time import perf_counter
from typing import TYPE_CHECKING, Any

from trtc.profiles import TrtcError
from trtc.runtime.compat.bound import (
    Bound,
    BoundFeeds,
    bound_address,
    bound_array,
    bound_value,
    seen_shape,
    value_memory,
)
from trtc.runtime.compat.exact import InexactError
from trtc.runtime.compat.ort_values import host_value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy as np

    from trtc.runtime.compat.served import Served

    Real = Any
else:
    Real = object

_BY_NOW = "its binding is ONNX Runtime's by now"
_NO_VALUES = "outputs are asked for before a run"


@cache
def binding_class(collection: Any) -> type:
    """Make the class for a library (the module ``onnxruntime.capi.onnxruntime_inference_collection``)."""
    real = collection.IOBinding
    names = {"_trtc_kind": collection.OrtValue, "__doc__": real.__doc__, "__module__": real.__module__}
    return type(real.__name__, (Bridge, real), names)


class Bridge(Real):  # type: ignore[misc]
    """A binding of ONNX Runtime, served by a bundle where that gives the same answers."""

    _trtc_session: Any = None
    _trtc_served: Served | None = None

    def __init__(self, session: Any) -> None:
        self._trtc_session = session
        self._trtc_inputs: dict[str, Bound] = {}
        self._trtc_outputs: dict[str, Bound] = {}
        # Only while a bundle serves: memory of inputs and outputs, and values of outputs that were handed out.
        self._trtc_feeds: dict[str, np.ndarray] = {}
        self._trtc_places: dict[str, np.ndarray] = {}
        self._trtc_values: dict[str, Any] = {}
        served = session._trtc_served  # noqa: SLF001 (the two classes are one thing, as in ONNX Runtime)
        if served is None:
            super().__init__(session)
        else:
            session._trtc_bindings().add(self)  # noqa: SLF001
            self._trtc_served = served

    def bind_cpu_input(self, name: Any, arr_on_cpu: Any) -> None:
        """Bind an input to an array, as ``onnxruntime.IOBinding.bind_cpu_input``."""
        arguments = (name, arr_on_cpu)
        if not self._trtc_took("bind_cpu_input", arguments, lambda dtype: bound_array(arguments, dtype)):
            super().bind_cpu_input(*arguments)
            self._trtc_see("bind_cpu_input", arguments)

    def bind_input(  # noqa: PLR0913, PLR0917 (as ONNX Runtime has them)
        self, name: Any, device_type: Any, device_id: Any, element_type: Any, shape: Any, buffer_ptr: Any
    ) -> None:
        """Bind an input to memory, as ``onnxruntime.IOBinding.bind_input``."""
        arguments = (name, device_type, device_id, element_type, shape, buffer_ptr)
        if not self._trtc_took("bind_input", arguments, lambda dtype: bound_address("bind_input", arguments, dtype)):
            super().bind_input(*arguments)
            self._trtc_see("bind_input", arguments)

    def bind_ortvalue_input(self, name: Any, ortvalue: Any) -> None:
        """Bind an input to a value, as ``onnxruntime.IOBinding.bind_ortvalue_input``."""
        method, arguments = "bind_ortvalue_input", (name, ortvalue)
        if not self._trtc_took(method, arguments, lambda dtype: bound_value(method, arguments, dtype, self._trtc_kind)):
            super().bind_ortvalue_input(*arguments)
            self._trtc_see(method, arguments)

    def bind_output(  # noqa: PLR0913, PLR0917 (as above)
        self,
        name: Any,
        device_type: Any = "cpu",
        device_id: Any = 0,
        element_type: Any = None,
        shape: Any = None,
        buffer_ptr: Any = None,
    ) -> None:
        """Bind an output to a device or to memory, as ``onnxruntime.IOBinding.bind_output``."""
        arguments = (name, device_type, device_id, element_type, shape, buffer_ptr)

        def look(dtype: np.dtype[Any]) -> Bound:
            if buffer_ptr is not None:
                return bound_address("bind_output", arguments, dtype)
            if (device_type, device_id) != ("cpu", 0):
                raise InexactError(f"output {name!r} is bound to device {device_type!r} {device_id}")
            return Bound("bind_output", arguments)

        if not self._trtc_took("bind_output", arguments, look):
            super().bind_output(*arguments)

    def bind_ortvalue_output(self, name: Any, ortvalue: Any) -> None:
        """Bind an output to a value, as ``onnxruntime.IOBinding.bind_ortvalue_output``."""
        method, arguments = "bind_ortvalue_output", (name, ortvalue)
        if not self._trtc_took(method, arguments, lambda dtype: bound_value(method, arguments, dtype, self._trtc_kind)):
            super().bind_ortvalue_output(*arguments)

    def clear_binding_inputs(self) -> None:
        """Bind no input any more."""
        if self._trtc_served is None:
            super().clear_binding_inputs()
        self._trtc_inputs.clear()
        self._trtc_feeds.clear()

    def clear_binding_outputs(self) -> None:
        """Bind no output any more."""
        if self._trtc_served is None:
            super().clear_binding_outputs()
        for held in (self._trtc_outputs, self._trtc_places, self._trtc_values):
            held.clear()

    def synchronize_inputs(self) -> None:
        """Wait until inputs have arrived; on the host they have."""
        if self._trtc_served is None:
            super().synchronize_inputs()

    def synchronize_outputs(self) -> None:
        """Wait until outputs have arrived; on the host they have."""
        if self._trtc_served is None:
            super().synchronize_outputs()

    def get_outputs(self) -> Any:
        """Return the outputs of the last run; the next one writes into them, unless they are bound again."""
        if not self._trtc_has_values("get_outputs"):
            return super().get_outputs()
        return [self._trtc_kind(self._trtc_value(name)._ortvalue) for name in self._trtc_outputs]  # noqa: SLF001

    def get_outputs_as_ortvaluevector(self) -> Any:
        """Return the outputs of the last run, as ``get_outputs`` does; ask again after binding others."""
        if not self._trtc_has_values("get_outputs_as_ortvaluevector"):
            return super().get_outputs_as_ortvaluevector()
        vector = self._trtc_session._trtc_collection.C.OrtValueVector()  # noqa: SLF001
        for name in self._trtc_outputs:
            vector.push_back(self._trtc_value(name)._ortvalue)  # noqa: SLF001
        return vector

    def copy_outputs_to_cpu(self) -> Any:
        """Return copies of the outputs of the last run, as arrays."""
        if not self._trtc_has_values("copy_outputs_to_cpu"):
            return super().copy_outputs_to_cpu()
        return [self._trtc_places[name].copy() for name in self._trtc_outputs]

    def __getattr__(self, name: str) -> Any:
        if self._trtc_served is None or not name.startswith("_") or name.startswith(("__", "_trtc")):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        self._trtc_fall("io_binding", f"attribute {name} of a binding is asked for")
        return getattr(self, name)

    def _trtc_run(self, run_options: Any) -> None:
        """Run once, for the session."""
        session, served = self._trtc_session, self._trtc_served
        counts = session._trtc_counts  # noqa: SLF001
        begin = perf_counter()
        if served is not None:
            try:
                request = _names(self._trtc_outputs), self._trtc_feeds
                results, shapes, _ = session._trtc_answer("run_with_iobinding", served, request, run_options)  # noqa: SLF001
                self._trtc_place(results)
            except (InexactError, TrtcError) as error:
                session._trtc_through("run_with_iobinding", error)  # noqa: SLF001
                self._trtc_settle()
            else:
                counts.note(served.order, shapes, begin, BoundFeeds(self._trtc_inputs, self._trtc_places.values))
                return
        elif session._trtc_served is not None:  # noqa: SLF001
            counts.fell_through("run_with_iobinding", _BY_NOW)
        session._trtc_real.run_with_iobinding(session, self, run_options)  # noqa: SLF001
        seen = self._trtc_inputs
        if session._trtc_required() <= seen.keys():  # noqa: SLF001
            shapes = tuple([bound.shape for bound in seen.values()])
            counts.note(tuple(seen), shapes, begin, BoundFeeds(seen, self._trtc_written))
        else:
            counts.note_feeds((), begin)

    def _trtc_took(self, method: str, arguments: Sequence[Any], look: Callable[[Any], Bound]) -> bool:
        """Bind for the bundle; False where ONNX Runtime's own binding has to."""
        served, name = self._trtc_served, arguments[0]
        if served is None:
            return False
        into = method.endswith("input")
        try:
            dtype = _dtype_of(name, served.input_dtypes if into else served.output_dtypes)
            bound = look(dtype)
        except (InexactError, TypeError, ValueError) as error:
            self._trtc_fall(method, str(error))
            return False
        if into:
            self._trtc_inputs[name] = bound
            if bound.array is not None:
                self._trtc_feeds[name] = bound.array
            return True
        self._trtc_outputs[name] = bound
        self._trtc_values.pop(name, None)
        self._trtc_places.pop(name, None)
        if bound.array is not None:
            self._trtc_places[name] = bound.array
        return True

    def _trtc_see(self, method: str, arguments: tuple[Any, ...]) -> None:
        """Note an input that ONNX Runtime's own binding has taken."""
        try:
            self._trtc_inputs[arguments[0]] = Bound(method, arguments, seen_shape(method, arguments))
        except Exception:  # noqa: BLE001 (anybody's objects; ONNX Runtime has taken them)
            self._trtc_inputs.pop(arguments[0], None)

    def _trtc_place(self, results: Sequence[np.ndarray]) -> None:
        """Write the results of a run to where the outputs are bound.

        As in ONNX Runtime, that is the memory of the last run for an output that was not bound again since.
        """
        places, values = self._trtc_places, self._trtc_values
        pairs = list(zip(self._trtc_outputs.items(), results, strict=True))
        for (name, _), result in pairs:
            place = places.get(name)
            if place is not None and place.shape != result.shape:
                raise InexactError(f"output {name!r} has the shape {result.shape}, its memory has {place.shape}")
        for (name, bound), result in pairs:
            if name in places and (bound.array is not None or name in values):
                places[name][...] = result
            else:
                places[name] = result  # nobody has seen what it replaces

    def _trtc_has_values(self, method: str) -> bool:
        """Tell whether the bundle has the outputs; False where ONNX Runtime's own binding is asked."""
        if self._trtc_served is None:
            return False
        if self._trtc_places.keys() == self._trtc_outputs.keys():
            return True
        self._trtc_fall(method, _NO_VALUES)
        return False

    def _trtc_value(self, name: str) -> Any:
        """Return the value of an output, which shares the memory of its place."""
        value = self._trtc_values.get(name)
        if value is None:
            bound, place = self._trtc_outputs[name], self._trtc_places[name]
            if bound.method == "bind_ortvalue_output":
                value = bound.arguments[1]
            elif bound.array is not None:
                value = self._trtc_kind.ortvalue_from_numpy(place)  # the caller's memory, which nobody owns here
            else:
                value = host_value(place, self._trtc_kind)
                self._trtc_places[name] = value_memory(value)
            self._trtc_values[name] = value
        return value

    def _trtc_written(self) -> list[np.ndarray]:
        """View what the last run of ONNX Runtime's own binding wrote on the host."""
        values = super().get_outputs()
        return [value_memory(value) for value in values if value.is_tensor() and value.device_name() == "cpu"]

    def _trtc_fall(self, method: str, reason: str) -> None:
        """Leave the binding to ONNX Runtime, and count that."""
        self._trtc_session._trtc_make(method, reason)  # noqa: SLF001
        self._trtc_settle()

    def _trtc_settle(self) -> None:
        """Become a binding of ONNX Runtime, whose session is there, with all that was bound."""
        session = self._trtc_session
        with session._trtc_lock:  # noqa: SLF001
            if self._trtc_served is None:
                return
            real = session._trtc_collection.IOBinding  # noqa: SLF001
            twin = object.__new__(real)
            real.__init__(twin, session)
            for bound in self._trtc_inputs.values():
                getattr(twin, bound.method)(*bound.arguments)
            for name, bound in self._trtc_outputs.items():
                if bound.array is None and name in self._trtc_places:
                    twin.bind_ortvalue_output(name, self._trtc_value(name))
                else:
                    getattr(twin, bound.method)(*bound.arguments)
            self.__dict__.update(twin.__dict__)
            self._trtc_served = None
            for held in (self._trtc_feeds, self._trtc_places, self._trtc_values):
                held.clear()


def _names(outputs: Mapping[str, Bound]) -> list[str]:
    if not outputs:
        raise InexactError("no output is bound")
    return list(outputs)


def _dtype_of(name: Any, known: Mapping[str, np.dtype[Any] | None]) -> np.dtype[Any]:
    dtype = known.get(name) if isinstance(name, str) else None
    if dtype is None or dtype.kind not in "biuf":
        raise InexactError(f"{name!r} is bound, and is no tensor of numbers of the model")
    return dtype
