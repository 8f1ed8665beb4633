"""``trtc verify``: a bundle that came from elsewhere is compared with its model before it is believed."""

from __future__ import annotations

import hashlib
import re
import shutil

import msgspec
import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from trtc.engines import BlobFile, read_manifest, write_bundle
from trtc.engines.gpu import Gpu, GpuSurvey
from trtc.engines.manifest import Requirements
from trtc.runtime import verdicts


def rewrite(bundle, sources=None, **changes):
    """Change the record of the first engine of a bundle."""
    manifest = read_manifest(bundle)
    record = msgspec.structs.replace(manifest.engines[0], **changes)
    write_bundle(bundle, msgspec.structs.replace(manifest, engines=(record, *manifest.engines[1:])), sources or {})


def rewrite_engine(bundle, name, **changes):
    """Change the record of one engine of a bundle."""
    manifest = read_manifest(bundle)
    engines = tuple(msgspec.structs.replace(r, **changes) if r.name == name else r for r in manifest.engines)
    write_bundle(bundle, msgspec.structs.replace(manifest, engines=engines), {})


def plant_weight(bundle, tmp_path):
    """Change one weight inside the engine, with sizes and digests that fit."""
    record = read_manifest(bundle).engines[0]
    model = onnx.load(bundle / record.entry)
    table = next(t for t in model.graph.initializer if list(t.dims) == [10, 4])
    values = numpy_helper.to_array(table).copy()
    values[3, 1] += 0.01
    table.CopyFrom(numpy_helper.from_array(values, table.name))
    data = model.SerializeToString()
    digest = hashlib.sha256(data).hexdigest()
    (tmp_path / "planted").write_bytes(data)
    blob = BlobFile(path=f"blobs/{digest}.onnx", size_bytes=len(data), sha256=digest)
    others = tuple(b for b in record.files if b.path != record.entry)
    rewrite(bundle, {blob.path: tmp_path / "planted"}, entry=blob.path, files=(blob, *others))


def plant_plugin(bundle, tmp_path):
    """Give the first engine a library of plug-ins. The CPU engine ignores it; whoever loads it has to allow it."""
    (tmp_path / "library").write_bytes(b"code")
    digest = hashlib.sha256(b"code").hexdigest()
    blob = BlobFile(path=f"blobs/{digest}.so", size_bytes=4, sha256=digest)
    files = (*read_manifest(bundle).engines[0].files, blob)
    rewrite(bundle, {blob.path: tmp_path / "library"}, files=files, plugins=(blob.path,))
    return digest


@pytest.mark.parametrize("verb", ["run", "verify"])
def test_plugins_run_only_where_the_command_says_so(trtc, bundle, encoder, tmp_path, verb):
    digest = plant_plugin(bundle, tmp_path)
    words = {"run": ["--all-profiles"], "verify": ["--model", encoder]}[verb]
    refused = trtc(verb, bundle, *words)
    assert (refused.code, refused.out.count("passed")) == (4, 0)
    assert f"libraries of plug-ins (SHA-256 {digest})" in refused.err
    assert "--allow-plugins" in refused.err
    said = trtc(verb, bundle, *words, "--allow-plugins")
    assert said.code == 0, said.err


def test_inspect_shows_the_plugins_of_an_engine(trtc, bundle, tmp_path):
    digest = plant_plugin(bundle, tmp_path)
    assert f"brings libraries of plug-ins, which are code: {digest}" in trtc("inspect", bundle).out


def test_paths_of_plugins_are_no_option_of_run(trtc, bundle):
    said = trtc("run", bundle, "--all-profiles", "--staticPlugins=x.so")
    assert said.code == 2
    assert "a bundle brings its own plug-ins, and --allow-plugins lets them run" in said.err


def test_an_engine_that_was_never_verified_can_be_loaded_afterwards(trtc, bundle, encoder):
    rewrite(bundle, verified=False, verification=())
    refused = trtc("run", bundle, "--all-profiles")
    assert refused.code == 4
    assert "trtc verify" in refused.err
    said = trtc("verify", bundle, "--model", encoder)
    assert said.code == 0, said.err
    assert "written into the bundle" in said.out
    assert trtc("run", bundle, "--all-profiles").code == 0


def test_the_report_has_the_documented_fields_and_covers_every_profile(trtc, bundle, encoder):
    report = trtc("verify", bundle, "--model", encoder, "--json").json
    assert set(report) == {"schema", "bundle", "written", "engines", "notes"}
    (engine,) = report["engines"]
    assert set(engine) == {"engine", "ran", "passed", "reason", "verification"}
    assert (report["schema"], engine["ran"], engine["passed"]) == ("trtc.verify/1", True, True)
    covered = {(v["profile"], v["mode"]) for v in engine["verification"] if v["ran"]}
    assert covered == {(p, m) for p in ("p0", "p1") for m in ("exact", "padded")}


def test_one_changed_weight_fails_and_is_refused_from_then_on(trtc, bundle, encoder, tmp_path):
    plant_weight(bundle, tmp_path)
    assert trtc("run", bundle, "--all-profiles").code == 0, "nobody has looked yet"
    said = trtc("verify", bundle, "--model", encoder)
    assert said.code == 1
    assert "DIFFERS" in said.out
    assert "engine cpu: the engine for target cpu differs" in said.err
    assert trtc("run", bundle, "--all-profiles").code == 4


def test_a_dry_run_compares_and_changes_nothing(trtc, bundle, encoder, tmp_path):
    plant_weight(bundle, tmp_path)
    before = (bundle / "manifest.json").read_bytes()
    assert trtc("verify", bundle, "--model", encoder, "--dry-run").code == 1
    assert (bundle / "manifest.json").read_bytes() == before


def test_a_wider_tolerance_is_recorded_beside_the_engine(trtc, bundle, encoder, tmp_path):
    plant_weight(bundle, tmp_path)
    assert trtc("verify", bundle, "--model", encoder, "--atol", "0.5").code == 0
    manifest = read_manifest(bundle)
    assert manifest.engines[0].options["verify_atol"] == "0.5"
    assert manifest.tolerance == (1e-5, 1e-4)


def test_another_model_is_refused_with_both_digests(trtc, bundle, tmp_path, tiny_model):
    onnx.save(tiny_model("rows"), tmp_path / "other.onnx")
    said = trtc("verify", bundle, "--model", tmp_path / "other.onnx")
    assert said.code == 2
    assert read_manifest(bundle).original.file_sha256 in said.err
    assert hashlib.sha256((tmp_path / "other.onnx").read_bytes()).hexdigest() in said.err
    assert len([word for word in said.err.replace(",", " ").replace(";", " ").split() if len(word) == 64]) == 2


def test_an_engine_that_cannot_run_here_stays_as_it_was(trtc, bundle, encoder):
    needs = msgspec.structs.replace(read_manifest(bundle).engines[0].requirements, architecture="riscv64")
    rewrite(bundle, requirements=needs, verified=False)
    before = read_manifest(bundle)
    said = trtc("verify", bundle, "--model", encoder)
    assert said.code == 4
    assert "built for riscv64" in said.err
    assert read_manifest(bundle) == before


def test_a_target_that_computes_nothing_is_listed_and_left(trtc, encoder, tmp_path):
    path = tmp_path / "two.trtc"
    closed = ["--dim", "batch=1..2", "--dim", "seq=1..4"]
    built = trtc("build", encoder, "-o", path, *closed, "--target", "cpu", "--target", "null", "--measure-seconds", "0")
    assert built.code == 0, built.err
    said = trtc("verify", path, "--model", encoder)
    assert said.code == 0, said.err
    assert "engine null was left as it is: it computes nothing" in said.out


def test_open_ranges_and_samples_are_verified(trtc, built_open, encoder, good_request):
    said = trtc("verify", built_open, "--model", encoder, "--samples", good_request, "--dry-run", "--json")
    assert said.code == 0, said.err
    assert said.json["engines"][0]["passed"] is True


def test_samples_with_unknown_names_are_wrong_use(trtc, bundle, encoder, request_file):
    said = trtc("verify", bundle, "--model", encoder, "--samples", request_file(input_idz=np.zeros(2)))
    assert said.code == 2
    assert "did you mean 'input_ids'?" in said.err


def test_an_older_result_is_kept_where_nothing_could_be_compared_now(trtc, bundle, encoder, monkeypatch):
    from trtc.compiler import reverify

    old = {(v.profile, v.mode, v.reference): v for v in read_manifest(bundle).engines[0].verification}

    def half(*arguments):
        found = verify_engine(*arguments)
        return tuple(
            v if i % 2 == 0 else msgspec.structs.replace(v, ran=False, passed=False) for i, v in enumerate(found)
        )

    verify_engine = reverify.verify_engine
    monkeypatch.setattr(reverify, "verify_engine", half)
    assert trtc("verify", bundle, "--model", encoder).code == 0
    assert {
        (v.profile, v.mode, v.reference): v.passed for v in read_manifest(bundle).engines[0].verification
    } == dict.fromkeys(old, True)


def test_a_bundle_that_was_replaced_meanwhile_is_left_alone(trtc, bundle, encoder, monkeypatch):
    from trtc.compiler import reverify

    verify_engine = reverify.verify_engine

    def replaced(*arguments):
        rewrite(bundle, options={"somebody": "else"})
        return verify_engine(*arguments)

    monkeypatch.setattr(reverify, "verify_engine", replaced)
    said = trtc("verify", bundle, "--model", encoder, "--atol", "0.1")
    assert said.code == 1
    assert "was replaced while it was verified" in said.err
    assert read_manifest(bundle).engines[0].options == {"somebody": "else"}


@pytest.mark.parametrize("name", ["gpu"])
def test_an_unknown_engine_is_wrong_use(trtc, bundle, encoder, name):
    assert trtc("verify", bundle, "--model", encoder, "--engine", name).code == 2


@pytest.mark.parametrize("what", ["differs in one profile", "was not compared with the first reference"])
def test_one_profile_that_is_not_right_is_enough_to_refuse_the_engine(trtc, bundle, encoder, monkeypatch, what):
    from trtc.compiler import reverify

    verify_engine = reverify.verify_engine
    changes = {"passed": False} if what.startswith("differs") else {"passed": False, "ran": False, "detail": "no time"}

    def changed(*arguments):
        found = verify_engine(*arguments)
        first = arguments[2][0].name
        index = max(i for i, v in enumerate(found) if v.reference == first)
        return (*found[:index], msgspec.structs.replace(found[index], **changes), *found[index + 1 :])

    monkeypatch.setattr(reverify, "verify_engine", changed)
    assert trtc("verify", bundle, "--model", encoder).code == 1
    assert read_manifest(bundle).engines[0].verified is False


@pytest.fixture(scope="module")
def two_built(trtc, encoder):
    """A bundle with an engine for the CPU and one for a GPU, which this machine has not."""
    path = encoder.with_name("two.trtc")
    closed = ["--dim", "batch=1..2", "--dim", "seq=1..4", "--measure-seconds", "0"]
    said = trtc("build", encoder, "-o", path, *closed, "--target", "cuda", "--target", "cpu")
    assert said.code == 0, said.err
    assert re.search(r"engine cuda\b.*: built, not verified: the building machine ", said.out)
    return path


@pytest.fixture
def two(two_built, tmp_path):
    """A copy that a test may change."""
    return shutil.copytree(two_built, tmp_path / "two.trtc")


def record_of(bundle, name):
    return next(record for record in read_manifest(bundle).engines if record.name == name)


def test_engines_that_cannot_run_here_keep_their_state_and_their_reason(trtc, two, encoder, monkeypatch):
    monkeypatch.setattr(verdicts, "survey_gpus", lambda: GpuSurvey(reason="no NVIDIA driver"))
    assert [r.verified for r in read_manifest(two).engines] == [False, True]
    rewrite_engine(two, "cpu", verified=False, verification=())
    said = trtc("verify", two, "--model", encoder)
    assert said.code == 0, said.err
    assert "engine cuda was left as it is: onnxruntime-gpu is not installed: pip install 'trtc[gpu]'" in said.out
    assert [(r.name, r.verified) for r in read_manifest(two).engines] == [("cuda", False), ("cpu", True)]
    shown = trtc("inspect", two)
    assert "engine cuda: built, not verified: the building machine " in shown.out
    assert "run `trtc verify` where it can run" in shown.out
    assert re.search(
        r"^cuda: .*; needs onnxruntime-gpu cuda, [\d.]+ K?i?B or more of device memory$", shown.out, re.MULTILINE
    )
    assert trtc("inspect", two, "--json").json["chosen"] == "cpu"


def test_an_engine_whose_library_fails_does_not_cost_the_others_their_results(trtc, two, encoder):
    rewrite_engine(two, "cuda", requirements=Requirements())
    rewrite_engine(two, "cpu", verified=False, verification=())
    before = record_of(two, "cuda")
    said = trtc("verify", two, "--model", encoder)
    assert said.code == 1
    assert "engine cuda: this build of ONNX Runtime" in said.err
    assert "has no CUDAExecutionProvider" in said.err
    assert record_of(two, "cuda") == before
    assert record_of(two, "cpu").verified


def test_an_engine_is_verified_on_the_gpu_that_it_fits_with_the_library_that_is_there(
    trtc, bundle, encoder, monkeypatch
):
    from importlib.metadata import version

    from trtc.engines.onnxruntime import load as backend

    gpus = tuple(Gpu(i, f"GPU-{i}", "NVIDIA L4", f"sm{sm}", 2**30) for i, sm in enumerate((75, 89)))
    monkeypatch.setattr(verdicts, "survey_gpus", lambda: GpuSurvey(gpus))
    monkeypatch.setattr(verdicts, "_free_bytes", lambda _: None)
    needs = Requirements(library="onnxruntime", device="cuda", compute_capabilities=("sm89",))
    rewrite(bundle, requirements=needs, verified=False, verification=())
    opened = []
    load_engine = backend.load_engine
    monkeypatch.setattr(backend, "load_engine", lambda o: opened.append(o.device) or load_engine(o))
    refused = trtc("run", bundle, "--all-profiles")
    assert refused.code == 4
    assert "run `trtc verify` here, on GPU 1 (NVIDIA L4, sm89)" in refused.err
    said = trtc("verify", bundle, "--model", encoder)
    assert said.code == 0, said.err
    assert trtc("run", bundle, "--all-profiles", "--device", "GPU-1").code == 0
    assert opened == ["1", "1"]
    (record,) = read_manifest(bundle).engines
    assert (record.verified, record.requirements.library_version) == (True, version("onnxruntime"))
    other = trtc("run", bundle, "--all-profiles", "--device", "0")
    assert other.code == 4
    assert "GPU 0 (NVIDIA L4, sm75): the engine holds kernels for sm89 only" in other.err


def test_a_gpu_that_is_not_there_cannot_be_asked_for(trtc, bundle, encoder, monkeypatch):
    monkeypatch.setattr("trtc.engines.gpu.survey_gpus", lambda: GpuSurvey(reason="no NVIDIA driver"))
    said = trtc("verify", bundle, "--model", encoder, "--device", "0")
    assert said.code == 4
    assert "no GPU can be used here: no NVIDIA driver" in said.err


@pytest.mark.parametrize(
    ("words", "refused"),
    [
        pytest.param(["--engine", "cuda"], "onnxruntime-gpu is not installed", id="by-name"),
        pytest.param(["--engine", "cuda", "--fallback", "cpu"], "", id="by-name-with-fallback"),
        pytest.param(["--device", "cpu"], "", id="cpu"),
        pytest.param(["--device", "0"], "the CPU does not take over unasked", id="gpu"),
        pytest.param(["--device", "0", "--fallback", "cpu"], "", id="gpu-with-fallback"),
        pytest.param([], "", id="no-gpu-here"),
    ],
)
def test_run_takes_the_cpu_where_it_is_asked_for_or_nothing_else_was_expected(trtc, two, monkeypatch, words, refused):
    monkeypatch.setattr(verdicts, "survey_gpus", lambda: GpuSurvey(reason="no NVIDIA driver"))
    done = trtc("run", two, "--all-profiles", *words)
    assert done.code == (4 if refused else 0), done.err
    assert refused in done.err


def test_a_visible_gpu_that_stays_unused_fails_the_run(trtc, two, monkeypatch):
    l4 = Gpu(0, "GPU-0", "NVIDIA L4", "sm89", 2**30)
    monkeypatch.setattr(verdicts, "survey_gpus", lambda: GpuSurvey((l4,)))
    refused = trtc("run", two, "--all-profiles")
    assert refused.code == 4
    assert "no engine for a GPU can be used here (cuda: onnxruntime-gpu is not installed" in refused.err
    assert trtc("run", two, "--all-profiles", "--fallback", "cpu").code == 0
    shown = trtc("inspect", two)
    assert "the CPU does not take over unasked" in shown.out
    assert trtc("inspect", two, "--json").json["chosen"] is None
