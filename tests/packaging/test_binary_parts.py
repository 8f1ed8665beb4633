"""Parts of the standalone program that can be looked at without building it."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from trtc.engines.distributions import find_distribution
from trtc.tools.binary import gpu_half
from trtc.tools.binary.contents import HOST_LIBRARIES
from trtc.tools.binary.later import ARCHIVE, PACKAGES, Later
from trtc.tools.binary.libraries import libraries_option

LOADED_FILES = """
import sys, cuda.core, cuda.bindings.driver, cuda.bindings.nvml
print(*(m.__file__ for m in list(sys.modules.values()) if "/cuda/" in (getattr(m, "__file__", None) or "")), sep="\\n")
"""


@pytest.fixture
def packed(tmp_path):
    with zipfile.ZipFile(tmp_path / ARCHIVE, "w") as archive:
        for name in PACKAGES:
            archive.writestr(f"{name}/__init__.py", "")
    return tmp_path


def test_nothing_is_unpacked_for_modules_that_are_not_in_the_archive(packed):
    for name in ("json", "tensorrt_rtx", "tensorrt", "cuda.core", "numpy"):
        assert Later(packed).find_spec(name) is None
    assert [path.name for path in packed.iterdir()] == [ARCHIVE]


@pytest.mark.parametrize("name", sorted(PACKAGES))
def test_the_first_import_of_any_package_unpacks_all_once_and_finds_nothing_itself(packed, name):
    later = Later(packed)
    assert later.find_spec(name) is None
    assert {path.name for path in packed.iterdir()} == {ARCHIVE, *PACKAGES}
    (packed / ARCHIVE).unlink()
    for again in PACKAGES:
        assert later.find_spec(again) is None


def test_a_folder_that_takes_nothing_is_an_import_error_which_those_who_can_do_without_expect(tmp_path):
    with pytest.raises(ImportError, match=f"cuda cannot be unpacked to {tmp_path}: No such file or directory"):
        Later(tmp_path).find_spec("cuda")


def test_what_is_packed_holds_every_file_that_is_imported():
    done = subprocess.run([sys.executable, "-c", LOADED_FILES], check=True, capture_output=True, text=True)
    files = [Path(line) for line in done.stdout.splitlines()]
    assert len(files) > 50
    left_out = [file for file in files if not gpu_half.is_used(Path("cuda", *after(file, "cuda")))]
    assert left_out == []


def after(file, folder):
    return file.parts[file.parts.index(folder) + 1 :]


def test_what_nobody_imports_is_left_out():
    for name in (
        *("cuda/core/cu12/_device.cpython-311-x86_64-linux-gnu.so", "cuda/bindings/cufile.cpython-311.so"),
        *("cuda/bindings/_internal/cudla.so", "cuda/bindings/driver.pxd", "cuda/core/_include/dlpack.h"),
    ):
        assert not gpu_half.is_used(Path(name))


def test_python_modules_that_the_packed_ones_import_are_named_for_the_build():
    found = gpu_half.imported()
    assert "rlcompleter" in found
    assert all(find_spec(name) is not None for name in found)


@pytest.mark.parametrize(
    ("name", "refused"),
    [
        ("libcuda.so.1", True),
        ("tensorrt_rtx_libs.libtensorrt_rtx.so.1", True),
        ("libtensorrt_onnxparser_rtx.so.1", True),
        ("libnvinfer_lean.so.11", True),
        ("libnvidia-ml.so.1", True),
        ("nvidia.cuda_runtime.lib.libcudart.so.13", True),
        ("tensorrt_rtx_bindings.tensorrt_rtx.so", False),
        ("cuda.bindings.driver.cpython-311-x86_64-linux-gnu.so", False),
        ("libpython3.11.so.1.0", False),
        ("onnxruntime.capi.onnxruntime_pybind11_state.cpython-311-x86_64-linux-gnu.so", False),
    ],
)
def test_large_libraries_of_nvidia_are_told_from_bindings(name, refused):
    assert bool(HOST_LIBRARIES.search(name)) is refused


def test_libraries_are_listed_with_their_versions():
    shown = CliRunner().invoke(libraries_option(click.Command("bench")), ["--libraries"])
    assert shown.exit_code == 0, shown.output
    told = dict(line.split(maxsplit=1) for line in shown.stdout.splitlines())
    for module in ("tensorrt_rtx", "tensorrt_lean"):
        if (distribution := find_distribution(module)) is not None:
            assert told[module] == f"{distribution.version}, installed"
    assert "not inside" in told["tensorrt"]
