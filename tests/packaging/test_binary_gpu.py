"""The standalone program and engines for a GPU: the bindings are inside, their libraries are the host's.

No GPU takes part. A driver that only answers which GPUs there are takes the program as far as opening an engine.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

import msgspec
import pytest

from trtc.engines.bundle import write_bundle
from trtc.engines.distributions import find_distribution
from trtc.engines.gpu import survey_gpus
from trtc.engines.manifest_file import read_manifest
from trtc.engines.shared_libraries import NEEDED

QUICK = ("--iterations", "3", "--duration", "0", "--warm-up", "0")
GRID = ("--grid", "batch_size=2", "sequence_length=17")
OTHER_VERSION = """
int getInferLibVersion(void) { return 10003; }
int getInferLibMajorVersion(void) { return 1; }
int getInferLibMinorVersion(void) { return 0; }
int getInferLibPatchVersion(void) { return 3; }
int getInferLibBuildVersion(void) { return 7; }
"""


@pytest.fixture(scope="module")
def both(build_minilm, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle with an engine for the GPU and one for the CPU."""
    return build_minilm(tmp_path_factory.mktemp("binary") / "both.trtc", "rtx", "cpu")


@pytest.fixture(scope="module")
def gpu_only(both: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same without the engine for the CPU."""
    path = tmp_path_factory.mktemp("binary") / "gpu.trtc"
    shutil.copytree(both, path)
    manifest = read_manifest(path)
    engines = tuple(record for record in manifest.engines if record.requirements.device)
    write_bundle(path, msgspec.structs.replace(manifest, engines=engines), {})
    return path


def test_an_engine_for_a_gpu_says_that_there_is_no_driver(run, gpu_only):
    if survey_gpus().gpus:
        pytest.skip("there is a GPU here")
    said = "no engine of this bundle can run here (rtx: no NVIDIA driver: libcuda.so.1"
    assert said in refusal(run(gpu_only, *QUICK))


def test_where_no_gpu_is_the_engine_for_the_cpu_runs(run, both):
    if survey_gpus().gpus:
        pytest.skip("there is a GPU here")
    done = run(both, *GRID, *QUICK, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["backend"] == "onnxruntime"
    assert "no NVIDIA driver" in refusal(run(both, *QUICK, "--engine", "rtx"))


@pytest.mark.parametrize("variable", ["TRTC_LIBRARY_PATH", "LD_LIBRARY_PATH"])
def test_libraries_of_the_host_are_loaded_and_the_bindings_inside_go_with_them(run, variable):
    folders = {module: Path(find_spec(needed.package).origin).parent for module, needed in NEEDED.items()}
    done = run("--libraries", environ={variable: ":".join(map(str, folders.values()))})
    assert done.returncode == 0, done.stderr
    told = dict(line.split(maxsplit=1) for line in done.stdout.splitlines())
    for module, needed in NEEDED.items():
        version = find_distribution(module).version
        path = folders[module] / f"{needed.names[0]}.so.{version.split('.')[0]}"
        assert told[module] == f"{version}, loaded from {path}"
    assert told["onnxruntime"] == f"{find_distribution('onnxruntime').version}, inside"
    # Its extension modules are imported for this: what it packs of them is complete.
    assert told["cuda-core"] == f"{find_distribution('cuda-core').version}, inside"


def test_libraries_that_are_not_there_are_told_with_where_they_were_looked_for(run, tmp_path):
    done = run("--libraries", environ={"TRTC_LIBRARY_PATH": str(tmp_path)})
    assert done.returncode == 0, done.stderr
    told = dict(line.split(maxsplit=1) for line in done.stdout.splitlines())
    for module, needed in NEEDED.items():
        assert f"{needed.names[0]}.so." in told[module]
        assert (
            f"is not on this machine; looked in {tmp_path} (TRTC_LIBRARY_PATH), LD_LIBRARY_PATH (not set), and"
            in (told[module])
        )


@pytest.fixture(scope="module")
def stand_in(tmp_path_factory):
    """Make a folder with a library under the name of one of NVIDIA's; what it cannot do is not shown here."""
    if (compiler := shutil.which("cc")) is None:
        pytest.skip("no C compiler")

    def make(name, code):
        folder = tmp_path_factory.mktemp("stand-in")
        words = [compiler, "-shared", "-fPIC", "-xc", "-", "-o", folder / name, "-ldl"]
        subprocess.run(words, input=code, text=True, check=True)
        return folder

    return make


@pytest.fixture(scope="module")
def driver(stand_in):
    """The folder of a driver that shows one GPU, to come as far as looking for TensorRT."""
    if survey_gpus().gpus:
        pytest.skip("there is a GPU here, and its driver would be taken")
    return stand_in("libcuda.so.1", Path(__file__).with_name("driver.c").read_text())


def refusal(done):
    assert done.returncode == 4, done.stderr
    (error,) = [line for line in done.stderr.splitlines() if line.startswith("trtc: error: ")]
    assert (done.stdout, "Traceback" in done.stderr) == ("", False)
    return error


def test_the_driver_is_asked_through_the_bindings_inside(run, driver):
    told = run("--libraries", environ={"LD_LIBRARY_PATH": str(driver)}).stdout
    assert told.endswith("GPU 0 (Stand-in, sm89)\n")


def test_after_the_driver_comes_the_library_that_is_not_there(run, gpu_only, driver):
    error = refusal(run(gpu_only, *QUICK, environ={"LD_LIBRARY_PATH": str(driver)}))
    inside = find_distribution("tensorrt_rtx").version
    assert f"(rtx: libtensorrt_rtx.so.1 of tensorrt_rtx {inside} is not on this machine; looked in " in error
    assert f"{driver} (LD_LIBRARY_PATH)" in error
    assert "TRTC_LIBRARY_PATH=DIR" in error


def test_after_the_driver_comes_a_library_of_another_version_than_the_bindings_inside(run, gpu_only, driver, stand_in):
    folder = stand_in("libtensorrt_rtx.so.1", OTHER_VERSION)
    environ = {"LD_LIBRARY_PATH": str(driver), "TRTC_LIBRARY_PATH": str(folder)}
    inside = find_distribution("tensorrt_rtx").version
    said = f"{folder}/libtensorrt_rtx.so.1 is tensorrt_rtx 1.0.3.7, and the Python bindings here are of {inside}; both"
    assert said in refusal(run(gpu_only, *QUICK, environ=environ))
    assert said in run("--libraries", environ=environ).stdout


def test_after_the_real_library_comes_what_the_engine_itself_lacks(run, gpu_only, driver):
    folder = Path(find_spec("tensorrt_rtx_libs").origin).parent
    error = refusal(run(gpu_only, *QUICK, environ={"LD_LIBRARY_PATH": str(driver), "TRTC_LIBRARY_PATH": str(folder)}))
    assert "it was never compared with its model; run `trtc verify` here, on GPU 0 (Stand-in, sm89)" in error
