"""What ``--target`` says."""

from __future__ import annotations

import pytest

from trtc.engines.registry import BACKENDS, backend_named
from trtc.engines.target import KINDS, RTX_CAPABILITIES, parse_target, parse_targets
from trtc.profiles import UsageError


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_word_names_a_backend_that_is_there(kind):
    assert parse_target(kind.name).text == kind.name
    assert backend_named(parse_target(kind.name).backend) in BACKENDS


@pytest.mark.parametrize(
    ("text", "capabilities", "spelled"),
    [
        ("rtx", (), "rtx"),
        ("rtx:sm89", ("sm89",), "rtx:sm89"),
        ("rtx:sm120,sm86,sm89", ("sm86", "sm89", "sm120"), "rtx:sm86,sm89,sm120"),
    ],
)
def test_capabilities_have_one_spelling_whatever_their_order(text, capabilities, spelled):
    target = parse_target(text)
    assert (target.compute_capabilities, target.text, target.name) == (capabilities, spelled, spelled)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("rtxx", "did you mean 'rtx'"),
        ("", "unknown target ''"),
        ("rtx:", "unknown compute capability ''"),
        ("rtx:89", "did you mean 'sm89'"),
        ("rtx:SM89", "did you mean 'sm89'"),
        ("rtx:sm90", "rtx is built for sm75, sm80, sm86, sm89, sm120, sm121"),
        ("rtx:sm89,sm89", "sm89 stands there twice"),
        ("rtx:sm89, sm120", "unknown compute capability ' sm120'"),
        ("tensorrt:sm90", "TensorRT builds for the GPU of the machine that builds; write --target tensorrt"),
        ("cpu:sm89", "write --target cpu"),
    ],
)
def test_what_is_no_target_says_what_is(text, said):
    with pytest.raises(UsageError) as caught:
        parse_target(text)
    assert said in str(caught.value)


def test_the_same_target_twice_is_refused_in_any_spelling():
    with pytest.raises(UsageError, match="rtx:sm86,sm89 was given twice"):
        parse_targets(["rtx:sm86,sm89", "cpu", "rtx:sm89,sm86"])


def test_the_capabilities_are_those_of_the_library():
    trt = pytest.importorskip("tensorrt_rtx")
    there = {name.lower() for name in trt.ComputeCapability.__members__ if name.startswith("SM")}
    assert there == set(RTX_CAPABILITIES)
