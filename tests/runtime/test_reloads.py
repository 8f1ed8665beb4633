"""Bundles that are closed and loaded again: nothing of the old session stays, not even until Python collects cycles."""

from __future__ import annotations

import gc
import threading
import weakref
from collections import Counter
from contextlib import suppress
from pathlib import Path
from types import FunctionType

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper

from trtc.profiles import PadRule, TrtcError
from trtc.runtime import Arena, CancelToken, Session, load
from trtc.runtime.ending import _LIVE as AT_EXIT
from trtc.runtime.fork import _LIVE as IN_CHILDREN

F = np.float32
RELOADS = 20


@pytest.fixture
def no_cycles():
    """Objects go only when nothing refers to them: a cycle stays, and is seen."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def alive() -> Counter[str]:
    """What a reload could leave behind, exactly."""
    found: Counter[str] = Counter()
    for thing in gc.get_objects():
        kind = thing if isinstance(thing, FunctionType) else type(thing)
        if str(kind.__module__).startswith(("trtc.", "onnxruntime.")):
            found[f"{kind.__module__}.{kind.__qualname__}"] += 1
    found["finalizers"] = len(weakref.finalize._registry)
    found["watched"] = len(AT_EXIT) + len(IN_CHILDREN)
    found["threads"] = threading.active_count()
    found["files"] = len(list(Path("/proc/self/fd").iterdir()))
    return found


def many_sizes(session: Session) -> None:
    for rows in range(1, 40):
        session.run({"x": np.ones((rows, 4), F)})


def every_kind_of_call(session: Session) -> None:
    session.run({"x": np.ones((2, 4), F)})
    session.run({"x": [[1, 2, 3, 4]]}, ["y"])
    with session.borrow({"x": np.ones((3, 4), F)}):
        pass
    session.run({"x": np.ones((3, 4), F)}, timeout_s=1, cancel=CancelToken())
    for wrong in ({}, {"x": np.ones((3, 5), F)}, {"x": "text"}):
        with suppress(TrtcError):
            session.run(wrong)


def cancelled(session: Session) -> None:
    session.run({"x": np.ones((2, 4), F)})
    for slot in session._core.pool.slots:
        for route in slot.routes.values():
            route.call.cancel()


def first_run_that_fails(session: Session) -> None:
    with suppress(TrtcError):
        session.run({"x": np.ones((2, 4), F)})


@pytest.fixture(scope="module")
def bundle(make_bundle, double_model, graphs, identity_model):
    """Make a bundle by the kind of its values."""
    rows = (PadRule("batch", "rows", {}),)
    late = graphs.model(
        [graphs.node("NonZero", ["x"], ["y"])],
        [graphs.value("x", ("n", 4))],
        [graphs.value("y", (2, None), TensorProto.INT64)],
    )
    fails = graphs.model(
        [graphs.node("Reshape", ["x", "to"], ["y"])],
        [graphs.value("x", ("n", 4))],
        [graphs.value("y", ("n", 4))],
        initializers=(helper.make_tensor("to", TensorProto.INT64, [2], [3, 4]),),
    )
    makers = {
        "exact": lambda: make_bundle(double_model, profiles=({"batch": (1, None)},)),
        "padded": lambda: make_bundle(double_model, profiles=({"batch": (1, 64)},), mode="bucket", padding=rows),
        "null": lambda: make_bundle(double_model, profiles=({"batch": (1, 64)},), backend="null"),
        "late": lambda: make_bundle(late, profiles=({"n": (0, None)},)),
        "failing": lambda: make_bundle(fails, profiles=({"n": (1, 9)},)),
        "strings": lambda: make_bundle(identity_model(TensorProto.STRING, ("n",)), profiles=({"n": (0, 4)},)),
        "bfloat16": lambda: make_bundle(identity_model(TensorProto.BFLOAT16, ("n",)), profiles=({"n": (0, 4)},)),
    }
    return lambda kind: makers[kind]()


def strings(session: Session) -> None:
    session.run({"x": ["a", "b"]})


def brain_floats(session: Session) -> None:
    session.run({"x": np.ones(3, ml_dtypes.bfloat16)})


@pytest.mark.usefixtures("no_cycles")
@pytest.mark.parametrize(
    ("kind", "use"),
    [
        pytest.param("exact", many_sizes, id="many-sizes"),
        pytest.param("exact", every_kind_of_call, id="every-kind-of-call"),
        pytest.param("padded", many_sizes, id="padded"),
        pytest.param("null", many_sizes, id="null-backend"),
        pytest.param("late", many_sizes, id="sizes-that-the-data-decides"),
        pytest.param("strings", strings, id="strings"),
        pytest.param("bfloat16", brain_floats, id="types-that-numpy-lacks"),
        pytest.param("exact", cancelled, id="cancelled"),
        pytest.param("failing", first_run_that_fails, id="a-first-run-that-fails"),
    ],
)
def test_nothing_stays_of_sessions_that_were_closed(bundle, kind, use):
    path, arena = bundle(kind), Arena()

    def reload() -> None:
        session = load(path, slots=2, threads=1, arena=arena)
        native = weakref.ref(session._engine if kind == "null" else session._engine._opened.session)
        use(session)
        session.close()
        assert kind == "null" or native() is None, "closed, but the engine's own session lives on"

    reload()
    before = alive()
    for _ in range(RELOADS):
        reload()
    assert alive() - before == Counter()
    assert arena.stats.in_use_bytes == 0


@pytest.mark.usefixtures("no_cycles")
def test_nothing_stays_of_sessions_that_were_dropped(bundle):
    path, arena = bundle("exact"), Arena()
    many_sizes(load(path, slots=2, threads=1, arena=arena))
    before = alive()
    for _ in range(RELOADS):
        many_sizes(load(path, slots=2, threads=1, arena=arena))
    assert alive() - before == Counter()
    assert arena.stats.in_use_bytes == 0


@pytest.mark.usefixtures("no_cycles")
def test_a_session_that_somebody_keeps_shows_in_that_count(bundle):
    path, kept = bundle("exact"), []
    before = alive()
    kept.append(load(path, slots=1, threads=1, arena=Arena()))
    left = alive() - before
    assert left["trtc.runtime.session.Session"] == 1
    assert left["finalizers"] >= 1
    assert left["watched"] == 2
    kept.pop().close()
