"""ONNX Runtime's class of bindings, with the sizes of its inputs noted.

What is bound through it is what ONNX Runtime binds; a run is counted with the shapes of that, and values are read
when a sample is taken.
"""

from __future__ import annotations

from operator import index
from time import perf_counter
from typing import TYPE_CHECKING, Any

from trtc.runtime.compat.bound import Bound, BoundFeeds, is_on_host, value_memory

if TYPE_CHECKING:
    import numpy as np

    Real = Any
else:
    Real = object

_BY_NOW = "its binding is ONNX Runtime's by now"


class RecordedBinding(Real):  # type: ignore[misc]
    """A binding of ONNX Runtime whose runs are counted. Whoever makes one sets both attributes."""

    _trtc_session: Any
    _trtc_inputs: dict[str, Bound]

    def bind_cpu_input(self, name: Any, arr_on_cpu: Any) -> None:
        """Bind an input to an array, as ``onnxruntime.IOBinding.bind_cpu_input``."""
        super().bind_cpu_input(name, arr_on_cpu)
        try:
            self._trtc_inputs[name] = Bound("bind_cpu_input", (name, arr_on_cpu), arr_on_cpu.shape)
        except Exception:  # noqa: BLE001 (anybody's objects; ONNX Runtime has taken them)
            self._trtc_inputs.pop(name, None)

    def bind_input(  # noqa: PLR0913, PLR0917 (as ONNX Runtime has them)
        self, name: Any, device_type: Any, device_id: Any, element_type: Any, shape: Any, buffer_ptr: Any
    ) -> None:
        """Bind an input to memory, as ``onnxruntime.IOBinding.bind_input``."""
        arguments = (name, device_type, device_id, element_type, shape, buffer_ptr)
        super().bind_input(*arguments)
        try:
            self._trtc_inputs[name] = Bound("bind_input", arguments, tuple([index(size) for size in shape]))
        except Exception:  # noqa: BLE001 (as above)
            self._trtc_inputs.pop(name, None)

    def bind_ortvalue_input(self, name: Any, ortvalue: Any) -> None:
        """Bind an input to a value, as ``onnxruntime.IOBinding.bind_ortvalue_input``."""
        super().bind_ortvalue_input(name, ortvalue)
        try:
            self._trtc_inputs[name] = Bound("bind_ortvalue_input", (name, ortvalue), tuple(ortvalue.shape()))
        except Exception:  # noqa: BLE001 (as above)
            self._trtc_inputs.pop(name, None)

    def clear_binding_inputs(self) -> None:
        """Bind no input any more."""
        super().clear_binding_inputs()
        self._trtc_inputs.clear()

    def _trtc_run(self, run_options: Any, *, counted: bool = False) -> None:
        """Run once, for the session; ``counted`` says that this is known to have been left to ONNX Runtime."""
        session, seen = self._trtc_session, self._trtc_inputs
        counts = session._trtc_counts  # noqa: SLF001 (the two classes are one thing, as in ONNX Runtime)
        if session._trtc_served is not None and not counted:  # noqa: SLF001
            counts.fell_through("run_with_iobinding", _BY_NOW)
        begin = perf_counter()
        session._trtc_real.run_with_iobinding(session, self, run_options)  # noqa: SLF001
        if (session._trtc_needs or session._trtc_required()) <= seen.keys():  # noqa: SLF001
            shapes = tuple([bound.shape for bound in seen.values()])
            counts.note(tuple(seen), shapes, begin, BoundFeeds(seen, self._trtc_written))
        else:
            counts.note_feeds((), begin)

    def _trtc_settle(self) -> None:
        """Do nothing: it is ONNX Runtime's already."""

    def _trtc_written(self) -> list[np.ndarray]:
        """View what the last run wrote on the host."""
        return [value_memory(value) for value in self.get_outputs() if is_on_host(value)]
