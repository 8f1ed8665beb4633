"""Every command of docs/cli.md does what it says there."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

_BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
_EXIT = re.compile(r"\s*# exit (\d+)$")


def commands(page: Path) -> list[tuple[str, int]]:
    found = []
    for line in "".join(_BLOCK.findall(page.read_text())).splitlines():
        code = _EXIT.search(line)
        found.append((_EXIT.sub("", line), int(code[1]) if code else 0))
    return found


@pytest.fixture
def prepared(encoder: Path, good_request: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in the folder that the page speaks of."""
    shutil.copy(encoder, tmp_path / "model.onnx")
    shutil.copy(good_request, tmp_path / "request.npz")
    (tmp_path / "traffic.jsonl").write_text('{"seq": 5, "count": 60}\n{"seq": 12, "count": 30}\n{"seq": 40}\n')
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("prepared")
def test_the_commands_on_comparing_run_in_order(trtc, built, built_open, repository):
    shutil.copytree(built, "model.trtc")
    shutil.copytree(built_open, "exact.trtc")
    Path("sizes.jsonl").write_text('{"batch": 1, "seq": 5, "count": 3}\n{"batch": 2, "seq": 12}\n')
    for line, code in commands(repository / "docs" / "comparing.md"):
        said = trtc(*shlex.split(line)[1:])
        assert said.code == code, f"{line}: {said.err}"


@pytest.mark.usefixtures("prepared")
def test_the_python_on_comparing_runs(repository, capsys):
    (text,) = re.findall(
        r"^```python\n(.*?)^```", (repository / "docs" / "comparing.md").read_text(), re.MULTILINE | re.DOTALL
    )
    exec(compile(text, "docs/comparing.md", "exec"), {})  # noqa: S102 (our own page)
    assert capsys.readouterr().out.splitlines()[-1] == "True"


@pytest.mark.usefixtures("prepared")
def test_the_commands_of_the_page_run_in_order(trtc, repository):
    listed = commands(repository / "docs" / "cli.md")
    assert {line.split()[1] for line, _ in listed} == {
        "build",
        "plan",
        "run",
        "bench",
        "inspect",
        "verify",
        "compare",
        "diff",
        "check",
        "doctor",
    }
    for line, code in listed:
        program, *words = shlex.split(line)
        assert program == "trtc"
        said = trtc(*words)
        assert said.code == code, f"{line}: {said.err}"


def test_the_page_names_every_option(repository):
    from trtc.tools.cli import VERBS, command

    page = (repository / "docs" / "cli.md").read_text()
    for verb in VERBS:
        options = [p for p in command.get_command(None, verb).params if p.param_type_name == "option"]
        missing = [p.opts[0] for p in options if not p.hidden and not any(opt in page for opt in p.opts)]
        assert not missing, f"trtc {verb}"
