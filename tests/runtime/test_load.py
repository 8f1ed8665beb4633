"""Loading: which engine, on which host, from which bytes; and what a session tells about itself."""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys

import numpy as np
import pytest
from msgspec.structs import replace

from trtc.engines.host import this_host
from trtc.engines.manifest import Execution, Requirements
from trtc.engines.signature import Signature
from trtc.runtime import BundleError, HostError, MemoryBudgetError, RequestError, UsageError, load
from trtc.runtime.choice import Wish, choose
from trtc.runtime.loader import _execution
from trtc.runtime.verdicts import judge

F = np.float32
FEEDS = {"x": np.ones((2, 4), F)}
PROFILES = ({"batch": (1, 4)}, {"batch": (8, 16)})


@pytest.fixture
def path(make_bundle, double_model):
    return make_bundle(double_model, profiles=PROFILES)


@pytest.fixture
def manifest(path):
    with load(path, slots=1) as session:
        return session.manifest


def test_importing_the_runtime_loads_no_library_of_compiler_or_target():
    code = """
        import sys, trtc.runtime
        names = ("onnx", "onnx_ir", "onnxruntime", "torch", "polygraphy", "scipy", "trtc.compiler", "ml_dtypes")
        print([name for name in names if name in sys.modules])
    """
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(line.strip() for line in code.splitlines())],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[]\n"


def test_running_a_bundle_needs_the_library_of_its_target_and_not_onnx(path):
    code = f"""
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("onnx", "onnx_ir", "torch", "ml_dtypes") or name.startswith("trtc.compiler"):
            raise ImportError("refused: " + name)
sys.meta_path.insert(0, Refuse())
import numpy as np
from trtc.runtime import load
with load({str(path)!r}) as session:
    for _ in range(3):
        print(session.run({{"x": np.ones((2, 4), np.float32)}})["y"].sum())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "16.0\n" * 3), done.stderr


def test_an_engine_is_loaded_by_name_or_the_first_that_fits(path):
    for engine in ("auto", "cpu"):
        with load(path, engine=engine, slots=1) as session:
            assert session.run(FEEDS)["y"].sum() == 16
            assert session.explain().engine == "cpu"
    with pytest.raises(UsageError, match=r"unknown engine 'cqu'; did you mean 'cpu'\? \(known: 'cpu'\)"):
        load(path, engine="cqu")


@pytest.mark.parametrize("options", [{"slots": 0}, {"slots": -1}, {"threads": 0}, {"max_memory_bytes": -1}])
def test_counts_that_are_none_are_refused(path, options):
    (name,) = options
    with pytest.raises(UsageError, match=f"{name}={options[name]}; give"):
        load(path, **options)


def test_two_budgets_for_one_session_are_refused(path):
    from trtc.runtime import Arena

    with pytest.raises(UsageError, match="either arena or max_memory_bytes"):
        load(path, arena=Arena(), max_memory_bytes=10**6)


def test_a_path_that_is_not_there_is_wrong_use(tmp_path):
    with pytest.raises(UsageError, match=r"nope\.trtc"):
        load(tmp_path / "nope.trtc")


@pytest.mark.parametrize(
    ("requirements", "said"),
    [
        ({"system": "Plan9"}, f"it was built for Plan9, this host runs {platform.system()}"),
        ({"architecture": "vax"}, f"it was built for vax, this host is {platform.machine()}"),
        ({"library": "no_such_library"}, "no_such_library is not installed"),
        ({"library": "onnxruntime", "library_version": "0.1.0"}, "it was built with onnxruntime 0.1.0, this host has"),
        ({"library": "onnxruntime", "library_version": "0.1.0"}, "install onnxruntime==0.1.0, or rebuild"),
        ({"cpu_features": ("quantum", "warp")}, "it uses quantum, warp, which this processor lacks; rebuild"),
    ],
)
def test_a_host_that_lacks_something_is_refused_with_the_reason(make_bundle, double_model, requirements, said):
    path = make_bundle(double_model, engine={"requirements": Requirements(**requirements)})
    with pytest.raises(HostError) as caught:
        load(path)
    assert "no engine of this bundle can run here (cpu: " in str(caught.value)
    assert said in str(caught.value)
    with pytest.raises(HostError) as by_name:
        load(path, engine="cpu")
    assert said in str(by_name.value)


def test_a_patch_release_of_the_library_still_fits(manifest):
    (record,) = manifest.engines
    major, minor, _ = record.requirements.library_version.split(".", 2)
    needs = Requirements(library="onnxruntime", library_version=f"{major}.{minor}.999")
    verdict = judge(type(record)(**{**_fields(record), "requirements": needs}), this_host())
    assert verdict.fits


def _fields(record):
    return {name: getattr(record, name) for name in record.__struct_fields__}


def test_an_engine_that_was_never_verified_is_refused_and_the_way_out_is_named(make_bundle, double_model):
    path = make_bundle(double_model, engine={"verified": False})
    with pytest.raises(HostError, match="never compared with its model; run `trtc verify`"):
        load(path)


def test_a_backend_that_is_not_installed_is_named_with_its_command(manifest, monkeypatch):
    from trtc.engines import registry

    monkeypatch.setattr(registry, "find_spec", lambda _: None)
    verdict = judge(manifest.engines[0], this_host())
    assert not verdict.fits
    assert verdict.reason == "onnxruntime is not installed: pip install 'trtc[cpu]'"


def test_a_backend_of_a_newer_version_is_a_verdict_and_no_crash(manifest):
    record = type(manifest.engines[0])(**{**_fields(manifest.engines[0]), "backend": "future"})
    verdict = judge(record, this_host())
    assert (verdict.fits, verdict.reason) == (False, "this version of trtc has no backend 'future'")


def test_auto_passes_over_what_does_not_fit_and_never_takes_the_null_engine(manifest):
    (good,) = manifest.engines
    make = type(good)
    foreign = make(**{**_fields(good), "name": "gpu", "requirements": Requirements(system="Plan9")})
    empty = make(**{**_fields(good), "name": "null", "backend": "null", "requirements": Requirements()})
    many = type(manifest)(**{**_fields(manifest), "engines": (empty, foreign, good)})
    choice = choose(many, this_host())
    assert choice.record.name == "cpu"
    assert [verdict.fits for verdict in choice.verdicts] == [True, False, True]
    assert choose(many, this_host(), Wish("null")).record.name == "null"
    without = type(manifest)(**{**_fields(manifest), "engines": (empty, foreign)})
    with pytest.raises(HostError, match="gpu: it was built for Plan9"):
        choose(without, this_host())
    only = type(manifest)(**{**_fields(manifest), "engines": (empty,)})
    assert choose(only, this_host()).record.name == "null"


@pytest.mark.parametrize("how", ["flip", "halve", "empty", "delete", "text"])
def test_an_altered_blob_is_refused_before_the_library_sees_it(path, tmp_path, how):
    copy = shutil.copytree(path, tmp_path / "copy.trtc")
    blob = next(p for p in sorted((copy / "blobs").iterdir()) if p.suffix == ".onnx")
    data = bytearray(blob.read_bytes())
    if how == "delete":
        blob.unlink()
    elif how == "flip":
        data[len(data) // 2] ^= 1
        blob.write_bytes(data)
    else:
        blob.write_bytes({"halve": data[: len(data) // 2], "empty": b"", "text": b"x" * len(data)}[how])
    with pytest.raises(BundleError, match=blob.name[:12]):
        load(copy)


def test_a_session_lives_on_when_its_model_and_its_bundle_are_deleted(make_bundle, graphs, tmp_path):
    import onnx

    weights = onnx.numpy_helper.from_array(np.full((64, 64), 0.5, F), "w")
    node = graphs.node("MatMul", ["x", "w"], ["y"])
    model = graphs.model(
        [node], [graphs.value("x", ("n", 64))], [graphs.value("y", ("n", 64))], initializers=(weights,)
    )
    source = make_bundle(model, profiles=({"n": (1, 4)},))
    path = shutil.copytree(source, tmp_path / "model.trtc")
    work = source.parent / "work"
    assert (work / "model.onnx").is_file()
    (work / "model.onnx").write_bytes(b"overwritten")
    shutil.rmtree(work)
    x = np.ones((2, 64), F)
    with load(path, slots=1, threads=1) as session:
        assert (session.run({"x": x})["y"] == 32).all()
        for blob in (path / "blobs").iterdir():
            replacement = blob.with_name("new")
            replacement.write_bytes(b"\0" * blob.stat().st_size)
            replacement.replace(blob)
        shutil.rmtree(path)
        assert (session.run({"x": 2 * x})["y"] == 64).all()
        assert (session.run({"x": np.ones((3, 64), F)})["y"] == 32).all()


def test_loading_does_not_depend_on_the_working_directory(path, tmp_path, monkeypatch):
    monkeypatch.chdir(path.parent)
    with load(path.name, slots=1) as session:
        monkeypatch.chdir(tmp_path)
        assert session.run(FEEDS)["y"].sum() == 16


def test_a_session_that_cannot_have_its_memory_closes_its_engine(path, monkeypatch):
    from trtc.engines.onnxruntime.load import OnnxRuntimeEngine

    closed = []
    close = OnnxRuntimeEngine.close

    def noting(engine):
        closed.append(engine)
        close(engine)

    monkeypatch.setattr(OnnxRuntimeEngine, "close", noting)
    with pytest.raises(MemoryBudgetError):
        load(path, slots=1, max_memory_bytes=1)
    assert len(closed) == 1


@pytest.mark.parametrize(
    ("planned", "allowed", "slots", "threads", "expected"),
    [
        pytest.param(Execution(), 4, None, None, (4, 1), id="nothing-planned-one-thread-each"),
        pytest.param(Execution(slots=2), 8, None, None, (2, 4), id="threads-are-the-share"),
        pytest.param(Execution(slots=2, threads=2), 8, None, None, (2, 2), id="as-measured"),
        pytest.param(Execution(slots=8, threads=4), 2, None, None, (2, 2), id="never-more-than-allowed"),
        pytest.param(Execution(slots=2, threads=1), 2, 6, None, (6, 1), id="slots-asked"),
        pytest.param(Execution(slots=2), 2, 6, None, (6, 1), id="at-least-one-thread"),
        pytest.param(Execution(slots=2, threads=1), 4, None, 3, (2, 3), id="threads-asked"),
    ],
)
def test_slots_and_threads_follow_the_plan_within_what_the_host_allows(planned, allowed, slots, threads, expected):
    settled = _execution(planned, allowed, slots, threads)
    assert (settled.slots, settled.threads) == expected
    assert settled.mode == planned.mode


def test_explain_says_which_engine_and_how_sizes_run(path):
    with load(path, slots=2, threads=1) as session:
        assert str(session.explain()).splitlines() == [
            "engine cpu",
            "  + cpu: fits: cpu with onnxruntime",
            "sizes run exact, 2 calls at once, 1 thread each",
        ]
        found = session.explain({"batch": 9})
        assert (found.profile, found.run_sizes) == ("p1", {"batch": 9})
        assert "this request runs in profile p1 at batch=9" in str(found)
        with pytest.raises(RequestError, match="batch=6, but this bundle serves"):
            session.explain({"batch": 6})
        with pytest.raises(RequestError, match=r"unknown symbol 'bacth'; did you mean 'batch'\?"):
            session.explain({"bacth": 1})
        with pytest.raises(RequestError, match="size of batch does not follow"):
            session.explain({})
        with pytest.raises(RequestError, match="batch=-1; give a size"):
            session.explain({"batch": -1})
        assert isinstance(session.signature, Signature)


def test_the_null_backend_loads_and_gives_zeros_of_the_right_shape(make_bundle, mix_model):
    path = make_bundle(
        mix_model, profiles=({"batch": (1, 2), "seq": (1, 8)},), backend="null", engine={"verified": False}
    )
    with load(path, slots=1) as session:
        for _ in range(2):
            found = session.run({name: np.ones((2, 3, 4), F) for name in "ab"})
            assert {name: array.shape for name, array in found.items()} == {"y": (2, 3, 4), "z": (2, 3, 3)}
            assert all((array == 0).all() for array in found.values())


def test_skipping_digests_still_checks_sizes(path, tmp_path):
    copy = shutil.copytree(path, tmp_path / "copy.trtc")
    with load(copy, verify=False, slots=1) as session:
        assert session.run(FEEDS)["y"].sum() == 16
    blob = next(p for p in (copy / "blobs").iterdir() if p.suffix == ".onnx")
    blob.write_bytes(blob.read_bytes() + b"x")
    with pytest.raises(BundleError, match="bytes, the manifest says"):
        load(copy, verify=False)


def test_a_host_is_compared_by_what_the_engine_needs_and_nothing_else(manifest):
    bare = replace(this_host(), cpu="another", threads=1)
    assert judge(manifest.engines[0], bare).fits
    assert not judge(manifest.engines[0], replace(bare, cpu_features=())).fits


def test_a_python_without_interpreter_lock_is_refused(path, monkeypatch):
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: False, raising=False)
    with pytest.raises(HostError, match="without its interpreter lock"):
        load(path)
