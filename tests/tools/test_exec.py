"""``trtc exec``: programs that nobody changed, on bundles and recorded, however they start, work and end."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from trtc.compiler import BuildOptions, build
from trtc.engines import read_manifest, write_bundle
from trtc.engines.manifest import RecordedCalls
from trtc.profiles.recorded import samples_folder

TRTC = Path(sys.executable).with_name("trtc")
PRELUDE = """
import os, sys
import msgspec
import numpy as np
import onnxruntime as ort
model = os.environ["MODEL"]
x = np.arange(6, dtype="float32").reshape(2, 3)
"""
RUN_ONCE = 'print(ort.InferenceSession(model).run(None, {"x": x})[0].tolist())'


@dataclass(frozen=True)
class World:
    """A model, its bundle, and a folder for programs."""

    model: Path
    bundle: Path
    folder: Path

    def program(self, code: str) -> Path:
        path = self.folder / "app.py"
        path.write_text(PRELUDE + textwrap.dedent(code))
        return path

    def exec(self, *args: Any, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        command = [str(TRTC), "exec", "--summary", str(self.folder / "summary.json"), *map(str, args)]
        return subprocess.run(
            command, check=False, capture_output=True, text=True, timeout=120, cwd=self.folder, env=self.env(env)
        )

    def env(self, more: dict[str, str] | None = None) -> dict[str, str]:
        return {**os.environ, "MODEL": str(self.model), **(more or {})}

    @property
    def summary(self) -> dict[str, Any]:
        return json.loads((self.folder / "summary.json").read_text())

    @property
    def only(self) -> dict[str, Any]:
        [model] = self.summary["models"]
        return model


def double_model() -> onnx.ModelProto:
    nodes = [helper.make_node("Add", ["x", "x"], ["y"])]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", 3])]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["rows", 3])]
    graph = helper.make_graph(nodes, "double", inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    model = folder / "double.onnx"
    model.write_bytes(double_model().SerializeToString())
    build(model, folder / "double.trtc", BuildOptions(measure_s=0, verify_s=1, use_cache=False))
    return model, folder / "double.trtc"


@pytest.fixture
def world(made, tmp_path):
    return World(*made, tmp_path)


WANTED = "[[0.0, 2.0, 4.0], [6.0, 8.0, 10.0]]\n"


def test_a_program_runs_on_the_bundle_and_the_summary_says_so(world):
    done = world.exec("--bundle", world.bundle, "--", sys.executable, world.program(RUN_ONCE))
    assert (done.returncode, done.stdout) == (0, WANTED)
    assert "double.onnx" in done.stderr
    assert "1 call of 1 size by the bundle (" in done.stderr
    assert world.only["bundles"] == [str(world.bundle)]
    assert world.only["through"] == []


@pytest.mark.parametrize("start", [
    pytest.param(["-m", "app"], id="module"),
    pytest.param(["-c", "import app"], id="text"),
    pytest.param(["-m", "pytest", "-q", "-p", "no:cacheprovider", "app.py"], id="pytest"),
])  # fmt: skip
def test_however_python_is_started(world, start):
    world.program(
        "def test_it():\n    assert ort.InferenceSession(model).run(None, {'x': x})[0][1][2] == 10\ntest_it()"
    )
    done = world.exec("--bundle", world.bundle, "--", sys.executable, *start)
    assert done.returncode == 0, done.stdout + done.stderr
    assert world.only["bundles"] == [str(world.bundle)]


def test_a_console_script_is_served_as_its_interpreter_is(world):
    world.program("def test_it():\n    assert ort.InferenceSession(model).run(None, {'x': x})[0][1][2] == 10")
    script = TRTC.with_name("pytest")
    done = world.exec("--bundle", world.bundle, "--", script, "-q", "-p", "no:cacheprovider", "app.py")
    assert done.returncode == 0, done.stdout + done.stderr
    assert world.only["bundles"] == [str(world.bundle)]


def test_all_bundles_of_a_folder_are_known(world):
    done = world.exec("--bundles", world.bundle.parent, "--", sys.executable, world.program(RUN_ONCE))
    assert (done.returncode, done.stdout) == (0, WANTED)
    assert world.only["calls"] == 1


def test_a_name_that_a_program_imported_in_any_way_is_replaced(world):
    code = """
    from onnxruntime import InferenceSession
    from onnxruntime.capi.onnxruntime_inference_collection import InferenceSession as Inner
    import onnxruntime.capi.onnxruntime_pybind11_state as C
    assert InferenceSession is Inner is ort.InferenceSession
    print(isinstance(InferenceSession(model), ort.InferenceSession), InferenceSession.__name__)
    """
    done = world.exec("--bundle", world.bundle, "--", sys.executable, world.program(code))
    assert (done.returncode, done.stdout) == (0, "True InferenceSession\n")


AGAIN = [
    pytest.param("importlib.reload(ort)", id="package"),
    pytest.param("importlib.reload(ort.capi.onnxruntime_inference_collection); importlib.reload(ort)", id="both"),
    pytest.param(
        "gone = [sys.modules.pop(n) for n in list(sys.modules) if n in OURS]; import onnxruntime as ort", id="new"
    ),
]


@pytest.mark.parametrize("again", AGAIN)
def test_a_library_that_is_imported_again_is_replaced_again(world, again):
    code = "import importlib, onnxruntime.capi.onnxruntime_inference_collection\n"
    code += 'OURS = ["onnxruntime", "onnxruntime.capi.onnxruntime_inference_collection"]\n'
    done = world.exec("--bundle", world.bundle, "--", sys.executable, world.program(f"{code}{again}\n{RUN_ONCE}"))
    assert (done.returncode, done.stdout) == (0, WANTED), done.stderr
    assert (world.summary["processes"], world.only["calls"], world.only["through"]) == (1, 1, [])


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_children_of_multiprocessing_are_served_and_counted(world, method):
    code = f"""
    import multiprocessing
    def work(rows):
        return ort.InferenceSession(model).run(None, {{"x": np.ones((rows, 3), "f4")}})[0].shape
    if __name__ == "__main__":
        with multiprocessing.get_context("{method}").Pool(2) as pool:
            print(sorted(pool.map(work, [1, 2, 3])))
            pool.close()
            pool.join()
    """
    done = world.exec("--bundle", world.bundle, "--", sys.executable, world.program(code))
    assert (done.returncode, done.stdout) == (0, "[(1, 3), (2, 3), (3, 3)]\n"), done.stderr
    assert (world.only["calls"], world.only["sizes"]) == (3, 3)


def test_a_session_from_before_a_fork_goes_on_in_the_child(world):
    code = """
    session = ort.InferenceSession(model)
    session.run(None, {"x": x})
    sys.stdout.flush()
    if os.fork() == 0:
        print(session.run(None, {"x": x})[0].sum(), flush=True)
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.wait()[1]), session.run(None, {"x": x})[0].sum())
    """
    done = world.exec("--bundle", world.bundle, "--", sys.executable, world.program(code))
    assert (done.returncode, done.stdout) == (0, "30.0\n0 30.0\n"), done.stderr


def test_threads_share_a_session(world):
    code = """
    from concurrent.futures import ThreadPoolExecutor
    session = ort.InferenceSession(model)
    def work(i):
        rows = i % 5 + 1
        return bool((session.run(None, {"x": np.full((rows, 3), i, "f4")})[0] == 2 * i).all())
    with ThreadPoolExecutor(8) as pool:
        print(all(pool.map(work, range(400))))
    """
    record = world.folder / "r.jsonl"
    done = world.exec("--bundle", world.bundle, "--record", record, "--", sys.executable, world.program(code))
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr
    assert (world.only["calls"], world.only["sizes"], world.only["through"]) == (400, 5, [])
    assert sum(json.loads(line).get("count", 0) for line in record.read_text().splitlines()) == 400


def test_threads_that_fall_through_at_once_make_one_real_session(world):
    code = """
    from concurrent.futures import ThreadPoolExecutor
    session = ort.InferenceSession(model)
    options = ort.RunOptions()
    options.only_execute_path_to_fetches = True
    with ThreadPoolExecutor(8) as pool:
        print(set(pool.map(lambda i: session.run(None, {"x": x}, options)[0].sum().item(), range(64))))
    """
    done = world.exec("--bundle", world.bundle, "--", sys.executable, world.program(code))
    assert (done.returncode, done.stdout) == (0, "{30.0}\n"), done.stderr
    reason = "run option only_execute_path_to_fetches is set"
    assert world.only["through"] == [{"method": "run", "reason": reason, "count": 64}]


def test_a_session_cannot_be_pickled_as_ever(world):
    code = "import pickle\ntry:\n    pickle.dumps(ort.InferenceSession(model))\nexcept Exception as e: print(repr(e))"
    path = world.program(code)
    plain = subprocess.run([sys.executable, path], check=True, capture_output=True, text=True, env=world.env())
    done = world.exec("--bundle", world.bundle, "--", sys.executable, path)
    assert done.stdout == plain.stdout
    assert "cannot pickle" in done.stdout


def test_a_model_of_another_version_runs_plain_and_the_bundle_is_said_to_be_unused(world):
    other = world.folder / "other.onnx"
    model = double_model()
    model.producer_version = "2"
    other.write_bytes(model.SerializeToString())
    done = world.exec(
        "--bundle", world.bundle, "--", sys.executable, world.program(RUN_ONCE), env={"MODEL": str(other)}
    )
    assert (done.returncode, done.stdout) == (0, WANTED)
    assert world.only["bundles"] == []
    assert f"{world.bundle}: not used" in done.stderr
    now = hashlib.sha256(other.read_bytes()).hexdigest()
    assert (
        f"({hashlib.sha256(world.model.read_bytes()).hexdigest()[:12]}); opened: other.onnx ({now[:12]})" in done.stderr
    )
    assert [item["path"] for item in world.summary["not_used"]] == world.summary["unused_bundles"]


def test_the_first_bundle_of_a_model_serves_it_and_the_second_is_named(world):
    second = world.folder / "second.trtc"
    shutil.copytree(world.bundle, second)
    done = world.exec("--bundle", second, "--bundle", world.bundle, "--", sys.executable, world.program(RUN_ONCE))
    assert (done.returncode, done.stdout, world.only["bundles"]) == (0, WANTED, [str(second)])
    assert f"{world.bundle}: not used: {second}, another bundle of the same model, came first" in done.stderr


def test_calls_are_counted_by_who_answered_and_compared_with_times_of_the_bundle_that_did(world):
    first, second = world.folder / "first.trtc", world.folder / "second.trtc"
    seconds = {first: 3.0, second: 700.0}
    for path, taken_s in seconds.items():
        shutil.copytree(world.bundle, path)
        manifest = read_manifest(path)
        recorded = (RecordedCalls(inputs={"x": (2, 3)}, count=1, seconds=taken_s),)
        original = msgspec.structs.replace(manifest.original, recorded=recorded)
        write_bundle(path, msgspec.structs.replace(manifest, original=original), {})
    code = """
    s = ort.InferenceSession(model)
    for _ in range(5):
        s.run(None, {"x": x})
    for _ in range(3):
        s.run(None, {"x": x.tolist()})
        s.run(["y", "y"], {"x": x})
    """
    done = world.exec("--bundle", first, "--bundle", second, "--", sys.executable, world.program(code))
    assert done.returncode == 0, done.stderr
    found = world.only
    assert (found["calls"], found["by_bundle"]["calls"], found["by_onnxruntime"]["calls"]) == (11, 8, 3)
    assert found["by_bundle"]["seconds"] + found["by_onnxruntime"]["seconds"] == pytest.approx(found["seconds"])
    assert (found["compared_calls"], found["before_s"]) == (8, 3.0)
    assert "11 calls of 1 size: 8 by the bundle (" in done.stderr


def test_an_altered_bundle_is_not_used_and_the_reason_is_said(world):
    broken = world.folder / "broken.trtc"
    shutil.copytree(world.bundle, broken)
    blob = next((broken / "blobs").glob("*.onnx"))
    blob.write_bytes(blob.read_bytes()[:-1])
    done = world.exec("--bundle", broken, "--", sys.executable, world.program(RUN_ONCE))
    assert (done.returncode, done.stdout) == (0, WANTED)
    [through] = world.only["through"]
    assert through["reason"].startswith("the bundle cannot be opened: ")


@pytest.mark.parametrize(("code", "wanted"), [
    pytest.param("sys.exit(7)", 7, id="its-own"),
    pytest.param("raise ValueError", 1, id="an-exception"),
    pytest.param("import signal; os.kill(os.getpid(), signal.SIGKILL)", 137, id="killed"),
    pytest.param("os.abort()", 134, id="aborted"),
])  # fmt: skip
def test_the_exit_code_is_that_of_the_program(world, code, wanted):
    done = world.exec("--bundle", world.bundle, "--", sys.executable, world.program(code))
    assert done.returncode == wanted


def test_a_program_that_empties_the_folder_of_temporary_files_keeps_its_exit_code(world):
    folder = world.folder / "temporary"
    folder.mkdir()
    program = ["sh", "-c", 'rm -rf "$TMPDIR"/*; exit 7']
    done = world.exec("--bundle", world.bundle, "--", *program, env={"TMPDIR": str(folder)})
    assert done.returncode == 7, done.stderr
    assert list(folder.iterdir()) == []


def test_a_program_that_is_no_python_runs_as_it_is(world):
    done = world.exec("-q", "--bundle", world.bundle, "--", "sh", "-c", "cat; echo $0 >&2; exit 3", "name")
    assert (done.returncode, done.stderr) == (3, "name\n")


@pytest.mark.parametrize("flag", ["-I", "-E", "-S"])
def test_an_interpreter_that_ignores_its_environment_runs_plain_and_that_is_said(world, flag):
    done = world.exec("--bundle", world.bundle, "--", sys.executable, flag, "-c", "print(1)")
    assert (done.returncode, done.stdout) == (0, "1\n")
    assert "-I, -E or -S" in done.stderr


def test_a_python_without_trtc_runs_plain_and_that_is_said(world):
    libraries = world.folder / "lib"
    package = libraries / "onnxruntime" / "capi"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package.parent / "__init__.py").write_text(
        "from onnxruntime.capi.onnxruntime_inference_collection import InferenceSession\n"
    )
    (package / "onnxruntime_inference_collection.py").write_text("class InferenceSession: pass\n")
    # No site-packages: neither trtc nor numpy is there.
    code = "import onnxruntime; print(onnxruntime.InferenceSession.__name__)"
    base = Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info.minor}"
    done = world.exec("--bundle", world.bundle, "--", base, "-c", code, env={"PYTHONPATH": str(libraries)})
    assert (done.returncode, done.stdout) == (0, "InferenceSession\n")
    assert "runs plain ONNX Runtime" in done.stderr


def test_a_sitecustomize_of_the_user_still_runs(world):
    (world.folder / "sitecustomize.py").write_text("import builtins\nbuiltins.from_user = __name__\n")
    path = world.program("print(from_user, [p for p in sys.path if 'compat' in p])")
    done = world.exec("--bundle", world.bundle, "--", sys.executable, path, env={"PYTHONPATH": str(world.folder)})
    assert (done.returncode, done.stdout) == (0, "sitecustomize []\n"), done.stderr


def test_nothing_heavy_is_imported_before_onnx_runtime_is(world):
    code = (
        "import sys; print(sorted({m.partition('.')[0] for m in sys.modules} & {'trtc', 'numpy', 'msgspec', 'json'}))"
    )
    path = world.folder / "bare.py"
    path.write_text(code)
    plain = subprocess.run([sys.executable, path], check=True, capture_output=True, text=True)
    done = world.exec("--bundle", world.bundle, "--", sys.executable, path)
    assert done.stdout == plain.stdout


def test_signals_reach_the_program(world):
    code = """
    import signal
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(5))
    print("ready", flush=True)
    signal.pause()
    """
    command = [str(TRTC), "exec", "--bundle", str(world.bundle), "--", sys.executable, str(world.program(code))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=world.env()) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        child.send_signal(signal.SIGTERM)
        child.communicate(timeout=60)
    assert child.returncode == 5


SIGNALLED_AT_ONCE = """
import os, sys
from trtc.tools.exec_line import Line
from trtc.tools.exec_program import run_program
spawn = os.posix_spawnp
def spawn_and_signal(*words, **options):
    program = spawn(*words, **options)
    os.kill(os.getpid(), int(sys.argv[1]))
    return program
os.posix_spawnp = spawn_and_signal
sys.exit(run_program(Line(record="r.jsonl", quiet=True, command=("sleep", "60"))))
"""
"""Run a program, and send the command a signal in the moment in which the program has just been started."""


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGUSR1", "SIGINT"])
def test_a_signal_that_comes_while_the_program_starts_reaches_it(tmp_path, name):
    number = getattr(signal, name)
    words = [sys.executable, "-c", SIGNALLED_AT_ONCE, str(int(number))]
    done = subprocess.run(words, check=False, cwd=tmp_path, env={**os.environ, "TMPDIR": str(tmp_path)}, timeout=50)
    assert done.returncode == 128 + number
    assert [path.name for path in tmp_path.iterdir()] == ["r.jsonl"]


def entries(record: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in record.read_text().splitlines()]


def test_a_record_holds_sizes_times_ranges_and_samples(world):
    record = world.folder / "traffic.jsonl"
    code = """
    session = ort.InferenceSession(model)
    for rows in [1, 2, 2, 5]:
        session.run(None, {"x": np.full((rows, 3), rows, "f4")})
    session.run(None, {"x": [[0.5, 1, 9]]})
    """
    done = world.exec("--record", record, "--samples", 3, "--", sys.executable, world.program(code))
    assert done.returncode == 0, done.stderr
    calls: dict[int, int] = {}
    for entry in entries(record):
        if "inputs" in entry:
            calls[entry["inputs"]["x"][0]] = calls.get(entry["inputs"]["x"][0], 0) + entry["count"]
            assert len(entry["times_s"]) == entry["count"]
            assert entry["seconds"] > 0
    assert calls == {1: 2, 2: 2, 5: 1}
    [low, high] = [e["ranges"]["x"] for e in entries(record) if "ranges" in e][-1]
    assert (low, high) in {(1.0, 2.0), (1.0, 5.0), (0.5, 9.0)}
    kept = sorted(samples_folder(record, entries(record)[0]["model"]).glob("*.npz"))
    assert len(kept) == 3
    for path in kept:
        with np.load(path, allow_pickle=False) as sample:
            assert sample["x"].dtype == np.float32


def test_values_of_onnx_runtime_and_bindings_are_recorded(world):
    record = world.folder / "traffic.jsonl"
    code = """
    session = ort.InferenceSession(model)
    session.run_with_ort_values(None, {"x": ort.OrtValue.ortvalue_from_numpy(x)})
    for binding in (session.io_binding(), ort.IOBinding(session)):
        binding.bind_cpu_input("x", x)
        binding.bind_output("y")
        session.run_with_iobinding(binding)
    """
    done = world.exec("--record", record, "--", sys.executable, world.program(code))
    assert done.returncode == 0, done.stderr
    calls = [entry for entry in entries(record) if "inputs" in entry]
    assert all(entry["inputs"] == {"x": [2, 3]} for entry in calls)
    assert sum(entry["count"] for entry in calls) == 3
    assert world.only["through"] == []


def test_bindings_of_a_program_run_on_the_bundle_also_after_a_fork(world):
    code = """
    session = ort.InferenceSession(model)
    bindings = [session.io_binding(), ort.IOBinding(session)]
    def run(binding, array):
        binding.bind_cpu_input("x", array)
        session.run_with_iobinding(binding)
        return binding.copy_outputs_to_cpu()[0].tolist()
    for binding in bindings:
        binding.bind_output("y")
        assert isinstance(binding, ort.IOBinding)
        print(run(binding, x), flush=True)
    if os.fork() == 0:
        print(run(bindings[0], -x), flush=True)
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.wait()[1]), run(bindings[0], -x) == run(bindings[1], -x))
    """
    path = world.program(code)
    plain = subprocess.run([sys.executable, path], check=True, capture_output=True, text=True, env=world.env())
    done = world.exec("--bundle", world.bundle, "--", sys.executable, path)
    assert (done.returncode, done.stdout) == (0, plain.stdout), done.stderr
    # The child's counts are not written: it ended with os._exit.
    assert (world.only["calls"], world.only["through"]) == (4, [])


def test_a_session_with_options_that_a_bundle_cannot_keep_is_left_alone_and_named(world):
    code = """
    options = ort.SessionOptions()
    options.use_deterministic_compute = True
    print(ort.InferenceSession(model, options).run(None, {"x": x})[0].tolist())
    """
    done = world.exec("--bundle", world.bundle, "--", sys.executable, world.program(code))
    assert (done.returncode, done.stdout) == (0, WANTED)
    assert [item["method"] for item in world.only["through"]] == ["InferenceSession"]
    assert "not used" not in done.stderr


def test_no_values_keeps_sizes_only(world):
    record = world.folder / "traffic.jsonl"
    world.exec("--record", record, "--no-values", "--", sys.executable, world.program(RUN_ONCE))
    assert [sorted(entry) for entry in entries(record)] == [["count", "inputs", "model", "name", "seconds", "times_s"]]
    assert list(world.folder.glob("*.samples")) == []


def test_a_record_builds_a_bundle_that_serves_the_program(world):
    record, bundle = world.folder / "traffic.jsonl", world.folder / "made.trtc"
    path = world.program(RUN_ONCE)
    world.exec("--record", record, "--", sys.executable, path)
    built = subprocess.run(
        [TRTC, "build", world.model, "--traffic", record, "--measure-seconds", "0.1", "-o", bundle],
        check=False, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    manifest = json.loads((bundle / "manifest.json").read_text())
    assert manifest["planned"]["requests"] == 1
    assert any("real sample" in evidence["samples"] for evidence in manifest["evidence"]), manifest["evidence"]
    [call] = [entry for entry in entries(record) if "inputs" in entry]
    [kept] = manifest["original"]["recorded"]
    assert kept == {key: call[key] for key in ("inputs", "count", "seconds")}
    for more in ((), ("--record-before", record)):
        done = world.exec("--bundle", bundle, *more, "--", sys.executable, path)
        assert (done.returncode, done.stdout) == (0, WANTED)
        assert world.only["before_s"] == pytest.approx(call["seconds"] / call["count"])
        assert world.only["compared_calls"] == world.only["calls"] == 1
        assert " in the recorded run)" in done.stderr  # one call tells of no spread, so there is no ratio
        assert "trtc bench NAME.trtc --vs onnxruntime --model MODEL.onnx compares side by side" in done.stderr


def test_times_before_are_compared_for_equal_shapes_only(world):
    record = world.folder / "traffic.jsonl"
    digest = hashlib.sha256(world.model.read_bytes()).hexdigest()
    known = {"model": digest, "name": "m", "inputs": {"x": [2, 3]}, "count": 4, "seconds": 2.0, "times_s": []}
    other = {**known, "inputs": {"x": [7, 3]}, "seconds": 4000.0}
    record.write_text(json.dumps(known) + "\n" + json.dumps(other) + "\n")
    code = 's = ort.InferenceSession(model)\nfor v in (x, x, x[:1]): s.run(None, {"x": v})'
    done = world.exec("--bundle", world.bundle, "--record-before", record, "--", sys.executable, world.program(code))
    assert (world.only["calls"], world.only["compared_calls"], world.only["before_s"]) == (3, 2, 0.5)
    assert "2 of them have sizes that were recorded before" in done.stderr


def test_opening_the_session_that_a_call_falls_through_to_is_no_time_of_the_call(world):
    code = """
    from trtc.runtime.compat import counts, session_class
    clock = [0.0]
    counts.perf_counter = session_class.perf_counter = lambda: clock[0]
    real = ort.InferenceSession._trtc_real
    def slowly(self, *args, **kwargs):
        clock[0] += 100
        plain(self, *args, **kwargs)
    plain, real.__init__ = real.__init__, slowly
    s = ort.InferenceSession(model)
    s.run(["y", "y"], {"x": x})
    """
    done = world.exec("--bundle", world.bundle, "--", sys.executable, world.program(code))
    assert done.returncode == 0, done.stderr
    assert world.only["by_onnxruntime"] == {"calls": 1, "seconds": 0.0, "mean_s": 0.0}


def test_what_a_bundle_answered_is_no_time_before(world):
    record = world.folder / "traffic.jsonl"
    path = world.program(RUN_ONCE)
    world.exec("--bundle", world.bundle, "--record", record, "--", sys.executable, path)
    [call] = [entry for entry in entries(record) if "inputs" in entry]
    assert (call["count"], call["timed"], call["seconds"]) == (1, 0, 0.0)
    done = world.exec("--bundle", world.bundle, "--record-before", record, "--", sys.executable, path)
    assert (done.returncode, done.stdout) == (0, WANTED)
    assert world.only["before_s"] is None
    assert "holds no calls" in done.stderr


def test_a_record_of_another_model_is_refused_by_a_build(world):
    record = world.folder / "traffic.jsonl"
    world.exec("--record", record, "--", sys.executable, world.program(RUN_ONCE))
    other = world.folder / "other.onnx"
    model = double_model()
    model.producer_version = "2"
    other.write_bytes(model.SerializeToString())
    built = subprocess.run([TRTC, "build", other, "--traffic", record], check=False, capture_output=True, text=True)
    assert built.returncode == 2
    was, now = (hashlib.sha256(path.read_bytes()).hexdigest()[:12] for path in (world.model, other))
    assert f"it has 1 request of double.onnx ({was}...), none of this model file ({now}...);" in built.stderr
    assert "has the model changed since? record again, or give the file that was recorded" in built.stderr


def test_a_killed_program_leaves_what_it_recorded(world):
    record = world.folder / "traffic.jsonl"
    code = """
    session = ort.InferenceSession(model)
    print("ready", flush=True)
    while True:
        session.run(None, {"x": x})
    """
    command = [str(TRTC), "exec", "-q", "--record", str(record), "--", sys.executable, str(world.program(code))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=world.env(), process_group=0) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        end = time.monotonic() + 60
        while time.monotonic() < end and not (record.exists() and b"\n" in record.read_bytes()):
            os.sched_yield()
        os.killpg(child.pid, signal.SIGKILL)
    assert sum(entry.get("count", 0) for entry in entries(record)) > 0


def test_several_processes_share_a_record(world):
    record = world.folder / "traffic.jsonl"
    code = """
    import subprocess
    if len(sys.argv) == 1:
        children = [subprocess.Popen([sys.executable, __file__, str(i)]) for i in range(3)]
        sys.exit(max(child.wait() for child in children))
    session = ort.InferenceSession(model)
    for _ in range(50):
        session.run(None, {"x": np.zeros((int(sys.argv[1]) + 1, 3), "f4")})
    """
    done = world.exec("--record", record, "--", sys.executable, world.program(code))
    assert done.returncode == 0, done.stderr
    assert sum(entry.get("count", 0) for entry in entries(record)) == 150
    assert (world.only["calls"], world.only["sizes"]) == (150, 3)


def test_a_summary_that_cannot_be_written_is_said_before_the_program_runs(world):
    program = world.folder / "says.py"
    program.write_text("import sys\nprint('the program', file=sys.stderr)")
    done = world.exec("--summary", "/proc/summary.json", "--record", "r.jsonl", "--", sys.executable, program)
    assert done.returncode == 0
    assert done.stderr.index("/proc may not be written") < done.stderr.index("the program\n")
    assert done.stderr.count("warning") == 1


@pytest.mark.parametrize("place", [".", "missing/r.jsonl", "pipe", os.devnull])
def test_a_record_that_cannot_be_written_is_one_warning_and_the_program_runs(world, place):
    os.mkfifo(world.folder / "pipe")
    record = world.folder / place
    done = world.exec("--record", record, "--", sys.executable, world.program(RUN_ONCE))
    assert (done.returncode, done.stdout) == (0, WANTED)
    assert done.stderr.count("warning") == 1


@pytest.mark.parametrize(("args", "message"), [
    pytest.param(["--", "true"], "nothing to do", id="no-option"),
    pytest.param(["--bundle", "missing.trtc", "--", "true"], "missing.trtc", id="no-bundle"),
    pytest.param(["--bundles", "missing", "--", "true"], "no such folder", id="no-folder"),
    pytest.param(["--record", "r.jsonl", "--", "no-such-program"], "no such command", id="no-program"),
    pytest.param(["--samples", "3", "--", "true"], "add --record", id="samples-of-nothing"),
    pytest.param(["--record", "r.jsonl", "--record-before", "b.jsonl", "--", "true"], "no such file", id="no-before"),
    pytest.param(["--record", "r.jsonl"], "COMMAND", id="no-command"),
])  # fmt: skip
def test_wrong_use_is_said_in_one_line(world, args, message):
    done = world.exec(*args)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("where", ["2>&-", "2>/dev/full", "2> >(true)"])
def test_the_exit_code_is_the_programs_where_nothing_can_be_said(world, where):
    line = f"'{TRTC}' exec --record missing/r.jsonl --bundle '{world.bundle}' -- sh -c 'sleep 0.1; exit 7' {where}"
    assert subprocess.run(["bash", "-c", line], check=False, cwd=world.folder, timeout=120).returncode == 7


def test_names_that_are_no_utf8_are_names(world):
    record = Path(os.fsdecode(os.fsencode(world.folder) + b"/r\xff.jsonl"))
    done = world.exec("--record", record, "--", sys.executable, world.program(RUN_ONCE))
    assert (done.returncode, done.stdout, world.summary["notes"]) == (0, WANTED, [])
    assert [entry["inputs"] for entry in entries(record) if "inputs" in entry] == [{"x": [2, 3]}]
