"""A binding on a session that a bundle serves: a list of what was bound, whose memory each run reads and writes.

At the first thing that only ONNX Runtime can do, everything is bound again on a binding of its own, and that does the
work from then on.
"""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any

from trtc.profiles import TrtcError
from trtc.runtime.compat.bound import Bound, BoundFeeds, bound_address, bound_array, bound_value, value_memory
from trtc.runtime.compat.exact import InexactError
from trtc.runtime.compat.ort_values import host_value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy as np

    from trtc.runtime.compat.served import Served

    Real = Any
else:
    Real = object

_NO_VALUES = "outputs are asked for before a run"


class ServedBinding(Real):  # type: ignore[misc]
    """A binding of ONNX Runtime, served by a bundle where that gives the same answers. Made as ``RecordedBinding``."""

    _trtc_session: Any
    _trtc_inputs: dict[str, Bound]

    def __init__(self, session: Any) -> None:
        self._trtc_bundle: Served = session._trtc_served  # noqa: SLF001 (the two classes are one thing, as in ONNX Runtime)
        # Beside what was bound: memory of inputs and outputs, and values of outputs that were handed out.
        self._trtc_feeds: dict[str, np.ndarray] = {}
        self._trtc_outputs: dict[str, Bound] = {}
        self._trtc_places: dict[str, np.ndarray] = {}
        self._trtc_values: dict[str, Any] = {}
        session._trtc_bindings().add(self)  # noqa: SLF001

    def bind_cpu_input(self, name: Any, arr_on_cpu: Any) -> None:
        """Bind an input to an array, as ``onnxruntime.IOBinding.bind_cpu_input``."""
        arguments = (name, arr_on_cpu)
        self._trtc_bind("bind_cpu_input", arguments, lambda dtype: bound_array(arguments, dtype))

    def bind_input(  # noqa: PLR0913, PLR0917 (as ONNX Runtime has them)
        self, name: Any, device_type: Any, device_id: Any, element_type: Any, shape: Any, buffer_ptr: Any
    ) -> None:
        """Bind an input to memory, as ``onnxruntime.IOBinding.bind_input``."""
        arguments = (name, device_type, device_id, element_type, shape, buffer_ptr)
        self._trtc_bind("bind_input", arguments, lambda dtype: bound_address("bind_input", arguments, dtype))

    def bind_ortvalue_input(self, name: Any, ortvalue: Any) -> None:
        """Bind an input to a value, as ``onnxruntime.IOBinding.bind_ortvalue_input``."""
        method, arguments = "bind_ortvalue_input", (name, ortvalue)
        self._trtc_bind(method, arguments, lambda dtype: bound_value(method, arguments, dtype, self._trtc_kind))

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

        self._trtc_bind("bind_output", arguments, look)

    def bind_ortvalue_output(self, name: Any, ortvalue: Any) -> None:
        """Bind an output to a value, as ``onnxruntime.IOBinding.bind_ortvalue_output``."""
        method, arguments = "bind_ortvalue_output", (name, ortvalue)
        self._trtc_bind(method, arguments, lambda dtype: bound_value(method, arguments, dtype, self._trtc_kind))

    def clear_binding_inputs(self) -> None:
        """Bind no input any more."""
        self._trtc_inputs.clear()
        self._trtc_feeds.clear()

    def clear_binding_outputs(self) -> None:
        """Bind no output any more."""
        for held in (self._trtc_outputs, self._trtc_places, self._trtc_values):
            held.clear()

    def synchronize_inputs(self) -> None:
        """Do nothing: on the host, inputs have arrived."""

    def synchronize_outputs(self) -> None:
        """Do nothing: on the host, outputs have arrived."""

    def get_outputs(self) -> Any:
        """Return the outputs of the last run; the next one writes into them, unless they are bound again."""
        if self._trtc_unknown("get_outputs"):
            return self.get_outputs()
        return [self._trtc_kind(self._trtc_value(name)._ortvalue) for name in self._trtc_outputs]  # noqa: SLF001

    def get_outputs_as_ortvaluevector(self) -> Any:
        """Return the outputs of the last run, as ``get_outputs`` does; ask again after binding others."""
        if self._trtc_unknown("get_outputs_as_ortvaluevector"):
            return self.get_outputs_as_ortvaluevector()
        vector = self._trtc_session._trtc_collection.C.OrtValueVector()  # noqa: SLF001
        for name in self._trtc_outputs:
            vector.push_back(self._trtc_value(name)._ortvalue)  # noqa: SLF001
        return vector

    def copy_outputs_to_cpu(self) -> Any:
        """Return copies of the outputs of the last run, as arrays."""
        if self._trtc_unknown("copy_outputs_to_cpu"):
            return self.copy_outputs_to_cpu()
        return [self._trtc_places[name].copy() for name in self._trtc_outputs]

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") or name.startswith(("__", "_trtc")):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        self._trtc_fall("io_binding", f"attribute {name} of a binding is asked for")
        return getattr(self, name)

    def _trtc_run(self, run_options: Any, *, counted: bool = False) -> None:
        """Run once, for the session."""
        del counted
        session, bundle = self._trtc_session, self._trtc_bundle
        begin = perf_counter()
        try:
            request = _names(self._trtc_outputs), self._trtc_feeds
            results, shapes, _ = session._trtc_answer("run_with_iobinding", bundle, request, run_options)  # noqa: SLF001
            self._trtc_place(results)
        except (InexactError, TrtcError) as error:
            session._trtc_through("run_with_iobinding", error)  # noqa: SLF001
            self._trtc_settle()
            self._trtc_run(run_options, counted=True)
        else:
            feeds = BoundFeeds(self._trtc_inputs, self._trtc_places.values)
            session._trtc_counts.answered(bundle.order, shapes, begin, feeds)  # noqa: SLF001

    def _trtc_bind(self, method: str, arguments: Sequence[Any], look: Callable[[Any], Bound]) -> None:
        """Bind for the bundle, or else on ONNX Runtime's own binding."""
        bundle, name, into = self._trtc_bundle, arguments[0], method.endswith("input")
        try:
            bound = look(_dtype_of(name, bundle.input_dtypes if into else bundle.output_dtypes))
        except (InexactError, TypeError, ValueError) as error:
            self._trtc_fall(method, str(error))
            getattr(self, method)(*arguments)
            return
        if into:
            self._trtc_inputs[name] = bound
            if bound.array is not None:
                self._trtc_feeds[name] = bound.array
            return
        self._trtc_outputs[name] = bound
        self._trtc_values.pop(name, None)
        self._trtc_places.pop(name, None)
        if bound.array is not None:
            self._trtc_places[name] = bound.array

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

    def _trtc_unknown(self, method: str) -> bool:
        """Tell whether there was no run yet: then the binding is ONNX Runtime's from now on, and is asked instead."""
        if self._trtc_places.keys() == self._trtc_outputs.keys():
            return False
        self._trtc_fall(method, _NO_VALUES)
        return True

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

    def _trtc_fall(self, method: str, reason: str) -> None:
        """Leave the binding to ONNX Runtime, and count that."""
        self._trtc_session._trtc_make(method, reason)  # noqa: SLF001
        self._trtc_settle()

    def _trtc_settle(self) -> None:
        """Become a binding of ONNX Runtime, whose session is there, with all that was bound."""
        session = self._trtc_session
        with session._trtc_lock:  # noqa: SLF001
            if not isinstance(self, ServedBinding):  # another thread was first
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
            self.__class__ = self._trtc_recorded


def _names(outputs: Mapping[str, Bound]) -> list[str]:
    if not outputs:
        raise InexactError("no output is bound")
    return list(outputs)


def _dtype_of(name: Any, known: Mapping[str, np.dtype[Any] | None]) -> np.dtype[Any]:
    dtype = known.get(name) if isinstance(name, str) else None
    if dtype is None or dtype.kind not in "biuf":
        raise InexactError(f"{name!r} is bound, and is no tensor of numbers of the model")
    return dtype
