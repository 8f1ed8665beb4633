"""Every rule that the simulator enforces, broken on purpose; and the right way beside it."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from simulator import BreachError
from simulator.world import bytes_at

F = np.float32


def floats(buffer, count):
    return bytes_at((buffer.handle, 4 * count)).view(F)


def breach(text):
    return pytest.raises(BreachError, match=text)


def test_a_run_that_keeps_every_rule_is_right_once_it_was_waited_for(bench):
    x, y, host = bench.memory(32), bench.memory(32), bench.pinned(32)
    context = bench.context()
    context.set_tensor_address("x", x.handle)
    context.set_tensor_address("y", y.handle)
    floats(host, 8)[:] = np.arange(8)
    x.copy_from(host, stream=bench.stream)
    context.execute_async_v3(bench.stream.handle)
    out = bench.pinned(32)
    out.copy_from(y, stream=bench.stream)
    assert not np.array_equal(floats(out, 8), 2 * np.arange(8)), "nothing is done before somebody waits"
    bench.stream.sync()
    np.testing.assert_array_equal(floats(out, 8), 2 * np.arange(8))


def test_an_engine_that_nobody_built_is_refused(bench):
    assert bench.runtime.deserialize_cuda_engine(b"another") is None


def test_a_thread_needs_a_current_device(bench):
    found = []

    def work():
        for use in (bench.stream.sync, bench.pinned, bench.memory, bench.context, bench.new_stream):
            try:
                use()
            except BreachError as error:
                found.append("without a current device" in str(error))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [True] * 5


def test_a_device_that_is_not_there(bench):
    with breach("device 7 is not there"):
        bench.cuda.Device(7)


def test_sizes_outside_of_the_profile(bench):
    context = bench.context(profile=1)
    with breach("outside of profile 1"):
        context.set_input_shape("x", (1, 4))
    with breach("outside of profile 1"):
        context.set_input_shape("x", (2, 4, 1))


def test_a_profile_that_is_not_there(bench):
    with breach("profile 2 is not there"):
        bench.bare_context().set_optimization_profile_async(2, bench.stream.handle)


def test_sizes_before_the_profile(bench):
    with breach("before the profile"):
        bench.bare_context().set_input_shape("x", (1, 4))


def test_a_run_before_the_change_of_profile_was_waited_for(bench):
    context = bench.context()
    context.set_optimization_profile_async(1, bench.stream.handle)
    context.set_input_shape("x", (2, 4))
    with breach("before the change of profile was waited for"):
        context.execute_async_v3(bench.stream.handle)


def test_one_profile_at_a_time(bench):
    context = bench.context()
    context.execute_async_v3(bench.stream.handle)
    with breach("changed its profile while its run is pending"):
        context.set_optimization_profile_async(1, bench.stream.handle)


def test_a_change_of_profile_forgets_the_sizes(bench):
    context = bench.context()
    context.set_optimization_profile_async(1, bench.stream.handle)
    bench.stream.sync()
    with breach("without the sizes"):
        context.execute_async_v3(bench.stream.handle)


@pytest.mark.parametrize("change", ["sizes", "address", "scratch"])
def test_a_context_is_left_alone_while_its_run_is_pending(bench, change):
    context = bench.context()
    memory = bench.memory(4096)
    context.execute_async_v3(bench.stream.handle)
    with breach("while its run is pending"):
        if change == "sizes":
            context.set_input_shape("x", (3, 4))
        elif change == "address":
            context.set_tensor_address("x", memory.handle)
        else:
            context.set_device_memory(memory.handle, 4096)


def test_every_address_is_set(bench):
    context = bench.bare_context()
    context.set_device_memory(bench.memory(4096).handle, 4096)
    context.set_optimization_profile_async(0, bench.stream.handle)
    bench.stream.sync()
    context.set_input_shape("x", (1, 4))
    context.set_tensor_address("x", bench.memory().handle)
    with breach("without an address of y"):
        context.execute_async_v3(bench.stream.handle)


@pytest.mark.parametrize(
    ("address", "said"),
    [
        pytest.param(lambda _: 0, "at address 0", id="null"),
        pytest.param(lambda bench: bench.memory().handle + 64, "not aligned to 256", id="unaligned"),
        pytest.param(lambda bench: bench.pinned().handle, "not in device memory", id="host"),
        pytest.param(lambda _: np.zeros(4096).ctypes.data // 256 * 256 + 256, "not in device memory", id="unknown"),
    ],
)
def test_addresses_are_aligned_and_on_the_device(bench, address, said):
    context = bench.bare_context()
    with breach(said):
        context.set_tensor_address("x", address(bench))


def test_scratch_is_given_aligned_and_large_enough(bench):
    context = bench.bare_context()
    memory = bench.memory(8192)
    with breach("without a profile, or without scratch"):
        context.execute_async_v3(bench.stream.handle)
    with breach("scratch that is not aligned"):
        context.set_device_memory(memory.handle + 64, 4096)
    with breach("100 bytes of scratch, and 2000 are needed"):
        context.set_device_memory(memory.handle, 100)
    with breach("reach beyond their allocation"):
        context.set_device_memory(memory.handle, 9000)


def test_contexts_that_own_their_scratch_are_not_made(bench):
    with breach("allocates its own scratch"):
        bench.engine.create_execution_context(bench.engine.create_runtime_config())
    with breach("allocates its own scratch"):
        bench.engine.create_execution_context()


def test_scratch_is_shared_on_one_stream_and_never_by_two(bench):
    scratch = bench.memory(4096)
    one, two = bench.context(scratch=scratch), bench.context(scratch=scratch)
    one.execute_async_v3(bench.stream.handle)
    two.execute_async_v3(bench.stream.handle)
    bench.stream.sync()
    one.execute_async_v3(bench.stream.handle)
    with breach("uses memory that another stream works on: a run"):
        two.execute_async_v3(bench.other.handle)


def test_memory_that_a_stream_works_on_is_not_touched_by_another(bench):
    a, b, c = (bench.memory() for _ in range(3))
    a.copy_from(b, stream=bench.stream)
    c.copy_from(b, stream=bench.other)  # two readers
    with breach("another stream works on"):
        c.copy_from(a, stream=bench.other)
    with breach("another stream works on"):
        b.copy_from(c, stream=bench.other)


@pytest.mark.parametrize("side", ["source", "target"])
def test_host_memory_is_left_alone_while_a_copy_is_pending(bench, side):
    device, host = bench.memory(), bench.pinned()
    if side == "source":
        device.copy_from(host, stream=bench.stream)
    else:
        host.copy_from(device, stream=bench.stream)
    floats(host, 4)[:] = 7
    with breach("host memory was written while a copy of 1024 bytes was pending"):
        bench.stream.sync()


def test_results_are_not_there_before_the_stream_was_waited_for(bench):
    device, host = bench.memory(32), bench.pinned(32)
    floats(host, 8)[:] = 1
    host.copy_from(device, stream=bench.stream)
    assert (bytes_at((host.handle, 32)) == 0xCD).all(), "what was there is gone as well"


def test_freed_memory_is_not_used(bench):
    memory = bench.memory()
    view = bench.cuda.Buffer.from_handle(memory.handle, 1024)
    address = memory.handle
    memory.close()
    with breach("was freed"):
        view.copy_from(bench.memory(), stream=bench.stream)
    with breach("was freed"):
        bench.bare_context().set_tensor_address("x", address)
    with breach("used after it was closed"):
        _ = memory.handle


def test_memory_is_not_freed_while_work_on_it_is_pending(bench):
    a, b = bench.memory(), bench.memory()
    a.copy_from(b, stream=bench.stream)
    for buffer in (a, b):
        with breach("freed while a copy of 1024 bytes is pending"):
            type(buffer)(bench.world, buffer.handle, 1024, bench.world.find((buffer.handle, 1))).close()


def test_memory_belongs_to_its_stream_until_that_was_waited_for(bench):
    fresh = bench.memory(ready=False)
    old = bench.memory()
    again = bench.memory(ready=False)
    fresh.copy_from(old, stream=bench.other)  # waited for meanwhile
    with breach("before the stream that allocates it was waited for"):
        again.copy_from(old, stream=bench.other)


def test_a_copy_has_one_size_and_stays_inside(bench):
    with breach("a copy of 1024 bytes into 512"):
        bench.memory(512).copy_from(bench.memory(), stream=bench.stream)
    view = bench.cuda.Buffer.from_handle(bench.memory().handle, 4096)
    with breach("reach beyond their allocation"):
        view.copy_from(bench.memory(4096), stream=bench.stream)
    with breach("over address 0"):
        bench.cuda.Buffer.from_handle(0, 1)


def test_a_captured_run_is_repeated_by_its_graph(bench):
    context = bench.context()
    context.execute_async_v3(bench.stream.handle)
    bench.stream.sync()
    graph = bench.capture(context)
    floats(_at(context, "x"), 8)[:] = 3
    graph.launch(bench.stream)
    bench.stream.sync()
    assert (floats(_at(context, "y"), 8) == 6).all()


class _Place:
    def __init__(self, handle):
        self.handle = handle


def _at(context, name):
    return _Place(context._addresses[name])


@pytest.mark.parametrize(
    ("use", "said"),
    [
        pytest.param(lambda bench: bench.memory(), "allocating device memory while a graph", id="device-memory"),
        pytest.param(lambda bench: bench.pinned(), "allocating pinned memory while a graph", id="pinned-memory"),
        pytest.param(lambda bench: bench.bare_context(), "making a context while a graph", id="context"),
        pytest.param(lambda bench: bench.stream.sync(), "waited for while it is captured", id="sync"),
        pytest.param(
            lambda bench: bench.other.create_graph_builder().begin_building("thread_local"), "capturing while"
        ),
    ],
)
def test_nothing_is_allocated_or_waited_for_while_a_graph_is_captured(bench, use, said):
    builder = bench.stream.create_graph_builder().begin_building("thread_local")
    with breach(said):
        use(bench)
    builder.end_building()


def test_a_capture_does_not_forbid_other_threads_anything(bench):
    with breach("in mode 'relaxed'"):
        bench.stream.create_graph_builder().begin_building()


def test_a_context_runs_once_before_it_is_captured(bench):
    context = bench.context()
    with breach("a capture before the first run at these sizes"):
        bench.capture(context)


def test_a_graph_is_not_launched_after_its_context_changed(bench):
    context = bench.context()
    context.execute_async_v3(bench.stream.handle)
    bench.stream.sync()
    graph = bench.capture(context)
    context.set_input_shape("x", (3, 4))
    with breach("launched after its context had changed"):
        graph.launch(bench.stream)


def test_a_graph_is_not_launched_after_its_context_or_itself_is_gone(bench):
    context = bench.context()
    context.execute_async_v3(bench.stream.handle)
    bench.stream.sync()
    graph = bench.capture(context)
    del context
    with breach("a context went before its graph"):
        graph.launch(bench.stream)
    graph.close()
    with breach("launched after it was closed"):
        graph.launch(bench.stream)


def test_builders_are_used_in_order(bench):
    builder = bench.stream.create_graph_builder()
    with breach("nothing is captured"):
        builder.end_building()
    with breach("before its capture ended"):
        builder.complete()
    builder.begin_building("thread_local")
    with breach("closed while it captures"):
        builder.close()
    builder.end_building()


def test_a_context_lives_until_its_run_was_waited_for(bench):
    context = bench.context()
    context.execute_async_v3(bench.stream.handle)
    del context
    with breach("went while its run was pending"):
        bench.stream.sync()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_engines_go_before_runtimes_and_contexts_before_engines(bench):
    context = bench.bare_context()
    with breach("an engine went before its contexts"):
        bench.engine.__del__()
    del context
    bench.engine.__del__()
    bench.runtime = None
    with breach("a runtime went before its engine"):
        bench.engine.__del__()


def test_streams_are_ours_open_and_idle_at_the_end(bench):
    context = bench.context()
    with breach("no such stream: 0x0; the default one"):
        context.execute_async_v3(0)
    bench.memory().copy_from(bench.memory(), stream=bench.other)
    with breach("closed while a copy of 1024 bytes is pending"):
        bench.other.close()
    bench.other.sync()
    bench.other.close()
    with breach("used after it was closed"):
        bench.other.sync()
    with breach("waits for the default one"):
        bench.device.create_stream(options=bench.cuda.StreamOptions(nonblocking=False))


def test_shapes_are_known_after_infer_shapes_only(bench):
    context = bench.context()
    assert context.get_tensor_shape("y") == (2, 4)
    context.set_input_shape("x", (3, 4))
    with breach("asked for before infer_shapes"):
        context.get_tensor_shape("y")
    assert bench.bare_context().infer_shapes() == ["x"]


def test_kernels_are_not_compiled_beside_requests_and_graphs_have_one_owner(bench):
    config = bench.engine.create_runtime_config()
    config.set_execution_context_allocation_strategy(bench.trt.ExecutionContextAllocationStrategy.USER_MANAGED)
    with breach("compiled beside the requests"):
        bench.engine.create_execution_context(config)
    config.cuda_graph_strategy = bench.trt.CudaGraphStrategy.WHOLE_GRAPH_CAPTURE
    with breach("two parties capture"):
        bench.engine.create_execution_context(config)


def test_memory_runs_out_where_it_is_limited(bench):
    bench.world.device_bytes = 0
    with pytest.raises(MemoryError, match="OUT_OF_MEMORY"):
        bench.memory()
