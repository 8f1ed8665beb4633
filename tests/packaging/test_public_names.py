"""What packages export: every name is there, comes from where it is said to be, and is imported when it is used."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pytest

PACKAGES = ("trtc.profiles", "trtc.engines", "trtc.runtime", "trtc.compiler", "trtc.tools.polygraphy_plugin")


@pytest.fixture(params=PACKAGES)
def package(request):
    return import_module(request.param)


def test_every_public_name_is_there_and_listed(package):
    assert dir(package) == sorted(package.__all__)
    for name in package.__all__:
        assert getattr(package, name) is getattr(package, name), name


def test_another_name_is_refused_with_those_that_are_exported(package):
    with pytest.raises(AttributeError, match=rf"module '{package.__name__}' has no attribute 'none'; it exports \w+, "):
        _ = package.none
    assert not hasattr(package, "__wrapped__")


@pytest.mark.parametrize("name", PACKAGES)
def test_importing_a_package_imports_none_of_its_modules(name):
    code = f"import sys, {name}; print(*(m for m in sys.modules if m.startswith('trtc.')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    parents = {".".join(name.split(".")[: i + 1]) for i in range(1, name.count(".") + 1)}
    assert set(done.stdout.split()) - parents <= {"trtc.profiles", "trtc.profiles.on_demand"}
