"""What an engine on a device does beside giving right answers: contexts, graphs, copies, memory, kernels, failures.

On the simulator, with engines that TensorRT for RTX really built.
"""

from __future__ import annotations

import gc
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier

import numpy as np
import pytest
import tensorrt_lean
from onnx import TensorProto

from simulator import Machine
from simulator.runtime_api import RtxExecutionContext
from simulator.streams import GraphBuilder, Stream
from trtc.engines.build import ValueBounds
from trtc.engines.gpu import GpuSurvey
from trtc.engines.layout import plan_layout
from trtc.engines.memory import array_at, host_slot
from trtc.engines.tensorrt.load import load_engine
from trtc.profiles import PadRule
from trtc.runtime import Arena, CancelledError, CancelToken, EngineError, HostError, load

ENGINE_KINDS = ["rtx"]
F = np.float32
TWO = ({"batch": (1, 4)}, {"batch": (8, 16)})
PADDED = {"profiles": TWO, "padding": (PadRule("batch", "rows", {}),), "mode": "bucket"}


def x(number, batch=2):
    return {"x": np.full((batch, 4), number, F)}


def device(session):
    found = session.stats.device
    assert found is not None
    return found


@pytest.fixture
def submitted(monkeypatch):
    """Labels of everything that is submitted to a stream, in order."""
    labels = []
    submit = Stream.submit

    def note(stream, work):
        labels.append(work.label)
        submit(stream, work)

    monkeypatch.setattr(Stream, "submit", note)
    return labels


def test_profiles_that_alternate_keep_one_context_and_one_graph_each(open_bundle, double_model, submitted):
    session = open_bundle(double_model, slots=1, **PADDED)
    for _ in range(2):
        for batch in (2, 9, 3, 16, 10, 4):  # A, B, A, B, B, A
            assert (session.run(x(batch, batch))["y"] == 2 * batch).all()
    assert (device(session).contexts, device(session).graphs, device(session).without_graph) == (2, 2, 0)
    submitted.clear()
    session.run(x(1, 2))
    session.run(x(1, 9))
    assert submitted == [
        *("a copy of 64 bytes", "a graph of a run", "a copy of 64 bytes"),
        *("a copy of 256 bytes", "a graph of a run", "a copy of 256 bytes"),
    ], "no change of profile, one copy each way"


def test_each_slot_has_its_own_stream_contexts_and_scratch(open_bundle, double_model, machine):
    session = open_bundle(double_model, slots=3, **PADDED)
    with session.borrow(x(1)), session.borrow(x(2)), session.borrow(x(3)):
        pass
    assert device(session).lanes == 3
    assert device(session).contexts == 3
    assert len(machine.world.streams) == 3 + 1, "and one for housekeeping"


def test_all_sizes_that_are_no_bucket_take_turns_in_one_context_without_graph(open_bundle, double_model):
    session = open_bundle(double_model, profiles=TWO, slots=1)
    for batch in (1, 2, 3, 2, 8, 9, 15, 1):
        assert (session.run(x(batch, batch))["y"] == 2 * batch).all()
    assert (device(session).contexts, device(session).graphs) == (2, 0)
    session.run(x(1, 4))
    session.run(x(1, 16))
    assert (device(session).contexts, device(session).graphs) == (4, 2), "buckets have their own"


def test_inputs_go_over_in_one_copy_and_outputs_come_back_in_one(open_bundle, mix_model, submitted):
    session = open_bundle(mix_model, profiles=({"batch": (1, 2), "seq": (1, 8)},), slots=1)
    feeds = {name: np.ones((2, 3, 4), F) for name in "ab"}
    session.run(feeds)
    submitted.clear()
    session.run(feeds)
    assert submitted == ["a copy of 352 bytes", "a run", "a copy of 328 bytes"], "256 and 96 bytes; 256 and 72"


def test_a_slot_that_is_aligned_for_a_processor_only_works_with_more_copies(open_bundle, mix_model, submitted):
    session = open_bundle(mix_model, profiles=({"batch": (1, 2), "seq": (1, 8)},), slots=1)
    layout = plan_layout(session.signature, {"batch": 2, "seq": 3})
    slot = host_slot(layout.size_bytes)
    for place in layout.inputs.values():
        array_at(slot.buffer, place)[...] = 2
    call = session._engine.prepare(layout, slot)
    for _ in range(2):
        submitted.clear()
        call.enqueue()
        assert call.wait() == {}
        assert (array_at(slot.buffer, layout.outputs["y"]) == 4).all()
        assert (array_at(slot.buffer, layout.outputs["z"]) == 16).all()
    assert submitted == ["a copy of 96 bytes"] * 2 + ["a run", "a copy of 96 bytes", "a copy of 72 bytes"]
    del call


def test_enqueue_returns_at_once_and_calls_of_several_slots_are_in_flight_together(open_bundle, double_model, machine):
    session = open_bundle(double_model, profiles=TWO, slots=2)
    layout = plan_layout(session.signature, {"batch": 2}, 256)
    slots = [host_slot(layout.size_bytes) for _ in range(2)]
    calls = [session._engine.prepare(layout, slot) for slot in slots]
    for number, (slot, call) in enumerate(zip(slots, calls, strict=True), 1):
        array_at(slot.buffer, layout.inputs["x"])[...] = number
        call.enqueue()
    assert sum(bool(stream.pending) for stream in machine.world.streams.values()) == 2
    for number, (slot, call) in enumerate(zip(slots, calls, strict=True), 1):
        assert not (array_at(slot.buffer, layout.outputs["y"]) == 2 * number).all()
        call.wait()
        assert (array_at(slot.buffer, layout.outputs["y"]) == 2 * number).all()
    del calls, call


def test_a_thread_that_never_saw_the_device_can_call(open_bundle, double_model):
    session = open_bundle(double_model, slots=1, **PADDED)
    session.run(x(1))
    with ThreadPoolExecutor(1) as pool:
        assert (pool.submit(session.run, x(3)).result()["y"] == 6).all()


def test_many_threads_on_several_slots_get_their_own_answers(open_bundle, double_model):
    session = open_bundle(double_model, slots=3, **PADDED)
    barrier = Barrier(6)

    def work(number):
        barrier.wait()
        for turn in range(60):
            batch = (1, 9, 4, 16)[turn % 4]
            y = session.run(x(number, batch))["y"]
            assert y.shape == (batch, 4)
            assert (y == 2 * number).all()

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))
    assert device(session).contexts <= 3 * 2


@pytest.mark.parametrize("options", [PADDED, {"profiles": TWO}], ids=["bucket", "exact"])
def test_nothing_is_allocated_anywhere_after_warm_up(open_bundle, double_model, machine, options):
    session = open_bundle(double_model, slots=2, **options)

    def mixed():
        for batch in (1, 4, 8, 16, 9, 3):
            session.run(x(batch, batch))
            with session.borrow(x(batch, batch)), session.borrow(x(1, batch)):
                pass

    mixed()
    before = (session.stats.arena.allocations, device(session).allocations, len(machine.world.allocations))
    contexts = device(session).contexts
    for _ in range(20):
        mixed()
    assert before == (session.stats.arena.allocations, device(session).allocations, len(machine.world.allocations))
    assert device(session).contexts == contexts


def test_memory_is_known_and_taken_when_the_bundle_is_loaded(open_bundle, double_model):
    session = open_bundle(double_model, slots=3, **PADDED)
    stats = device(session)
    assert [(p.profile, p.slot_bytes, p.scratch_bytes) for p in stats.profiles] == [
        ("p0", 512, 1000),
        ("p1", 512, 2000),
    ]
    assert stats.lane_bytes == 512 + 2000
    assert stats.in_use_bytes == 3 * (512 + 2048)
    assert (stats.lanes, stats.contexts) == (3, 0)
    assert stats.device == "GPU 0 (Simulated, sm89)"
    session.run(x(1, 16))
    assert device(session).in_use_bytes == stats.in_use_bytes


def test_a_device_without_enough_memory_fails_at_load_with_the_figures(make_bundle, double_model, machine):
    machine.world.device_bytes = 2 * 2**20
    path = make_bundle(double_model, profiles=({"batch": (1, 70_000)},))
    with pytest.raises(HostError, match=r"GPU 0 .* refuses \d+ bytes .*OUT_OF_MEMORY.*load with fewer slots"):
        load(path, slots=2, arena=Arena())


def test_the_device_is_chosen_by_index_or_uuid(make_bundle, double_model, machine):
    path = make_bundle(double_model, profiles=TWO)
    uuid = machine.survey.gpus[1].uuid
    for wish, index in ((None, 0), (1, 1), ("cuda:1", 1), (uuid, 1)):
        with load(path, device=wish, slots=1, arena=Arena()) as session:
            assert device(session).device.startswith(f"GPU {index} ")
            assert session.run(x(2))["y"].sum() == 32


def test_without_a_driver_nothing_of_the_library_is_touched(make_bundle, double_model, monkeypatch):
    path = make_bundle(double_model, profiles=TWO)
    with load(path, slots=1, arena=Arena()) as session:
        opening = session._loaded
        files = {file.path: path / file.path for file in opening.record.files}

    def touched(_):
        raise AssertionError

    monkeypatch.setattr("trtc.engines.tensorrt.load.open_toolkit", touched)
    monkeypatch.setattr("trtc.engines.gpu.survey_gpus", lambda: GpuSurvey(reason="no NVIDIA driver"))
    from trtc.engines.opening import Opening

    wanted = Opening(
        files=files, record=opening.record, signature=opening.manifest.signature, ladder=opening.manifest.ladder
    )
    with pytest.raises(HostError, match="no GPU can be used here: no NVIDIA driver"):
        load_engine(wanted)


@pytest.mark.parametrize("how", ["the-engine", "the-driver", "the-run"])
def test_a_bucket_that_cannot_be_captured_runs_without_a_graph(open_bundle, double_model, monkeypatch, how):
    def refuse(*_):
        raise RuntimeError("CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED")

    if how == "the-engine":
        monkeypatch.setattr(RtxExecutionContext, "is_stream_capturable", lambda *_: False)
    elif how == "the-driver":
        monkeypatch.setattr(GraphBuilder, "complete", refuse)
    else:
        run = RtxExecutionContext.execute_async_v3

        def run_outside(context, handle):
            return False if context._stream(handle).recorded is not None else run(context, handle)

        monkeypatch.setattr(RtxExecutionContext, "execute_async_v3", run_outside)
    session = open_bundle(double_model, slots=1, **PADDED)
    for number in range(4):
        for batch in (3, 9):
            assert (session.run(x(number, batch))["y"] == 2 * number).all()
    assert (device(session).graphs, device(session).without_graph) == (0, 2)


def test_a_run_that_is_interrupted_is_waited_for_before_its_slot_is_free(
    open_bundle, double_model, machine, monkeypatch
):
    session = open_bundle(double_model, profiles=TWO, slots=1)
    session.run(x(1))
    sync = Stream.sync
    interrupts = [KeyboardInterrupt]

    def interrupted(stream):
        if interrupts and stream.pending:
            raise interrupts.pop()
        sync(stream)

    monkeypatch.setattr(Stream, "sync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        session.run(x(5))
    assert not any(stream.pending for stream in machine.world.streams.values())
    assert (session.run(x(7))["y"] == 14).all()


@pytest.mark.parametrize("refused", [True, False], ids=["refused", "raises"])
def test_a_failed_submission_leaves_the_slot_usable(open_bundle, double_model, machine, monkeypatch, refused):
    session = open_bundle(double_model, profiles=TWO, slots=1)
    run = RtxExecutionContext.execute_async_v3

    def fail(context, _):
        if refused:
            context._engine._runtime()._logger.log(context._trt.real.ILogger.Severity.ERROR, "bad luck")
            return False
        raise RuntimeError("bad luck")

    monkeypatch.setattr(RtxExecutionContext, "execute_async_v3", fail)
    with pytest.raises(EngineError, match=r"running the engine: .*bad luck"):
        session.run(x(1))
    assert not any(stream.pending for stream in machine.world.streams.values())
    monkeypatch.setattr(RtxExecutionContext, "execute_async_v3", run)
    assert (session.run(x(2))["y"] == 4).all()


def test_a_cancelled_run_is_waited_for_and_its_results_are_not_handed_out(open_bundle, double_model, monkeypatch):
    session = open_bundle(double_model, slots=1, **PADDED)
    token = CancelToken()
    sync = Stream.sync

    def cancel(stream):
        if stream.pending:
            token.cancel()
        sync(stream)

    monkeypatch.setattr(Stream, "sync", cancel)
    with pytest.raises(CancelledError):
        session.run(x(1), cancel=token)
    monkeypatch.setattr(Stream, "sync", sync)
    assert (session.run(x(2), cancel=CancelToken())["y"] == 4).all()
    with pytest.raises(CancelledError, match="before it started"):
        session.run(x(1), cancel=token)


def reshaped(graphs):
    """``y = Expand(x, shape)``: sizes follow from the values of an input, which the library reads on the host."""
    return graphs.model(
        [graphs.node("Expand", ["x", "shape"], ["y"])],
        [graphs.value("x", ("n", 1)), graphs.value("shape", (2,), TensorProto.INT64)],
        [graphs.value("y", (None, None))],
    )


def widths(most):
    return ({"shape": ValueBounds((1, 1), (4, 4), (4, most))},)


def test_outputs_that_values_size_come_from_a_pool_that_keeps_what_is_hot(open_bundle, graphs, machine):
    session = open_bundle(reshaped(graphs), profiles=({"n": (1, 4)},), shape_values=widths(64), slots=1)
    for turn in range(12):
        width = (8, 60)[turn % 2]
        feeds = {"x": np.full((3, 1), turn, F), "shape": np.array([3, width])}
        y = session.run(feeds)["y"]
        assert y.shape == (3, width)
        assert (y == turn).all()
        if turn == 1:
            before = len(machine.world.allocations)
    pool = device(session).pool
    assert (pool.misses, pool.hits, pool.in_use_bytes) == (2, 6 + 12 - 2, 0), "small first, as the library may ask"
    assert pool.held_bytes == 256 + 768
    assert len(machine.world.allocations) == before
    assert device(session).graphs == 0


def test_a_late_output_without_memory_is_an_error_and_the_next_call_is_right(open_bundle, graphs, machine):
    session = open_bundle(reshaped(graphs), profiles=({"n": (1, 4)},), shape_values=widths(2**20), slots=1)
    small = {"x": np.ones((2, 1), F), "shape": np.array([2, 4])}
    assert session.run(small)["y"].sum() == 8
    machine.world.device_bytes = 0
    with pytest.raises(HostError, match="refuses"):
        session.run({"x": np.ones((2, 1), F), "shape": np.array([2, 2**20])})
    assert session.run(small)["y"].sum() == 8


def test_a_view_that_is_kept_costs_no_lane(open_bundle, double_model):
    session = open_bundle(double_model, slots=2, **PADDED)
    kept = []
    for number in range(5):
        session._warned = True
        with session.borrow(x(number)) as views:
            kept.append(views["y"])
    assert [int(view[0, 0]) for view in kept] == [0, 2, 4, 6, 8]
    assert device(session).lanes == 2
    kept.clear()


def test_a_session_that_is_dropped_leaves_nothing_on_the_device(make_bundle, double_model, machine):
    session = load(make_bundle(double_model, **PADDED), slots=2, arena=Arena())
    session.run(x(1))
    gc.disable()
    try:
        del session
        assert [a.kind for a in machine.world.allocations if not a.freed] == []
    finally:
        gc.enable()


def test_kernels_are_kept_for_the_next_start_and_not_taken_from_a_folder_of_others(
    make_bundle, double_model, tmp_path, monkeypatch
):
    monkeypatch.setenv("TRTC_CACHE_DIR", str(tmp_path))
    path = make_bundle(double_model, **PADDED)
    folder = tmp_path / "kernels"

    def run():
        with load(path, slots=1, arena=Arena()) as session:
            session.run(x(1))
            return session._engine._opened.cache.loaded

    assert not run()
    (file,) = folder.iterdir()
    assert "EAGER" in file.read_text()
    assert run()
    for text in ("kernels\nof another version\nx", ""):
        file.write_text(text)
        assert not run()
    assert run(), "what did not fit was replaced"
    folder.chmod(0o777)
    assert not run()
    folder.chmod(0o700)


def test_full_tensorrt_has_no_kernels_to_keep_and_captures_all_the_same(
    make_bundle, double_model, engine_store, monkeypatch
):
    lean = Machine(tensorrt_lean, engine_store)
    lean.install(monkeypatch)
    with load(make_bundle(double_model, **PADDED), slots=1, arena=Arena()) as session:
        for number in range(3):
            assert (session.run(x(number))["y"] == 2 * number).all()
        assert device(session).graphs == 1
        assert session._engine._opened.cache is None
    gc.collect()
    lean.leave()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"inputs": 0}, "it has 'x', which the manifest does not know"),
        ({"inputs": "name"}, "it has no input 'z'"),
        ({"outputs": "dtype"}, "'y' is FLOAT there, and int64 in the manifest"),
        ({"ladder": 1}, "the engine has 2 profiles, its manifest says 1"),
    ],
)
def test_an_engine_that_does_not_fit_its_manifest_is_refused(make_bundle, double_model, change, said):
    from trtc.engines.opening import Opening

    path = make_bundle(double_model, profiles=TWO)
    with load(path, slots=1, arena=Arena()) as session:
        record, manifest = session._loaded.record, session.manifest
    signature, ladder = manifest.signature, manifest.ladder
    if change.get("inputs") == 0:
        signature = replace(signature, inputs=())
    elif "inputs" in change:
        signature = replace(signature, inputs=(replace(signature.inputs[0], name="z"),))
    elif "outputs" in change:
        signature = replace(signature, outputs=(replace(signature.outputs[0], dtype="int64"),))
    else:
        ladder = replace(ladder, profiles=ladder.profiles[:1])
    files = {file.path: path / file.path for file in record.files}
    with pytest.raises(EngineError, match=f"{said}.*rebuild the bundle"):
        load_engine(Opening(files=files, record=record, signature=signature, ladder=ladder))


def test_an_engine_that_the_library_refuses_says_why(make_bundle, double_model, machine):
    path = make_bundle(double_model, profiles=TWO)
    machine.toolkit.trt.store = type(machine.toolkit.trt.store)()
    with pytest.raises(EngineError, match=r"opening the engine with tensorrt_rtx .* refuses: no such engine was built"):
        load(path, slots=1, arena=Arena())


def test_an_engine_that_is_closed_in_the_middle_of_a_run_waits_for_it(open_bundle, double_model, machine):
    session = open_bundle(double_model, profiles=TWO, slots=1)
    layout = plan_layout(session.signature, {"batch": 2}, 256)
    slot = host_slot(layout.size_bytes)
    array_at(slot.buffer, layout.inputs["x"])[...] = 3
    call = session._engine.prepare(layout, slot)
    call.enqueue()
    session._engine.close()
    assert (array_at(slot.buffer, layout.outputs["y"]) == 6).all()
    assert not machine.world.streams.keys() - {session._loaded.engine.traits.map_memory.__self__._housekeeping.handle}
    del call


def test_a_closed_engine_says_so(open_bundle, double_model):
    session = open_bundle(double_model, profiles=TWO, slots=1)
    engine = session._engine
    session.close()
    assert engine.device_stats() is None
    with pytest.raises(EngineError, match="the engine was closed"):
        engine.prepare(plan_layout(session.signature, {"batch": 1}), host_slot(512))
    with pytest.raises(EngineError, match="the engine was closed"):
        engine.reserve(1)
    engine.close()


def test_a_backend_is_imported_without_its_libraries_and_without_those_of_the_compiler():
    code = """
        import sys, trtc.runtime, trtc.engines.tensorrt.load
        names = ("onnx", "onnxruntime", "torch", "trtc.compiler", "tensorrt_rtx", "tensorrt", "cuda", "ml_dtypes")
        print([name for name in names if name in sys.modules])
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "[]\n"
