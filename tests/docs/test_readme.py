"""Every command and every line of Python that the README shows does what it says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

_BLOCK = re.compile(r"<!-- run: (?P<name>\w+) -->\n```(?P<language>\w*)\n(?P<text>.*?)^```", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\((?P<target>[^)#]+)(?:#[^)]*)?\)")


def blocks(page: Path) -> dict[str, tuple[str, str]]:
    return {m["name"]: (m["language"], m["text"]) for m in _BLOCK.finditer(page.read_text())}


@pytest.fixture(scope="module")
def tour(minilm_path: Path, repository: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Run the whole tour in order, as a reader would, and return what each block printed."""
    del minilm_path  # asked for, so that the test is skipped where the model is not installed
    folder = tmp_path_factory.mktemp("tour")
    (folder / "examples").symlink_to(repository / "examples")
    (folder / ".venv").symlink_to(sys.prefix)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    printed = {}
    for name, (language, text) in blocks(repository / "README.md").items():
        command = [sys.executable, "-c", text] if language == "python" else ["bash", "-euo", "pipefail", "-c", text]
        environ = {**os.environ, "PATH": path}
        done = subprocess.run(command, check=False, cwd=folder, env=environ, capture_output=True, text=True)
        assert done.returncode == 0, f"{name}: {done.stderr}"
        printed[name] = done.stdout
    return printed


def test_the_tour_shows_the_symbols_that_its_build_command_types(tour):
    assert "batch_size" in tour["model"]
    assert "sequence_length" in tour["model"]


def test_the_tour_builds_buckets_whose_padding_is_proven(tour):
    assert "padding sequence_length on the right, input_ids=0, attention_mask=0: shown in " in tour["build"]
    assert "rows along batch_size are independent: shown in " in tour["build"]


def test_the_tour_builds_without_options_and_says_how_to_get_buckets(tour):
    assert "any.trtc" in tour["plain"]
    assert "hint:" in tour["plain"]


def test_the_tour_builds_an_engine_for_gpus_and_says_that_it_waits_for_one(tour):
    assert "engine cpu" in tour["gpu"]
    assert "engine rtx:sm89,sm120" in tour["gpu"]
    assert "trtc verify gpu.trtc" in tour["gpu"]


def test_the_tour_runs_the_bundle(tour):
    assert "461" in tour["use"]


def test_the_tour_compares_every_profile_exact_and_padded(tour):
    assert "DIFFERS" not in tour["compare"]
    rows = {tuple(line.split()[:2]) for line in tour["compare"].splitlines()}
    assert {(f"p{i}", mode) for i in range(3) for mode in ("exact", "bucket")} <= rows
    assert "Passed: 1/1 iterations" in tour["compare"]


def test_the_python_of_the_tour_prints_the_shape_of_a_sentence(tour):
    assert tour["python"].startswith("(1, 384)")
    assert "engine cpu" in tour["python"]


def test_the_tour_plans_for_what_it_recorded_and_builds_exactly_that(tour):
    assert "7 requests over batch_size, sequence_length, 5 different sizes" in tour["plan"]
    assert "planned.trtc" in tour["plan"]
    assert "today's ladder still fits" in tour["fit"]


PAGES = [
    "README.md",
    "CONTRIBUTING.md",
    "docs/architecture.md",
    "docs/benchmarking.md",
    "docs/binary.md",
    "docs/cli.md",
    "docs/planning.md",
]


@pytest.mark.parametrize("page", PAGES)
def test_every_link_leads_to_a_file_of_the_repository(page, repository):
    targets = [m["target"] for m in _LINK.finditer((repository / page).read_text())]
    missing = [t for t in targets if "://" not in t and not (repository / page).parent.joinpath(t).exists()]
    assert not missing
