"""Each way to use a binding ends on a bundle as it ends on plain ONNX Runtime, and stays on the bundle where it can."""

from __future__ import annotations

import gc
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import onnxruntime
import pytest
from outcomes import assert_same, outcome
from quiet_runs import quiet, terminated

if TYPE_CHECKING:
    from collections.abc import Callable

X = np.array([[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]], np.float32)
S = np.array(3)
OUTPUTS = ("y", "z", "total")


def binding_of(session: Any, x: Any = X, outputs: Any = OUTPUTS) -> Any:
    binding = session.io_binding()
    binding.bind_cpu_input("x", x)
    binding.bind_cpu_input("s", S)
    for name in outputs:
        binding.bind_output(name)
    return binding


def ran(session: Any, binding: Any, *options: Any) -> list[np.ndarray]:
    session.run_with_iobinding(binding, *options)
    return binding.copy_outputs_to_cpu()


def value(array: np.ndarray) -> onnxruntime.OrtValue:
    return onnxruntime.OrtValue.ortvalue_from_numpy(array)


def of_the_class(session: Any) -> Any:
    binding = onnxruntime.IOBinding(session)
    binding.bind_cpu_input("x", X)
    binding.bind_cpu_input("s", S)
    binding.bind_output("total")
    return isinstance(binding, onnxruntime.IOBinding), ran(session, binding)


def by_address(session: Any, element: Any = np.float32) -> Any:
    written = np.zeros((2, 3), np.float32)
    binding = session.io_binding()
    binding.bind_input("x", "cpu", 0, element, [2, 3], X.ctypes.data)
    binding.bind_input("s", "cpu", 0, np.int64, (), S.ctypes.data)
    binding.bind_output("y", "cpu", 0, element, (2, 3), written.ctypes.data)
    session.run_with_iobinding(binding)
    pointer = binding.get_outputs()[0].data_ptr() == written.ctypes.data
    return written, pointer, binding.copy_outputs_to_cpu()


def by_value(session: Any) -> Any:
    x, y = X.copy(), np.zeros((2, 3), np.float32)
    inputs, output = value(x), value(y)
    binding = session.io_binding()
    binding.bind_ortvalue_input("x", inputs)
    binding.bind_ortvalue_input("s", value(S))
    binding.bind_ortvalue_output("y", output)
    session.run_with_iobinding(binding)
    first = y.copy()
    inputs.update_inplace(2 * X)
    session.run_with_iobinding(binding)
    return first, y, output.numpy(), binding.get_outputs()[0].data_ptr() == output.data_ptr()


def changed_in_place(session: Any) -> Any:
    x = X.copy()
    binding = binding_of(session, x)
    first = ran(session, binding)
    x[...] = 5
    return first, ran(session, binding)


def changed_after_a_copy(session: Any) -> Any:
    x = np.asfortranarray(X)
    binding = binding_of(session, x)
    x[...] = 5
    return ran(session, binding)


def kept_over_a_run(session: Any) -> Any:
    x = X.copy()
    binding = binding_of(session, x)
    copied = ran(session, binding)
    kept = binding.get_outputs()[0]
    array, tensor = kept.numpy(), np.from_dlpack(kept)
    x[...] = 7
    session.run_with_iobinding(binding)
    return copied, kept.numpy(), array, tensor


def kept_over_another_binding(session: Any) -> Any:
    x = X.copy()
    binding = binding_of(session, x)
    session.run_with_iobinding(binding)
    kept, vector = binding.get_outputs(), binding.get_outputs_as_ortvaluevector()
    tensor = np.from_dlpack(kept[0])
    vector = [onnxruntime.OrtValue(vector[i]) for i in range(len(vector))]
    for name in OUTPUTS:
        binding.bind_output(name)
    x[...] = 7
    fresh = ran(session, binding)
    return [one.numpy() for one in kept], [one.numpy() for one in vector], tensor, fresh


def kept_longer_than_everything(session: Any) -> Any:
    binding = binding_of(session, np.full((500, 3), 5, np.float32))
    session.run_with_iobinding(binding)
    array, tensor = binding.get_outputs()[0].numpy(), np.from_dlpack(binding.get_outputs()[0])
    del binding, session
    gc.collect()
    filler = [np.full((500, 3), 9, np.float32) for _ in range(50)]
    return array, tensor, len(filler)


def output_as_input(session: Any) -> Any:
    binding = binding_of(session, X, ("y",))
    session.run_with_iobinding(binding)
    binding.bind_ortvalue_input("x", binding.get_outputs()[0])
    binding.bind_output("total")
    return ran(session, binding), ran(session, binding)


def rebound(session: Any) -> Any:
    binding = binding_of(session)
    first = ran(session, binding)
    binding.bind_cpu_input("x", np.ones((5, 3), np.float32))
    for name in ("total", "y", "z"):  # which keeps their order
        binding.bind_output(name)
    return first, ran(session, binding)


def cleared(session: Any) -> Any:
    binding = binding_of(session)
    session.run_with_iobinding(binding)
    binding.clear_binding_outputs()
    nothing = binding.get_outputs(), binding.copy_outputs_to_cpu(), len(binding.get_outputs_as_ortvaluevector())
    binding.clear_binding_inputs()
    binding.bind_cpu_input("x", 3 * X)
    binding.bind_cpu_input("s", S)
    binding.bind_output("z")
    binding.bind_output("y")
    return nothing, ran(session, binding)


def interleaved(session: Any) -> Any:
    one, other = binding_of(session, X, ("y",)), binding_of(session, -X, ("y",))
    session.run_with_iobinding(one)
    session.run_with_iobinding(other)
    between = one.copy_outputs_to_cpu()
    session.run_with_iobinding(one)
    return between, one.copy_outputs_to_cpu(), other.copy_outputs_to_cpu()


def in_threads(session: Any) -> Any:
    def work(i: int) -> list[np.ndarray]:
        binding = binding_of(session, np.full((i % 5 + 1, 3), i, np.float32))
        for _ in range(20):
            session.run_with_iobinding(binding)
        return binding.copy_outputs_to_cpu()

    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(work, range(12)))


def values_described(session: Any) -> Any:
    binding = binding_of(session)
    session.run_with_iobinding(binding)
    found = binding.get_outputs()
    return [(one.numpy(), one.shape(), one.data_type(), one.device_name(), one.element_type()) for one in found]


def session_deleted(session: Any) -> Any:
    binding = binding_of(session)
    session.run_with_iobinding(binding)
    del session
    gc.collect()
    return binding.copy_outputs_to_cpu(), [one.numpy() for one in binding.get_outputs()]


SERVED: dict[str, Callable[[Any], Any]] = {
    "fresh-outputs": lambda s: ran(s, binding_of(s)),
    "some-outputs-in-another-order": lambda s: ran(s, binding_of(s, X, ("total", "y"))),
    "of-the-class": of_the_class,
    "synchronized": lambda s: ((b := binding_of(s)).synchronize_inputs(), ran(s, b), b.synchronize_outputs()),
    "by-address": by_address,
    "by-address-with-number": lambda s: by_address(s, 1),
    "by-address-with-text": lambda s: by_address(s, "float32"),
    "by-value": by_value,
    "in-place": changed_in_place,
    "in-place-after-a-copy": changed_after_a_copy,
    "read-only": lambda s: ran(s, binding_of(s, np.broadcast_to(X[0], (4, 3)))),
    "masked": lambda s: ran(s, binding_of(s, np.ma.masked_array(X, X > 0))),
    "of-a-twin-type": lambda s: ((b := binding_of(s)).bind_cpu_input("s", np.array(4, np.longlong)), ran(s, b)),
    "no-rows": lambda s: ran(s, binding_of(s, X[:0])),
    "values": values_described,
    "kept-over-a-run": kept_over_a_run,
    "kept-over-another-binding": kept_over_another_binding,
    "output-as-input": output_as_input,
    "rebound": rebound,
    "cleared": cleared,
    "interleaved": interleaved,
    "threads": in_threads,
    "session-deleted": session_deleted,
    "kept-longer-than-everything": kept_longer_than_everything,
    "run-options": lambda s: ran(s, binding_of(s), quiet()),
    "run-options-by-name": lambda s: s.run_with_iobinding(iobinding=binding_of(s), run_options=quiet()),
}  # fmt: skip


def with_bound(method: str, *arguments: Any) -> Callable[[Any], Any]:
    """Bind one more thing and run."""

    def call(session: Any) -> Any:
        binding = binding_of(session)
        getattr(binding, method)(*arguments)
        return ran(session, binding)

    return call


def another_shape(session: Any) -> Any:
    binding = binding_of(session)
    session.run_with_iobinding(binding)
    binding.bind_cpu_input("x", np.ones((5, 3), np.float32))
    return ran(session, binding)


def a_fall_in_mid_life(session: Any) -> Any:
    x, written = X.copy(), np.zeros((), np.float32)
    binding = binding_of(session, x, ("y",))
    binding.bind_output("total", "cpu", 0, np.float32, (), written.ctypes.data)
    first = ran(session, binding)
    kept = binding.get_outputs()
    inner = type(binding._iobinding).__name__
    x[...] = 2
    second = ran(session, binding)
    return first, inner, second, [one.numpy() for one in kept], written


def several(session: Any) -> Any:
    """A binding that was refused goes on with what it had."""
    binding = binding_of(session)
    refused = outcome(lambda b: b.bind_cpu_input("nothing", X), binding)
    return refused, ran(session, binding)


def other_providers(session: Any) -> Any:
    binding = binding_of(session)
    session.set_providers(["CPUExecutionProvider"])
    return ran(session, binding)


def other_providers_after_a_fall(session: Any) -> Any:
    binding = binding_of(session)
    return sorted(binding._numpy_obj_references), outcome(other_providers, session), outcome(ran, session, binding)


SMALL = np.zeros((8, 8), np.float64)
LEFT: dict[str, Callable[[Any], Any]] = {
    "double-for-float": lambda s: ran(s, binding_of(s, X.astype(np.float64))),
    "other-byte-order": lambda s: ran(s, binding_of(s, X.astype(">f4"))),
    "a-list": lambda s: ran(s, binding_of(s, X.tolist())),
    "a-value-for-an-array": lambda s: ran(s, binding_of(s, value(X))),
    "texts": lambda s: ran(s, binding_of(s, np.array([["a"]], object))),
    "too-few-axes": lambda s: ran(s, binding_of(s, X[0])),
    "wrong-fixed-size": lambda s: ran(s, binding_of(s, X[:, :2])),
    "unknown-input": several,
    "unknown-output": with_bound("bind_output", "nothing"),
    "name-that-is-no-text": with_bound("bind_output", 5),
    "unbound-input": lambda s: ((b := binding_of(s)).clear_binding_inputs(), b.bind_cpu_input("x", X), ran(s, b)),
    "no-output": lambda s: ran(s, binding_of(s, X, ())),
    "another-shape-without-binding-outputs": another_shape,
    "memory-of-another-shape": with_bound("bind_output", "y", "cpu", 0, np.float32, (3, 3), SMALL.ctypes.data),
    "memory-of-another-rank": with_bound("bind_output", "y", "cpu", 0, np.float32, (6,), SMALL.ctypes.data),
    "memory-of-another-type": with_bound("bind_output", "y", "cpu", 0, np.float64, (2, 3), SMALL.ctypes.data),
    "memory-without-shape": with_bound("bind_output", "y", "cpu", 0, None, None, SMALL.ctypes.data),
    "shape-that-is-none": with_bound("bind_input", "x", "cpu", 0, np.float32, (2.0, 3), X.ctypes.data),
    "shape-below-zero": with_bound("bind_input", "x", "cpu", 0, np.float32, (-1, 3), X.ctypes.data),
    "value-of-another-shape": with_bound("bind_ortvalue_output", "y", value(np.zeros((3, 3), np.float32))),
    "value-of-another-type": with_bound("bind_ortvalue_output", "y", value(np.zeros((2, 3)))),
    "input-value-of-another-type": with_bound("bind_ortvalue_input", "x", value(np.zeros((2, 3)))),
    "an-array-for-a-value": with_bound("bind_ortvalue_input", "x", X),
    "another-device": with_bound("bind_output", "y", "cuda"),
    "no-device": with_bound("bind_output", "y", "nothing"),
    "outputs-before-a-run": lambda s: [v.has_value() for v in binding_of(s).get_outputs()],
    "private-attribute": lambda s: sorted(binding_of(s)._numpy_obj_references),
    "mid-life": a_fall_in_mid_life,
    "no-binding": lambda s: s.run_with_iobinding(None),
    "terminated": lambda s: ran(s, binding_of(s), terminated()),
    "options-that-are-none": lambda s: ran(s, binding_of(s), 5),
    "other-providers": other_providers,
    "other-providers-after-a-fall": other_providers_after_a_fall,
}  # fmt: skip


@pytest.mark.parametrize("name", SERVED)
def test_a_binding_that_the_bundle_serves(numbers, through, name):
    session = numbers.served()
    assert_same(outcome(SERVED[name], session), outcome(SERVED[name], numbers.plain()))
    assert through(session) == []
    assert "_sess" not in session.__dict__


@pytest.mark.parametrize("name", LEFT)
def test_a_binding_that_is_left_to_onnx_runtime(numbers, through, name):
    session = numbers.served()
    assert_same(outcome(LEFT[name], session), outcome(LEFT[name], numbers.plain()))
    assert through(session) != []
    # The session itself goes on with the bundle, unless it was left for good.
    if not name.startswith("other-providers"):
        assert_same(session.run(None, {"x": X, "s": S}), numbers.plain().run(None, {"x": X, "s": S}))
        assert through(session) == []


def test_a_binding_that_fell_through_stays_there_and_each_of_its_runs_is_counted(numbers, through):
    session = numbers.served()
    binding, other = binding_of(session), binding_of(session)
    assert binding._iobinding is not None
    for _ in range(3):
        session.run_with_iobinding(binding)
    session.run_with_iobinding(other)
    assert through(session) == [
        ("io_binding", "attribute _iobinding of a binding is asked for"),
        ("run_with_iobinding", "its binding is ONNX Runtime's by now"),
    ]


@pytest.mark.parametrize("owner", ["plain", "served"])
def test_a_binding_of_another_session(numbers, through, owner):
    session, plain = numbers.served(), numbers.plain()
    binding = binding_of(getattr(numbers, owner)())
    wanted = outcome(plain.run_with_iobinding, binding_of(numbers.plain()))
    assert outcome(session.run_with_iobinding, binding) == wanted
    assert through(session) == [("run_with_iobinding", "its binding is of another session, or of a class of its own")]
    assert outcome(plain.run_with_iobinding, binding_of(numbers.served())) == wanted


def test_bindings_of_plain_sessions_and_of_programs_own_classes_are_what_they_were(numbers):
    class Mine(onnxruntime.IOBinding):
        pass

    session = numbers.served()
    assert type(numbers.plain().io_binding()) is onnxruntime.IOBinding
    assert type(Mine(session)) is Mine
    assert "_sess" in session.__dict__
    assert isinstance(numbers.served().io_binding(), onnxruntime.IOBinding)


def test_no_session_is_kept_by_a_binding_that_is_gone(numbers):
    session = numbers.served()
    session.run_with_iobinding(binding_of(session))
    gone = weakref.ref(session)
    del session
    assert gone() is None


def test_values_own_their_memory(numbers):
    session = numbers.served()
    rows = 20000
    feeds = {"x": value(np.full((rows, 3), 5, np.float32)), "s": value(S)}
    [kept] = [one.numpy() for one in session.run_with_ort_values(["y"], feeds)]
    filler = [np.full((rows, 3), 9, np.float32) for _ in range(8)]
    assert (kept == 5).all()
    assert len(filler) == 8
