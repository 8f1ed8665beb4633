"""Bundles on disk, the build cache, and sessions of several threads and processes."""

from __future__ import annotations

import json
import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from onnx import TensorProto, numpy_helper

from trtc.engines.checksum import sealed
from trtc.engines.host import this_host
from trtc.profiles import HostError, TrtcError
from trtc.runtime import CancelledError, CancelToken, SessionClosedError, load

EYE = ", ".join(str(number) for number in np.eye(64, dtype=int).ravel())
DOUBLE = f"g (float[B,64] x) => (float[B,64] y) <float[64,64] w = {{{EYE}}}> {{ a = MatMul (x, w)  y = Add (a, x) }}"


@pytest.fixture(scope="module")
def built(build):
    """A bundle with a weights file of 16 KiB: y = x * I + x."""
    return build(DOUBLE, dim=("B=1..4",), buckets=()).path


@pytest.fixture
def bundle(built, tmp_path):
    """A copy of it that a test may change."""
    return shutil.copytree(built, tmp_path / "model.trtc")


def run(session, rows=1, value=1.0):
    return session.run({"x": np.full((rows, 64), value, np.float32)})["y"]


@pytest.mark.case("Threads share buffers")
@pytest.mark.parametrize("slots", [1, 2, 4])
def test_calls_of_many_threads_never_mix(built, slots):
    """Four threads with batches of 1 to 4 and values of their own: every answer is the thread's, in its shape."""

    def many(session, i):
        wrong = 0
        for _ in range(100):
            got = run(session, i, i)
            wrong += got.shape != (i, 64) or bool(np.any(got != 2 * i))
        return wrong

    with load(built, slots=slots) as session, ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda i: many(session, i), (1, 2, 3, 4))) == [0, 0, 0, 0]


FORK = """
import os, signal, sys, gc
import numpy as np
from trtc.runtime import load, SessionClosedError
signal.alarm(60)  # a child that hangs is ended, and seen
session = load(sys.argv[1], threads=2)
session.run({"x": np.ones((1, 64), np.float32)})
child = os.fork()
if not child:
    if sys.argv[2] == "run":
        try:
            session.run({"x": np.ones((1, 64), np.float32)})
        except SessionClosedError as error:
            assert "forked" in str(error)
            sys.exit(7)
    elif sys.argv[2] == "drop":
        del session
        gc.collect()
        sys.exit(7)
    elif sys.argv[2] == "load-again":
        with load(sys.argv[1]) as own:
            sys.exit(7 if own.run({"x": np.ones((1, 64), np.float32)})["y"].sum() == 128 else 1)
status = os.waitpid(child, 0)[1]
assert os.waitstatus_to_exitcode(status) == 7, status
assert session.run({"x": np.ones((1, 64), np.float32)})["y"].sum() == 128
session.close()
"""


@pytest.mark.case("A process forks after loading")
@pytest.mark.parametrize("what", ["run", "drop", "load-again"])
def test_a_forked_child_gets_an_error_and_never_crashes(built, what):
    """A run there says to load again, dropping the session is harmless, loading again works, and the parent goes on."""
    done = subprocess.run([sys.executable, "-c", FORK, built, what], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.case("A session is pickled")
def test_a_session_pickles_by_its_path(built):
    """The copy loads the bundle again."""
    with load(built, slots=1) as session, pickle.loads(pickle.dumps(session)) as copy:  # noqa: S301 (our own bytes)
        assert_array_equal(run(copy), run(session))


@pytest.mark.case("A call is cancelled")
def test_a_cancelled_call_ends_and_the_next_one_is_right(serve):
    """The cancelled call raises once the engine has let go of its memory; later calls are not affected."""
    graph = """g (int64 n, float[64,64] x) => (float[64,64] y) <bool go = {1}> {
        y = Loop (n, go, x) <body = b (int64 i, bool c, float[64,64] s) => (bool d, float[64,64] t) {
            d = Identity (c)
            t = MatMul (s, x)
        }>
    }"""
    session = serve(graph, val_ranges=("n:[0,4]",))
    x = np.eye(64, dtype=np.float32)
    token = CancelToken()
    timer = threading.Timer(0.3, token.cancel)
    timer.start()
    with pytest.raises(CancelledError):
        session.run({"n": 10**6 * 30, "x": x}, cancel=token)
    timer.join()
    for _ in range(2):
        assert_array_equal(session.run({"n": 2, "x": 2 * x})["y"], 8 * x)


@pytest.mark.case("Memory grows with every new size")
def test_routes_and_memory_are_bounded_whatever_sizes_come(build):
    """After many sizes the second half of as many new ones reserves no more memory, and the table of routes is full."""
    graph = (
        "g (float[B,S,4] x) => (float[B,S,4] y) <float[4,4] w = {1,0,0,0,0,1,0,0,0,0,1,0,0,0,0,1}>"
        "{ a = MatMul (x, w)  y = MatMul (a, w) }"
    )
    session = load(build(graph, dim=("B=1..2", "S=1..4000")).path, slots=1)
    sizes = np.random.default_rng(0).permutation(4000)[:3000] + 1
    reserved = []
    with session:
        for i, size in enumerate(sizes):
            x = np.full((1, size, 4), i, np.float32)
            assert session.run({"x": x})["y"][0, -1, -1] == i
            if i in (1499, 2999):
                reserved.append(session.stats)
    assert reserved[1].arena.reserved_bytes == reserved[0].arena.reserved_bytes
    assert reserved[1].slot_bytes == reserved[0].slot_bytes
    assert reserved[1].routes_forgotten > reserved[0].routes_forgotten > 0


def rewrite(bundle, manifest):
    """Write a manifest as somebody who edits it on purpose does, with a checksum that is right."""
    (bundle / "manifest.json").write_bytes(sealed((json.dumps(manifest, indent=2) + "\n").encode()))


def blobs(bundle):
    return sorted(path for path in (bundle / "blobs").iterdir() if path.stat().st_size > 100)


@pytest.mark.case("A file of a bundle is damaged")
@pytest.mark.parametrize("suffix", ["onnx", "weights"])
@pytest.mark.parametrize("damage", ["halved", "one byte", "text", "empty", "removed", "link"])
def test_a_damaged_bundle_is_refused_before_any_library_reads_it(bundle, trtc, damage, suffix, tmp_path):
    """Both digests, or both sizes, are in the message; the command exits with 1 and shows no traceback."""
    found = [path for path in blobs(bundle) if path.suffix == f".{suffix}"]
    if not found:
        pytest.skip("this ONNX Runtime keeps the weights in the graph")
    path = found[0]
    data = path.read_bytes()
    if damage == "halved":
        path.write_bytes(data[: len(data) // 2])
    elif damage == "one byte":
        middle = len(data) // 2
        path.write_bytes(data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :])
    elif damage == "text":
        path.write_bytes(b"not an engine" * 40)
    elif damage == "empty":
        path.write_bytes(b"")
    else:
        path.unlink()
        if damage == "link":
            (tmp_path / "elsewhere").write_bytes(data)
            path.symlink_to(tmp_path / "elsewhere")
    if damage == "link":
        with pytest.raises(TrtcError, match="link"):
            load(bundle)
        return
    with pytest.raises(TrtcError) as error:
        load(bundle)
    if damage == "one byte":
        assert len(set(re.findall(r"[0-9a-f]{64}(?!\.)", str(error.value)))) == 2
    said = trtc("run", bundle, "--sizes", "B=1")
    assert said.code == 1
    assert "Traceback" not in said.err


@pytest.mark.case("A manifest is damaged")
@pytest.mark.parametrize(
    "damage", ["halved", "empty", "no JSON", "one digit", "unknown field", "newer version", "path outside", "removed"]
)
def test_a_damaged_manifest_is_refused(bundle, damage):
    """Decoded strictly: nothing is guessed, and no path leaves the bundle."""
    path = bundle / "manifest.json"
    data = path.read_bytes()
    manifest = json.loads(data)
    if damage == "unknown field":
        manifest = {"surprise": 1, **manifest}
    elif damage == "newer version":
        manifest["schema"] = "99.0"
    elif damage == "path outside":
        manifest["engines"][0]["files"][0]["path"] = "../" + manifest["engines"][0]["files"][0]["path"]
    if damage in ("unknown field", "newer version", "path outside"):
        rewrite(bundle, manifest)
    elif damage == "removed":
        path.unlink()
    else:
        digit = data.index(b'"size_bytes": ') + len(b'"size_bytes": ')
        other = b"1" if data[digit : digit + 1] != b"1" else b"2"
        changed = {
            "halved": data[: len(data) // 2],
            "empty": b"",
            "no JSON": b"\x80pickle",
            "one digit": data[:digit] + other + data[digit + 1 :],
        }
        path.write_bytes(changed[damage])
    with pytest.raises(TrtcError, match=r"manifest\.json|model\.trtc"):
        load(bundle)


@pytest.mark.case("An engine from another version or processor")
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("library_version", "1.0.0"),
        ("system", "Windows"),
        ("architecture", "riscv64"),
        ("cpu_features", ["avx9000"]),
    ],
)
def test_an_engine_that_does_not_fit_is_refused_with_both_sides(bundle, trtc, field, value):
    """What the engine needs, what this host has, and what to do; exit code 4, and nothing runs in its place."""
    manifest = json.loads((bundle / "manifest.json").read_bytes())
    manifest["engines"][0]["requirements"][field] = value
    rewrite(bundle, manifest)
    with pytest.raises(HostError) as error:
        load(bundle)
    assert (value if isinstance(value, str) else value[0]) in str(error.value)
    assert "build" in str(error.value)
    here = this_host()
    if field in ("system", "architecture"):
        assert getattr(here, field) in str(error.value)
    assert trtc("run", bundle, "--sizes", "B=1").code == 4


@pytest.mark.case("An engine that was never compared with its model")
def test_an_unverified_engine_is_refused(bundle):
    """It has to be verified first, where it can run."""
    manifest = json.loads((bundle / "manifest.json").read_bytes())
    manifest["engines"][0]["verified"] = False
    rewrite(bundle, manifest)
    with pytest.raises(TrtcError, match="trtc verify"):
        load(bundle)


# The build cache.

SCALE = "g (float[B,4] x) => (float[B,4] y) <float[4] w = {1, 2, 3, 4}> { y = Mul (x, w) }"


@pytest.fixture
def cached(build, tmp_path, monkeypatch):
    """Build with a cache of this test alone; the answer is whether it was a hit."""
    monkeypatch.setenv("TRTC_CACHE_DIR", str(tmp_path / "cache"))
    return lambda source, **options: build(source, **{"use_cache": True, "dim": ("B=1..4",), **options})


@pytest.mark.case("The cache returns another model's engine")
@pytest.mark.parametrize(
    "change", ["weight", "range", "buckets", "tolerance", "target", "seed", "padding", "static-size"]
)
def test_whatever_may_change_an_answer_is_part_of_the_key(cached, parsed, change):
    """Content decides: one changed weight, range, target or tolerance is another build, and its answer is its own."""
    proto = parsed(SCALE)
    options = {}
    if change == "static-size":
        for value in (proto.graph.input[0], proto.graph.output[0]):
            value.type.tensor_type.shape.dim[0].dim_value = 3
        options = {"dim": ()}
    assert not cached(proto, **options).hit
    assert cached(proto, **options).hit
    if change == "weight":
        proto.graph.initializer[0].CopyFrom(numpy_helper.from_array(np.array([9, 2, 3, 4], np.float32), "w"))
    elif change == "static-size":
        for value in (proto.graph.input[0], proto.graph.output[0]):
            value.type.tensor_type.shape.dim[0].dim_value = 4
    other = {
        "range": {"dim": ("B=1..5",)},
        "buckets": {"dim": (), "buckets": ("B=2,4",)},
        "tolerance": {"atol": 1e-3},
        "target": {"targets": ("cpu", "null")},
        "seed": {"seed": 1},
        "padding": {"pads": ("B",)},
    }.get(change, options)
    report = cached(proto, **other)
    assert not report.hit
    rows = 4 if change == "static-size" else 2
    with load(report.path) as session:
        right = np.tile([9 if change == "weight" else 1, 2, 3, 4], (rows, 1))
        assert_array_equal(session.run({"x": np.ones((rows, 4), np.float32)})["y"], right)


@pytest.mark.case("Only the weights file of a model changes")
def test_the_content_of_weights_files_is_part_of_the_key(cached, parsed, tmp_path):
    """The same model file with other weights beside it is another model."""
    proto = parsed(SCALE)
    tensor = proto.graph.initializer[0]
    tensor.ClearField("float_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="w.bin")
    path = tmp_path / "model.onnx"
    path.write_bytes(proto.SerializeToString())
    for value, hit in ((1, False), (1, True), (5, False)):
        (tmp_path / "w.bin").write_bytes(np.full(4, value, np.float32).tobytes())
        report = cached(path)
        assert report.hit == hit
        with load(report.path) as session:
            assert_array_equal(session.run({"x": np.ones((1, 4), np.float32)})["y"], np.full((1, 4), value))


@pytest.mark.case("The same model is built again because of its path or its time")
def test_path_and_time_are_no_part_of_the_key(cached, model_file, tmp_path):
    """The same bytes elsewhere, touched, or renamed are a hit; so are the notes of the build."""
    path = model_file(SCALE.replace("=> (float[B,4] y)", "=> (float[B,9] y)"))
    first = cached(path)
    assert any("declared 9" in note for note in first.notes)
    os.utime(path, (0, 0))
    moved = Path(shutil.copy(path, tmp_path / "other nämé.onnx"))
    for again in (cached(path), cached(moved)):
        assert again.hit
        assert again.notes == first.notes
        assert again.manifest == first.manifest


@pytest.mark.case("A damaged entry of the cache")
def test_a_damaged_entry_is_built_again(cached, tmp_path):
    """Digests are checked on a hit; what fails is thrown away, and a note says so."""
    cached(SCALE)
    (entry,) = (tmp_path / "cache" / "entries").iterdir()
    victim = max((entry / "blobs").iterdir(), key=lambda path: path.stat().st_size)
    victim.write_bytes(victim.read_bytes()[:-1] + b"x")
    report = cached(SCALE)
    assert not report.hit
    assert any("damaged" in note for note in report.notes)
    assert cached(SCALE).hit


BUILDER = """
import os, resource, signal, sys
from pathlib import Path
from trtc.compiler import BuildOptions, ShapeOptions, build
model, output, what = sys.argv[1:]
if what == "full":
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))
if what == "kill":
    replace = os.replace
    def die(*paths, **more):
        if str(paths[1]).endswith("manifest.json"):
            os.kill(os.getpid(), signal.SIGKILL)
        replace(*paths, **more)
    os.replace = die
shapes = ShapeOptions(dim=("B=1..2",))
try:
    build(Path(model), Path(output), BuildOptions(shapes=shapes, measure_s=0, verify_s=2, threads=1))
except Exception as error:
    print(f"{type(error).__name__}: {error}")
    sys.exit(getattr(error, "exit_code", 70))
"""


def builder(model, output, what, cache):
    words = [sys.executable, "-c", BUILDER, model, output, what]
    environment = os.environ | {"TRTC_CACHE_DIR": str(cache)}
    return subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def large(parsed):
    """A model whose weights have 64 KiB."""
    proto = parsed("g (float[B,128] x) => (float[B,128] y) { y = MatMul (x, w) }")
    proto.graph.initializer.append(numpy_helper.from_array(np.eye(128, dtype=np.float32), "w"))
    return proto


@pytest.mark.case("The disk is full, or the builder is killed, while the bundle is written")
@pytest.mark.parametrize("what", ["full", "kill"])
def test_an_interrupted_build_leaves_the_old_bundle_and_no_entry(build, model_file, parsed, tmp_path, what):
    """The old bundle answers as before, the cache holds nothing half-written, and the next build works."""
    path = model_file(large(parsed))
    bundle = shutil.copytree(build(path, dim=("B=1..4",)).path, tmp_path / "model.trtc")
    process = builder(path, bundle, what, tmp_path / "cache")
    out, err = process.communicate(timeout=120)
    assert process.returncode == (-signal.SIGKILL if what == "kill" else 4), out + err
    if what == "full":
        assert "space" in out or "large" in out, out
    x = np.ones((4, 128), np.float32)
    with load(bundle) as session:
        assert_array_equal(session.run({"x": x})["y"], x)
    again = builder(path, bundle, "", tmp_path / "cache")
    out, err = again.communicate(timeout=120)
    assert again.returncode == 0, out + err
    with load(bundle) as session:
        assert session.manifest.ladder.profiles[0].ranges["B"].max == 2
    assert not [file for file in bundle.rglob("*") if "tmp" in file.name]


@pytest.mark.case("Two processes build the same model")
def test_two_builders_of_one_key_give_two_good_bundles(model_file, parsed, tmp_path):
    """One builds, the other waits for it; both bundles load, and there is one entry."""
    path = model_file(large(parsed))
    both = [builder(path, tmp_path / f"{i}.trtc", "", tmp_path / "cache") for i in range(2)]
    for process in both:
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, out + err
    for i in range(2):
        with load(tmp_path / f"{i}.trtc") as session:
            assert session.run({"x": np.ones((2, 128), np.float32)})["y"].shape == (2, 128)
    assert len(list((tmp_path / "cache" / "entries").iterdir())) == 1


@pytest.mark.case("A cache folder that others could write to, or that cannot be written")
@pytest.mark.parametrize("kind", ["world-writable", "link", "file"])
def test_a_cache_folder_that_cannot_be_trusted_is_not_used(cached, tmp_path, kind):
    """A folder that others may write to is refused; one that cannot be written costs a note, never a build."""
    cache = tmp_path / "cache"
    if kind == "world-writable":
        cache.mkdir()
        cache.chmod(0o777)
    elif kind == "link":
        (tmp_path / "real").mkdir(mode=0o777)
        (tmp_path / "real").chmod(0o777)
        cache.symlink_to(tmp_path / "real", target_is_directory=True)
    else:
        cache.write_text("in the way")
    try:
        report = cached(SCALE)
    except HostError as error:
        assert str(cache) in str(error) or "real" in str(error)  # noqa: PT017 (either way is right, a third is not)
    else:
        assert kind == "file"
        assert any("cache is not used" in note for note in report.notes)


@pytest.mark.case("A session is used after it was closed")
def test_a_closed_session_says_so(built):
    """An error of its own, for runs, borrows, and a second close."""
    session = load(built)
    session.close()
    session.close()
    with pytest.raises(SessionClosedError, match="closed"):
        run(session)
