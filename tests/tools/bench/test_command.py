"""``trtc bench`` as a user types it, on a bundle of a small text encoder."""

from __future__ import annotations

import json
from contextlib import nullcontext
from types import SimpleNamespace

import msgspec
import numpy as np
import onnx
import pytest

from trtc.engines.bundle import write_bundle
from trtc.engines.host import this_host
from trtc.engines.manifest_file import read_manifest
from trtc.profiles import RequestError
from trtc.runtime import load
from trtc.tools.bench.results import BenchReport

QUICK = ("--iterations", "3", "--duration", "0", "--warm-up", "0")
SIZES = ("--sizes", "batch=2,seq=5")


@pytest.fixture(scope="module")
def bench(trtc):
    def run(*words):
        return trtc("bench", *words, *QUICK)

    return run


def test_without_sizes_every_profile_is_measured_at_its_opt_sizes(bench, built):
    said = bench(built, "--json")
    assert said.code == 0, said.err
    report = said.json
    assert report["schema"] == "trtc.bench/1"
    assert [case["name"] for case in report["cases"]] == [
        "profile p0 at batch=4, seq=8",
        "profile p1 at batch=4, seq=16",
    ]
    for case in report["cases"]:
        assert (case["loop"], case["callers"], case["latency"]["count"]) == ("closed", 1, 3)
        assert set(case["latency"]["percentiles_s"]) == {"p90", "p95", "p99"}
        assert case["sizes"][0]["first_call_s"] > 0
        assert {"copy in", "copy out", "execute", "wait for a slot"} <= set(case["parts"])
    assert report["memory"]["arena_allocations_per_call"] == 0
    assert report["memory"]["resident_bytes"] > 2**20


def test_the_report_has_the_fields_that_its_classes_describe(bench, built):
    fields = bench(built, *SIZES, "--json").json
    assert set(fields) == {"schema", "written", *BenchReport.__struct_fields__}
    del fields["schema"], fields["written"]
    msgspec.convert(fields, BenchReport)


def test_people_see_the_block_of_trtexec_and_what_is_in_it(bench, built):
    said = bench(built, *SIZES, "--percentile", "50,99.5")
    assert "=== Performance summary ===" in said.out
    for begin in (
        "Throughput: ",
        "Latency: min = ",
        "Enqueue Time: ",
        "GPU Compute Time: none",
        "Total Host Walltime: ",
    ):
        assert begin in said.out
    assert "percentile(50%) = " in said.out
    assert "percentile(99.5%) = " in said.out
    assert (
        "Transfers: copies of inputs into planned memory and of outputs out of it are in. CUDA graphs: none" in said.out
    )


@pytest.mark.parametrize(
    ("mode", "run_sizes", "waste"),
    [("exact", {"batch": 2, "seq": 5}, 0.0), ("bucket", {"batch": 4, "seq": 8}, 1 - 10 / 32)],
)
def test_padding_is_shown_as_a_share_of_what_runs(bench, built, mode, run_sizes, waste):
    fields = bench(built, *SIZES, "--mode", mode, "--json").json
    (size,) = fields["cases"][0]["sizes"]
    assert fields["mode"] == mode
    assert size["sizes"] == {"batch": 2, "seq": 5}
    assert (size["run_sizes"], size["waste"]) == (run_sizes, pytest.approx(waste))


def test_an_open_loop_keeps_its_rate_and_counts_from_when_calls_should_begin(bench, built):
    case = bench(built, *SIZES, "--rate", "500", "--iterations", "20", "--callers", "2", "--json").json["cases"][0]
    assert (case["loop"], case["rate_per_second"], case["callers"]) == ("open", 500, 2)
    assert case["latency"]["count"] in (3, 20)
    assert case["latency"]["max_s"] >= case["service"]["min_s"]


def test_several_callers_and_random_sizes(bench, built):
    case = bench(built, "--random", "20", "--callers", "2", "--json").json["cases"][0]
    assert case["callers"] == 2
    drawn = [tuple(s["sizes"].values()) for s in case["sizes"]]
    assert len(drawn) > 5
    assert all(1 <= batch <= 4 and 1 <= seq <= 16 for batch, seq in drawn)


def test_traffic_is_replayed(bench, built, tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text('{"batch": 1, "seq": 3, "count": 2}\n{"batch": 3, "seq": 12}\n')
    case = bench(built, "--traffic", path, "--json").json["cases"][0]
    assert {(s["sizes"]["batch"], s["sizes"]["seq"]): s["latency"]["count"] for s in case["sizes"]} == {
        (1, 3): 2,
        (3, 12): 1,
    }


def test_sizes_of_traffic_stand_from_small_to_large(bench, built, tmp_path):
    path = tmp_path / "t.jsonl"
    asked = [(3, 12), (1, 14), (2, 5), (1, 3), (2, 16)]
    path.write_text("".join(json.dumps({"batch": batch, "seq": seq}) + "\n" for batch, seq in asked))
    case = bench(built, "--traffic", path, "--json").json["cases"][0]
    assert [tuple(s["sizes"].values()) for s in case["sizes"]] == sorted(asked)
    said = bench(built, "--traffic", path, "--html", tmp_path / "x.html")
    page = (tmp_path / "x.html").read_text()
    for text in (said.out, page[page.index("Every distinct size</caption>") :]):
        places = [text.index(f"batch={batch}, seq={seq}") for batch, seq in sorted(asked)]
        assert places == sorted(places)


def test_all_cases_are_summed_up_before_the_details_of_each(bench, built):
    said = bench(built)
    assert said.out.index("all cases") < said.out.index("=== Performance summary ===")
    assert said.out.count("all cases") == 1


def test_what_a_session_recorded_is_replayed(bench, built, tmp_path):
    path = tmp_path / "t.jsonl"
    with load(built) as session:
        session.record_traffic(path)
        for batch, seq in [(1, 3), (1, 3), (3, 12), (1, 99)]:
            value = np.ones((batch, seq), np.int64)
            with pytest.raises(RequestError) if seq == 99 else nullcontext():
                session.run({"input_ids": value, "attention_mask": value})
    assert '"sizes"' in path.read_text()
    said = bench(built, "--traffic", path, "--json")
    assert said.code == 0, said.err
    sizes = said.json["cases"][0]["sizes"]
    assert {(s["sizes"]["batch"], s["sizes"]["seq"]): s["latency"]["count"] for s in sizes} == {(1, 3): 2, (3, 12): 1}
    assert "25.00% of the traffic is left out, for no profile serves it: seq=99" in said.json["notes"][0]


def test_rows_of_a_table_are_replayed(bench, built, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("batch,seq,count\n1,3,2\n3,12,1\n")
    sizes = bench(built, "--traffic", path, "--json").json["cases"][0]["sizes"]
    assert {(s["sizes"]["batch"], s["sizes"]["seq"]): s["latency"]["count"] for s in sizes} == {(1, 3): 2, (3, 12): 1}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("", "no request in it", id="empty"),
        pytest.param('{"seq": 1}', "no size for batch", id="missing"),
        pytest.param('{"seq": 1, "batch": 1, "heads": 2}', "unknown symbol 'heads'", id="unknown"),
        pytest.param('{"seq": 1, "batch": 1}\n{', "line 2", id="broken"),
        pytest.param('{"seq": 1, "batch": 1, "count": 0}', "counts are positive", id="no-count"),
        pytest.param('{"seq": 99, "batch": 1}', "seq=99", id="not-served"),
    ],
)
def test_wrong_traffic_is_refused_before_anything_is_loaded(bench, built, tmp_path, monkeypatch, text, words):  # noqa: PLR0917 (fixtures come by name)
    path = tmp_path / "t.jsonl"
    path.write_text(text)
    monkeypatch.setattr("trtc.runtime.load", None)  # calling it would fail as a fault of trtc
    said = bench(built, "--traffic", path)
    assert (said.code, said.out) == (2, "")
    assert words in said.err
    assert str(path) in said.err


def test_a_grid_puts_each_size_under_the_limits_of_the_machine(bench, built, monkeypatch):
    from trtc.tools.bench import limits

    monkeypatch.setattr(limits, "TRY_S", 0.0)
    monkeypatch.setattr(limits, "SIDE", 64)
    monkeypatch.setattr(limits, "COPY_BYTES", 4096)
    fields = bench(built, "--grid", "batch=1,2", "seq=4", "--json").json
    assert fields["limits"]["flop_per_s"] > 0
    roofs = [case["roof"] for case in fields["cases"]]
    assert [case["name"] for case in fields["cases"]] == ["batch=1, seq=4", "batch=2, seq=4"]
    # Mul and ReduceSum: one operation for each of their outputs.
    assert [roof["flop"] for roof in roofs] == [1 * 4 * 4 + 4, 2 * 4 * 4 + 8]
    assert all(roof["bound"] in ("memory", "arithmetic") for roof in roofs)


def test_the_limits_are_looked_at_again_after_the_cases(bench, built, encoder, monkeypatch):
    """Every trial but the last ones runs on a machine that is a billion times slower: the last ones count."""
    from trtc.tools.bench import limits

    made, settled = [], []
    settle = limits.Ceiling.settle

    def slow_at_first(_):
        made.append(len(settled))
        return limits.Limits(1.0, 1.0) if len(settled) < 1 else limits.Limits(1e15, 1e15)

    def noted(ceiling):
        settle(ceiling)
        settled.append(len(made))

    monkeypatch.setattr(limits, "_trial", slow_at_first)
    monkeypatch.setattr(limits.Ceiling, "settle", noted)
    fields = bench(built, "--grid", "batch=1,2", "seq=4", "--vs", "onnxruntime", "--model", encoder, "--json").json
    assert fields["limits"] == {"flop_per_s": 1e15, "bytes_per_s": 1e15}
    assert len(settled) == 2
    assert made.count(1) >= 4 + limits.FEWEST  # one after each comparison, one after each count, and those at the end
    assert all(0 < case["roof"]["roof_share"] < 1 for case in fields["cases"])


def test_a_case_beyond_the_limits_has_no_share_of_them(bench, built, monkeypatch, tmp_path):
    from trtc.tools.bench import limits

    monkeypatch.setattr(limits, "_trial", lambda _: limits.Limits(1.0, 1.0))
    path = tmp_path / "x.html"
    said = bench(built, "--grid", "batch=1,2", "seq=4", "--html", path)
    assert said.code == 0, said.err
    assert "(- of this machine)" in said.out
    assert "- of what it allows" in said.out
    assert "the limit was not reached when it was measured" in said.err
    assert "the limit was not reached when it was measured" in path.read_text()


def test_times_are_exported_call_by_call(bench, built, tmp_path):
    path = tmp_path / "times.json"
    assert bench(built, *SIZES, f"--exportTimes={path}").code == 0
    rows = json.loads(path.read_text())
    assert len(rows) == 3
    for row in rows:
        assert row["latencyMs"] == pytest.approx(row["endMs"] - row["intendedMs"])
        assert row["case"] == "batch=2, seq=5"


def test_a_peer_runs_the_same_work_in_turns(bench, built, encoder):
    peer = bench(built, *SIZES, "--vs", "onnxruntime", "--model", encoder, "--json").json["cases"][0]["peer"]
    assert (peer["name"], peer["agrees"]) == ("onnxruntime", True)
    assert peer["differences"] == pytest.approx({"hidden": 0.0, "pooled": 0.0}, abs=1e-6)
    assert peer["ratio"]["low"] <= peer["ratio"]["ratio"] <= peer["ratio"]["high"]
    assert peer["ours"]["count"] == peer["peer"]["count"] >= 10


def test_another_bundle_is_a_peer(bench, built, built_open):
    said = bench(built, *SIZES, "--vs", built_open)
    assert said.code == 0, said.err
    assert f"in turns with {built_open} cpu: ours " in said.out
    assert any(word in said.out for word in ("within noise", "faster", "slower", "no verdict"))


def test_openvino_is_a_peer_where_it_is_installed(bench, built, encoder):
    pytest.importorskip("openvino", exc_type=ModuleNotFoundError)
    peer = bench(built, *SIZES, "--vs", "openvino", "--model", encoder, "--json").json["cases"][0]["peer"]
    assert (peer["name"], peer["agrees"]) == ("openvino", True)


def test_a_peer_with_other_answers_is_said_not_to_do_the_same_work(bench, built, encoder, tmp_path):
    import onnx
    from onnx import numpy_helper

    model = onnx.load(encoder)
    table = next(w for w in model.graph.initializer if w.name == "table")
    table.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(table) + np.float32(0.5), "table"))
    onnx.save(model, tmp_path / "other.onnx")
    said = bench(built, *SIZES, "--vs", "onnxruntime", "--model", tmp_path / "other.onnx")
    assert said.code == 0
    assert "this is not the same work" in said.err


def test_a_trace_is_written_and_summed_up(bench, built, tmp_path):
    path = tmp_path / "trace.json"
    said = bench(built, *SIZES, "--trace", path)
    assert said.code == 0, said.err
    events = json.loads(path.read_text())["traceEvents"]
    assert {e["cat"] for e in events if e["ph"] == "X"} == {"call", "node"}
    for title in ("traced calls", "nodes by time", "tensors by size and lifetime"):
        assert title in said.out
    assert "ReduceSum" in said.out


def test_real_inputs_are_measured_as_they_are(bench, built, good_request):
    case = bench(built, "--inputs", good_request, "--json").json["cases"][0]
    assert (case["sizes"][0]["sizes"], case["generated"]) == ({"batch": 2, "seq": 3}, {})


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        pytest.param(["--iterations", "0"], 2, "0 is not in the range", id="zero-iterations"),
        pytest.param(["--rate", "-5"], 2, "-5", id="negative-rate"),
        pytest.param(["--rate", "nan"], 2, "nan", id="rate-that-is-no-number"),
        pytest.param(["--rate", "1e12"], 2, "lower the rate or the duration", id="rate-beyond-memory"),
        pytest.param(["--duration", "inf"], 2, "not a finite number", id="endless"),
        pytest.param(["--percentile", "101"], 2, "numbers from 0 to 100", id="percentile"),
        pytest.param(["--callers", "0"], 2, "0 is not in the range", id="no-callers"),
        pytest.param(["--export-times", "{folder}"], 2, "that is a folder", id="export-to-a-folder"),
        pytest.param(["--export-times", "{folder}/none/x.json"], 2, "there is no folder", id="export-nowhere"),
        pytest.param(["--trace", "{folder}/none/x.json"], 2, "there is no folder", id="trace-nowhere"),
        pytest.param(["--html", "{folder}/none/x.html"], 2, "there is no folder", id="page-nowhere"),
        pytest.param(["--html", "/proc/a.html"], 4, "may not be written", id="page-that-no-file-can-be"),
        pytest.param(["--trace", "/proc/a.json"], 4, "may not be written", id="trace-that-no-file-can-be"),
        pytest.param(["--trace", "/dev/null"], 2, "no regular file", id="trace-that-is-a-device"),
        pytest.param(["--arrivals", "poisson"], 2, "add --rate", id="arrivals-without-rate"),
        pytest.param(["--vs", "torch"], 4, "torch is not installed; pip install torch", id="peer-not-installed"),
        pytest.param(["--vs", "torch", "--model", "m.onnx"], 2, "files, not m.onnx", id="torch-runs-no-onnx"),
        pytest.param(["--vs", "onnxruntim"], 2, "did you mean 'onnxruntime'?", id="unknown-peer"),
        pytest.param(["--vs", "onnxruntime"], 2, "add --model", id="peer-without-model"),
        pytest.param(["--vs", "onnxruntime", "--model", "none.onnx"], 2, "no such file", id="model-not-there"),
        pytest.param(["--vs", "onnxruntime", "--callers", "2"], 2, "in turns", id="peer-and-callers"),
        pytest.param(["--model", "x.onnx"], 2, "add --vs", id="model-without-peer"),
        pytest.param(["--random", "3", "--all-profiles"], 2, "keep one", id="two-ways-to-say-sizes"),
        pytest.param(["--sizes", "batch=9,seq=5"], 2, "batch=9", id="size-not-served"),
        pytest.param(["--traffic", "none.jsonl"], 2, "none.jsonl cannot be read: No such file", id="traffic-not-there"),
        pytest.param(["--engine", "gpu"], 2, "gpu", id="unknown-engine"),
    ],
)
def test_wrong_use_is_one_clear_error(trtc, built, tmp_path, words, code, message):  # noqa: PLR0917 (a table of cases)
    if words == ["--vs", "torch"]:
        try:
            import torch  # noqa: F401
        except ModuleNotFoundError:
            pass
        else:
            pytest.skip("torch is installed here")
    said = trtc("bench", built, *(word.format(folder=tmp_path) for word in words))
    assert said.code == code, said.err
    assert message in said.err
    assert "Traceback" not in said.err
    assert said.out == ""


@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")
@pytest.mark.parametrize("name", ["model.pt2", "model.pt"])
def test_torch_is_a_peer_where_it_is_installed(bench, tmp_path, trtc, tiny_model, name):
    torch = pytest.importorskip("torch", reason="torch is no dependency of trtc; pip install torch")

    class Double(torch.nn.Module):
        def forward(self, x):
            return x + x

    onnx.save(tiny_model("rows", 4), tmp_path / "model.onnx")
    assert trtc("build", tmp_path / "model.onnx", "--measure-seconds", "0").code == 0
    model, x, threads = Double().eval(), torch.ones(3, 4), torch.get_num_threads()
    if name == "model.pt":
        torch.jit.save(torch.jit.trace(model, (x,)), str(tmp_path / name))
    else:
        dims = ({0: torch.export.Dim("rows", min=1, max=64)},)
        torch.export.save(torch.export.export(model, (x,), dynamic_shapes=dims), str(tmp_path / name))
    try:
        said = bench(
            tmp_path / "model.trtc", "--sizes", "rows=5", "--vs", "torch", "--model", tmp_path / name, "--json"
        )
    finally:
        torch.set_num_threads(threads)
    assert said.code == 0, said.err
    peer = said.json["cases"][0]["peer"]
    assert (peer["name"], peer["agrees"], peer["differences"]) == ("torch", True, {"y": 0.0})


def test_samples_of_the_wrong_shape_are_refused(bench, built, request_file):
    wrong = request_file(input_ids=np.zeros((2, 3), np.int64), attention_mask=np.zeros((2, 4), np.int64))
    said = bench(built, "--inputs", wrong)
    assert said.code == 2
    assert "they must be equal" in said.err


def test_a_bundle_for_another_machine_is_refused(bench, bundle):
    manifest = read_manifest(bundle)
    record = manifest.engines[0]
    needs = msgspec.structs.replace(record.requirements, architecture="other")
    engine = msgspec.structs.replace(record, requirements=needs)
    write_bundle(bundle, msgspec.structs.replace(manifest, engines=(engine,)), {})
    said = bench(bundle, *SIZES)
    assert said.code == 4
    assert f"it was built for other, this host is {this_host().architecture}" in said.err


def test_an_export_that_may_not_be_written_is_refused_before_anything_runs(trtc, built, tmp_path, monkeypatch):
    from trtc.tools import places

    def refuse(**_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(places, "tempfile", SimpleNamespace(TemporaryFile=refuse))
    said = trtc("bench", built, "--export-times", tmp_path / "x.json")
    assert said.code == 4
    assert "may not be written (Permission denied)" in said.err


def test_an_open_bundle_asks_for_sizes(bench, built_open):
    said = bench(built_open)
    assert said.code == 2
    assert "no size for batch (0..), seq (0..)" in said.err or "no size for batch" in said.err


def test_a_page_needs_its_library(trtc, built, tmp_path, monkeypatch):
    monkeypatch.setattr("trtc.tools.report.files.find_spec", lambda _: None)
    said = trtc("bench", built, "--html", tmp_path / "x.html")
    assert said.code == 4
    assert "pip install 'trtc[report]'" in said.err
