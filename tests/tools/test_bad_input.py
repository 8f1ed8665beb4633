"""What people get wrong when they prove and measure: one clear error and its exit code, before any work is done."""

from __future__ import annotations

import importlib.util

import click
import msgspec
import numpy as np
import pytest

from trtc.engines.bundle import write_bundle
from trtc.engines.host import this_host
from trtc.engines.manifest_file import read_manifest
from trtc.tools.cli import command
from trtc.tools.quantities import FiniteRange, WholeRange

SIZES = ("--sizes", "batch=1,seq=5")


@pytest.fixture
def elsewhere(bundle):
    """A bundle that was built for another kind of processor."""
    manifest = read_manifest(bundle)
    (record,) = manifest.engines
    needs = msgspec.structs.replace(record.requirements, architecture="other")
    engine = msgspec.structs.replace(record, requirements=needs)
    write_bundle(bundle, msgspec.structs.replace(manifest, engines=(engine,)), {})
    return bundle


@pytest.fixture
def say(trtc, built, encoder):
    def run(words, **names):
        return trtc(*(word.format(built=built, model=encoder, **names) for word in words))

    return run


def refused(said, code, *texts):
    assert (said.code, said.out) == (code, ""), said.err
    for text in texts:
        assert text in said.err
    assert "Traceback" not in said.err
    assert "measuring batch" not in said.err


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(("run", "{other}", *SIZES), id="run"),
        pytest.param(("bench", "{other}", *SIZES), id="bench"),
        pytest.param(("bench", "{built}", *SIZES, "--vs", "{other}"), id="bench-beside-it"),
        pytest.param(("compare", "{other}", "{model}"), id="compare"),
        pytest.param(("compare", "{built}", "{other}"), id="compare-with-it"),
        pytest.param(("diff", "{other}", "{built}"), id="diff-from"),
        pytest.param(("diff", "{built}", "{other}"), id="diff-to"),
    ],
)
def test_a_bundle_for_another_machine_does_not_fit_here(say, elsewhere, words):
    said = say(words, other=elsewhere)
    refused(said, 4, f"it was built for other, this host is {this_host().architecture}", "build it again here")


@pytest.mark.parametrize(
    ("words", "came"),
    [
        pytest.param(("run", "{built}", *SIZES, "--iterations", "0"), "0", id="run"),
        pytest.param(("bench", "{built}", *SIZES, "--iterations", "0"), "0", id="bench"),
        pytest.param(("compare", "{built}", "{model}", "--iterations", "0"), "0", id="compare"),
        pytest.param(("bench", "{built}", *SIZES, "--callers", "0"), "0", id="callers"),
        pytest.param(("bench", "{built}", *SIZES, "--random", "0"), "0", id="random-sizes"),
        pytest.param(("bench", "{built}", *SIZES, "--rate", "-3"), "-3", id="negative-rate"),
        pytest.param(("bench", "{built}", *SIZES, "--rate", "0"), "0", id="rate-of-nothing"),
        pytest.param(("bench", "{built}", *SIZES, "--duration", "-1"), "-1", id="negative-duration"),
        pytest.param(("bench", "{built}", *SIZES, "--warm-up", "-1"), "-1", id="negative-warm-up"),
        pytest.param(("diff", "{built}", "{built}", "--seconds", "-1"), "-1", id="negative-seconds"),
    ],
)
def test_nothing_and_less_than_nothing_cannot_be_measured(say, words, came):
    refused(say(words), 2, words[-2], came, "not in the range")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        pytest.param(("--rate", "fast"), "'fast' is not a number; write one above 0", id="rate"),
        pytest.param(("--duration", "1s"), "'1s' is not a number; write one of at least 0", id="duration"),
        pytest.param(("--duration", "nan"), "'nan' is not a finite number; write one of at least 0", id="nan"),
        pytest.param(("--seed", "abc"), "'abc' is not a whole number; write one of at least 0", id="seed"),
        pytest.param(("--threads", "2.5"), "'2.5' is not a whole number; write one of at least 1", id="threads"),
    ],
)
def test_what_is_no_number_is_answered_with_the_numbers_that_are_allowed(say, words, said):
    refused(say(("bench", "{built}", *SIZES, *words)), 2, f"'{words[0]}': {said}")


def test_bounds_on_both_sides_are_said_in_words():
    with pytest.raises(click.BadParameter, match="'fast' is not a whole number; write one from 0 to 5"):
        WholeRange(0, 5).convert("fast", None, None)


def test_every_number_of_every_verb_is_refused_in_the_same_words():
    """The types of click itself answer with their own names, such as "integer range"."""
    context = click.Context(command)
    verbs = {verb: command.get_command(context, verb) for verb in command.list_commands(context)}
    numbers = [
        (verb, option.name, option.type)
        for verb, found in verbs.items()
        for option in found.params
        if isinstance(option.type, (click.IntRange, click.FloatRange, type(click.INT), type(click.FLOAT)))
    ]
    assert len(numbers) > 20
    assert [n for n in numbers if not isinstance(n[2], (WholeRange, FiniteRange))] == []


@pytest.mark.parametrize(
    ("peer", "advice"),
    [("onnxruntime", "trtc[cpu]"), ("openvino", "trtc[openvino]"), ("torch", "pip install torch")],
)
def test_a_peer_that_is_not_installed_says_how_to_get_it(say, monkeypatch, peer, advice):
    found = importlib.util.find_spec
    monkeypatch.setattr("trtc.tools.bench.peers.find_spec", lambda name: None if name == peer else found(name))
    refused(say(("bench", "{built}", *SIZES, "--vs", peer)), 4, f"{peer} is not installed", advice)


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(("run", "{built}", "--inputs", "{sample}"), id="run"),
        pytest.param(("bench", "{built}", "--inputs", "{sample}"), id="bench"),
        pytest.param(("compare", "{built}", "{model}", "--samples", "{sample}"), id="compare"),
        pytest.param(("compare", "{built}", "{model}", "--load-inputs", "{sample}"), id="compare-loaded"),
        pytest.param(("diff", "{built}", "{built}", "--samples", "{sample}"), id="diff"),
        pytest.param(("verify", "{built}", "--model", "{model}", "--samples", "{sample}"), id="verify"),
        pytest.param(("build", "{model}", "-o", "{sample}.trtc", "--samples", "{sample}"), id="build"),
    ],
)
@pytest.mark.parametrize(
    ("ids", "mask", "texts"),
    [
        pytest.param((2, 3), (2, 4), ("attention_mask", "seq", "3", "4"), id="two-sizes-of-one-symbol"),
        pytest.param((2, 3, 1), (2, 3), ("input_ids", "[2, 3, 1]", "[batch, seq]"), id="rank"),
    ],
)
def test_samples_of_the_wrong_shape_are_refused(say, request_file, words, ids, mask, texts):  # noqa: PLR0917 (a table)
    sample = request_file(input_ids=np.zeros(ids, np.int64), attention_mask=np.zeros(mask, np.int64))
    refused(say(words, sample=sample), 2, *texts)


def test_the_last_size_of_a_grid_is_looked_at_before_the_first_is_measured(say):
    said = say(("bench", "{built}", "--grid", "batch=1,2", "seq=5,99"))
    refused(said, 2, "seq=99", "this bundle serves")
