"""Beside a peer: both wait for work in the same way, and a loaded machine gives no verdict."""

from __future__ import annotations

import re

import msgspec
import onnxruntime
import pytest

from trtc.engines.bundle import write_bundle
from trtc.engines.host import this_host
from trtc.engines.manifest_file import read_manifest
from trtc.tools.bench import run, show
from trtc.tools.bench.conditions import Moment
from trtc.tools.bench.show import compared_texts, show_report
from trtc.tools.bench.waiting import both_waiting, for_one_caller

WORDS = ("--sizes", "batch=2,seq=5", "--iterations", "3", "--duration", "0", "--warm-up", "0")
SPINNING = "session.intra_op.allow_spinning"


@pytest.fixture(autouse=True)
def quiet(monkeypatch):
    """Nothing else runs on this machine, unless a test says so."""
    monkeypatch.setattr(run, "read_moment", lambda: Moment(None, None, None, 0.0, None))


@pytest.fixture
def loaded(monkeypatch, quiet):  # noqa: ARG001 (this comes after it)
    monkeypatch.setattr(run, "read_moment", lambda: Moment(None, None, None, 1e6, None))


@pytest.fixture
def opened(monkeypatch):
    """Whether each session of ONNX Runtime that is opened lets idle threads spin, in order."""
    seen, real = [], onnxruntime.InferenceSession

    def open_it(model, options, *args, **more):
        seen.append(options.get_session_config_entry(SPINNING))
        return real(model, options, *args, **more)

    monkeypatch.setattr(onnxruntime, "InferenceSession", open_it)
    return seen


@pytest.fixture
def crowded(bundle):
    """A bundle that opens as many slots as there are processors, each with as many threads."""
    manifest, count = read_manifest(bundle), this_host().threads
    (record,) = manifest.engines
    execution = msgspec.structs.replace(record.execution or manifest.execution, slots=count, threads=count)
    engine = msgspec.structs.replace(record, execution=execution)
    write_bundle(bundle, msgspec.structs.replace(manifest, engines=(engine,), execution=execution), {})
    return bundle


@pytest.mark.parametrize(
    ("words", "spins"),
    [
        pytest.param([], True, id="one-caller"),
        pytest.param(["--slots", str(this_host().threads + 1), "--threads", "1"], False, id="many-slots"),
        pytest.param(["--threads", str(this_host().threads + 1)], False, id="more-threads-than-processors"),
    ],
)
def test_both_sides_wait_for_work_in_the_same_way(trtc, crowded, encoder, opened, words, spins):  # noqa: PLR0917 (fixtures come by name)
    said = trtc("bench", crowded, *WORDS, *words, "--vs", "onnxruntime", "--model", encoder, "--json")
    assert said.code == 0, said.err
    assert opened == ["1" if spins else "0"] * 2
    assert said.json["idle_threads"] == ("spin" if spins else "sleep")
    assert said.json["cases"][0]["peer"]["idle_threads"] == f"both sides {'spin' if spins else 'sleep'}"


def test_another_bundle_waits_as_ours_does(trtc, crowded, built_open, opened):
    said = trtc("bench", crowded, *WORDS, "--vs", built_open)
    assert (said.code, opened) == (0, ["1", "1"])
    assert "  idle threads: both sides spin\n" in said.out


def test_alone_a_bundle_opens_as_in_a_program(trtc, crowded, opened):
    report = trtc("bench", crowded, *WORDS, "--json").json
    count = this_host().threads
    assert opened == ["1" if count * count <= count else "0"]
    assert report["idle_threads"] == ("spin" if count * count <= count else "sleep")


@pytest.mark.parametrize(
    ("ours", "peer", "text"),
    [
        (True, True, "both sides spin"),
        (False, False, "both sides sleep"),
        (True, None, "ours spin, the peer's wait as its library decides"),
        (None, None, "ours wait as the engine's library decides, the peer's wait as its library decides"),
    ],
)
def test_how_threads_wait_is_said(ours, peer, text):
    assert both_waiting(ours, peer) == text


def test_slots_that_were_asked_for_are_opened_as_a_program_opens_them():
    assert for_one_caller(None, 2) is None
    assert for_one_caller(None, 1) is for_one_caller(1, None) is True


def test_a_loaded_machine_gives_a_ratio_and_no_verdict(trtc, built, encoder, tmp_path, loaded):  # noqa: ARG001 (fixtures come by name)
    words = ("bench", built, *WORDS, "--vs", "onnxruntime", "--model", encoder)
    path = tmp_path / "x.html"
    said = trtc(*words, "--html", path)
    figures = r"[0-9.]+ of its time \([0-9.]+\.\.[0-9.]+ at 95%, [0-9]+ rounds\)"
    assert re.search(f"{figures}: no verdict, the machine was loaded", said.out)
    assert "stop other work" in said.err
    assert not re.search(": (faster|slower|within noise)$", said.out, re.MULTILINE)
    assert '<td class="short">machine was loaded</td>' in path.read_text()
    report = trtc(*words, "--json").json
    assert report["conditions"]["loaded"]
    assert report["cases"][0]["peer"]["ratio"]["verdict"] == "loaded"


def test_text_page_and_json_have_the_same_two_medians_and_their_ratio(trtc, built, encoder, tmp_path, monkeypatch):
    reports = []

    def kept(report):
        reports.append(report)
        show_report(report)

    monkeypatch.setattr(show, "show_report", kept)
    path = tmp_path / "x.html"
    said = trtc("bench", built, *WORDS, "--vs", "onnxruntime", "--model", encoder, "--html", path)
    ratio = reports[0].cases[0].peer.ratio
    assert ratio.ratio == ratio.ours_s / ratio.peer_s
    ours, peer = compared_texts(reports[0].cases[0].peer)
    assert float(ours.split()[0]) == pytest.approx(ratio.ours_s * {"us": 1e6, "ms": 1e3}[ours.split()[1]], rel=1e-3)
    assert f": ours {ours}, the peer {peer}; {ratio.ratio:.3f} of its time" in said.out
    assert "  the answers agree within the bundle's tolerance\n" in said.out
    page = path.read_text()
    row = re.search(r"In turns with onnxruntime: medians</caption>.*?<tbody>\s*<tr>(.*?)</tr>", page, re.DOTALL)[1]
    cells = re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row)
    assert cells[1:5] == [ours, peer, f"{ratio.ratio:.3f} ({ratio.low:.3f}..{ratio.high:.3f})", "agree"]
