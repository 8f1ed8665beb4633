"""The repository says what is true: targets that exist, a change log that is up to date, no stray text."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path


def stray_text(repository: Path, checkout: Path) -> tuple[int, str]:
    command = [sys.executable, str(repository / ".ci/stray_text.py"), str(checkout)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def test_no_file_holds_text_that_means_nothing_elsewhere(repository):
    code, words = stray_text(repository, repository)
    assert code == 0, words


# Put together here, so that this file is not a finding itself.
@pytest.mark.parametrize(
    "text",
    [
        pytest.param("see /" + "home/someone/models", id="home-folder"),
        pytest.param('open("/' + 'work/data.bin")', id="machine-folder"),
        pytest.param("cp .." + "/shared/x .", id="folder-beside-the-checkout"),
        pytest.param("from pypi" + ".org", id="index-host"),
        pytest.param("pip install --extra-" + "index-url x", id="index-option"),
        pytest.param("as in C" + "07", id="label-of-a-list"),
        pytest.param("<<<<" + "<<< HEAD", id="merge-mark"),
    ],
)
def test_stray_text_is_found_and_its_line_is_named(repository, tmp_path, text):
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / "page.md").write_text(f"fine\n{text}\n")
    code, words = stray_text(repository, tmp_path)
    assert code == 1
    assert words.startswith("page.md:2: ")


def test_a_folder_that_git_does_not_know_is_not_called_clean(repository, tmp_path):
    code, _ = stray_text(repository, tmp_path)
    assert code != 0


def test_the_change_log_has_an_entry_for_the_version(repository, project):
    version = re.escape(project["project"]["version"])
    assert re.search(rf"^## \[{version}\]", (repository / "CHANGELOG.md").read_text(), re.MULTILINE)


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_every_make_target_that_a_page_names_exists(repository, page):
    named = re.findall(r"(?:^|`)\s*make ([a-z-]+)", (repository / page).read_text(), re.MULTILINE)
    targets = re.findall(r"^([a-z-]+):", (repository / "Makefile").read_text(), re.MULTILINE)
    assert set(named) <= set(targets)


@pytest.mark.parametrize(
    "target", ["demo", "test", "check", "bench", "conformance", "fuzz", "soak", "binary", "test-binary"]
)
def test_contributors_are_told_about_every_target(repository, target):
    assert f"make {target}" in (repository / "CONTRIBUTING.md").read_text()


def test_every_pinned_model_package_carries_its_hash(repository):
    lines = (repository / "requirements/models.txt").read_text().replace("\\\n", " ").splitlines()
    pinned = [line for line in lines if line and not line.startswith("#")]
    assert pinned
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+\s+--hash=sha256:[0-9a-f]{64}", line) for line in pinned)


def test_every_tool_of_the_project_is_pinned_for_make(repository, project):
    extras = project["project"]["optional-dependencies"]
    wanted = [
        *project["project"]["dependencies"],
        *extras["cpu"],
        *extras["examples"],
        *extras["plan"],
        *extras["report"],
        *extras["dev"],
    ]
    names = {re.split(r"[\[<>=~! ]", entry)[0].lower().replace("_", "-") for entry in wanted} - {"trtc"}
    text = (repository / "requirements/constraints.txt").read_text()
    pinned = {name.lower().replace("_", "-") for name in re.findall(r"^([\w.-]+)==", text, re.MULTILINE)}
    assert names <= pinned
