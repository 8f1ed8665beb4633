"""An engine is verified in every profile, exact and padded, and a wrong one fails."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from trtc.compiler.execute import run_call
from trtc.compiler.probes.padding import probe_padding
from trtc.compiler.tolerance import Tolerance
from trtc.compiler.verify import Padding, VerifyOptions, verify_engine
from trtc.compiler.verify_points import verify_points
from trtc.engines.errors import EngineError
from trtc.engines.manifest import Evidence, ValueDomain
from trtc.engines.onnxruntime.load import open_graph
from trtc.engines.route import plan_route
from trtc.engines.signature import TensorSpec
from trtc.profiles import PadRule, UsageError

node = helper.make_node
BY_S = ("B", "S")
RULE = PadRule("S", "right", {"x": 0, "mask": 0})


@pytest.fixture(scope="module")
def masked_sum(small_case, ladder_of, make_mask):
    """Build y = sum(x * mask * w) for each row."""
    return small_case(
        [
            node("Cast", ["mask"], ["m"], to=TensorProto.FLOAT),
            node("Mul", ["x", "m"], ["kept"]),
            node("Mul", ["kept", "w"], ["weighted"]),
            node("ReduceSum", ["weighted", "axes"], ["y"], keepdims=0),
        ],
        {"x": ("float", BY_S), "mask": ("int64", BY_S)},
        {"y": ("float", ("B",))},
        {"w": np.float32([[2.0]]), "axes": np.array([1])},
        ladder=ladder_of({"B": (1, 4), "S": (1, 8)}, {"B": (1, 4), "S": (9, 32)}),
        make={"mask": make_mask},
    )


@pytest.fixture(scope="module")
def open_engine(tmp_path_factory):
    """Open a model as an ONNX Runtime engine, with one weight changed where the test says so."""
    engines = []

    def build(proto, changed: str | None = None, by: float = 0.0):
        altered = onnx.ModelProto()
        altered.CopyFrom(proto)
        for tensor in altered.graph.initializer:
            if tensor.name == changed:
                array = numpy_helper.to_array(tensor).copy()
                array.reshape(-1)[0] += by
                tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
        path = tmp_path_factory.mktemp("engine") / "model.onnx"
        onnx.save(altered, str(path))
        engine = open_graph(path, 1)
        engines.append(engine)
        return engine

    yield build
    for engine in engines:
        engine.close()


def test_a_right_engine_passes_in_every_profile_exact_and_padded(masked_sum, open_engine):
    evidence = probe_padding(masked_sum.subject, masked_sum.reference, [RULE])
    results = verify_engine(
        open_engine(masked_sum.proto), masked_sum.subject, [masked_sum.reference], Padding((RULE,), evidence)
    )
    assert [(r.profile, r.mode) for r in results] == [
        ("p0", "exact"),
        ("p0", "padded"),
        ("p1", "exact"),
        ("p1", "padded"),
    ]
    assert all(r.ran and r.passed and r.runs >= 3 and r.worst is not None for r in results)


def test_min_opt_and_max_of_each_profile_are_run(masked_sum, open_engine):
    seen = []

    class Watching:
        name = "watching"

        def run(self, feeds):
            seen.append(feeds["x"].shape)
            return masked_sum.reference.run(feeds)

    verify_engine(open_engine(masked_sum.proto), masked_sum.subject, [Watching()])
    assert {(1, 1), (4, 8), (1, 9), (4, 32)} <= set(seen)


@pytest.mark.parametrize("padding", [Padding(), Padding((RULE,))])
def test_one_changed_weight_fails_everywhere_it_is_looked_at(masked_sum, open_engine, padding):
    engine = open_engine(masked_sum.proto, changed="w", by=0.01)
    results = verify_engine(engine, masked_sum.subject, [masked_sum.reference], padding)
    assert results
    for result in results:
        assert (result.ran, result.passed) == (True, False)
        assert result.worst.output == "y"
        assert result.worst.max_abs > result.worst.allowed
        assert "output 'y': differs by" in result.detail


def test_one_changed_weight_of_a_sentence_encoder_fails(minilm, ladder_of, open_engine):
    case = minilm(ladder_of({"b": (1, 2), "s": (1, 16)}))
    name = next(t.name for t in case.proto.graph.initializer if t.name.endswith("LayerNorm.weight"))
    good = verify_engine(open_engine(case.proto), case.subject, [case.reference])
    bad = verify_engine(open_engine(case.proto, changed=name, by=0.5), case.subject, [case.reference])
    assert all(r.passed for r in good)
    assert not any(r.passed for r in bad)


def test_padding_that_is_not_exact_fails_in_padded_mode_only(masked_sum, open_engine):
    wrong = PadRule("S", "right", {"x": 5, "mask": 1})
    results = verify_engine(
        open_engine(masked_sum.proto), masked_sum.subject, [masked_sum.reference], Padding((wrong,))
    )
    assert {(r.mode, r.passed) for r in results} == {("exact", True), ("padded", False)}


def test_an_accepted_deviation_is_verified_against_the_reference_padded_alike(masked_sum, open_engine):
    wrong = PadRule("S", "right", {"x": 5, "mask": 1}, accept_error=True)
    evidence = probe_padding(masked_sum.subject, masked_sum.reference, [wrong])
    padding = Padding((wrong,), evidence)
    good = verify_engine(open_engine(masked_sum.proto), masked_sum.subject, [masked_sum.reference], padding)
    assert all(r.passed for r in good)
    assert any("padded alike" in r.detail for r in good if r.mode == "padded")
    engine = open_engine(masked_sum.proto, changed="w", by=0.01)
    assert not any(r.passed for r in verify_engine(engine, masked_sum.subject, [masked_sum.reference], padding))


def test_without_time_nothing_passes_and_the_budget_is_said(masked_sum, open_engine):
    results = verify_engine(
        open_engine(masked_sum.proto), masked_sum.subject, [masked_sum.reference], options=VerifyOptions(budget_s=0)
    )
    for result in results:
        assert (result.ran, result.passed, result.runs) == (False, False, 0)
        assert "were not run: the time budget was used up" in result.detail
        assert "nothing was compared" in result.detail


def test_however_short_the_time_every_profile_is_looked_at_once(masked_sum, open_engine):
    results = verify_engine(
        open_engine(masked_sum.proto), masked_sum.subject, [masked_sum.reference], options=VerifyOptions(budget_s=1e-9)
    )
    assert {r.profile for r in results} == {p.name for p in masked_sum.subject.ladder.profiles}
    assert all(r.passed and r.runs == 1 for r in results)


def test_a_slow_second_reference_is_cut_off_alone(masked_sum, open_engine):
    options = VerifyOptions(further_budget_s=0)
    engine = open_engine(masked_sum.proto)
    results = verify_engine(engine, masked_sum.subject, [masked_sum.reference, masked_sum.reference], options=options)
    assert [(r.profile, r.passed) for r in results] == [("p0", True), ("p0", False), ("p1", True), ("p1", False)]


class Picky:
    """A reference that runs short requests only."""

    name = "picky"

    def __init__(self, inner, longest):
        self.inner, self.longest = inner, longest

    def run(self, feeds):
        if feeds["x"].shape[1] > self.longest:
            raise EngineError("too long for me")
        return self.inner.run(feeds)


def test_sizes_that_a_reference_cannot_run_are_counted(masked_sum, open_engine):
    engine = open_engine(masked_sum.proto)
    first, second = verify_engine(engine, masked_sum.subject, [Picky(masked_sum.reference, 7)])
    assert (first.passed, first.runs) == (True, 3)
    assert "the reference could not run 1 of 4 points" in first.detail
    assert "too long for me" in first.detail
    assert (second.ran, second.passed, second.runs) == (False, False, 0)


class Failing:
    """An engine that cannot run at all."""

    def prepare(self, bucket, slot):
        del bucket, slot
        raise EngineError("no such kernel")

    def close(self):
        """Nothing to free."""


def test_an_engine_that_fails_where_the_reference_runs_does_not_pass(masked_sum):
    for result in verify_engine(Failing(), masked_sum.subject, [masked_sum.reference]):
        assert (result.ran, result.passed) == (True, False)
        assert "the engine failed where the reference ran" in result.detail
        assert "no such kernel" in result.detail


def test_an_engine_that_fails_where_the_reference_fails_too_proves_nothing(masked_sum):
    for result in verify_engine(Failing(), masked_sum.subject, [Picky(masked_sum.reference, 0)]):
        assert (result.ran, result.passed) == (False, False)


def test_values_that_the_model_refuses_do_not_count_against_the_engine_with_a_tolerant_reference(masked_sum):
    references = [Picky(masked_sum.reference, 0), masked_sum.reference]
    for result in verify_engine(Failing(), masked_sum.subject, references):
        assert (result.ran, result.passed, result.runs) == (False, False, 0)


def test_values_that_the_model_refuses_are_drawn_again(small_case, open_engine):
    """A divisor of 0 is refused; of the values that are drawn, few are without one."""
    case = small_case(
        [node("Div", ["x", "y"], ["z"])],
        {"x": ("int64", (3,)), "y": ("int64", (3,))},
        {"z": ("int64", (3,))},
        make={"y": lambda shape, rng: rng.integers(0, 2, shape)},
    )
    (found,) = verify_engine(open_engine(case.proto), case.subject, [case.reference], options=VerifyOptions(seed=1))
    assert (found.passed, found.runs, found.detail) == (True, 1, "")


def test_open_ranges_are_run_at_listed_sizes(small_case, open_engine):
    case = small_case([node("Neg", ["x"], ["y"])], {"x": ("float", BY_S)}, {"y": ("float", BY_S)})
    (result,) = verify_engine(
        open_engine(case.proto), case.subject, [case.reference], options=VerifyOptions(open_sizes=(1, 6, 40))
    )
    assert (result.mode, result.passed, result.runs) == ("exact", True, 3)


def test_open_sizes_of_many_symbols_together_do_not_outgrow_memory(small_case, open_engine):
    """Eight symbols at 17 each would be seven thousand million elements."""
    axes = tuple("abcdefgh")
    case = small_case([node("Neg", ["x"], ["y"])], {"x": ("float", axes)}, {"y": ("float", axes)})
    options = VerifyOptions(open_sizes=(1, 2, 17, 64))
    (result,) = verify_engine(open_engine(case.proto), case.subject, [case.reference], options=options)
    assert (result.passed, result.runs) == (True, 2)


def test_beside_a_large_open_size_a_closed_one_is_halved_and_every_open_size_is_run(small_case, ladder_of):
    """A batch of 64 with 512 tokens of 1024 floats would be 134 million elements."""
    dims = ("B", "S", 1024)
    ladder = ladder_of({"B": (0, None), "S": (1, 512)})
    case = small_case([node("Neg", ["x"], ["y"])], {"x": ("float", dims)}, {"y": ("float", dims)}, ladder=ladder)
    sizes = [point.sizes for point in verify_points(case.subject, (), VerifyOptions())["p0", "exact"]]
    assert [size["B"] for size in sizes] == [0, 1, 2, 3, 5, 8, 17, 33, 64]
    assert all(1 <= size["S"] <= 512 and 2 * size["B"] * size["S"] * 1024 <= 2**21 for size in sizes)
    assert max(size["S"] for size in sizes) == 512


def test_an_upper_end_is_run_beside_small_sizes_where_every_row_was_halved(small_case, ladder_of):
    """Two rows of 2048 tokens of 1024 floats are already too many to run beside every open size."""
    dims = ("B", "S", 1024)
    ladder = ladder_of({"B": (0, None), "S": (1, 2048)})
    case = small_case([node("Neg", ["x"], ["y"])], {"x": ("float", dims)}, {"y": ("float", dims)}, ladder=ladder)
    sizes = [point.sizes for point in verify_points(case.subject, (), VerifyOptions())["p0", "exact"]]
    assert [size for size in sizes if size["S"] == 2048 and size["B"]] == [{"B": 1, "S": 2048}]


def test_padded_runs_beside_open_sizes_do_not_outgrow_memory(small_case, ladder_of):
    """A batch of 64 padded to 2048 tokens of 1024 floats would be 268 million elements, however short its rows are."""
    dims = ("B", "S", 1024)
    ladder = ladder_of({"B": (0, None), "S": (1, 2048)})
    case = small_case([node("Neg", ["x"], ["y"])], {"x": ("float", dims)}, {"y": ("float", dims)}, ladder=ladder)
    points = verify_points(case.subject, (RULE,), VerifyOptions())["p0", "padded"]
    assert {point.run_sizes["S"] for point in points} == {2048}
    assert all(2 * point.run_sizes["B"] * 2048 * 1024 <= 2**26 for point in points)
    assert max(point.run_sizes["B"] for point in points) == 8


def test_closed_sizes_stay_as_they_are(small_case, ladder_of):
    dims = ("B", "S", 1024)
    ladder = ladder_of({"B": (1, 64), "S": (1, 512)})
    case = small_case([node("Neg", ["x"], ["y"])], {"x": ("float", dims)}, {"y": ("float", dims)}, ladder=ladder)
    points = verify_points(case.subject, (), VerifyOptions())["p0", "exact"]
    assert {"B": 64, "S": 512} in [point.sizes for point in points]


def test_real_samples_are_run_exact_and_padded(masked_sum, open_engine):
    sample = {"x": np.full((3, 5), 1e3, np.float32), "mask": np.ones((3, 5), np.int64)}
    subject = replace(masked_sum.subject, samples=(sample,))
    seen = []

    class Watching:
        name = "watching"

        def run(self, feeds):
            seen.append(bool(np.all(feeds["x"] == 1e3)))
            return masked_sum.reference.run(feeds)

    results = verify_engine(open_engine(masked_sum.proto), subject, [Watching()], Padding((RULE,)))
    assert all(r.passed for r in results)
    assert seen.count(True) == 2


def test_padded_requests_outside_the_value_domain_are_not_held_against_the_engine(masked_sum, open_engine):
    domain = {"x": ValueDomain(low=0.0, high=1e-9)}
    evidence = Evidence(kind="padding", symbol="S", accepted=True, runs=1, samples="", domain=domain)
    results = verify_engine(
        open_engine(masked_sum.proto), masked_sum.subject, [masked_sum.reference], Padding((RULE,), (evidence,))
    )
    padded = [r for r in results if r.mode == "padded"]
    assert padded
    for result in padded:
        assert (result.ran, result.passed) == (False, False)
        assert "outside the padded value domain" in result.detail


def test_the_tolerance_decides(masked_sum, open_engine):
    engine = open_engine(masked_sum.proto, changed="w", by=0.01)
    options = VerifyOptions(tolerance=Tolerance(rtol=0.1))
    assert all(r.passed for r in verify_engine(engine, masked_sum.subject, [masked_sum.reference], options=options))


def test_verification_needs_a_reference(masked_sum):
    with pytest.raises(UsageError, match="needs a reference"):
        verify_engine(Failing(), masked_sum.subject, [])


def test_inputs_that_no_node_reads_are_not_sent_to_the_engine(small_case, open_engine):
    case = small_case([node("Neg", ["x"], ["y"])], {"x": ("float", BY_S)}, {"y": ("float", BY_S)})
    unread = TensorSpec("unread", "float", ("B",), used=False)
    signature = replace(case.subject.signature, inputs=(*case.subject.signature.inputs, unread))
    subject = replace(case.subject, signature=signature, values=replace(case.subject.values, signature=signature))

    class Dropping:
        name = "dropping"

        def run(self, feeds):
            assert feeds["unread"].ndim == 1
            return case.reference.run({"x": feeds["x"]})

    (result,) = verify_engine(open_engine(case.proto), subject, [Dropping()])
    assert result.passed


def test_one_call_pads_trims_and_returns_outputs_that_the_caller_owns(masked_sum, open_engine):
    feeds = {"x": np.float32([[1, 2, 3]]), "mask": np.array([[1, 1, 0]])}
    route = plan_route(masked_sum.subject.signature, [RULE], {"B": 1, "S": 3}, {"B": 1, "S": 8})
    outputs = run_call(open_engine(masked_sum.proto), route, feeds)
    assert outputs["y"].tolist() == [6.0]
    assert outputs["y"].flags.owndata


def test_one_call_takes_strings_and_returns_outputs_that_the_data_sizes(small_case, open_engine):
    case = small_case(
        [node("NonZero", ["x"], ["places"]), node("Identity", ["names"], ["same"]), node("Neg", ["x"], ["y"])],
        {"x": ("float", ("N",)), "names": ("string", ("M",))},
        {"y": ("float", ("N",)), "places": ("int64", (1, None)), "same": ("string", ("M",))},
    )
    feeds = {"x": np.float32([0, 4, 5]), "names": np.array(["a", "é"], object)}
    sizes = {"N": 3, "M": 2}
    outputs = run_call(open_engine(case.proto), plan_route(case.subject.signature, [], sizes, sizes), feeds)
    assert outputs["y"].tolist() == [0, -4, -5]
    assert outputs["places"].tolist() == [[1, 2]]
    assert outputs["same"].tolist() == ["a", "é"]
