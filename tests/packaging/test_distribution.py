"""What is built and installed is exactly the code of the checkout, and it imports lean."""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
from importlib.metadata import distributions
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

FOLDERS = ("profiles", "engines", "compiler", "runtime", "tools")
MODULES = tuple(f"trtc.{folder}" for folder in FOLDERS)


@pytest.fixture
def fresh_python(installed_wheel: Path):
    """Run code in an interpreter that sees the installed wheel and the libraries, but no editable install."""

    def run(code: str) -> Any:
        # -S leaves out .pth files, and with them the hook that an editable install imports through.
        paths = [str(installed_wheel), sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
        prelude = f"import json, sys; sys.path[:0] = {paths!r}\n"
        command = [sys.executable, "-I", "-S", "-c", prelude + code]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


def modules(names: frozenset[str], folder: str = "") -> set[str]:
    """Python files and type markers below the five folders, relative to ``folder``."""
    inner = {name.removeprefix(folder) for name in names if name.startswith(folder)}
    return {name for name in inner if name.split("/")[0] in FOLDERS and name.endswith((".py", "py.typed"))}


def test_sdist_and_wheel_hold_every_module_of_the_checkout(built, checkout_names):
    expected = modules(checkout_names)
    assert modules(built.sdist_names) == expected
    assert modules(built.wheel_names, "trtc/") == expected


def test_the_wheel_holds_nothing_but_modules_and_its_metadata(built, checkout_names):
    code = {f"trtc/{name}" for name in modules(checkout_names)}
    rest = {name for name in built.wheel_names - code if ".dist-info/" not in name}
    assert rest == set()


def test_the_sdist_leaves_tests_and_tools_of_the_repository_out(built):
    tops = {name.split("/")[0] for name in built.sdist_names}
    files = {"LICENSE", "PKG-INFO", "README.md", "pyproject.toml", "setup.cfg", "trtc.egg-info"}
    assert tops <= files.union(FOLDERS)


@pytest.mark.parametrize("folder", FOLDERS)
def test_type_checkers_of_users_see_that_each_folder_is_typed(built, folder):
    assert f"trtc/{folder}/py.typed" in built.wheel_names


def test_the_licence_is_part_of_what_is_installed(built):
    assert {PurePosixPath(name).name for name in built.wheel_names if "/licenses/" in name} == {"LICENSE"}


def test_every_folder_with_code_is_a_listed_package(project, checkout_names):
    holding = {str(PurePosixPath(name).parent) for name in modules(checkout_names)}
    assert {f"trtc.{folder.replace('/', '.')}" for folder in holding} == set(project["tool"]["setuptools"]["packages"])


def test_every_package_has_an_init_file_because_tools_overlook_folders_without(checkout_names):
    holding = {str(PurePosixPath(name).parent) for name in modules(checkout_names)}
    assert {folder for folder in holding if f"{folder}/__init__.py" not in checkout_names} == set()


def test_the_installed_version_is_the_one_of_the_project(installed_wheel, project):
    (found,) = [dist.version for dist in distributions(path=[str(installed_wheel)]) if dist.name == "trtc"]
    assert found == project["project"]["version"]


@pytest.mark.parametrize("module", MODULES)
def test_the_installed_wheel_imports_from_its_own_files(fresh_python, installed_wheel, module):
    file = fresh_python(f"import {module}; print(json.dumps({module}.__file__))")
    assert file == str(installed_wheel / module.replace(".", "/") / "__init__.py")


def test_the_command_of_the_installed_wheel_can_be_loaded(fresh_python):
    code = """
from importlib.metadata import distribution
(entry,) = distribution("trtc").entry_points.select(group="console_scripts")
print(json.dumps([entry.group, entry.name, callable(entry.load())]))
"""
    assert fresh_python(code) == ["console_scripts", "trtc", True]


@pytest.mark.parametrize(
    ("module", "kept_out"),
    [
        pytest.param("trtc.profiles", {"msgspec", "click", "rich", "trtc.engines"}, id="profiles"),
        pytest.param("trtc.engines", {"click", "rich", "trtc.runtime"}, id="engines"),
        pytest.param("trtc.runtime", {"click", "rich", "tokenizers"}, id="runtime"),
    ],
)
def test_importing_what_a_server_needs_loads_no_library_of_the_compiler(fresh_python, module, kept_out):
    loaded = set(fresh_python(f"import {module}; print(json.dumps(sorted(sys.modules)))"))
    heavy = {"onnx", "onnx_ir", "onnxruntime", "torch", "polygraphy", "tensorrt", "openvino", "trtc.compiler"}
    assert module in loaded
    assert loaded & (heavy | kept_out) == set()
