"""What long work says of itself where there is no terminal."""

from __future__ import annotations

import pytest

from trtc.compiler import BuildOptions, build
from trtc.compiler.options import Silent
from trtc.compiler.plan_model import plan_model
from trtc.compiler.plan_options import PlanOptions
from trtc.profiles.grammar import ShapeOptions
from trtc.tools.output import Progress


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


def told(clock, steps, **options):
    """Run one stage whose details come at these seconds."""
    progress = Progress(clock=clock, **options)
    progress.stage("measuring")
    for at_s, text in steps:
        clock.now_s = at_s
        progress.detail(text)
    return progress


def test_a_long_stage_says_how_far_it_is_from_time_to_time(clock, capsys):
    steps = [(1.0, "1 of 9"), (10.0, "2 of 9"), (11.0, "3 of 9"), (19.9, "4 of 9"), (20.0, "5 of 9"), (45.0, "6 of 9")]
    told(clock, steps).done()
    assert capsys.readouterr().err.splitlines() == [
        "measuring: 2 of 9",
        "measuring: 5 of 9",
        "measuring: 6 of 9",
        "measuring: 45.0 s (at 45.0 s)",
    ]


def test_each_stage_is_silent_at_first(clock, capsys):
    progress = told(clock, [(9.0, "1 of 9")])
    progress.stage("comparing")
    clock.now_s = 18.0
    progress.detail("1 of 2")
    assert capsys.readouterr().err.splitlines() == ["measuring: 9.0 s (at 9.0 s)"]


def test_how_long_a_stage_will_take_is_said_where_that_is_long(clock, capsys):
    progress = told(clock, [])
    progress.ahead(9.9)
    assert capsys.readouterr().err == ""
    progress.ahead(40.0)
    assert capsys.readouterr().err == "measuring: about 40.0 s from here\n"


def test_quiet_work_says_nothing(clock, capsys):
    progress = told(clock, [(100.0, "1 of 9")], quiet=True)
    progress.ahead(100.0)
    progress.done()
    assert capsys.readouterr().err == ""
    assert progress.whole_s == 100.0


class Heard(Silent):
    """Keeps what it is told, stage by stage."""

    def __init__(self) -> None:
        self.stages: dict[str, list[str]] = {}

    def stage(self, text: str) -> None:
        self.stages[text] = []

    def detail(self, text: str) -> None:
        self.stages[next(reversed(self.stages))].append(text)


def test_comparing_and_measuring_tell_how_far_they_are(encoder, tmp_path):
    heard = Heard()
    shapes = ShapeOptions(dim=("batch=1..2",), buckets=("seq=4,8",))
    options = BuildOptions(shapes=shapes, measure_s=0.05, verify_s=1.0, threads=2, use_cache=False)
    build(encoder, tmp_path / "x.trtc", options, heard)
    assert heard.stages["measuring"][:4] == ["way 1 of 2", "way 2 of 2", "profile 1 of 2", "profile 2 of 2"]
    (compared,) = (details for stage, details in heard.stages.items() if stage.startswith("comparing the engine"))
    assert compared[0].startswith("1 of ")
    assert compared[-1] == f"{len(compared)} of {len(compared)} requests"


def test_planning_tells_how_far_it_is(encoder, tmp_path, monkeypatch):
    monkeypatch.setattr("trtc.compiler.replay._TOLD_EVERY_S", 0.0)
    traffic = tmp_path / "traffic.jsonl"
    traffic.write_text('{"batch": 1, "seq": 5}\n{"batch": 1, "seq": 9}\n')
    heard = Heard()
    options = BuildOptions(measure_s=0.1, threads=2, plan=PlanOptions(traffic=(traffic,)))
    plan_model(encoder, options, heard)
    assert "1 of 6 requests to warm up" in heard.stages["measuring which threads serve this traffic"]
    assert "run 1" in heard.stages["measuring what sizes cost"]
    assert any("round 1" in text for text in heard.stages["comparing exact sizes with padded ones"])
