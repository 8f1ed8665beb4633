"""The standalone program, on a real bundle, where there is neither Python nor a path nor a home to write to.

Building it takes minutes, so these tests run in ``make test-binary`` only, which says where it lies.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

import msgspec
import pytest

from trtc.engines.bundle import write_bundle
from trtc.engines.distributions import find_distribution
from trtc.engines.manifest_file import read_manifest
from trtc.tools.bench.results import BenchReport
from trtc.tools.cli import command, described

QUICK = ("--iterations", "3", "--duration", "0", "--warm-up", "0")
GRID = ("--grid", "batch_size=2", "sequence_length=17")
SYSTEM = ("ld-linux-x86-64.so.2", "libc.so.6", "libdl.so.2", "libpthread.so.0", "libm.so.6", "librt.so.1", "libz.so.1",
          "libutil.so.1")  # fmt: skip


@pytest.fixture(scope="module")
def bundle(build_minilm, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_minilm(tmp_path_factory.mktemp("binary") / "minilm.trtc", "cpu")


def test_its_figures_are_of_the_same_call_as_those_of_trtc_bench(run, bundle):
    done = run(bundle, *GRID, *QUICK, "--json")
    assert done.returncode == 0, done.stderr
    theirs = json.loads(done.stdout)
    ours = in_this_process(bundle, *GRID, *QUICK, "--json")
    for report in (ours, theirs):
        assert report.pop("schema") == "trtc.bench/1"
        del report["written"]
    one, other = msgspec.convert(ours, BenchReport), msgspec.convert(theirs, BenchReport)
    for field in ("engine", "backend", "mode", "slots", "threads", "iterations", "transfers", "graphs", "versions"):
        assert getattr(one, field) == getattr(other, field)
    (a,), (b,) = one.cases, other.cases
    assert a.roof is not None
    assert b.roof is not None
    # The nodes that ran, with all their shapes: the same engine did the same work.
    assert (a.roof.flop, a.roof.moved_bytes) == (b.roof.flop, b.roof.moved_bytes)
    assert a.roof.flop > 1e8
    assert [(s.sizes, s.profile, s.run_sizes, s.waste) for s in a.sizes] == [
        (s.sizes, s.profile, s.run_sizes, s.waste) for s in b.sizes
    ]
    assert a.parts.keys() == b.parts.keys()
    assert (a.latency.count, one.memory.arena_bytes) == (b.latency.count, other.memory.arena_bytes)


def in_this_process(bundle, *words):
    from click.testing import CliRunner

    arguments = ["bench", str(bundle), *words]
    result = CliRunner().invoke(command, arguments, prog_name="trtc", standalone_mode=False)
    assert result.exception is None, described(result.exception)
    return json.loads(result.stdout)


def test_it_runs_where_nothing_but_the_c_library_is_installed(binary, bundle, tmp_path):
    """A root folder with the program, the bundle, glibc and zlib: no Python, no shell, no home."""
    root = bare_root(binary, bundle, tmp_path)
    done = in_root(root, "/trtc-bench", "/minilm.trtc", *GRID[:1], "batch_size=1", "sequence_length=5", *QUICK)
    assert done.returncode == 0, done.stderr
    assert "=== Performance summary ===" in done.stdout


def test_a_tmp_that_forbids_execution_is_a_plain_error_and_tmpdir_helps(binary, bundle, tmp_path):
    root = bare_root(binary, bundle, tmp_path)
    (root / "elsewhere").mkdir()
    refused = in_root(root, "/trtc-bench", "--version", noexec=True)
    assert refused.returncode != 0
    assert "failed to map segment" in refused.stderr
    helped = in_root(root, "/trtc-bench", "--version", noexec=True, environ={"TMPDIR": "/elsewhere"})
    assert helped.returncode == 0, helped.stderr


def test_it_finds_libraries_where_the_systems_loader_looks(binary, bundle, tmp_path):
    root = bare_root(binary, bundle, tmp_path)
    libraries = Path(find_spec("tensorrt_rtx_libs").origin).parent
    for file in libraries.glob("*.so.*"):
        shutil.copy(file, root / "lib/x86_64-linux-gnu")
    told = in_root(root, "/trtc-bench", "--libraries").stdout
    version = find_distribution("tensorrt_rtx").version
    assert f"{version}, loaded from /lib/x86_64-linux-gnu/libtensorrt_rtx.so.{version.split('.')[0]}\n" in told


def bare_root(binary, bundle, folder):
    root = folder / "root"
    for name in ("lib64", "lib/x86_64-linux-gnu", "tmp", "proc"):
        (root / name).mkdir(parents=True)
    for name in SYSTEM:
        found = next((p for p in (Path("/lib64", name), Path("/lib/x86_64-linux-gnu", name)) if p.exists()), None)
        if found is None:
            pytest.skip(f"this system keeps {name} elsewhere")
        shutil.copy(found.resolve(), root / found.relative_to("/"))
    shutil.copy(binary, root / "trtc-bench")
    shutil.copytree(bundle, root / "minilm.trtc")
    return root


def in_root(root, *words, noexec=False, environ=None):
    if os.geteuid() != 0 or not shutil.which("unshare"):
        pytest.skip("a root folder of its own takes root's rights and unshare")
    steps = f"mount --bind /proc {root}/proc" + (f" && mount -t tmpfs -o noexec none {root / 'tmp'}" if noexec else "")
    given = " ".join(f"{name}={value}" for name, value in (environ or {}).items())
    script = f'{steps} && exec env -i {given} "$(command -v chroot)" {root} "$@"'
    probe = subprocess.run(
        ["unshare", "-m", "sh", "-c", f"mount --bind /proc {root}/proc"], check=False, capture_output=True
    )
    if probe.returncode:
        pytest.skip(f"this machine does not let us mount: {probe.stderr.decode().strip()}")
    command_line = ["unshare", "-m", "sh", "-c", script, "sh", *words]
    return subprocess.run(command_line, capture_output=True, text=True, check=False, timeout=300)


def test_it_says_its_version_and_its_options(run):
    assert run("--version").stdout.startswith("trtc-bench, version ")
    assert "--warm-up" in run("--help").stdout
    assert "--libraries" in run("--help").stdout


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        pytest.param([], 2, "write trtc-bench NAME.trtc", id="no-bundle"),
        pytest.param(["none.trtc"], 2, "none.trtc", id="missing"),
        pytest.param(["{bundle}", "--iterations", "0"], 2, "0 is not in the range", id="zero-iterations"),
        pytest.param(["{bundle}", "--sizes", "batch_size=9,sequence_length=5"], 2, "batch_size=9", id="size"),
        pytest.param(["{bundle}", "--html", "{folder}/x.html"], 4, "holds no more", id="needs-matplotlib"),
        pytest.param(["{bundle}", "--vs", "torch"], 4, "holds no more", id="needs-torch"),
        pytest.param(["{altered}"], 1, "the manifest says", id="altered"),
        pytest.param(["{foreign}"], 4, "it was built for other", id="another-machine"),
    ],
)
def test_errors_are_one_line_with_the_exit_codes_of_trtc(run, bundle, tmp_path, words, code, message):  # noqa: PLR0917 (a table of cases)
    places = {
        "bundle": bundle,
        "altered": tmp_path / "altered.trtc",
        "foreign": tmp_path / "foreign.trtc",
        "folder": tmp_path,
    }
    for name in ("altered", "foreign"):
        shutil.copytree(bundle, places[name])
    blob = max((p for p in places["altered"].rglob("*") if p.is_file()), key=lambda p: p.stat().st_size)
    data = bytearray(blob.read_bytes())
    data[len(data) // 2] ^= 1
    blob.chmod(0o600)
    blob.write_bytes(data)
    manifest = read_manifest(places["foreign"])
    record = manifest.engines[0]
    needs = msgspec.structs.replace(record.requirements, architecture="other")
    write_bundle(
        places["foreign"],
        msgspec.structs.replace(manifest, engines=(msgspec.structs.replace(record, requirements=needs),)),
        {},
    )
    done = run(*(word.format(**places) for word in words))
    assert done.returncode == code, done.stderr
    errors = [line for line in done.stderr.splitlines() if line.startswith("trtc: error: ")]
    assert len(errors) == 1
    assert message in errors[0]
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
