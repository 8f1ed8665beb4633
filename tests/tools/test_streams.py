"""The installed command as a process of its own: exit codes, streams, signals, and missing libraries."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

COMMAND = [sys.executable, "-m", "trtc.tools.entry"]
WITHOUT = """
import sys
sys.modules.update(dict.fromkeys(sys.argv.pop(1).split(",")))
from trtc.tools.cli import main
main()
"""
"""Run the command where some libraries cannot be imported."""
STOPPED_INSIDE = """
import os, sys
from trtc.tools.cli import main
number = int(sys.argv.pop(1))
class Native:
    def find_spec(self, name, path=None, target=None):
        if name == "onnx":
            try:
                os.kill(os.getpid(), number)
            except BaseException as error:
                raise ImportError("initialization failed") from error
sys.meta_path.insert(0, Native())
main()
"""
"""Run the command, and send it a signal while a library is imported that hides what the signal raises."""

STOPPED_EARLY = """
import signal
class First:
    def find_spec(self, name, path=None, target=None):
        if name == "click":
            signal.raise_signal(signal.SIGINT)
sys.meta_path.insert(0, First())
"""
"""Send SIGINT while the first library of the command is imported."""
STOPPED_AGAIN = """
import signal, threading
import click
from trtc.engines.at_once import at_once
from trtc.tools.cli import run_command
inside, outside = threading.Barrier(3), threading.Barrier(3)
asked, seen, ended = [], [], []
def interrupt(until):
    while not until:  # one that comes just before a wait begins would be noticed only when the wait is over
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
def call():
    if inside.wait() == 0:
        interrupt(until=asked)
        interrupt(until=seen)
    outside.wait()
    ended.append(1)
def stop():
    handler = signal.getsignal(signal.SIGINT)
    def watched(*received):
        try:
            handler(*received)
        finally:
            seen.append(1)
    signal.signal(signal.SIGINT, watched)
    asked.append(1)
@click.command()
def command():
    try:
        at_once([call, call, call], stop)
    finally:
        print(len(ended), "calls had ended")
run_command(command, "trtc")
"""
"""Send SIGINT while calls run, and more of them while they are waited for; the calls end when another was seen."""
INTERRUPTED = "trtc: interrupted; nothing half-written was left\n"


def process(*words: object, **options):
    return subprocess.run(
        [*COMMAND, *map(str, words)], capture_output=True, text=True, check=False, timeout=120, **options
    )


def without(libraries: str, *words: object):
    arguments = [sys.executable, "-c", WITHOUT, libraries, *map(str, words)]
    return subprocess.run(arguments, capture_output=True, text=True, check=False, timeout=120)


def test_results_go_to_standard_output_and_progress_to_standard_error(encoder, tmp_path):
    folder = tmp_path / "with blanks é"
    folder.mkdir()
    model = folder / "mödel one.onnx"
    model.write_bytes(encoder.read_bytes())
    done = process("build", model, "--measure-seconds", "0", "--no-cache", env=os.environ | {"COLUMNS": "20"})
    assert done.returncode == 0, done.stderr
    assert "loading the model: " in done.stderr
    assert "loading the model" not in done.stdout
    assert any(line.startswith("comparing the engine for target cpu with ONNX") for line in done.stderr.splitlines())
    assert (folder / "mödel one.trtc" / "manifest.json").is_file()
    ran = process("run", folder / "mödel one.trtc", "--sizes", "batch=2,seq=3", "--json")
    assert json.loads(ran.stdout)["runs"][0]["sizes"] == {"batch": 2, "seq": 3}


def test_an_error_is_one_line_and_its_exit_code(built):
    done = process("run", built)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("trtc: error: no size for batch")
    assert done.stderr.count("\n") == 1


def test_the_traceback_is_there_for_who_asks(built):
    done = process("run", built, env=os.environ | {"TRTC_DEBUG": "1"})
    assert done.returncode == 2
    assert done.stderr.startswith("Traceback")


@pytest.mark.parametrize("words", [["--help"], ["inspect", "{0}"]])
def test_a_reader_that_went_away_ends_the_command_quietly(built, words):
    read_end, write_end = os.pipe()
    os.close(read_end)
    done = subprocess.run(
        [*COMMAND, *(word.format(built) for word in words)],
        stdout=write_end, stderr=subprocess.PIPE, text=True, check=False, timeout=120,
    )  # fmt: skip
    os.close(write_end)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.parametrize("word", ["doctor", "--version"])
def test_closed_standard_output_is_told(word):
    line = 'exec "$@" >&-'
    done = subprocess.run(
        ["sh", "-c", line, "sh", *COMMAND, word], stderr=subprocess.PIPE, text=True, check=False, timeout=120
    )
    assert done.returncode == 4
    assert done.stderr.startswith("trtc: error: standard output is closed; ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_build_that_is_stopped_leaves_nothing(encoder, tmp_path, number, code):
    for name in ("temporary", "cache"):
        (tmp_path / name).mkdir(mode=0o700)
    places = {"TMPDIR": str(tmp_path / "temporary"), "TRTC_CACHE_DIR": str(tmp_path / "cache")}
    words = ["build", str(encoder), "-o", str(tmp_path / "x.trtc"), "--measure-seconds", "600"]
    running = subprocess.Popen([*COMMAND, *words], env=os.environ | places, stderr=subprocess.PIPE, text=True)
    with running:
        for line in running.stderr:
            if line.startswith("comparing"):  # is done, so it measures now, for minutes
                break
        running.send_signal(number)
        rest = running.stderr.read()
        assert running.wait(timeout=120) == code
    assert "Traceback" not in rest
    assert not (tmp_path / "x.trtc").exists()
    assert list((tmp_path / "temporary").glob("trtc-*")) == []
    assert [path for path in (tmp_path / "cache" / "scratch").rglob("*") if path.is_file()] == []


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_that_a_native_module_turns_into_its_own_error_still_ends_the_command(encoder, number, code):
    arguments = [sys.executable, "-c", STOPPED_INSIDE, str(int(number)), "check", str(encoder)]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr == (INTERRUPTED if code == 130 else "")


def test_a_second_interrupt_leaves_no_call_that_runs_behind():
    done = subprocess.run(
        [sys.executable, "-c", STOPPED_AGAIN], capture_output=True, text=True, check=False, timeout=120
    )
    assert (done.returncode, done.stdout) == (130, "3 calls had ended\n")
    assert done.stderr.strip("\n") == INTERRUPTED.strip("\n")


def test_an_interrupt_before_the_commands_own_code_is_there_ends_it_like_any_other():
    with (Path(__file__).parents[2] / "pyproject.toml").open("rb") as file:
        module, function = tomllib.load(file)["project"]["scripts"]["trtc"].split(":")
    code = f"import sys\nfrom {module} import {function}\n{STOPPED_EARLY}\n{function}()"
    done = subprocess.run(
        [sys.executable, "-c", code, "doctor"], capture_output=True, text=True, check=False, timeout=120
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", INTERRUPTED)


@pytest.mark.parametrize("verb", ["build", "check", "inspect"])
@pytest.mark.parametrize("library", ["onnx", "onnxruntime"])
def test_a_missing_library_of_the_compiler_is_named_with_its_installation(encoder, verb, library):
    done = without(library, verb, encoder)
    assert (done.returncode, done.stdout) == (4, "")
    assert f"{library}, which is not installed; pip install 'trtc[cpu]'" in done.stderr


def test_a_bundle_runs_without_the_compilers_libraries(built):
    done = without("onnx,onnx_ir,google.protobuf,trtc.compiler", "run", built, "--all-profiles")
    assert done.returncode == 0, done.stderr


def test_a_bundle_is_inspected_without_any_engine_library(built):
    done = without("onnx,onnx_ir,google.protobuf,onnxruntime,trtc.compiler", "inspect", built, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["chosen"] is None


def test_a_bundle_whose_library_is_missing_says_how_to_get_it(built):
    done = without("onnxruntime", "run", built, "--all-profiles")
    assert done.returncode == 4
    assert "onnxruntime is not installed: pip install 'trtc[cpu]'" in done.stderr


def test_listing_the_verbs_imports_no_verb():
    code = "import sys; from trtc.tools.cli import main\ntry: main()\nexcept SystemExit: print(sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code, "--help"], capture_output=True, text=True, check=True)
    assert "trtc.tools.build" not in done.stdout
    assert "trtc.compiler" not in done.stdout
    assert "trtc.runtime" not in done.stdout


@pytest.mark.parametrize(
    ("words", "fragment"),
    [
        (["build", "m.onnx", "--sampels", "x"], "No such option"),
        (["run", "x.trtc", "--iterations", "0"], "--iterations"),
        (["serve"], "not there yet"),
        (["build"], "no model was given"),
    ],
)
def test_all_errors_look_alike(words, fragment):
    done = process(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("trtc: error: ")
    assert fragment in done.stderr
    assert done.stderr.count("\n") == 1
