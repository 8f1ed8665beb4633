"""Short runs of the fuzzers, and proof that each of them notices a planted fault."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
CASES = {"manifest": 10_000, "texts": 10_000, "importer": 600, "bundles": 400}
LEAST = {
    "manifest": {"refused": 8_000, "accepted when forged": 50},
    "texts": {"refused": 5_000, "read": 250},
    "importer": {"refused": 200, "imported and run": 60, "imported, but ONNX Runtime refuses it": 10},
    "bundles": {"refused": 60, "harmless, loaded": 25, "forged, loaded": 2, "written over": 30},
}


def fuzz(target: str, cases: int, findings: Path, plant: str = "") -> subprocess.CompletedProcess[str]:
    """Run the command of ``make fuzz``; ``plant`` is Python code that breaks something first."""
    program = f"import runpy, sys\nsys.path.insert(0, {str(FOLDER)!r})\n{plant}\n"
    program += f"runpy.run_path({str(FOLDER / 'run.py')!r}, run_name='__main__')"
    words = [target, "--cases", str(cases), "--findings", str(findings), "--json"]
    return subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("target", CASES)
def test_edited_input_is_refused_in_words_or_served_right(target, tmp_path):
    done = fuzz(target, CASES[target], tmp_path / "findings")
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert report["cases"] == CASES[target]
    for outcome, least in LEAST[target].items():
        assert report["outcomes"][outcome] >= least, "the cases no longer reach what they are made for"
    assert not (tmp_path / "findings").exists()


PLANTED = {
    "an-error-of-another-kind": (
        "manifest",
        (
            "import trtc.engines.manifest_json as m\nfrom trtc.engines.errors import BundleError\nreal = m.check_seal\n"
            "def check(data):\n    try:\n        real(data)\n    except BundleError:\n        raise IndexError\n"
            "m.check_seal = check"
        ),
        "IndexError",
    ),
    "a-manifest-that-is-not-compared-with-its-checksum": (
        "manifest",
        "import trtc.engines.manifest_json as m\nm.check_seal = lambda data: None",
        "an altered manifest was read",
    ),
    "a-parser-that-gives-up": (
        "texts",
        "import trtc.profiles.grammar as g\ng.val_ranges = lambda texts: texts[0].index('[')",
        "ValueError",
    ),
    "a-process-that-dies": (
        "importer",
        (
            "import os, trtc.compiler.importer as m\nload = m.load_model_bytes\n"
            "m.load_model_bytes = lambda data, *a: os.abort() if len(data) % 9 == 0 else load(data, *a)"
        ),
        "SIGABRT",
    ),
    "memory-without-end": (
        "importer",
        "import trtc.compiler.importer as m\nm.load_model_bytes = lambda *a: bytes(3 << 30)",
        "MemoryError",
    ),
    "external-data-from-anywhere": (
        "importer",
        (
            "from pathlib import Path\nimport trtc.compiler.external_source as m\n"
            "Path.is_relative_to = lambda *_: True\nPath.relative_to = lambda self, *_: self\n"
            "def anywhere(root, parts):\n    import os\n    return os.open(Path(*parts), os.O_RDONLY)\n"
            "m._open_below = anywhere"
        ),
        "a file in the folder of secrets was opened",
    ),
    "digests-that-are-not-compared": (
        "bundles",
        (
            "import trtc.runtime.loader as m\nopened = m.open_engine\n"
            "m.open_engine = lambda path, pick, verify: opened(path, pick, verify=False)"
        ),
        "an altered bundle was loaded",
    ),
    "links-that-are-followed": (
        "bundles",
        (
            "import os, trtc.engines.blobs as m, trtc.engines.manifest_file as n\n"
            "def follow(path, folder=None):\n    return os.open(path, os.O_RDONLY | os.O_NONBLOCK, dir_fd=folder)\n"
            "m.open_regular = n.open_regular = follow"
        ),
        "a file in the folder of secrets was opened",
    ),
}


@pytest.mark.parametrize(("target", "plant", "said"), PLANTED.values(), ids=PLANTED)
def test_a_planted_fault_is_found_and_kept(tmp_path, target, plant, said):
    done = fuzz(target, 150, tmp_path / "findings", plant)
    assert done.returncode == 1, done.stdout + done.stderr
    found = [path.read_text() for path in (tmp_path / "findings").glob("*.txt")]
    assert any(said in text for text in found), found[:2]
    assert len(list((tmp_path / "findings").iterdir())) == 2 * len(found)


def test_a_case_is_the_same_whenever_it_is_made(tmp_path):
    first, again = (fuzz("manifest", 300, tmp_path, "").stdout for _ in range(2))
    assert json.loads(first)["outcomes"] == json.loads(again)["outcomes"]
