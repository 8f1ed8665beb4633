"""``trtc plan``, and builds from traffic and from plan files, as a user types them."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import sys
import tempfile
import tomllib
from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from trtc.compiler.cost_grid import measure_cost
from trtc.engines.manifest_file import read_manifest
from trtc.profiles.cost import HeldOut

PADDED = ["--pad", "seq", "--fill", "input_ids=0", "--fill", "attention_mask=0"]
QUICK = ["--measure-seconds", "0", "--verify-seconds", "2"]
SIZES = {5: 60, 12: 30, 14: 20, 40: 2}


def write(path, counts):
    path.write_text("".join(json.dumps({"sizes": {"seq": n}, "count": c}) + "\n" for n, c in counts.items()))
    return path


def tall():
    """Adds a column of 80, cut to the height: larger heights fail."""
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Gather", ["shape", "zero"], ["h"], axis=0),
        helper.make_node("Slice", ["column", "zero", "h", "zero"], ["cut"]),
        helper.make_node("Add", ["x", "cut"], ["y"]),
    ]
    column, zero = np.arange(80, dtype=np.float32)[:, None], np.zeros(1, np.int64)
    return helper.make_model(
        helper.make_graph(
            nodes, "tall",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["h", "w"])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["h", "w"])],
            [numpy_helper.from_array(column, "column"), numpy_helper.from_array(zero, "zero")],
        ),
        opset_imports=[helper.make_opsetid("", 17)], ir_version=9,
    )  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("plan")


@pytest.fixture(scope="module")
def traffic(folder):
    return write(folder / "traffic.jsonl", SIZES)


@pytest.fixture(scope="module")
def planned(trtc, encoder, traffic, folder):
    """A plan as JSON, as a file and as a page; costs are measured."""
    said = trtc(
        "plan", encoder, "--traffic", traffic, "--dim", "batch=1", *PADDED, "--max-profiles", 3, "--within", 0,
        "--measure-seconds", "0.4", "-o", folder / "plan.toml", "--html", folder / "plan.html", "--json",
    )  # fmt: skip
    assert said.code == 0, said.err
    return said.json


@pytest.fixture(scope="module")
def served(trtc, encoder, traffic, folder):
    """A bundle whose ladder was planned for the traffic; costs are counted."""
    said = trtc(
        "build", encoder, "--traffic", traffic, "--dim", "batch=1", *PADDED, *QUICK, "--max-profiles", 2,
        "--within", 0, "-o", folder / "traffic.trtc",
    )  # fmt: skip
    assert said.code == 0, said.err
    return folder / "traffic.trtc"


def test_the_plan_has_the_best_ladder_its_curve_and_what_others_cost(planned):
    assert planned["schema"] == "trtc.plan/1"
    assert planned["traffic"]["requests"] == sum(SIZES.values())
    assert [p["ranges"]["seq"]["max"] for p in planned["profiles"]][-1] == 40
    assert [point["profiles"] for point in planned["curve"]] == [1, 2, 3]
    assert planned["proven"]
    assert all(other["expected_s"] >= planned["expected_s"] for other in planned["compared"])
    assert planned["exact_s"] <= planned["expected_s"]
    assert planned["cost"]["source"] == "measured"
    assert planned["cost"]["held_out"]["count"] >= 1
    assert planned["execution"]["slots"] >= 1


def test_the_page_needs_nothing_else_and_reads_in_light_and_dark(planned, folder):
    page = (folder / "plan.html").read_text()
    assert page.count("<svg") == 5
    assert not re.search(r"<script|@import|src=|href=\"http|url\(http", page)
    assert "prefers-color-scheme: dark" in page
    assert 'name="viewport"' in page
    for svg in re.findall(r"<svg.*?</svg>", page, re.DOTALL):
        assert "currentColor" in svg
        assert "<text" in svg
    assert f"{planned['profiles'][0]['ranges']['seq']['max']}" in page


def test_names_of_symbols_cannot_leave_the_page(trtc, encoder, traffic, folder):
    model = onnx.load(encoder)
    for value in (*model.graph.input, *model.graph.output):
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param == "seq":
                dim.dim_param = "<img src=x onerror=alert(1)>"
    path = folder / "named.onnx"
    onnx.save(model, path)
    (symbol,) = [s["symbol"] for s in trtc("inspect", path, "--json").json["symbols"] if s["symbol"] != "batch"]
    named = folder / "named.jsonl"
    named.write_text(traffic.read_text().replace('"seq"', json.dumps(symbol)))
    said = trtc("plan", path, "--traffic", named, *QUICK, "--html", folder / "named.html", "-q")
    assert said.code == 0, said.err
    assert "<img" not in (folder / "named.html").read_text()


@pytest.mark.usefixtures("planned")
def test_a_frozen_plan_builds_exactly_its_ladder_and_runs_as_it_says(trtc, encoder, folder):
    plan = tomllib.loads((folder / "plan.toml").read_text())
    target = folder / "frozen.trtc"
    said = trtc("build", encoder, "--plan", folder / "plan.toml", "--frozen", *QUICK, "-o", target)
    assert said.code == 0, said.err
    manifest = read_manifest(target)
    found = [[p.ranges[s] for s in ("batch", "seq")] for p in manifest.ladder.profiles]
    wanted = [[profile["ranges"][s] for s in ("batch", "seq")] for profile in plan["profiles"]]
    assert [[[r.min, r.opt, r.max] for r in row] for row in found] == wanted
    assert list(manifest.ladder.cost_s) == [profile["cost_s"] for profile in plan["profiles"]]
    execution = plan["execution"]
    assert (manifest.execution.mode, manifest.execution.slots) == (execution["mode"], execution["slots"])
    assert manifest.planned.traffic == plan["traffic"]["digest"]


@pytest.mark.usefixtures("planned")
def test_a_frozen_plan_of_another_model_says_what_does_not_hold(trtc, encoder, folder):
    model = onnx.load(encoder)
    table = next(t for t in model.graph.initializer if t.name == "table")
    table.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(table) * 2, "table"))
    other = folder / "other.onnx"
    onnx.save(model, other)
    target = folder / "other.trtc"
    said = trtc("build", other, "--plan", folder / "plan.toml", "--frozen", *QUICK, "-o", target)
    assert said.code == 1
    assert "the plan does not hold any more: it was made for the model" in said.err
    assert not target.exists()
    said = trtc("build", other, "--plan", folder / "plan.toml", *QUICK, "-o", target)
    assert said.code == 0
    assert "the plan is older than what it is used for" in said.err


@pytest.mark.usefixtures("planned")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        pytest.param(["--dim", "seq=1..9"], "states the profiles", id="ranges"),
        pytest.param(["--pad", "batch"], "--pad batch contradicts", id="padding"),
        pytest.param(["--mode", "bucket"], "says how requests run", id="mode"),
        pytest.param(["--callers", "2"], "--callers 2 contradicts", id="callers"),
        pytest.param(["--traffic", "t.jsonl"], "give one of the two", id="traffic"),
    ],
)
def test_options_that_contradict_a_plan_are_refused(trtc, encoder, folder, words, message):
    said = trtc("build", encoder, "--plan", folder / "plan.toml", *QUICK, *words)
    assert said.code == 2
    assert message in said.err


def test_an_edited_plan_is_read_strictly(trtc, encoder, planned, folder):
    del planned
    text = (folder / "plan.toml").read_text()
    bad = folder / "bad.toml"
    bad.write_text(text.replace("[execution]", "[execution]\nslot = 3"))
    said = trtc("build", encoder, "--plan", bad, "--frozen")
    assert said.code == 2
    assert "did you mean 'slots'" in said.err


def test_a_build_for_traffic_has_a_ladder_of_its_sizes_and_says_for_what(served, traffic):
    manifest = read_manifest(served)
    assert [p.ranges["seq"].max for p in manifest.ladder.profiles] == [14, 40]
    assert {p.ranges["batch"].max for p in manifest.ladder.profiles} == {1}
    assert manifest.planned.requests == sum(SIZES.values())
    assert manifest.planned.max_profiles == 2
    assert manifest.engines[0].cost.model.source == "analytic"
    assert traffic.name not in json.dumps(manifest.build.options)


def test_a_bundle_is_shown_with_what_its_ladder_was_planned_for(trtc, served):
    said = trtc("inspect", served)
    assert said.code == 0, said.err
    assert f"planned for {sum(SIZES.values())} requests" in said.out
    assert "costs of cpu: counted from the graph's operations" in said.out


def test_the_cache_knows_traffic_by_its_content(trtc, encoder, served, folder):
    del served
    same = write(folder / "renamed.jsonl", dict(reversed(SIZES.items())))
    other = write(folder / "shifted.jsonl", SIZES | {41: 1})
    words = ["--dim", "batch=1", *PADDED, *QUICK, "--max-profiles", 2, "--within", 0, "-o", folder / "again.trtc"]
    assert trtc("build", encoder, "--traffic", same, *words, "--json").json["cache_hit"]
    assert not trtc("build", encoder, "--traffic", other, *words, "--json").json["cache_hit"]


def test_a_bundle_that_still_fits_says_so(trtc, served, traffic):
    said = trtc("plan", "--from-bundle", served, "--traffic", traffic, "--json")
    assert said.code == 0, said.err
    assert said.json["fits"]
    assert said.json["same_traffic"]
    assert said.json["gain"] == 0


def test_a_bundle_that_refuses_new_sizes_does_not_fit(trtc, served, folder):
    grown = write(folder / "grown.jsonl", {5: 50, 60: 50})
    said = trtc("plan", "--from-bundle", served, "--traffic", grown)
    assert said.code == 1
    assert "50.00%" in said.out
    assert "50.00% of the requests are refused" in said.err


def test_what_a_rebuild_would_gain_is_told_in_seconds_and_percent(trtc, encoder, folder):
    path = folder / "padded.trtc"
    words = ["--dim", "batch=1", *PADDED, *QUICK, "--max-profiles", 1, "--mode", "bucket", "-o", path]
    long = write(folder / "long.jsonl", {5: 100, 9000: 1})
    assert trtc("build", encoder, "--traffic", long, *words).code == 0
    small = write(folder / "small.jsonl", {3: 100})
    said = trtc("plan", "--from-bundle", path, "--traffic", small, "--json")
    assert said.code == 1
    assert said.json["gain"] > 0.05
    assert said.json["gain_s"] == pytest.approx(
        said.json["today"]["expected_s"] - said.json["rebuilt"]["expected_s"], rel=1e-6
    )


def test_a_bundle_without_costs_is_compared_by_its_padding(trtc, bundle, folder):
    short = write(folder / "short.jsonl", {3: 100})
    said = trtc("plan", "--from-bundle", bundle, "--traffic", short, "--json")
    assert said.json["gain_s"] is None
    assert said.json["today"]["expected_s"] is None
    assert said.json["rebuilt"]["profiles"][0]["ranges"]["seq"]["max"] == 3


@pytest.mark.usefixtures("planned")
@pytest.mark.parametrize(
    ("words", "flat"),
    [
        pytest.param(["--plan", "plan.toml", "--frozen"], False, id="plan-file"),
        pytest.param(["--dim", "batch=1..8", "--buckets", "seq=16,64", "--pad", "batch", *PADDED], True, id="buckets"),
    ],
)
def test_a_ladder_that_grows_along_one_of_two_symbols_is_compared(  # noqa: PLR0917 (a table)
    trtc, encoder, folder, tmp_path, words, flat
):
    words = [folder / word if word == "plan.toml" else word for word in words]
    path = tmp_path / "grows.trtc"
    said = trtc("build", encoder, *words, "--measure-seconds", "0.2", "--verify-seconds", "2", "-o", path)
    assert said.code == 0, said.err
    today = tmp_path / "today.jsonl"
    today.write_text("".join(json.dumps({"sizes": {"batch": 1, "seq": n}}) + "\n" for n in (5, 12, 14, 40)))
    said = trtc("plan", "--from-bundle", path, "--traffic", today, "--json")
    assert said.code in {0, 1}, said.err  # whether it fits depends on what was measured
    assert said.json["refused"] == 0
    assert said.json["today"]["expected_s"] > 0
    said = trtc("plan", "--from-bundle", path, "--traffic", today)
    assert ("no costs along batch" in said.out) == flat


def test_each_row_of_a_comparison_is_one_ladder_run_in_one_way(trtc, encoder, tmp_path):
    """The waste of padded requests never stands beside the seconds of exact ones, and no seconds are made up."""
    words = ["--dim", "batch=1", "--buckets", "seq=16,64", *PADDED, "--mode", "exact"]
    bundle, today = tmp_path / "b.trtc", write(tmp_path / "today.jsonl", {5: 1, 40: 1})
    assert trtc("build", encoder, *words, "--measure-seconds", "0.1", "-o", bundle).code == 0
    said = trtc("plan", "--from-bundle", bundle, "--traffic", today)
    rows = [
        [c for c in line.split("  ") if c] for line in said.out.splitlines() if line.startswith(("  this", "  reb"))
    ]
    assert [[name.strip(), run.strip()] for name, run, *_ in rows] == [
        ["this bundle", "exact"],
        ["rebuilt, 2 profiles", "exact"],
        ["this bundle", "padded to the bucket"],
        ["rebuilt, 2 profiles", "padded to the bucket"],
    ]
    costs, wastes = zip(*[(row[2].strip(), row[3].strip()) for row in rows], strict=True)
    assert costs[:2] == ("-", "-")
    assert all(cost.endswith(("us", "ms")) for cost in costs[2:])
    assert wastes == ("0.0%", "0.0%", "43.8%", "0.0%")  # 5 + 40 elements in 16 + 64
    assert "holds the costs of its buckets only" in said.out
    found = trtc("plan", "--from-bundle", bundle, "--traffic", today, "--json").json
    assert (found["today"]["waste"], found["rebuilt"]["waste"]) == (0, 0)


def test_costs_that_are_not_measured_are_marked(trtc, encoder, traffic):
    said = trtc("plan", encoder, "--traffic", traffic, "--dim", "batch=1", *PADDED, *QUICK, "--json")
    assert said.json["cost"]["source"] == "analytic"
    assert said.json["execution"] is None
    assert any("counted, not measured" in note for note in said.json["notes"])


def test_a_plan_says_that_costs_were_unsteady(trtc, encoder, traffic, monkeypatch):
    def far_off(*words):
        cost = measure_cost(*words)
        return replace(cost, model=replace(cost.model, held_out=HeldOut(3, 0.3, 0.9)))

    monkeypatch.setattr("trtc.compiler.plan_measure.measure_cost", far_off)
    words = ["--dim", "batch=1", *PADDED, "--measure-seconds", "0.2", "--json"]
    (note,) = [n for n in trtc("plan", encoder, "--traffic", traffic, *words).json["notes"] if "unsteady" in n]
    assert "30% in the middle, 90% at worst" in note
    assert "measure longer with --measure-seconds 20" in note
    said = trtc("plan", encoder, "--traffic", traffic, *words[:-1])
    assert f"note: {note}" in said.err
    best_for = "better for the measured costs, which are off by 30% in the middle, 90% at worst; measure longer with "
    assert f"{best_for}--measure-seconds 20." in said.out
    assert "proven best for these costs" in said.out


def test_a_ladder_is_called_best_for_the_costs_that_it_rests_on(trtc, encoder, traffic):
    said = trtc("plan", encoder, "--traffic", traffic, "--dim", "batch=1", *PADDED, *QUICK)
    assert "no ladder of that length is better for the counted costs." in said.out


def test_with_requests_refused_other_ladders_are_compared_on_those_that_are_served(trtc, encoder, traffic):
    words = ["--dim", "batch=1", *PADDED, *QUICK, "--rare", "refuse", "--refuse-share", "0.02"]
    found = trtc("plan", encoder, "--traffic", traffic, *words, "--json").json
    last = found["profiles"][-1]
    assert last["ranges"]["seq"]["max"] == 14
    (one,) = [other for other in found["compared"] if other["name"] == "one profile at the maximum"]
    assert one["expected_s"] == pytest.approx(last["cost_s"])
    said = trtc("plan", encoder, "--traffic", traffic, *words)
    assert "1.786% of the requests are refused" in said.out.split("profiles\n")[0]


@pytest.mark.parametrize(
    ("dim", "told"), [pytest.param("batch=1..4", True, id="range"), pytest.param("batch=1", False, id="one-size")]
)
def test_a_padded_size_that_the_traffic_leaves_out_is_named(trtc, encoder, traffic, dim, told):
    words = ["--dim", dim, *PADDED, "--pad", "batch", *QUICK, "--json"]
    notes = trtc("plan", encoder, "--traffic", traffic, *words).json["notes"]
    assert any("says nothing of batch" in note and "batch 1..4" in note for note in notes) == told


def test_without_padding_one_profile_serves_everything_exactly(trtc, encoder, traffic):
    said = trtc("plan", encoder, "--traffic", traffic, "--dim", "batch=1", *QUICK, "--json")
    (profile,) = said.json["profiles"]
    assert (profile["ranges"]["seq"]["min"], profile["ranges"]["seq"]["max"]) == (1, 40)
    assert profile["waste"] == 0


def test_buckets_keep_to_the_alignment(trtc, encoder, traffic):
    words = ["--dim", "batch=1", *PADDED, *QUICK, "--align", "seq=8", "--json"]
    said = trtc("plan", encoder, "--traffic", traffic, *words)
    assert all(p["ranges"]["seq"]["max"] % 8 == 0 for p in said.json["profiles"])


def test_padding_that_changes_answers_stops_a_plan(trtc, encoder, traffic):
    words = ["--pad", "seq", "--fill", "input_ids=0", "--fill", "attention_mask=1"]
    said = trtc("plan", encoder, "--traffic", traffic, "--dim", "batch=1", *words, *QUICK)
    assert said.code == 1
    assert "padding seq is refused" in said.err


BAD_FILES = [
    pytest.param("t.jsonl", "", "no request in it", id="empty"),
    pytest.param("t.jsonl", '{"seq": 3}\n{"seq": "x"}\n', "t.jsonl, line 2: seq is 'x'", id="malformed"),
    pytest.param("t.jsonl", '{"seq": 3}\n{"seq": 3, "batch": 1}\n', "line 2", id="contradictory"),
    pytest.param("t.jsonl", '{"seq": 3, "count": NaN}\n', "line 1", id="nan-weight"),
    pytest.param("t.csv", "seq,count\n3,-1\n", "line 2: the count is -1", id="negative-weight"),
    pytest.param("t.jsonl", '{"sep": 3}\n', "did you mean 'seq'", id="unknown-symbol"),
    pytest.param("t.jsonl", '{"seq": 0}\n', "line 1: seq is 0", id="size-zero"),
    pytest.param("t.txt", "some words\n", "--tokenizer", id="texts-without-tokenizer"),
    pytest.param("nosuch", None, "nosuch: there is no such file", id="missing"),
    pytest.param("nosuch.jsonl", None, "No such file", id="missing-with-ending"),
    pytest.param("t.xlsx", "x", "the ending '.xlsx'", id="unknown-ending"),
]


@pytest.mark.parametrize(("name", "text", "message"), BAD_FILES)
@pytest.mark.parametrize("verb", ["plan", "build"])
def test_bad_traffic_is_one_message_that_names_the_line(  # noqa: PLR0917 (a table)
    trtc, encoder, tmp_path, verb, name, text, message
):
    path = tmp_path / name
    if text is not None:
        path.write_text(text)
    said = trtc(verb, encoder, "--traffic", path, *QUICK)
    assert said.code == 2
    assert message in said.err
    assert "Traceback" not in said.err


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        pytest.param(["--dim", "seq=1..20"], 2, "20", id="sizes-outside-limits"),
        pytest.param(["--buckets", "seq=16,64"], 2, "--traffic chooses the profiles", id="buckets-too"),
        pytest.param(["--align", "batch=2"], 2, "batch may not be padded", id="align-what-is-not-padded"),
        pytest.param(["--align", "seq"], 2, "write SYMBOL=N", id="align-without-number"),
        pytest.param(["--align", "sep=8"], 2, "did you mean 'seq'", id="align-unknown"),
        pytest.param(["--rare", "refuse"], 2, "--refuse-share", id="refuse-without-share"),
        pytest.param(["--rare", "refuse", "--refuse-share", "1"], 2, "give a share below 1", id="refuse-everything"),
        pytest.param(["--align", "seq=64", "--dim", "seq=1..40"], 2, "is served up to 40", id="align-above-the-top"),
        pytest.param(["--align", "seq=16", "--dim", "seq=1..40"], 2, "align to 10", id="align-across-the-top"),
        pytest.param(["--max-profiles", "0"], 2, "--max-profiles", id="no-profile"),
        pytest.param(["--max-slot-memory", "1K"], 1, "bytes", id="budget-that-nothing-satisfies"),
        pytest.param(["--frozen"], 2, "--plan", id="frozen-without-plan"),
    ],
)
def test_wrong_use_says_what_to_do(  # noqa: PLR0917 (a table)
    trtc, encoder, traffic, words, code, message
):
    dim = [] if any(word.startswith("--dim") or word == "--buckets" for word in words) else ["--dim", "batch=1"]
    said = trtc("build", encoder, "--traffic", traffic, *dim, *PADDED, *words)
    assert said.code == code, said.err
    assert message in said.err
    assert "proving" not in said.err
    assert "measuring" not in said.err


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(["--rare", "refuse", "--refuse-share", "1"], id="refuse-everything"),
        pytest.param(["--align", "seq=64", "--dim", "seq=1..40"], id="align-above-the-top"),
        pytest.param(["--align", "batch=2"], id="align-what-is-not-padded"),
    ],
)
def test_what_the_options_alone_show_is_refused_before_the_model_runs(trtc, encoder, traffic, words):
    said = trtc("plan", encoder, "--traffic", traffic, *PADDED, *words)
    assert said.code == 2
    assert "running the model" not in said.err


def test_a_budget_that_nothing_satisfies_does_not_offer_to_refuse_everything(trtc, encoder, folder):
    long = write(folder / "all-long.jsonl", {200: 5, 400: 3})
    said = trtc("plan", encoder, "--traffic", long, "--dim", "batch=1", *PADDED, "--max-slot-memory", "1K")
    assert said.code == 1, said.err
    assert "the nearest budget that serves all is" in said.err
    assert "refuse" not in said.err


@pytest.mark.parametrize("verb", ["plan", "build"])
@pytest.mark.parametrize(
    ("served", "share"), [pytest.param("64..128", "100.00%", id="none"), pytest.param("1..13", "19.64%", id="some")]
)
def test_traffic_outside_the_stated_ranges_is_refused_before_anything_is_measured(  # noqa: PLR0917 (a table)
    trtc, encoder, traffic, verb, served, share
):
    said = trtc(verb, encoder, "--traffic", traffic, "--dim", "batch=1", "--dim", f"seq={served}", *PADDED)
    assert said.code == 2, said.err
    assert f"{share} of the traffic has seq" in said.err
    assert f"takes {served}" in said.err
    assert "measuring" not in said.err


def test_hardly_any_of_the_traffic_need_be_served(trtc, encoder, folder):
    """The few requests that ways of running are compared on are among those that are served."""
    rare = write(folder / "rare.jsonl", {5: 1, 40: 999})
    words = ["--dim", "batch=1", *PADDED, "--rare", "refuse", "--refuse-share", "0.9995", "--measure-seconds", "0.2"]
    said = trtc("plan", encoder, "--traffic", rare, *words, "--json")
    assert said.code == 0, said.err
    assert said.json["profiles"][-1]["ranges"]["seq"]["max"] == 5


@pytest.mark.parametrize(
    ("words", "top"),
    [
        pytest.param([], 48, id="traffic"),
        pytest.param(["--rare", "catch-all"], 80, id="catch-all"),
        pytest.param(["--dim", "h=16..64"], 64, id="stated"),
    ],
)
def test_what_may_not_be_padded_ends_at_the_traffic_unless_more_was_asked_for(trtc, tmp_path, words, top):
    """The model takes heights up to 80, which nobody asked for."""
    model = tmp_path / "tall.onnx"
    onnx.save(tall(), model)
    path = tmp_path / "sizes.jsonl"
    path.write_text("".join(json.dumps({"sizes": {"h": 48, "w": w}}) + "\n" for w in (10, 20)))
    said = trtc("plan", model, "--traffic", path, *QUICK, *words, "--json")
    assert said.code == 0, said.err
    (profile,) = said.json["profiles"]
    assert profile["ranges"]["h"]["max"] == top


@pytest.mark.parametrize(
    ("words", "message"),
    [
        pytest.param(["--max-profiles", "3"], "--max-profiles says how traffic is planned for", id="no-traffic"),
        pytest.param([], "give --traffic FILE", id="nothing"),
    ],
)
def test_a_plan_without_traffic_is_refused(trtc, encoder, words, message):
    said = trtc("plan" if not words else "build", encoder, *words)
    assert said.code == 2
    assert message in said.err


def test_places_that_cannot_take_a_file_are_refused_before_anything_runs(trtc, encoder, traffic, tmp_path):
    for place in (tmp_path, tmp_path / "missing" / "plan.toml", encoder):
        said = trtc("plan", encoder, "--traffic", traffic, "-o", place)
        assert said.code == 2


@pytest.mark.parametrize("option", ["-o", "--html"])
def test_a_folder_that_may_not_be_written_is_refused_before_anything_runs(  # noqa: PLR0917 (a table)
    trtc, encoder, traffic, tmp_path, monkeypatch, option
):
    """Rights are taken away in the look-up alone: tests may run as a user who may write everywhere."""

    def refuse(dir=None):  # noqa: A002 (named as in tempfile)
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(dir))

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    said = trtc("plan", encoder, "--traffic", traffic, *QUICK, option, tmp_path / "plan.out")
    assert said.code == 4
    assert f"{tmp_path} may not be written" in said.err
    assert "loading the model" not in said.err


def test_a_page_without_its_library_says_what_to_install(trtc, encoder, traffic, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    said = trtc("plan", encoder, "--traffic", traffic, "--html", tmp_path / "p.html")
    assert said.code == 4
    assert "pip install 'trtc[report]'" in said.err


def test_samples_are_traffic_too(trtc, encoder, tmp_path):
    samples = tmp_path / "samples"
    samples.mkdir()
    for i, n in enumerate((5, 5, 12)):
        np.savez(samples / f"{i}.npz", input_ids=np.ones((1, n), np.int64), attention_mask=np.ones((1, n), np.int64))
    said = trtc("plan", encoder, "--traffic", samples, *PADDED, *QUICK, "--json")
    assert said.code == 0, said.err
    assert said.json["traffic"]["requests"] == 3


def test_the_traffic_that_a_session_recorded_plans_the_next_build(trtc, served, encoder, tmp_path):
    from trtc.runtime import load

    path = tmp_path / "recorded.jsonl"
    bundle = shutil.copytree(served, tmp_path / "served.trtc")
    with load(bundle) as session:
        session.record_traffic(path)
        for n in (3, 3, 3, 9):
            session.run({"input_ids": np.ones((1, n), np.int64), "attention_mask": np.ones((1, n), np.int64)})
    said = trtc("plan", encoder, "--traffic", path, *PADDED, *QUICK, "--within", 0, "--json")
    assert said.code == 0, said.err
    assert [p["ranges"]["seq"]["max"] for p in said.json["profiles"]] == [3, 9]
