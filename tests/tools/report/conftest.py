"""The pages as the commands write them, and a browser without a window."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html import unescape
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

PADDED = ("--pad", "seq", "--fill", "input_ids=0", "--fill", "attention_mask=0")
MEASURED = """<!doctype html><body style="margin:0">
<iframe id="page" src="{page}" style="width:{width}px;height:900px;border:0"></iframe><pre id="found"></pre>
<script>
document.getElementById('page').onload = event => {{
  const view = event.target.contentWindow, root = view.document.documentElement;
  document.getElementById('found').textContent = JSON.stringify({{
    width: root.scrollWidth,
    loaded: view.performance.getEntriesByType('resource').map(entry => entry.name),
    heads: [...root.querySelectorAll('thead tr')].map(row => row.getBoundingClientRect().height),
    behind: [...root.querySelectorAll('figure')].map(figure => view.getComputedStyle(figure).backgroundImage),
    texts: [...root.querySelectorAll('svg text')].map(text => text.getBoundingClientRect().height),
  }});
}};
</script>
"""


@pytest.fixture(scope="session")
def pages(built, encoder, trtc, tmp_path_factory) -> dict[str, Path]:
    """The pages of ``inspect``, ``bench`` and ``plan``."""
    from trtc.tools.bench import limits

    folder = tmp_path_factory.mktemp("pages")
    traffic = folder / "traffic.jsonl"
    counts = {(1, 5): 60, (2, 12): 30, (1, 14): 20, (3, 40): 2}
    traffic.write_text(
        "".join(json.dumps({"sizes": {"batch": b, "seq": s}, "count": n}) + "\n" for (b, s), n in counts.items())
    )
    quick = ("--iterations", "5", "--duration", "0", "--warm-up", "0", "-q")
    words = {
        "inspect": (built,),
        "bench": (built, "--grid", "batch=1,3", "seq=5,12", "--vs", "onnxruntime", "--model", encoder, *quick),
        "plan": (encoder, "--traffic", traffic, *PADDED, "--pad", "batch", "--measure-seconds", "0", "--within", "0"),
    }
    found = {}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("TRY_S", 0.0), ("SIDE", 64), ("COPY_BYTES", 4096)):
            patch.setattr(limits, name, value)
        for verb, more in words.items():
            found[verb] = folder / f"{verb}.html"
            said = trtc(verb, *more, "--html", found[verb])
            assert said.code == 0, said.err
    return found


class Browser:
    """Opens pages without a window."""

    def __init__(self, program: str, folder: Path) -> None:
        self._program, self._folder = program, folder

    def complaints(self, path: Path) -> list[str]:
        """Draw a page, and return what the browser wrote to its console."""
        picture = self._folder / "page.png"
        done = self._run(f"--screenshot={picture}", "--window-size=400,900", f"file://{path}")
        assert picture.stat().st_size > 1000, done.stderr
        picture.unlink()
        return [line for line in done.stderr.splitlines() if ":CONSOLE" in line]

    def measured(self, path: Path, width: int) -> dict[str, Any]:
        """Show a page in a frame of this width, and return how wide it is, what it loaded, and its letters' heights."""
        around = self._folder / "around.html"
        around.write_text(MEASURED.format(page=path.as_uri(), width=width))
        done = self._run("--allow-file-access-from-files", "--hide-scrollbars", "--dump-dom", around.as_uri())
        found = re.search(r'<pre id="found">(.+?)</pre>', done.stdout)
        assert found, done.stderr
        return json.loads(unescape(found[1]))

    def printed(self, path: Path) -> Path:
        """Print a page to a PDF."""
        paper = self._folder / f"{path.stem}.pdf"
        done = self._run(f"--print-to-pdf={paper}", "--no-pdf-header-footer", path.as_uri())
        assert paper.is_file(), done.stderr
        return paper

    def _run(self, *options: str) -> subprocess.CompletedProcess[str]:
        command = [self._program, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--v=0",
                   f"--user-data-dir={self._folder / 'profile'}", *options]  # fmt: skip
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


@pytest.fixture(scope="session")
def browser(tmp_path_factory) -> Browser:
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("chromium is not installed; Debian: apt-get install chromium")
    return Browser(program, tmp_path_factory.mktemp("browser"))
