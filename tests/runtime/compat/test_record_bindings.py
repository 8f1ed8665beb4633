"""What is recorded of calls through bindings and of asynchronous ones, on ONNX Runtime itself and on a bundle."""

from __future__ import annotations

import json
from importlib import import_module
from threading import Event
from typing import TYPE_CHECKING, Any

import numpy as np
import onnxruntime
import pytest
from outcomes import outcome

from trtc.profiles.recorded import samples_folder
from trtc.runtime.compat.desk import Desk
from trtc.runtime.compat.session_class import session_class
from trtc.runtime.compat.settings import Settings, known_bundle

if TYPE_CHECKING:
    from pathlib import Path

X = np.array([[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]], np.float32)
S = np.array(3)


class Recording:
    """A session whose calls are recorded."""

    def __init__(self, pair: Any, folder: Path, *, served: bool) -> None:
        self._path = folder / "r.jsonl"
        self._report = folder / "report.jsonl"
        self._report.touch()
        bundles = (known_bundle(pair.bundle),) if served else ()
        self._desk = Desk(Settings(bundles, record=str(self._path), report=str(self._report), samples=8))
        collection = import_module("onnxruntime.capi.onnxruntime_inference_collection")
        self.session: Any = session_class(collection, self._desk)(str(pair.model))
        self.session._trtc_counts.due_s = float("inf")

    def entries(self) -> list[dict[str, Any]]:
        self._desk.write(wait=True)
        written = [path.read_text() for path in (self._path, self._report) if path.exists()]
        return [json.loads(line) for text in written for line in text.splitlines()]

    def calls(self) -> list[tuple[list[int], list[int], int]]:
        """Shapes of x and s, and count."""
        found = [entry for entry in self.entries() if "times_s" in entry]
        assert all(len(entry["times_s"]) == entry["count"] for entry in found)
        assert all((entry["seconds"] > 0) == bool(entry.get("timed", 1)) for entry in found)
        return [(entry["inputs"]["x"], entry["inputs"]["s"], entry["count"]) for entry in found]

    def samples(self) -> list[dict[str, np.ndarray]]:
        self.entries()
        paths = sorted(samples_folder(self._path, self.session._trtc_counts.digest).glob("*.npz"))
        found = []
        for path in paths:
            with np.load(path) as sample:
                found.append(dict(sample))
        return found


@pytest.fixture(params=[False, True], ids=["plain", "served"])
def recording(request, numbers, tmp_path):
    found = Recording(numbers, tmp_path, served=request.param)
    assert ("_sess" not in found.session.__dict__) == request.param
    return found


@pytest.fixture
def plain(numbers, tmp_path):
    return Recording(numbers, tmp_path, served=False)


def by_array(binding: Any) -> None:
    binding.bind_cpu_input("x", X)
    binding.bind_cpu_input("s", S)


def by_address(binding: Any) -> None:
    binding.bind_input("x", "cpu", 0, np.float32, np.array([2, 3]), X.ctypes.data)
    binding.bind_input("s", "cpu", 0, 7, [], S.ctypes.data)


def by_value(binding: Any) -> None:
    binding.bind_ortvalue_input("x", onnxruntime.OrtValue.ortvalue_from_numpy(X))
    binding.bind_ortvalue_input("s", onnxruntime.OrtValue.ortvalue_from_numpy(S))


@pytest.mark.parametrize("bind", [by_array, by_address, by_value])
def test_calls_through_a_binding_are_recorded_with_their_values(recording, bind):
    binding = recording.session.io_binding()
    bind(binding)
    binding.bind_output("y")
    for _ in range(3):
        recording.session.run_with_iobinding(binding)
    binding.bind_cpu_input("x", 2 * X[:1])
    binding.bind_output("y")
    recording.session.run_with_iobinding(binding)
    assert recording.calls() == [([2, 3], [], 3), ([1, 3], [], 1)]
    kept = recording.samples()
    assert [one["x"].tolist() for one in kept] == [X.tolist()] * 3 + [(2 * X[:1]).tolist()]
    assert all(one["s"] == 3 for one in kept)
    assert not any("method" in entry or "lost" in entry or "note" in entry for entry in recording.entries())


def test_an_input_that_its_run_wrote_over_is_recorded_by_size_alone(recording):
    x = X.copy()
    binding = recording.session.io_binding()
    by_array(binding)
    binding.bind_cpu_input("x", x)
    binding.bind_output("y", "cpu", 0, np.float32, x.shape, x.ctypes.data)
    recording.session.run_with_iobinding(binding)
    assert recording.calls() == [([2, 3], [], 1)]
    assert recording.samples() == []
    assert sum("wrote its output over its input" in entry.get("note", "") for entry in recording.entries()) == 1


def test_an_output_that_became_the_input_is_such_a_one(recording):
    binding = recording.session.io_binding()
    by_array(binding)
    binding.bind_output("y")
    recording.session.run_with_iobinding(binding)
    binding.bind_ortvalue_input("x", binding.get_outputs()[0])
    recording.session.run_with_iobinding(binding)
    assert recording.calls() == [([2, 3], [], 2)]
    assert [one["x"].tolist() for one in recording.samples()] == [X.tolist()]


def test_a_copy_that_onnx_runtime_made_is_not_taken_for_what_the_array_became(plain):
    x = np.asfortranarray(X)
    binding = plain.session.io_binding()
    by_array(binding)
    binding.bind_cpu_input("x", x)
    binding.bind_output("y")
    x[...] = 9
    plain.session.run_with_iobinding(binding)
    assert plain.calls() == [([2, 3], [], 1)]
    assert plain.samples() == []


def test_calls_after_a_fall_are_recorded_as_before(numbers, tmp_path):
    recording = Recording(numbers, tmp_path, served=True)
    binding = recording.session.io_binding()
    by_array(binding)
    binding.bind_output("y")
    recording.session.run_with_iobinding(binding)
    assert binding._iobinding is not None
    recording.session.run_with_iobinding(binding)
    binding.bind_cpu_input("x", X[:1])
    binding.bind_output("y")
    recording.session.run_with_iobinding(binding)
    assert recording.calls() == [([2, 3], [], 2), ([1, 3], [], 1)]


def test_calls_whose_inputs_were_not_all_seen_are_counted_as_such(plain):
    binding = plain.session.io_binding()
    binding.bind_cpu_input("x", X)
    binding._iobinding.bind_input("s", S)
    binding.bind_output("y")
    plain.session.run_with_iobinding(binding)
    assert plain.calls() == []
    assert sum(entry.get("lost", 0) for entry in plain.entries()) == 1


def test_a_binding_of_a_programs_own_class_is_named(plain):
    class Mine(onnxruntime.IOBinding):
        pass

    binding = Mine(plain.session)
    by_array(binding)
    binding.bind_output("y")
    plain.session.run_with_iobinding(binding)
    [entry] = [entry for entry in plain.entries() if "method" in entry]
    assert (entry["method"], entry["reason"]) == ("run_with_iobinding", "its sizes are not recorded")


def test_a_run_that_fails_is_not_recorded(plain):
    binding = plain.session.io_binding()
    by_array(binding)
    binding.bind_cpu_input("x", X.astype(np.float64))
    binding.bind_output("y")
    assert outcome(plain.session.run_with_iobinding, binding)[0] == "error"
    assert plain.calls() == []


def ended(session: Any, feeds: Any, names: Any = None) -> Any:
    """Run asynchronously and wait for the end."""
    over, found = Event(), []

    def callback(*arguments: Any) -> None:
        found.append(arguments)
        over.set()

    session.run_async(names, feeds, callback, "mine")
    assert over.wait(60)
    [(results, data, failure)] = found
    return [np.asarray(result).tolist() for result in results], data, failure


@pytest.mark.parametrize("feeds", [
    pytest.param({"x": X, "s": S}, id="usual"), pytest.param({"x": X.astype(np.float64), "s": S}, id="double"),
    pytest.param({"x": X}, id="missing"), pytest.param(None, id="none"),
])  # fmt: skip
def test_an_asynchronous_call_ends_as_ever_and_is_recorded(recording, numbers, feeds):
    wanted = outcome(lambda session: ended(session, feeds), numbers.plain())
    assert outcome(lambda session: ended(session, feeds), recording.session) == wanted
    good = wanted[0] == "value" and not wanted[1][2]
    assert recording.calls() == ([([2, 3], [], 1)] if good else [])
    assert [one["x"].tolist() for one in recording.samples()] == ([X.tolist()] if good else [])


def test_a_callback_that_is_none_is_refused_as_ever(plain, numbers):
    def call(session: Any) -> Any:
        return session.run_async(None, {"x": X, "s": S}, 5, None)

    assert outcome(call, plain.session) == outcome(call, numbers.plain())
