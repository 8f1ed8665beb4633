"""Each call, usual or odd, ends on a bundle as it ends on plain ONNX Runtime: the same values or the same exception."""

from __future__ import annotations

import collections
import copy
from typing import Any

import numpy as np
import onnxruntime
import pytest
from outcomes import assert_same, outcome
from quiet_runs import quiet, terminated

from trtc.engines.host import this_host
from trtc.runtime import load

X = np.array([[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]], np.float32)
S = np.array(3)
FEED = {"x": X, "s": S}


class Frozen(collections.abc.Mapping):
    def __init__(self, values: dict[str, Any]) -> None:
        self._values = values

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Any:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


def strided() -> np.ndarray:
    return np.asfortranarray(X)[::-1]


def values_of(values: dict[str, Any]) -> dict[str, Any]:
    return {name: onnxruntime.OrtValue.ortvalue_from_numpy(array) for name, array in values.items()}


def hurried() -> onnxruntime.RunOptions:
    options = quiet()
    options.only_execute_path_to_fetches = True
    return options


def quiet_with_entry() -> onnxruntime.RunOptions:
    options = quiet()
    options.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
    return options


class Mine(onnxruntime.IOBinding):
    """A binding of a program's own class."""


def bound(session: Any, binding: Any) -> Any:
    binding.bind_cpu_input("x", X)
    binding.bind_cpu_input("s", S)
    for name in ("y", "z", "total"):
        binding.bind_output(name)
    session.run_with_iobinding(binding)
    return binding.copy_outputs_to_cpu()


def described(arg: Any) -> tuple[Any, ...]:
    return arg.name, arg.type, arg.shape, str(arg)


def changed(held: Any) -> None:
    """Change what a session handed out, which is no matter of the session's."""
    held.clear()


def meta(session: Any) -> dict[str, Any]:
    found = session.get_modelmeta()
    names = ("custom_metadata_map", "description", "domain", "graph_description", "graph_name", "producer_name")
    return {name: getattr(found, name) for name in (*names, "version")}


SERVED = {
    "all-outputs": lambda s: s.run(None, FEED),
    "empty-output-list": lambda s: s.run([], FEED),
    "one-output": lambda s: s.run(["total"], FEED),
    "other-order": lambda s: s.run(["z", "y"], FEED),
    "a-tuple-of-names": lambda s: s.run(("y",), FEED),
    "keywords": lambda s: s.run(output_names=["y"], input_feed=FEED, run_options=None),
    "ordered-dict": lambda s: s.run(None, collections.OrderedDict(s=S, x=X)),
    "any-mapping": lambda s: s.run(None, Frozen(FEED)),
    "strided": lambda s: s.run(None, {"x": strided(), "s": S}),
    "read-only": lambda s: s.run(None, {"x": np.broadcast_to(X[0], (4, 3)), "s": S}),
    "masked-array": lambda s: s.run(None, {"x": np.ma.masked_array(X, X > 0), "s": S}),
    "a-list": lambda s: s.run(None, {"x": [[1, 2.5, 3]], "s": S}),
    "ort-values": lambda s: [v.numpy() for v in s.run_with_ort_values(None, values_of(FEED))],
    "bound": lambda s: bound(s, s.io_binding()),
    "run-options": lambda s: s.run(None, FEED, quiet()),
    "run-options-and-names": lambda s: s.run(["z"], FEED, run_options=onnxruntime.RunOptions()),
    "run-options-and-ort-values": lambda s: [v.numpy() for v in s.run_with_ort_values(["y"], values_of(FEED), quiet())],
    "memory-of-dropped-ort-values": lambda s: s.run_with_ort_values(None, values_of(FEED))[0].numpy(),
    "inputs": lambda s: [described(arg) for arg in s.get_inputs()],
    "outputs": lambda s: [described(arg) for arg in s.get_outputs()],
    "overridable": lambda s: [described(arg) for arg in s.get_overridable_initializers()],
    "metadata": meta,
    "a-changed-shape": lambda s: (changed(s.get_inputs()[0].shape), described(s.get_inputs()[0])),
    "changed-metadata": lambda s: (changed(s.get_modelmeta().custom_metadata_map), meta(s)),
    "inputs-in-a-set": lambda s: (len({*s.get_inputs(), *s.get_inputs()}), s.get_inputs()[0] in set(s.get_inputs())),
    "providers": lambda s: s.get_providers(),
}
LEFT = {
    "unknown-output": lambda s: s.run(["nothing"], FEED),
    "repeated-output": lambda s: s.run(["y", "y"], FEED),
    "a-text-as-names": lambda s: s.run("y", FEED),
    "a-dict-as-names": lambda s: s.run({"y": 1}, FEED),
    "none-among-names": lambda s: s.run([None], FEED),
    "double-for-float": lambda s: s.run(None, {"x": X.astype(np.float64), "s": S}),
    "other-byte-order": lambda s: s.run(None, {"x": X.astype(">f4"), "s": S}),
    "fractions-for-integers": lambda s: s.run(None, {"x": X, "s": [3.5]}),
    "a-number": lambda s: s.run(None, {"x": X, "s": 3}),
    "a-tuple": lambda s: s.run(None, {"x": ((1, 2, 3),), "s": S}),
    "missing-input": lambda s: s.run(None, {"x": X}),
    "unknown-input": lambda s: s.run(None, {**FEED, "more": X}),
    "name-that-is-no-text": lambda s: s.run(None, {"x": X, 5: S}),
    "too-few-axes": lambda s: s.run(None, {"x": X[0], "s": S}),
    "wrong-fixed-size": lambda s: s.run(None, {"x": X[:, :2], "s": S}),
    "feeds-as-list": lambda s: s.run(None, [X, S]),
    "no-feeds": lambda s: s.run(None, None),
    "a-mistake-in-arguments": lambda s: s.run(FEED),
    "terminated": lambda s: s.run(None, FEED, terminated()),
    "ort-value-among-feeds": lambda s: s.run(None, {**FEED, **values_of({"x": X})}),
    "arrays-for-ort-values": lambda s: s.run_with_ort_values(None, FEED),
    "of-a-derived-binding": lambda s: bound(s, Mine(s)),
    "run-entries": lambda s: s.run(None, FEED, quiet_with_entry()),
    "only-to-fetches": lambda s: s.run(None, FEED, hurried()),
    "options-that-are-none": lambda s: s.run(None, FEED, 5),
    "provider-options": lambda s: s.get_provider_options(),
    "session-options": lambda s: s.get_session_options().intra_op_num_threads,
    "memory-infos": lambda s: len(s.get_input_memory_infos()),
    "private-metadata": lambda s: s._model_meta.graph_name,
    "other-providers": lambda s: (s.set_providers(["CPUExecutionProvider"]), s.run(None, FEED))[1],
    "no-fallback": lambda s: (s.disable_fallback(), s.enable_fallback(), s.run(None, FEED))[2],
    "deep-copied": copy.deepcopy,
    "no-such-private-attribute": lambda s: s._nothing,
    "asked-for-a-private-attribute": lambda s: (hasattr(s, "_nothing"), getattr(s, "_nothing", 3), hasattr(s, "_sess")),
}
NOTHING = {
    "no-such-attribute": lambda s: s.nothing,
    "attributes-of-its-own": lambda s: (setattr(s, "mine", 3), s.mine)[1],
    "is-a-session": lambda s: isinstance(s, onnxruntime.InferenceSession),
}


@pytest.mark.parametrize("name", SERVED)
def test_a_call_that_the_bundle_answers(numbers, through, name):
    session = numbers.served()
    assert_same(outcome(SERVED[name], session), outcome(SERVED[name], numbers.plain()))
    assert through(session) == []
    assert "_sess" not in session.__dict__


@pytest.mark.parametrize("name", LEFT)
@pytest.mark.filterwarnings("ignore")
def test_a_call_that_is_left_to_onnx_runtime(numbers, through, name):
    session = numbers.served()
    assert_same(outcome(LEFT[name], session), outcome(LEFT[name], numbers.plain()))
    if name != "a-mistake-in-arguments":
        assert through(session) != []


@pytest.mark.parametrize("name", NOTHING)
def test_what_needs_neither(numbers, through, name):
    session = numbers.served()
    found, wanted = outcome(NOTHING[name], session), outcome(NOTHING[name], numbers.plain())
    assert found[0] == wanted[0]
    assert found[1] == wanted[1]
    assert through(session) == []


def test_a_call_after_one_that_fell_through_is_served_again(numbers, through):
    session = numbers.served()
    assert outcome(LEFT["unknown-output"], session)[0] == "error"
    assert len(through(session)) == 1
    assert_same(session.run(None, FEED), numbers.plain().run(None, FEED))
    assert through(session) == []


@pytest.mark.parametrize("feeds", [
    pytest.param({"t": np.array(["a", "bc"], object), "x": X[:, :2]}, id="objects"),
    pytest.param({"t": np.array(["ä", ""]), "x": X[:1, :2]}, id="unicode"),
])  # fmt: skip
def test_texts_and_sequences(texts, through, feeds):
    session = texts.served()
    assert_same(session.run(None, feeds), texts.plain().run(None, feeds))
    assert through(session) == []


CONSTRUCTORS = {
    "path-object": lambda pair: ((pair.model,), {}),
    "bytes": lambda pair: ((pair.model.read_bytes(),), {}),
    "options": lambda pair: ((str(pair.model), onnxruntime.SessionOptions()), {}),
    "no-providers": lambda pair: ((str(pair.model),), {"providers": None}),
    "empty-providers": lambda pair: ((str(pair.model),), {"providers": []}),
    "cpu": lambda pair: ((str(pair.model),), {"providers": ["CPUExecutionProvider"]}),
    "cpu-with-options": lambda pair: (
        (str(pair.model),), {"providers": [("CPUExecutionProvider", {"arena_extend_strategy": "kSameAsRequested"})]}
    ),
    "all-available": lambda pair: ((str(pair.model),), {"providers": onnxruntime.get_available_providers()}),
}  # fmt: skip


@pytest.mark.parametrize("name", CONSTRUCTORS)
def test_a_way_to_open_a_session_that_a_bundle_serves(numbers, through, name):
    args, kwargs = CONSTRUCTORS[name](numbers)
    session, plain = numbers.served(*args, **kwargs), numbers.plain(*args, **kwargs)
    assert session.get_providers() == plain.get_providers()
    assert_same(session.run(None, FEED), plain.run(None, FEED))
    assert through(session) == []


def test_a_provider_that_is_not_there_is_warned_about_as_ever(numbers, through):
    wanted = ["CUDAExecutionProvider", "CPUExecutionProvider"]
    with pytest.warns(UserWarning, match="Specified provider 'CUDAExecutionProvider' is not in available"):
        session = numbers.served(str(numbers.model), providers=wanted)
    assert session.get_providers() == ["CPUExecutionProvider"]
    assert_same(session.run(None, FEED), numbers.plain().run(None, FEED))
    assert through(session) == []


def options_with(**settings: Any) -> onnxruntime.SessionOptions:
    options = onnxruntime.SessionOptions()
    for name, value in settings.items():
        setattr(options, name, value)
    return options


def overriding() -> onnxruntime.SessionOptions:
    options = onnxruntime.SessionOptions()
    options.add_free_dimension_override_by_name("rows", 2)
    return options


def flushing() -> onnxruntime.SessionOptions:
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.set_denormal_as_zero", "1")
    return options


@pytest.mark.parametrize(("make", "reason"), [
    pytest.param(overriding, "cannot be read back", id="overridden-dimension"),
    pytest.param(flushing, "set_denormal_as_zero", id="other-numbers"),
    pytest.param(lambda: options_with(use_deterministic_compute=True), "deterministic", id="deterministic"),
])  # fmt: skip
def test_options_that_a_bundle_cannot_keep_leave_the_session_to_onnx_runtime(numbers, through, make, reason):
    kind = numbers.served().__class__  # the class watches options that are made from now on
    session = kind(str(numbers.model), make())
    plain = numbers.plain(str(numbers.model), make())
    assert [arg.shape for arg in session.get_inputs()] == [arg.shape for arg in plain.get_inputs()]
    assert_same(session.run(None, FEED), plain.run(None, FEED))
    [(method, why)] = through(session)
    assert method == "InferenceSession"
    assert reason in why


@pytest.mark.parametrize(
    "model", ["missing.onnx", 3, b"", b"no model"], ids=["missing", "a-number", "empty", "no-model"]
)
@pytest.mark.filterwarnings("ignore")
def test_what_is_no_model_is_refused_as_ever(numbers, model):
    def opened(make: Any) -> Any:
        return make(model)

    assert outcome(opened, numbers.served) == outcome(opened, numbers.plain)


def test_another_model_is_left_alone(numbers, texts):
    session = numbers.served(str(texts.model))
    assert "_sess" in session.__dict__
    assert [arg.name for arg in session.get_inputs()] == ["t", "x"]


def test_a_model_that_changed_since_the_build_is_left_alone(numbers, tmp_path):
    changed = tmp_path / "changed.onnx"
    changed.write_bytes(numbers.model.read_bytes() + b"\x3a\x00")  # an empty graph joined: other bytes, same meaning
    assert "_sess" in numbers.served(str(changed)).__dict__


def test_a_class_that_a_program_derives_keeps_its_own_methods(numbers, through):
    class Mine(numbers.served().__class__):
        def run(self, names, feeds, options=None):
            return [2 * value for value in super().run(names, feeds, options)]

    session = Mine(str(numbers.model))
    np.testing.assert_array_equal(session.run(["y"], FEED)[0], 2 * np.maximum(X, 0))
    assert through(session) == []


def test_results_belong_to_the_caller(numbers):
    session = numbers.served()
    [first] = session.run(["y"], FEED)
    first[...] = 9
    np.testing.assert_array_equal(session.run(["y"], FEED)[0], np.maximum(X, 0))


def test_calls_of_several_threads_run_at_once_as_in_onnxruntime(numbers, monkeypatch):
    """The bundle says one call at a time; a program that stays as it is must not wait where it would not before."""
    opened = []

    def kept(*args: Any, **kwargs: Any) -> Any:
        opened.append(load(*args, **kwargs))
        return opened[-1]

    monkeypatch.setattr("trtc.runtime.compat.served.load", kept)
    with load(numbers.bundle) as session:
        assert session.explain().execution.slots == 1
    numbers.served().run(None, FEED)
    execution = opened[0].explain().execution
    assert (execution.slots, execution.threads) == (this_host().threads, this_host().threads)
