"""Options of a run: what a bundle serves, what it leaves to ONNX Runtime, and a run that another thread stops."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper
from outcomes import assert_same, outcome
from quiet_runs import quiet

from trtc.compiler import BuildOptions, build
from trtc.runtime.slots import SlotState

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FEED = {"x": np.ones((2, 3), np.float32), "s": np.array(3)}
LONG = np.zeros((1500, 1500), np.float32)
"""Takes seconds in the model of many products: time enough to stop it."""


@pytest.fixture(scope="module")
def products(tmp_path_factory: pytest.TempPathFactory, numbers: Any) -> Any:
    """A model of many matrix products, and its bundle."""
    folder = tmp_path_factory.mktemp("products")
    names = ["x", *(f"h{i}" for i in range(199)), "y"]
    nodes = [helper.make_node("MatMul", [one, "x"], [other]) for one, other in pairwise(names)]
    square = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", "n"]) for name in ("x", "y")]
    graph = helper.make_graph(nodes, "products", square[:1], square[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    onnx.save(model, folder / "products.onnx")
    build(folder / "products.onnx", folder / "p.trtc", BuildOptions(measure_s=0, verify_s=1, use_cache=False))
    return type(numbers)(folder / "products.onnx", folder / "p.trtc")


def by_run(session: Any, x: np.ndarray, options: Any) -> Any:
    return session.run(None, {"x": x}, options)


def by_ort_values(session: Any, x: np.ndarray, options: Any) -> Any:
    values = session.run_with_ort_values(None, {"x": onnxruntime.OrtValue.ortvalue_from_numpy(x)}, options)
    return [value.numpy() for value in values]


def by_binding(session: Any, x: np.ndarray, options: Any) -> Any:
    binding = session.io_binding()
    binding.bind_cpu_input("x", x)
    binding.bind_output("y")
    session.run_with_iobinding(binding, options)
    return binding.copy_outputs_to_cpu()


WAYS: list[Callable[[Any, np.ndarray, Any], Any]] = [by_run, by_ort_values, by_binding]


@pytest.mark.parametrize("way", WAYS)
def test_terminate_stops_a_run_that_another_thread_makes(products, through, way):
    session, options = products.served(), quiet()
    small = np.eye(3, dtype=np.float32)
    assert_same(way(session, small, options), way(products.plain(), small, None))
    slots = session._trtc_served._run.__self__.parts[1].pool.slots
    with ThreadPoolExecutor(1) as pool:
        stopped = pool.submit(outcome, lambda s: way(s, LONG, options), session)
        while not stopped.done() and all(slot.state != SlotState.FENCED for slot in slots):
            pass
        options.terminate = True
        found = stopped.result()
    assert found == outcome(lambda s: way(s, small, quiet(terminate=True)), products.plain())
    assert "terminate flag" in found[2]
    assert through(session) == []
    assert "_sess" not in session.__dict__
    options.terminate = False
    assert_same(way(session, small, options), way(products.plain(), small, None))
    assert through(session) == []


def test_terminate_of_other_options_stops_nothing(products, through):
    session, options, other = products.served(), quiet(), quiet()
    x = np.eye(3, dtype=np.float32)
    by_run(session, x, other)
    other.terminate = True
    assert_same(by_run(session, x, options), [x])
    assert (options.terminate, other.terminate) == (False, True)
    assert through(session) == []


def test_terminate_takes_what_it_took_before(products):
    by_run(products.served(), np.eye(3, dtype=np.float32), quiet())
    with pytest.raises(TypeError):
        quiet(terminate="yes")
    assert "terminate" in (onnxruntime.RunOptions.terminate.__doc__ or "")


ADAPTERS: list[Any] = []
"""Kept alive: options refer to an adapter without holding it."""


def adapted(folder: Path) -> onnxruntime.RunOptions:
    adapter = onnxruntime.AdapterFormat()
    adapter.set_adapter_version(1)
    adapter.set_model_version(1)
    adapter.set_parameters({"s": onnxruntime.OrtValue.ortvalue_from_numpy(np.array([5]))})
    adapter.export_adapter(str(folder / "a.adapter"))
    loaded = onnxruntime.LoraAdapter()
    loaded.Load(str(folder / "a.adapter"))
    options = quiet()
    options.add_active_adapter(loaded)
    ADAPTERS.append(loaded)
    return options


def with_entry() -> onnxruntime.RunOptions:
    options = quiet()
    options.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
    return options


@pytest.mark.parametrize("settings", [
    {}, {"log_severity_level": 3}, {"log_verbosity_level": 1}, {"logid": "mine"},
], ids=["none", "severity", "verbosity", "name"])  # fmt: skip
def test_options_that_mean_nothing_to_answers_are_served(numbers, through, settings):
    session = numbers.served()
    assert_same(session.run(None, FEED, quiet(**settings)), numbers.plain().run(None, FEED, quiet(**settings)))
    assert through(session) == []


@pytest.mark.parametrize(("make", "reason"), [
    pytest.param(lambda _: quiet(only_execute_path_to_fetches=True), "run option only_execute_path_to_fetches is set",
                 id="only-to-fetches"),
    pytest.param(lambda _: quiet(terminate=True), "run option terminate is set", id="terminated"),
    pytest.param(lambda _: with_entry(), "run options that cannot be read back, such as entries or adapters",
                 id="entry"),
    pytest.param(adapted, "run options that cannot be read back, such as entries or adapters", id="adapter"),
    pytest.param(lambda _: 5, "run options that are none of ONNX Runtime's own", id="a-number"),
])  # fmt: skip
def test_options_that_change_a_run_leave_it_to_onnx_runtime(numbers, through, tmp_path, make, reason):
    session = numbers.served()
    options = make(tmp_path)
    assert_same(
        outcome(lambda s: s.run(None, FEED, options), session),
        outcome(lambda s: s.run(None, FEED, options), numbers.plain()),
    )
    assert through(session) == [("run", reason)]
