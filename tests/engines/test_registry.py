"""Backends by name."""

from __future__ import annotations

import sys

import pytest

from trtc.engines import registry
from trtc.engines.registry import BACKENDS, Backend, backend_named
from trtc.engines.target import parse_target
from trtc.profiles import UsageError


def test_every_backend_is_found_by_name_and_by_target():
    for backend in BACKENDS:
        assert backend_named(backend.name) is backend
        assert backend_named(parse_target(backend.target).backend) is backend
    assert len({backend.name for backend in BACKENDS}) == len({backend.target for backend in BACKENDS}) == len(BACKENDS)


@pytest.mark.parametrize(
    ("find", "name", "said"),
    [
        (backend_named, "onnxruntim", "unknown backend 'onnxruntim'; did you mean 'onnxruntime'"),
        (parse_target, "cqu", "unknown target 'cqu'; did you mean 'cpu'"),
        (parse_target, "", "unknown target ''"),
    ],
)
def test_an_unknown_name_offers_the_nearest(find, name, said):
    with pytest.raises(UsageError) as caught:
        find(name)
    assert said in str(caught.value)


@pytest.mark.parametrize("backend", BACKENDS, ids=lambda backend: backend.name)
def test_every_backend_has_both_halves(backend):
    assert callable(backend.build_module().build_engine)
    module = sys.modules.get(f"{backend.module}.load") or __import__(f"{backend.module}.load", fromlist=["load_engine"])
    assert callable(module.load_engine)


def test_a_library_is_looked_for_and_not_imported(monkeypatch):
    asked = []
    monkeypatch.setattr(registry, "find_spec", asked.append)
    assert not Backend("b", "m", "some_library", "pip", "t").installed
    assert Backend("b", "m", "", "", "t").installed
    assert asked == ["some_library"]
    assert "some_library" not in sys.modules
