"""What the packaging tests look at: a copy of the checkout, and what it builds into."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from trtc.compiler.options import BuildOptions
from trtc.compiler.pipeline import build
from trtc.profiles.grammar import ShapeOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Done = subprocess.CompletedProcess[str]


@dataclass(frozen=True, slots=True)
class Built:
    """One sdist and the wheel that was built from it; names are relative to the archive's root."""

    sdist_names: frozenset[str]
    wheel_names: frozenset[str]
    wheel: Path


@pytest.fixture(scope="session")
def project(repository: Path) -> dict[str, Any]:
    """The contents of ``pyproject.toml``."""
    return tomllib.loads((repository / "pyproject.toml").read_text())


@pytest.fixture(scope="session")
def checkout_names(repository: Path) -> frozenset[str]:
    """Files that git tracks or would track."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=repository, check=True, capture_output=True, text=True).stdout
    return frozenset(name for name in listed.split("\0") if (repository / name).is_file())


@pytest.fixture(scope="session")
def checkout_copy(repository: Path, checkout_names: frozenset[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the checkout to build and break in; the checkout stays clean."""
    copy = tmp_path_factory.mktemp("checkout")
    for name in checkout_names:
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(repository / name, copy / name)
    return copy


@pytest.fixture(scope="session")
def built(checkout_copy: Path, tmp_path_factory: pytest.TempPathFactory) -> Built:
    """Build an sdist from the copy, and a wheel from the sdist, with the build tools that are installed."""
    out = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(checkout_copy)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (sdist,), (wheel,) = out.glob("*.tar.gz"), out.glob("*.whl")
    with tarfile.open(sdist) as archive:
        sdist_names = {member.name.partition("/")[2] for member in archive if member.isfile()}
    with zipfile.ZipFile(wheel) as archive:
        wheel_names = set(archive.namelist())
    return Built(frozenset(sdist_names), frozenset(wheel_names), wheel)


@pytest.fixture(scope="session")
def installed_wheel(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, installed into a folder of its own without its dependencies."""
    target = tmp_path_factory.mktemp("installed")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "-qq"]
    subprocess.run([*pip, "install", "--no-deps", "--no-index", "--target", str(target), str(built.wheel)], check=True)
    return target


@pytest.fixture(scope="session")
def binary() -> Path:
    """The standalone program that was built."""
    given = os.environ.get("TRTC_BINARY")
    if not given:
        pytest.skip("TRTC_BINARY names no program; make test-binary builds one and tests it")
    return Path(given).resolve()


@pytest.fixture(scope="session")
def run(binary: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Done]:
    """Run the program with an empty environment, from a home that may not be written."""
    home = tmp_path_factory.mktemp("home")
    home.chmod(0o500)

    def call(*words: object, environ: Mapping[str, str] | None = None) -> Done:
        command = [str(binary), *map(str, words)]
        return subprocess.run(
            command, env=environ or {}, cwd=home, capture_output=True, text=True, check=False, timeout=300
        )

    return call


@pytest.fixture(scope="session")
def build_minilm(minilm_path: Path) -> Callable[..., Path]:
    """Build a bundle of a real model for the named targets."""

    def call(path: Path, *targets: str) -> Path:
        options = BuildOptions(
            shapes=ShapeOptions(dim=("batch_size=1..4",), buckets=("sequence_length=32",)),
            targets=targets,
            pads=("sequence_length", "batch_size"),
            fills=("input_ids=0", "attention_mask=0"),
            mode="bucket",
            measure_s=0,
            verify_s=5,
        )
        build(minilm_path, path, options)
        return path

    return call
