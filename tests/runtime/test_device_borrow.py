"""Results that stay on the device, and inputs that are there: on the simulator, with engines that were really built."""

from __future__ import annotations

import gc

import numpy as np
import pytest

from simulator.streams import Stream
from simulator.world import bytes_at
from trtc.profiles import PadRule
from trtc.runtime import (
    Arena,
    EngineError,
    KeptViewWarning,
    LeaseError,
    LostLeaseWarning,
    RequestError,
    load,
)

ENGINE_KINDS = ["rtx"]
F = np.float32
TWO = ({"batch": (1, 4)}, {"batch": (8, 16)})
PADDED = {"profiles": TWO, "padding": (PadRule("batch", "rows", {}),), "mode": "bucket"}


@pytest.fixture
def session(open_bundle, double_model):
    return open_bundle(double_model, profiles=TWO, slots=1)


class Tensor:
    """A tensor of somebody else on the device, made by work that is still pending."""

    def __init__(self, machine, array, *, index=0, strides=None):
        self._machine = machine
        machine.world.set_current(0)
        self.stream = machine.toolkit.cuda.Device(0).create_stream(
            options=machine.toolkit.cuda.StreamOptions(nonblocking=True)
        )
        self.buffer = machine.toolkit.cuda.Device(0).allocate(max(array.nbytes, 1), stream=self.stream)
        self.stream.sync()
        self._source = np.ascontiguousarray(array)
        source = machine.toolkit.cuda.Buffer.from_handle(self._source.ctypes.data, array.nbytes)
        self.buffer.copy_from(source, stream=self.stream)
        self.shape, self.dtype, self.strides, self._index = array.shape, array.dtype, strides, index

    def made(self):
        self.stream.sync()

    def __dlpack_device__(self):
        return (2, self._index)

    def close(self):
        self.stream.sync()
        self.buffer.close()
        self.stream.close()


@pytest.fixture
def tensor(machine):
    made = []

    def make(array, **options):
        made.append(Tensor(machine, array, **options))
        return made[-1]

    yield make
    for each in made:
        each.close()


def on_host(view):
    """Read a view as a device would."""
    last = sum((n - 1) * s for n, s in zip(view.shape, view.strides, strict=True)) + 1
    flat = bytes_at((view.ptr, last * view.dtype.itemsize)).view(view.dtype)
    strides = [s * view.dtype.itemsize for s in view.strides]
    return np.lib.stride_tricks.as_strided(flat, view.shape, strides).copy()


def test_outputs_stay_on_the_device_and_are_cut_there(open_bundle, double_model, monkeypatch):
    session = open_bundle(double_model, slots=1, **PADDED)
    labels = []
    submit = Stream.submit
    monkeypatch.setattr(Stream, "submit", lambda s, work: (labels.append(work.label), submit(s, work))[1])
    for batch in (3, 9, 3):
        labels.clear()
        with session.borrow({"x": np.full((batch, 4), batch, F)}, device=True) as views:
            assert list(views) == ["y"]
            assert views["y"].__dlpack_device__() == (2, 0)
            assert views["y"].shape == (batch, 4)
            assert (on_host(views["y"]) == 2 * batch).all()
        assert sum("a copy" in label for label in labels) == 1, "in, and not out"
        with pytest.raises(LeaseError, match="has ended"):
            views["y"]
    assert (session.run({"x": np.ones((2, 4), F)})["y"] == 2).all()
    assert session.stats.kept_views == 0


def test_an_input_on_the_device_is_read_after_its_owner_made_it(session, tensor):
    for number in range(3):
        given = tensor(np.full((3, 4), number, F))
        with session.borrow({"x": given}, device=True) as views:
            assert (on_host(views["y"]) == 2 * number).all()


def test_inputs_on_both_sides_meet(open_bundle, mix_model, tensor):
    session = open_bundle(mix_model, profiles=({"batch": (1, 2), "seq": (1, 8)},), slots=1)
    ones = np.ones((2, 3, 4), F)
    for a, b in ((tensor(ones), 2 * ones), (2 * ones, tensor(ones)), (tensor(ones), tensor(2 * ones))):
        with session.borrow({"a": a, "b": b}, ["z", "y"], device=True) as views:
            assert list(views) == ["z", "y"]
            assert (on_host(views["z"]) == 8).all()
            assert (on_host(views["y"]) == 3).all()
    assert (session.run({"a": ones, "b": ones})["z"] == 4).all()


@pytest.mark.parametrize(
    ("array", "options", "refusal"),
    [
        pytest.param(np.ones((2, 4)), {}, (RequestError, "dtype float64, but the model takes float32"), id="dtype"),
        pytest.param(np.ones((2, 5), F), {}, (RequestError, "axis 1 is 5"), id="shape"),
        pytest.param(np.ones((6, 4), F), {}, (RequestError, "batch=6, but this bundle serves"), id="size"),
        pytest.param(np.ones((2, 4), F), {"index": 1}, (EngineError, "lies on device 1, and the engine"), id="device"),
        pytest.param(np.ones((2, 4), F), {"strides": (1, 2)}, (EngineError, "not contiguous"), id="strides"),
    ],
)
def test_an_input_that_does_not_fit_is_refused(session, tensor, array, options, refusal):
    error, said = refusal
    with pytest.raises(error, match=said), session.borrow({"x": tensor(array, **options)}, device=True):
        pass
    assert (session.run({"x": np.ones((2, 4), F)}, timeout_s=0)["y"] == 2).all()


def test_an_input_on_the_device_is_never_padded(open_bundle, double_model, tensor):
    session = open_bundle(double_model, slots=1, **PADDED)
    with session.borrow({"x": tensor(np.ones((4, 4), F))}, device=True) as views:
        assert (on_host(views["y"]) == 2).all()
    wrong = session.borrow({"x": tensor(np.ones((3, 4), F))}, device=True)
    with pytest.raises(RequestError, match=r"lies on the device as \[3, 4\], and would be padded to \[4, 4\]"), wrong:
        pass


def test_a_kept_view_keeps_its_values_and_its_lane_comes_back(session):
    with (
        pytest.warns(KeptViewWarning, match="on the device outlived"),
        session.borrow({"x": np.full((2, 4), 5, F)}, device=True) as views,
    ):
        kept = views["y"]
    for number in range(3):
        assert (session.run({"x": np.full((2, 4), number, F)})["y"] == 2 * number).all()
    assert (on_host(kept) == 10).all()
    assert session.stats.device.lanes == 2
    assert session.stats.kept_views == 1
    del kept
    session._warned = False
    with pytest.warns(KeptViewWarning), session.borrow({"x": np.full((2, 4), 6, F)}, device=True) as views:
        kept = views["y"]
    assert (session.run({"x": np.ones((2, 4), F)})["y"] == 2).all()
    assert (on_host(kept) == 12).all()
    assert session.stats.device.lanes == 2, "the first one was free again"


def test_a_kept_view_outlives_its_session(make_bundle, double_model, machine):
    session = load(make_bundle(double_model, profiles=TWO), slots=1, arena=Arena())
    with pytest.warns(KeptViewWarning), session.borrow({"x": np.full((2, 4), 5, F)}, device=True) as views:
        kept = views["y"]
    session.close()
    assert (on_host(kept) == 10).all()
    assert [a.kind for a in machine.world.allocations if not a.freed] == ["device"]
    del kept
    gc.collect()
    assert not [a for a in machine.world.allocations if not a.freed]


def test_a_dropped_borrow_is_reclaimed(session):
    borrow = session.borrow({"x": np.ones((2, 4), F)}, device=True)
    views = borrow.__enter__()
    assert views["y"].shape == (2, 4)
    with pytest.raises(LeaseError, match="open already"):
        borrow.__enter__()
    with pytest.warns(LostLeaseWarning):
        del borrow
    assert (session.run({"x": np.ones((2, 4), F)}, timeout_s=0)["y"] == 2).all()
