"""Keys of the build cache: the same content, the same key; other content, another key."""

from __future__ import annotations

import dataclasses
import hashlib
import math
from pathlib import Path

import pytest

from trtc.compiler.cache import key_of
from trtc.profiles import Ladder, Profile, Range

MODEL = "0" * 64


def parts(**changed: object) -> dict[str, object]:
    """Declare a build as the compiler does."""
    return {
        "model": MODEL,
        "ladder": Ladder((Profile("p0", {"batch": Range(1, 4, 8)}),)),
        "precision": "float32",
        "tolerance": (1e-5, 1e-4),
        "seed": 0,
        "samples": ["2" * 64],
        "tools": {"onnxruntime": "1.24.0", "trtc": "0.1.0"},
        "target": {"name": "cpu", "cpu_features": ("avx2", "fma")},
        **changed,
    }


def test_a_key_is_the_same_for_the_same_content_in_another_order() -> None:
    turned = dict(reversed(parts().items()))
    turned["tools"] = {"trtc": "0.1.0", "onnxruntime": "1.24.0"}
    turned["tolerance"] = [1e-5, 1e-4]
    assert key_of(turned) == key_of(parts())


def test_a_key_does_not_change_between_processes_and_versions() -> None:
    assert key_of({"a": 1, "b": [0.5, None, True, "é"]}) == (
        hashlib.sha256(b'{"format":1,"parts":{"a":1,"b":[0.5,null,true,"\\u00e9"]}}').hexdigest()
    )


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"model": "3" * 64}, id="model"),
        pytest.param({"ladder": Ladder((Profile("p0", {"batch": Range(1, 4, 9)}),))}, id="ladder"),
        pytest.param({"precision": "bfloat16"}, id="precision"),
        pytest.param({"tolerance": (1e-5, 1e-3)}, id="tolerance"),
        pytest.param({"seed": 1}, id="seed"),
        pytest.param({"seed": False}, id="a-zero-of-another-type"),
        pytest.param({"samples": []}, id="samples"),
        pytest.param({"tools": {"onnxruntime": "1.24.1", "trtc": "0.1.0"}}, id="tool-version"),
        pytest.param({"target": {"name": "cpu", "cpu_features": ("avx2",)}}, id="processor-features"),
        pytest.param({"more": None}, id="another-part"),
    ],
)
def test_a_key_changes_with_every_part_of_the_content(changed: dict[str, object]) -> None:
    assert key_of(parts(**changed)) != key_of(parts())


@dataclasses.dataclass(frozen=True)
class HoldsBytes:
    data: bytes


@pytest.mark.parametrize(
    "value",
    [math.nan, math.inf, b"bytes", Path("a/path"), object(), {1: "a"}, {"s"}, HoldsBytes(b"x")],
    ids=["nan", "infinity", "bytes", "path", "object", "number-as-name", "set", "bytes-inside"],
)
def test_content_without_one_spelling_gives_no_key(value: object) -> None:
    with pytest.raises(TypeError, match="a cache key takes"):
        key_of({"value": [value]})
