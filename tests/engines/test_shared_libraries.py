"""TensorRT's libraries are found where the host has them: the real ones, which load without a driver."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from trtc.engines import shared_libraries
from trtc.engines.distributions import find_distribution
from trtc.engines.shared_libraries import FOLDERS, NEEDED, SharedLibrary, folders, open_shared, searched, shared_library
from trtc.profiles import HostError

MODULES = tuple(NEEDED)


def installed(module: str) -> tuple[Path, str]:
    """The folder that pip put the libraries into, and their version."""
    spec, distribution = find_spec(NEEDED[module].package), find_distribution(module)
    if spec is None or spec.origin is None or distribution is None:
        pytest.skip(f"{module} is not installed")
    return Path(spec.origin).parent, distribution.version


def in_a_process(code: str, **environ: str) -> str:
    """Run code where none of these libraries is loaded yet; return what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **environ}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


OPEN = """
import os
from trtc.engines.shared_libraries import open_shared
from trtc.profiles import HostError
try:
    print(open_shared({module!r}, {version!r}, os.environ))
except HostError as error:
    print(error)
"""

BINDINGS_ALONE = """
import sys
sys.modules[{package!r}] = None  # its import fails, as where pip did not bring it
from trtc.engines import shared_libraries
shared_libraries.find_spec = lambda name: None
from trtc.engines.tensorrt.toolkit import open_toolkit
print(open_toolkit({module!r}).trt.__version__, shared_libraries.shared_library({module!r}).path)
"""


@pytest.mark.parametrize("module", MODULES)
@pytest.mark.parametrize("variable", [FOLDERS, "LD_LIBRARY_PATH"])
def test_a_library_is_opened_from_the_folder_that_the_user_names(module, variable):
    folder, version = installed(module)
    said = in_a_process(OPEN.format(module=module, version=version), **{variable: str(folder)})
    first = f"{NEEDED[module].names[0]}.so.{version.split('.')[0]}"
    assert said == str(SharedLibrary(str(folder / first), version))


@pytest.mark.parametrize("module", MODULES)
def test_bindings_without_their_package_of_libraries_are_imported_against_those_of_the_host(module):
    folder, version = installed(module)
    code = BINDINGS_ALONE.format(module=module, package=NEEDED[module].package)
    said = in_a_process(code, **{FOLDERS: str(folder)})
    assert said == f"{version} {folder}/{NEEDED[module].names[0]}.so.{version.split('.')[0]}"


@pytest.mark.parametrize("module", MODULES)
def test_another_version_is_refused_with_both_versions_and_the_file(module):
    folder, version = installed(module)
    *most, last = version.split(".")
    other = ".".join((*most, str(int(last) + 1)))
    said = in_a_process(OPEN.format(module=module, version=other), **{FOLDERS: str(folder)})
    assert said.startswith(f"{folder}/{NEEDED[module].names[0]}.so.{version.split('.')[0]} is {module} {version}, ")
    assert f"are of {other}; both must be the same" in said
    assert f"{FOLDERS}=DIR" in said


@pytest.mark.parametrize("module", MODULES)
def test_a_library_that_is_nowhere_is_one_error_that_says_where_it_was_looked_for(module, tmp_path):
    environ = {FOLDERS: f"{tmp_path}:/opt/none", "LD_LIBRARY_PATH": "/opt/also-none"}
    with pytest.raises(HostError) as raised:
        open_shared(module, "99.0.0.1", environ)
    said = str(raised.value)
    assert said.startswith(f"{NEEDED[module].names[0]}.so.99 of {module} 99.0.0.1 is not on this machine; ")
    assert f"{tmp_path}, /opt/none ({FOLDERS}), /opt/also-none (LD_LIBRARY_PATH), and the folders" in said
    assert said.endswith(f"{FOLDERS}=DIR")


def test_a_folder_may_be_named_from_where_one_is(tmp_path, monkeypatch):
    (tmp_path / "libtensorrt_rtx.so.99").write_text("not a library")
    monkeypatch.chdir(tmp_path)
    for folder in (".", "../" + tmp_path.name):
        with pytest.raises(HostError, match=r"libtensorrt_rtx\.so\.99, which tensorrt_rtx needs, cannot be opened: /"):
            open_shared("tensorrt_rtx", "99.0.0.1", {FOLDERS: folder})


def test_a_file_that_is_no_library_is_one_error_that_names_it(tmp_path):
    (tmp_path / "libtensorrt_rtx.so.99").write_text("not a library")
    with pytest.raises(HostError, match=r"libtensorrt_rtx\.so\.99, which tensorrt_rtx needs, cannot be opened: "):
        open_shared("tensorrt_rtx", "99.0.0.1", {FOLDERS: str(tmp_path)})


@pytest.mark.parametrize("folder", ["n" * 5000, "a loop", "taken"])
def test_a_folder_that_cannot_hold_it_is_passed_over(tmp_path, folder):
    (tmp_path / "taken" / "libtensorrt_rtx.so.99").mkdir(parents=True)
    (tmp_path / "a loop").symlink_to("a loop")
    with pytest.raises(HostError, match="is not on this machine; looked in"):
        open_shared("tensorrt_rtx", "99.0.0.1", {FOLDERS: str(tmp_path / folder)})


def test_a_folder_whose_name_is_no_utf8_is_a_folder(tmp_path):
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))
    folder.mkdir()
    (folder / "libtensorrt_rtx.so.99").write_text("no library")
    with pytest.raises(HostError, match="which tensorrt_rtx needs, cannot be opened"):
        open_shared("tensorrt_rtx", "99.0.0.1", {FOLDERS: str(folder)})


def test_a_library_of_somebody_else_is_refused(tmp_path):
    """A real shared library under the name of ours."""
    other = next((p for p in Path("/lib/x86_64-linux-gnu").glob("libz.so.1")), None)
    if other is None:
        pytest.skip("this system keeps zlib elsewhere")
    (tmp_path / "libtensorrt_rtx.so.99").write_bytes(other.read_bytes())
    with pytest.raises(HostError, match=r"libtensorrt_rtx\.so\.99 does not say its version; it is no TensorRT library"):
        open_shared("tensorrt_rtx", "99.0.0.1", {FOLDERS: str(tmp_path)})


def test_nothing_is_opened_where_pip_brought_the_libraries_or_there_are_no_bindings(monkeypatch):
    def refuse(*_):
        raise AssertionError

    monkeypatch.setattr(shared_libraries, "open_shared", refuse)
    shared_library.cache_clear()
    for module in (*MODULES, "tensorrt", "onnxruntime", "tensorrt_rtx_none", ""):
        assert shared_library(module) is None
    monkeypatch.setattr(shared_libraries, "find_spec", lambda _: None)
    monkeypatch.setattr(shared_libraries, "find_distribution", lambda _: None)
    shared_library.cache_clear()
    assert [shared_library(module) for module in MODULES] == [None, None]
    shared_library.cache_clear()


@pytest.mark.parametrize(
    ("environ", "unpacked", "text"),
    [
        pytest.param({}, None, f"{FOLDERS} (not set), LD_LIBRARY_PATH (not set), and ", id="nothing-set"),
        pytest.param({FOLDERS: "/a::/b"}, None, f"/a, /b ({FOLDERS}), LD_LIBRARY_PATH (not set), and ", id="named"),
        pytest.param({"LD_LIBRARY_PATH": "/x/_MEI1:/c"}, "/x/_MEI1", "/c (LD_LIBRARY_PATH), and ", id="standalone"),
        pytest.param({"LD_LIBRARY_PATH": "/x/_MEI1"}, "/x/_MEI1", "LD_LIBRARY_PATH (not set)", id="its-own-only"),
    ],
)
def test_places_are_said_as_the_user_gave_them(environ, unpacked, text):
    assert text in searched(environ, unpacked)


def test_empty_entries_name_no_folder():
    assert folders({FOLDERS: ":/a:"}) == (Path("/a"),)
    assert folders({}) == ()
