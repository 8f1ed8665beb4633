"""A manifest whose parts contradict each other is refused when it is read, in one sentence."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from trtc.engines.consistency import contradictions
from trtc.engines.manifest import BuildRecord, Evidence, Execution, Manifest, Source
from trtc.engines.signature import Signature, TensorSpec
from trtc.profiles import Derived, Expr, Ladder, PadRule, Profile, Range, Step, Term

IDS = TensorSpec("ids", "int32", ("batch", "seq"))
HIDDEN = TensorSpec("hidden", "float", ("batch", Expr((Term(1, (Step("seq", 1, 1, 2),)),)), 4))
PADDED = PadRule("seq", "right", {"ids": 0})
ROWS = PadRule("batch", "rows", {})


def shown(kind, symbol, **options):
    return Evidence(kind=kind, symbol=symbol, accepted=True, runs=1, samples="made up", **options)


WHOLE = Manifest(
    schema="1.0",
    source=Source(sha256="0" * 64, size_bytes=1, ir_version=9, opsets={}),
    build=BuildRecord(key="1" * 64, trtc="0", libraries={}, machine={}, options={}),
    signature=Signature((IDS,), (HIDDEN,)),
    ladder=Ladder((Profile("p0", {"batch": Range(1, 4, 4), "seq": Range(1, 8, 8)}),)),
    execution=Execution(),
    engines=(),
    padding=(PADDED, ROWS),
    evidence=(shown("padding", "seq"), shown("rows", "batch"), shown("padding", "seq,batch")),
)


def changed(**parts):
    return msgspec.structs.replace(WHOLE, **parts)


def with_output(**parts):
    return changed(signature=Signature((IDS,), (replace(HIDDEN, **parts),)))


def by_zero():
    return ("batch", Expr((Term(1, (Step("seq", 1, 0, 0),)),)), 4)


def test_a_manifest_that_fits_together_is_taken():
    assert list(contradictions(WHOLE)) == []


def test_a_deviation_that_was_accepted_may_be_padded():
    deviating = msgspec.structs.replace(shown("padding", "seq"), accepted=False, deviation_accepted=True)
    assert list(contradictions(changed(evidence=(deviating, shown("rows", "batch"))))) == []


@pytest.mark.parametrize(
    ("manifest", "said"),
    [
        pytest.param(with_output(dims=("batch", "nope")), "output 'hidden': no input has an axis 'nope'", id="axis"),
        pytest.param(with_output(dims=by_zero()), "divides by less than 1", id="division"),
        pytest.param(with_output(dims=("batch", -4)), "an axis of size -4", id="negative"),
        pytest.param(with_output(dims=("batch",) * 65), "65 axes", id="rank"),
        pytest.param(with_output(dtype="lambda"), "'lambda' is no element type", id="dtype"),
        pytest.param(changed(signature=Signature((IDS, IDS), (HIDDEN,))), "two inputs have one name", id="names"),
        pytest.param(changed(evidence=()), "padding 'seq': no experiment confirmed it", id="no-evidence"),
        pytest.param(
            changed(evidence=(shown("padding", "seq"), shown("padding", "batch"))),
            "padding 'batch': no experiment confirmed it",
            id="other-evidence",
        ),
        pytest.param(
            changed(evidence=(msgspec.structs.replace(shown("padding", "seq"), accepted=False),), padding=(PADDED,)),
            "padding 'seq': no experiment confirmed it",
            id="refuted",
        ),
        pytest.param(changed(padding=(PADDED, PADDED)), "two rules pad one symbol", id="two-rules"),
        pytest.param(changed(padding=(PadRule("zz", "rows", {}),)), "no input has that axis", id="rule-symbol"),
        pytest.param(changed(padding=(PadRule("seq", "right", {}),)), "no fill for input 'ids'", id="no-fill"),
        pytest.param(changed(padding=(PadRule("seq", "right", {"ids": 2**31}),)), "is no int32", id="fill-size"),
        pytest.param(changed(padding=(PadRule("seq", "right", {"ids": 0.5}),)), "is no int32", id="fill-half"),
        pytest.param(changed(ladder=Ladder((Profile("p0", {"q": Range(1, 1, 1)}),))), "an axis 'q'", id="ladder"),
        pytest.param(changed(ladder=Ladder((Profile("p0", {"seq": Range(1, 2, 2**70)}),))), "larger than", id="huge"),
        pytest.param(changed(derived=(Derived("nope", "ones"),)), "derived input 'nope'", id="derived"),
        pytest.param(changed(execution=Execution(slots=-1)), "slots is -1", id="slots"),
        pytest.param(changed(execution=Execution(threads=-1)), "threads is -1", id="threads"),
    ],
)
def test_a_contradiction_is_named(manifest, said):
    assert said in "; ".join(contradictions(manifest))
