"""The manifest: one spelling, strict reading, every field described."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import re
import sys
import types
import typing
from pathlib import Path
from typing import Any, Literal, Union

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trtc.engines import manifest as schema
from trtc.engines.checksum import sealed
from trtc.engines.consistency import contradictions
from trtc.engines.errors import BundleError
from trtc.engines.manifest import (
    BlobFile,
    BuildRecord,
    CostRecord,
    EngineRecord,
    Evidence,
    Execution,
    Finding,
    Manifest,
    PlanRecord,
    Requirements,
    Source,
    ValueDomain,
)
from trtc.engines.manifest_json import MAX_MANIFEST_BYTES, decode_manifest, encode_manifest
from trtc.engines.signature import Signature, TensorSpec
from trtc.profiles import Derived, Expr, Ladder, PadRule, Profile, Range, Step, Term
from trtc.profiles.cost import CostModel, HeldOut

PAGE = Path(__file__).parents[2] / "docs" / "bundle-format.md"

TINY = Manifest(
    schema="1.0",
    source=Source(sha256="ab" * 32, size_bytes=120, ir_version=10, opsets={"": 17}),
    build=BuildRecord(key="cd" * 32, trtc="0.1.0", libraries={"onnx": "1.18.0"}, machine={}, options={}),
    signature=Signature(
        (TensorSpec("x", "float", ("batch", "w")),),
        (TensorSpec("y", "float", ("batch", Expr((Term(1, (Step("w", 1, 3, 8),)),)), None)),),
    ),
    ladder=Ladder((Profile("p0", {"w": Range(1, 64, 256), "batch": Range(0, None, None)}),), (0.002,)),
    execution=Execution(slots=2, threads=1),
    engines=(
        EngineRecord(
            name="cpu-0",
            backend="onnxruntime",
            target="cpu",
            precision="model",
            entry=f"blobs/{'ef' * 32}.onnx",
            files=(BlobFile(path=f"blobs/{'ef' * 32}.onnx", size_bytes=7, sha256="ef" * 32),),
            requirements=Requirements(system="Linux"),
            verified=True,
        ),
    ),
    padding=(PadRule("w", "right", {"x": 0}),),
)

GOLDEN = b"""{
  "schema": "1.0",
  "source": {
    "sha256": "abababababababababababababababababababababababababababababababab",
    "size_bytes": 120,
    "ir_version": 10,
    "opsets": {
      "": 17
    }
  },
  "build": {
    "key": "cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd",
    "trtc": "0.1.0",
    "libraries": {
      "onnx": "1.18.0"
    },
    "machine": {},
    "options": {}
  },
  "signature": {
    "inputs": [
      {
        "name": "x",
        "dtype": "float",
        "dims": [
          "batch",
          "w"
        ],
        "used": true,
        "has_default": false,
        "alias": ""
      }
    ],
    "outputs": [
      {
        "name": "y",
        "dtype": "float",
        "dims": [
          "batch",
          {
            "terms": [
              {
                "coef": 1,
                "steps": [
                  {
                    "symbol": "w",
                    "mul": 1,
                    "add": 3,
                    "div": 8
                  }
                ]
              }
            ],
            "const": 0
          },
          null
        ],
        "used": true,
        "has_default": false,
        "alias": ""
      }
    ]
  },
  "ladder": {
    "profiles": [
      {
        "name": "p0",
        "ranges": {
          "batch": {
            "min": 0,
            "opt": null,
            "max": null
          },
          "w": {
            "min": 1,
            "opt": 64,
            "max": 256
          }
        }
      }
    ],
    "cost_s": [
      0.002
    ]
  },
  "execution": {
    "slots": 2,
    "threads": 1
  },
  "engines": [
    {
      "name": "cpu-0",
      "backend": "onnxruntime",
      "target": "cpu",
      "precision": "model",
      "entry": "blobs/efefefefefefefefefefefefefefefefefefefefefefefefefefefefefefefef.onnx",
      "files": [
        {
          "path": "blobs/efefefefefefefefefefefefefefefefefefefefefefefefefefefefefefefef.onnx",
          "size_bytes": 7,
          "sha256": "efefefefefefefefefefefefefefefefefefefefefefefefefefefefefefefef"
        }
      ],
      "requirements": {
        "system": "Linux"
      },
      "verified": true
    }
  ],
  "padding": [
    {
      "symbol": "w",
      "side": "right",
      "fills": {
        "x": 0
      },
      "accept_error": false
    }
  ],
  "checksum": "dc9e657a12fecf16e0094ea0bad630ac77760e7e7d3b36734c87f0c98a1baf46"
}
"""


def parts_of_the_schema(root: type = Manifest) -> dict[str, type]:
    """Return every record that a manifest can hold, by name: read from the types themselves."""
    found: dict[str, type] = {}
    todo: list[Any] = [root]
    while todo:
        kind = todo.pop()
        if isinstance(kind, type) and (dataclasses.is_dataclass(kind) or issubclass(kind, msgspec.Struct)):
            if kind.__name__ not in found:
                found[kind.__name__] = kind
                todo += typing.get_type_hints(kind).values()
        else:
            todo += typing.get_args(kind)
    return found


def field_names(kind: type) -> list[str]:
    if dataclasses.is_dataclass(kind):
        return [f.name for f in dataclasses.fields(kind)]
    return [f.name for f in msgspec.structs.fields(kind)]


NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
WHOLE = st.integers(-(2**63), 2**63 - 1)
ONE_OF_A_KIND = {
    str: st.text(st.characters(codec="utf-8"), max_size=8),
    int: WHOLE,
    float: NUMBERS,
    bool: st.booleans(),
    type(None): st.none(),
    Range: st.one_of(
        st.builds(Range, st.integers(0, 9), st.none(), st.none()),
        st.lists(st.integers(0, 2**40), min_size=3, max_size=3).map(lambda n: Range(*sorted(n))),
    ),
    CostModel: st.builds(
        lambda symbol, axis, costs, source, off: CostModel(
            (symbol,), (tuple(sorted(axis)),), tuple(sorted(costs[: len(axis)])), source, off
        ),
        st.text(st.characters(codec="utf-8"), max_size=8),
        st.sets(st.integers(1, 2**40), min_size=2, max_size=3),
        st.lists(st.floats(0, 1e9), min_size=3, max_size=3),
        st.sampled_from(["measured", "analytic"]),
        st.one_of(st.none(), st.builds(HeldOut, WHOLE, NUMBERS, NUMBERS)),
    ),
    Derived: st.one_of(
        st.builds(Derived, st.text(max_size=3), st.sampled_from(["ones", "zeros"])),
        st.builds(Derived, st.text(max_size=3), st.just("positions"), st.text(max_size=3)),
    ),
}


def values(kind: Any) -> st.SearchStrategy[Any]:
    """Make any value of an annotated type, so that a new field of the schema is tried without a change here."""
    if kind in ONE_OF_A_KIND:
        return ONE_OF_A_KIND[kind]
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin is Literal:
        return st.sampled_from(args)
    if origin in (Union, types.UnionType):
        return st.one_of(*map(values, args))
    if origin is tuple and args[-1] is Ellipsis:
        return st.lists(values(args[0]), max_size=2).map(tuple)
    if origin is tuple:
        return st.tuples(*map(values, args))
    if origin is dict:
        return st.dictionaries(values(args[0]), values(args[1]), max_size=2)
    if kind is Ladder:
        profiles = st.lists(values(Profile), min_size=1, max_size=2, unique_by=lambda p: p.name)
        return profiles.flatmap(
            lambda p: st.builds(Ladder, st.just(tuple(p)), st.one_of(st.just(()), st.tuples(*[NUMBERS for _ in p])))
        )
    hints = typing.get_type_hints(kind)
    return st.builds(kind, **{name: values(hints[name]) for name in field_names(kind)})


MANIFESTS = values(Manifest).map(lambda m: msgspec.structs.replace(m, schema=schema.SCHEMA))


def test_a_tiny_manifest_has_exactly_these_bytes() -> None:
    assert encode_manifest(TINY) == GOLDEN


def test_the_golden_bytes_read_back_as_the_tiny_manifest() -> None:
    assert decode_manifest(GOLDEN) == TINY


@given(MANIFESTS)
def test_writing_then_reading_a_manifest_is_identity(manifest: Manifest) -> None:
    assert decode_manifest(encode_manifest(manifest)) == manifest


@given(MANIFESTS)
def test_equal_manifests_have_equal_bytes(manifest: Manifest) -> None:
    data = encode_manifest(manifest)
    assert encode_manifest(decode_manifest(data)) == data


@given(st.data())
def test_random_edits_of_bytes_are_read_or_refused_but_never_crash(data: st.DataObject) -> None:
    edited = bytearray(GOLDEN)
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(edited) - 1))
        edited[place : place + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    with contextlib.suppress(BundleError):
        decode_manifest(bytes(edited))


JSON_VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), NUMBERS, st.text(max_size=4)),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=4,
)


@given(st.data())
def test_random_edits_of_values_are_read_or_refused_but_never_crash(data: st.DataObject) -> None:
    tree = json.loads(GOLDEN)
    parent: Any = tree
    while True:
        key = data.draw(st.sampled_from(sorted(parent) if isinstance(parent, dict) else list(range(len(parent)))))
        if isinstance(parent[key], dict | list) and parent[key] and data.draw(st.booleans()):
            parent = parent[key]
            continue
        break
    if data.draw(st.booleans()):
        parent[key] = data.draw(JSON_VALUES)
    else:
        del parent[key]
    with contextlib.suppress(BundleError):
        decode_manifest(json.dumps(tree).encode())


def places(tree: Any, at: tuple[Any, ...] = ()) -> typing.Iterator[tuple[Any, ...]]:
    """Yield the way to every object in a tree whose fields are those of a record (maps are free to have others)."""
    if isinstance(tree, dict):
        if at[-1:] not in {("opsets",), ("libraries",), ("machine",), ("options",), ("ranges",), ("fills",)}:
            yield at
        for key, item in tree.items():
            yield from places(item, (*at, key))
    elif isinstance(tree, list):
        for i, item in enumerate(tree):
            yield from places(item, (*at, i))


@pytest.mark.parametrize("place", [*places(json.loads(GOLDEN))], ids=lambda place: ".".join(map(str, place)) or "top")
def test_an_unknown_field_is_refused_wherever_it_stands(place: tuple[Any, ...]) -> None:
    tree = json.loads(GOLDEN)
    record = tree
    for key in place:
        record = record[key]
    record["surprise"] = 1
    with pytest.raises(BundleError, match="surprise"):
        decode_manifest(json.dumps(tree).encode())


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        pytest.param(b"", "truncated", id="empty"),
        pytest.param(GOLDEN[: len(GOLDEN) // 2], "truncated", id="halved"),
        pytest.param(b"[]", "Expected `object`", id="not-an-object"),
        pytest.param(b"<html></html>", "malformed", id="another-language"),
        pytest.param(b'{"schema": "1.0", "metadata": ' + b"[" * 100_000, "recursion", id="deeply-nested"),
        pytest.param(GOLDEN.replace(b'"1.0"', b'"2.0"'), "schema '2.0', .* reads 1.x", id="next-major"),
        pytest.param(GOLDEN.replace(b'"1.0"', b'"1"'), "schema '1'", id="no-minor"),
        pytest.param(GOLDEN.replace(b'"1.0"', b'"1.0rc1"'), "schema '1.0rc1'", id="not-numbers"),
        pytest.param(GOLDEN.replace(b'"min": 1,', b'"min": 999,'), "is not a range", id="range-upside-down"),
        pytest.param(GOLDEN.replace(b'"side": "right"', b'"side": "up"'), "Invalid enum value 'up'", id="unknown-side"),
        pytest.param(b" " * (MAX_MANIFEST_BYTES + 1), "up to", id="too-large"),
        pytest.param(b"\xff\xfe" + GOLDEN, "malformed|UTF-8|utf-8", id="not-utf-8"),
    ],
)
def test_what_is_no_manifest_is_refused_with_the_reason(data: bytes, reason: str) -> None:
    with pytest.raises(BundleError, match=reason):
        decode_manifest(data)


def test_a_contradiction_inside_a_value_is_a_broken_bundle_not_wrong_use() -> None:
    tree = json.loads(GOLDEN)
    tree["derived"] = [{"input": "x", "kind": "positions"}]
    with pytest.raises(BundleError, match="positions"):
        decode_manifest(json.dumps(tree).encode())


def test_a_newer_minor_version_that_adds_nothing_is_read() -> None:
    assert decode_manifest(sealed(GOLDEN.replace(b'"1.0"', b'"1.7"'))).schema == "1.7"


@pytest.mark.parametrize(
    "edited",
    [
        pytest.param(GOLDEN.replace(b'"max": 256', b'"max": 266'), id="a-digit"),
        pytest.param(GOLDEN.replace(b'"x": 0', b'"x": 8'), id="a-fill-value"),
        pytest.param(GOLDEN.replace(b'"0.1.0"', b'"0.1.1"'), id="a-text"),
        pytest.param(GOLDEN.replace(b"\n", b""), id="spelled-otherwise"),
        pytest.param(GOLDEN + b"\n", id="a-line-more"),
        pytest.param(GOLDEN[:-1], id="a-line-feed-less"),
        pytest.param(GOLDEN[:-5] + bytes([GOLDEN[-5] ^ 1]) + GOLDEN[-4:], id="the-checksum-itself"),
    ],
)
def test_a_manifest_that_is_valid_but_not_as_it_was_written_is_refused(edited: bytes) -> None:
    with pytest.raises(BundleError, match=r"manifest\.json: altered: .*; copy the bundle again or rebuild it"):
        decode_manifest(edited)


def test_a_manifest_without_checksum_is_refused() -> None:
    tree = json.loads(GOLDEN)
    del tree["checksum"]
    with pytest.raises(BundleError, match="checksum"):
        decode_manifest(json.dumps(tree).encode())


def test_numbers_that_json_cannot_write_stay_beyond_every_tolerance() -> None:
    findings = tuple(Finding(output="y", max_abs=bad, allowed=1e-5, sizes={}) for bad in (math.inf, math.nan))
    evidence = Evidence(kind="padding", symbol="w", accepted=False, runs=1, samples="", findings=findings)
    again = decode_manifest(encode_manifest(msgspec.structs.replace(TINY, evidence=(evidence,))))
    assert [f.max_abs for f in again.evidence[0].findings] == [sys.float_info.max] * 2


def test_a_value_domain_without_an_end_keeps_its_direction() -> None:
    domain = {"x": ValueDomain(low=-math.inf, high=math.inf)}
    evidence = Evidence(kind="padding", symbol="w", accepted=True, runs=1, samples="", domain=domain)
    again = decode_manifest(encode_manifest(msgspec.structs.replace(TINY, evidence=(evidence,))))
    read = again.evidence[0].domain["x"]
    assert (read.low, read.high) == (-sys.float_info.max, sys.float_info.max)


def test_text_that_is_no_unicode_is_refused_when_it_is_written() -> None:
    with pytest.raises(BundleError, match="cannot be written"):
        encode_manifest(msgspec.structs.replace(TINY, metadata={"path": "\udcff"}))


@pytest.mark.parametrize(("name", "kind"), parts_of_the_schema().items())
def test_the_page_on_the_format_describes_every_field(name: str, kind: type) -> None:
    page = PAGE.read_text(encoding="utf-8")
    section = re.search(rf"^### {name}\n(.*?)(?=^##|\Z)", page, re.DOTALL | re.MULTILINE)
    assert section is not None, f"docs/bundle-format.md has no section {name}"
    described = re.findall(r"^\| `(\w+)` \|", section[1], re.MULTILINE)
    assert described == field_names(kind)


def test_the_page_on_the_format_describes_nothing_that_is_gone() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert set(re.findall(r"^### (\w+)$", page, re.MULTILINE)) == parts_of_the_schema().keys()


def with_cost(symbols: tuple[str, ...]) -> Manifest:
    model = CostModel(symbols, ((1, 8),) * len(symbols), (0.1,) * 2 ** len(symbols), "measured", HeldOut(3, 0.01, 0.02))
    engine = msgspec.structs.replace(TINY.engines[0], cost=CostRecord(model=model, threads=2, runs=9))
    return msgspec.structs.replace(TINY, engines=(engine, *TINY.engines[1:]))


def test_costs_and_plans_come_back_as_they_were_written() -> None:
    planned = PlanRecord(
        traffic="0" * 64, requests=3, expected_s=0.2, exact_s=0.1, waste=0.3, gap=0.0, reason="why", max_profiles=8,
        align={TINY.signature.symbols[0]: 8},
    )  # fmt: skip
    manifest = msgspec.structs.replace(with_cost((TINY.signature.symbols[0],)), planned=planned)
    assert decode_manifest(encode_manifest(manifest)) == manifest
    assert not [fault for fault in contradictions(manifest) if "no input has" in fault]


def test_costs_over_a_symbol_that_no_input_has_are_a_contradiction() -> None:
    found = list(contradictions(with_cost(("nothing",))))
    assert f"cost of engine {TINY.engines[0].name!r}: no input has an axis 'nothing'" in found


def test_costs_that_fall_are_refused_when_they_are_read() -> None:
    text = encode_manifest(with_cost((TINY.signature.symbols[0],)))
    tree = json.loads(text)
    tree["engines"][0]["cost"]["model"]["grid_s"] = [0.2, 0.1]
    with pytest.raises(BundleError, match="costs fall where"):
        decode_manifest(json.dumps(tree).encode())
