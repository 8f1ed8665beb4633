"""What messages of the library become: nodes, causes, memory. No library takes part."""

from __future__ import annotations

import msgspec
import pytest

from trtc.engines.build import NodeProblem, unheard
from trtc.engines.target import parse_target
from trtc.engines.tensorrt.explain import failure_error
from trtc.engines.tensorrt.isolate import isolate
from trtc.engines.tensorrt.job import Bounds, BuildJob, BuildOutcome, Failure, LogLine, ProfileJob
from trtc.engines.tensorrt.locate import located
from trtc.engines.tensorrt.log import error_texts, scratch_bytes, unused_inputs, weights_bytes
from trtc.profiles import HostError, ModelError, UsageError

RTX = parse_target("rtx:sm86,sm89")
OPERATORS = {"p2o.MatMul.0": "MatMul", "nms": "NonMaxSuppression", "/layer.0/Add": "Add"}


def failure(*messages: str) -> Failure:
    return Failure("build", tuple(NodeProblem("", "", message) for message in messages))


@pytest.mark.parametrize(
    ("message", "node"),
    [
        ("Cannot compile operation 'p2o.MatMul.0' for Turing (SM75): FP32 GEMM is not supported.", "p2o.MatMul.0"),
        ("Assertion failed. nms_0 has no runners that implement it", "nms"),
        ("In /layer.0/Add: something", "/layer.0/Add"),
        ("nothing of the sort, not even nmss", ""),
    ],
)
def test_the_node_is_found_by_the_name_of_its_layer(message, node):
    found = located(failure(message), OPERATORS).problems[0]
    assert (found.node, found.operator) == (node, OPERATORS.get(node, ""))


@pytest.mark.parametrize(
    ("message", "error", "said"),
    [
        ("OutOfMemory (Requested size was 10 bytes.)", UsageError, "give more, such as --workspace 1G"),
        ("no tactics to implement the operation within workspace limit", UsageError, "--workspace"),
        ("Cannot compile 'a' for Turing (SM75)", ModelError, "leave sm75 out"),
        ("a_0 has no runners that implement it", ModelError, "no kernel for it"),
        ("something that nobody has seen", ModelError, "trtc build MODEL --target cpu"),
    ],
)
def test_an_error_has_the_message_the_causes_and_what_to_do_next(message, error, said):
    found = failure_error(RTX, failure(message), "profile p1: it fails alone")
    assert type(found) is error
    for part in ("target rtx:sm86,sm89", "(profile p1: it fails alone)", message, "likely: ", "next: ", said):
        assert part in str(found)


def test_a_host_that_lacks_the_library_is_no_fault_of_the_model():
    problem = NodeProblem("", "", "tensorrt_rtx cannot be imported")
    assert isinstance(failure_error(RTX, Failure("host", (problem,))), HostError)


def lines(*texts: str, severity: str = "INFO") -> tuple[LogLine, ...]:
    return tuple(LogLine(severity, text) for text in texts)


def test_memory_is_read_for_each_profile_or_not_at_all():
    log = lines(
        "Total Device Persistent Memory: 8 bytes", "Total Activation Memory: 100 bytes",
        "Total Device Persistent Memory: 0 bytes", "Total Activation Memory: 200 bytes",
        "Total Weights Memory: 7 bytes",
    )  # fmt: skip
    assert scratch_bytes(log, 2) == (108, 200)
    assert scratch_bytes(log, 3) == ()
    assert weights_bytes(log) == 7
    assert weights_bytes(()) is None


def test_errors_leave_out_the_echo_of_nodes_and_the_missing_driver():
    log = lines(
        "ModelImporter.cpp:140: While parsing node number 0", "the cause",
        "Cuda Runtime (CUDA driver version is insufficient)", "the cause", severity="ERROR",
    )  # fmt: skip
    assert error_texts(log) == ("the cause",)


def test_unused_inputs_are_read_from_both_messages():
    log = lines("Unused Input: a b", "[RemoveDeadLayers] Input Tensor c is unused or used only at compile-time, but")
    assert unused_inputs(log) == ("a b", "c")


class TestIsolate:
    job = BuildJob(
        "lib", "m", profiles=tuple(ProfileJob(f"p{i}", {"x": Bounds((i,), (i,), (i,))}) for i in range(3)),
        compute_capabilities=("sm86", "sm89"),
    )  # fmt: skip

    def isolated(self, tmp_path, fails, stage="build"):
        ran = []

        def run(job, _log, _tell):
            ran.append(job)
            return BuildOutcome("1", failure("its own") if fails(job) else None)

        first = msgspec.structs.replace(failure("all of them"), stage=stage)
        return (*isolate(self.job, first, tmp_path, unheard, run), ran)

    def test_one_capability(self, tmp_path):
        where, own, ran = self.isolated(tmp_path, lambda job: "sm86" in job.compute_capabilities)
        assert where == "compute capability sm86: it fails alone, the others build"
        assert str(own.problems[0]) == "its own"
        assert all(len(job.profiles) == 1 for job in ran)

    def test_one_profile(self, tmp_path):
        names = lambda job: [p.name for p in job.profiles]  # noqa: E731
        where, _, _ = self.isolated(tmp_path, lambda job: "p2" in names(job))
        assert where == "profile p2: it fails alone, the others build"

    def test_two_profiles(self, tmp_path):
        where, _, _ = self.isolated(tmp_path, lambda job: job.profiles[0].name != "p1")
        assert where == "profile p0 and profile p2: each fails alone, the others build"

    def test_nothing_is_blamed_where_everything_fails_alike_or_nothing_alone(self, tmp_path):
        for every in (True, False):
            where, own, _ = self.isolated(tmp_path, lambda _, every=every: every)
            assert (where, str(own.problems[0])) == ("", "all of them")

    def test_a_model_that_does_not_parse_is_not_built_again(self, tmp_path):
        where, _, ran = self.isolated(tmp_path, lambda _: True, stage="parse")
        assert (where, ran) == ("", [])
