"""What a call does, under the machine's limits; how long tensors live; what the machine did meanwhile."""

from __future__ import annotations

import pytest

from trtc.engines.profile import NodeRun, TensorShape
from trtc.tools.bench import limits as limits_file
from trtc.tools.bench.conditions import Moment, conditions_of, read_moment
from trtc.tools.bench.lifetimes import last_call, lived
from trtc.tools.bench.limits import Ceiling, Limits, roof_of, share_text, unreached
from trtc.tools.bench.node_work import Work, node_flop, work_of
from trtc.tools.bench.trace_summary import nodes_by_time


def node(op, inputs, output, name="n", start_us=0, dur_us=1, **counts):  # noqa: PLR0917 (a short way to write one)
    shapes = tuple(TensorShape("float", shape) for shape in inputs)
    out = (TensorShape("float", output),)
    sizes = {"read_bytes": 0, "weight_bytes": 0, "written_bytes": 0} | counts
    return NodeRun(name, op, start_us * 1000, dur_us * 1000, 1, shapes, out, **sizes)


@pytest.mark.parametrize(
    ("op", "inputs", "output", "flop"),
    [
        pytest.param("MatMul", [(2, 3), (3, 4)], (2, 4), 2 * 2 * 3 * 4, id="product"),
        pytest.param("MatMul", [(5, 2, 3), (3, 4)], (5, 2, 4), 5 * 2 * 2 * 3 * 4, id="product-of-a-batch"),
        pytest.param("MatMul", [(2, 3)], (2, 4), 2 * 2 * 3 * 4, id="weights-not-told"),
        pytest.param("Gemm", [(3, 2), (4, 3)], (2, 4), 2 * 2 * 3 * 4, id="transposed"),
        pytest.param("Conv", [(1, 3, 8, 8), (16, 3, 3, 3)], (1, 16, 8, 8), 2 * 16 * 64 * 27, id="convolution"),
        pytest.param("Conv", [(1, 4, 8, 8), (4, 1, 3, 3)], (1, 4, 8, 8), 2 * 4 * 64 * 9, id="depthwise"),
        pytest.param("MatMul", [(3,), (3, 4)], (4,), 2 * 3 * 4, id="vector"),
        pytest.param("LSTM", [(7, 2, 5), (1, 12, 5), (1, 12, 3)], (7, 1, 2, 3), 2 * 14 * (60 + 36), id="lstm"),
        pytest.param("Relu", [(2, 3)], (2, 3), 6, id="elementwise"),
        pytest.param("Reshape", [(2, 3), (1,)], (6,), 0, id="moves-nothing"),
    ],
)
def test_operations_are_counted_by_the_formula_of_their_kind(op, inputs, output, flop):
    assert node_flop(node(op, inputs, output)) == flop


def test_a_lookup_reads_what_it_returns_and_not_its_table():
    gather = node("Gather", [(1000, 8), (2,)], (2, 8), read_bytes=16, weight_bytes=32000, written_bytes=64)
    add = node("Add", [(2, 8), (2, 8)], (2, 8), read_bytes=128, written_bytes=64)
    assert work_of([gather, add]) == Work(16, 64 + 64 + 128 + 64)


def test_a_call_is_bound_by_the_limit_that_its_intensity_meets_first():
    limits = Limits(flop_per_s=100.0, bytes_per_s=10.0)
    low, high = roof_of(Work(50, 10), 1.0, limits), roof_of(Work(400, 10), 8.0, limits)
    assert (low.bound, low.roof_flop_per_s, low.roof_share) == ("memory", 50.0, 1.0)
    assert (high.bound, high.roof_flop_per_s, high.roof_share) == ("arithmetic", 100.0, 0.5)
    assert (high.flop_share, high.bytes_share) == (0.5, 0.125)


def test_a_share_clearly_above_a_limit_is_none_and_the_reason_is_said():
    """Beyond 10 % the limit was not reached when it was measured; bytes may be served by caches."""
    limits = Limits(flop_per_s=100.0, bytes_per_s=10.0)
    fast, cached, near = (roof_of(Work(flop, moved), 1.0, limits) for flop, moved in ((415, 10), (60, 50), (109, 10)))
    assert (fast.flop_share, fast.roof_share, fast.bytes_share) == (None, None, 1.0)
    assert (cached.flop_share, cached.bytes_share, cached.roof_share) == (0.6, None, None)
    assert (near.flop_share, near.roof_share) == (1.09, 1.09)
    assert [share_text(share) for share in (None, 0.415)] == ["-", "41.5%"]
    assert unreached([near]) == []
    (arithmetic,), (memory,) = unreached([near, fast]), unreached([cached])
    assert "the limit was not reached when it was measured" in arithmetic
    assert "caches served" in memory


@pytest.fixture
def trials(monkeypatch):
    """What trials find, one after the other; the last one again and again."""
    found = []
    monkeypatch.setattr(limits_file, "_trial", lambda _: Limits(*([found.pop(0) if len(found) > 1 else found[0]] * 2)))
    return found


def test_limits_are_the_best_of_trials_that_go_on_until_several_find_no_more(trials, clock):
    trials[:] = [60.0, 50.0, 40.0, 90.0, 30.0, 252.0, 100.0]
    ceiling = Ceiling(clock)
    ceiling.settle()
    assert ceiling.limits == Limits(252.0, 252.0)
    assert trials == [100.0]


def test_a_later_trial_that_finds_more_counts_and_one_that_finds_less_does_not(trials, clock):
    trials[:] = [60.0]
    ceiling = Ceiling(clock)
    ceiling.settle()
    trials[:] = [252.0]
    assert ceiling.look()
    trials[:] = [20.0]
    assert not ceiling.look()
    assert ceiling.limits == Limits(252.0, 252.0)


def test_trials_that_always_find_more_end(trials, clock):
    trials[:] = [2.0**i for i in range(100)]
    Ceiling(clock).settle()
    assert len(trials) == 100 - limits_file.MOST


def test_a_tensor_lives_from_its_node_to_its_last_reader():
    nodes = [
        node("A", [(1,)], (100,), "a", 0, 2),
        node("B", [(100,)], (1,), "b", 2, 2),
        node("C", [(100,), (1,)], (2,), "c", 4, 6),
    ]
    edges = {"a": (["x"], ["t"]), "b": (["t"], ["u"]), "c": (["t", "u"], ["y"])}
    found = {tensor.name: tensor for tensor in lived(nodes, edges)}
    assert found["t"].last_read_by == "c"
    assert found["t"].seconds == pytest.approx(10e-6)
    assert found["u"].seconds == pytest.approx(8e-6)
    assert found["y"].last_read_by == "the caller"
    assert sum(tensor.share for tensor in found.values()) == pytest.approx(1)
    assert next(iter(found)) == "t"


def test_the_last_call_begins_with_the_first_node():
    names = ["a", "b", "a", "b", "c"]
    assert [n.name for n in last_call([node("X", [], (1,), name) for name in names])] == ["a", "b", "c"]


def test_nodes_are_added_up_and_the_longest_comes_first():
    found = nodes_by_time(
        [node("A", [], (1,), "a", dur_us=1), node("B", [], (1,), "b", dur_us=6), node("A", [], (1,), "a", dur_us=3)]
    )
    assert [(t.name, t.runs, t.share) for t in found] == [("b", 1, 0.6), ("a", 2, 0.4)]


def moment(**changed):
    fields = dict.fromkeys(("frequency_mhz", "thermal_events", "quota_throttled_s", "load", "governor"))
    return Moment(**(fields | changed))


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        pytest.param({"load": 6.0}, {}, "6 processes wanted 2 processors", id="busy"),
        pytest.param({"thermal_events": 3}, {"thermal_events": 4}, "slowed by its temperature", id="hot"),
        pytest.param({"quota_throttled_s": 1.0}, {"quota_throttled_s": 1.5}, "held this process for 0.5 s", id="quota"),
        pytest.param({"frequency_mhz": 3000.0}, {"frequency_mhz": 2000.0}, "fell from 3000 to 2000 MHz", id="clock"),
    ],
)
def test_what_disturbs_figures_is_said(before, after, words):
    (warning,) = conditions_of(moment(**before), moment(**after), processors=2).warnings
    assert words in warning


def test_a_quiet_machine_gives_no_warning():
    quiet = moment(load=0.5, thermal_events=3, quota_throttled_s=1.0, frequency_mhz=3000.0)
    assert conditions_of(quiet, quiet, processors=2).warnings == ()
    assert conditions_of(moment(), moment(), processors=2).warnings == ()


def test_the_state_of_the_machine_is_read_from_its_files(tmp_path):
    for i, khz in enumerate((2000000, 3000000)):
        folder = tmp_path / f"sys/devices/system/cpu/cpu{i}"
        (folder / "cpufreq").mkdir(parents=True)
        (folder / "thermal_throttle").mkdir()
        (folder / "cpufreq/scaling_cur_freq").write_text(f"{khz}\n")
        (folder / "cpufreq/scaling_governor").write_text("powersave\n")
        (folder / "thermal_throttle/core_throttle_count").write_text("2\n")
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/loadavg").write_text("0.75 0.5 0.1 1/2 3\n")
    (tmp_path / "proc/self/cgroup").write_text("0::/mine\n")
    (tmp_path / "sys/fs/cgroup/mine").mkdir(parents=True)
    (tmp_path / "sys/fs/cgroup/mine/cpu.stat").write_text("usage_usec 5\nthrottled_usec 2500000\n")
    assert read_moment(tmp_path) == Moment(2500.0, 4, 2.5, 0.75, "powersave")


def test_a_machine_that_tells_nothing_is_no_error(tmp_path):
    assert read_moment(tmp_path) == moment()
