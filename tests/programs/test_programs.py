"""Programs from the package index, unmodified: on bundles they say what they say on plain ONNX Runtime."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from trtc.compiler import BuildOptions, build

HERE = Path(__file__).parent
TRTC = Path(sys.executable).with_name("trtc")
QUICK = BuildOptions(measure_s=0.0, verify_s=1.0)
OCR = "rapidocr_onnxruntime/models/"
OCR_MODELS = ("ch_PP-OCRv4_det_infer", "ch_ppocr_mobile_v2.0_cls_infer", "ch_PP-OCRv4_rec_infer")


def file_of(package: str, path: str) -> Path:
    try:
        found = Path(str(distribution(package).locate_file(path)))
    except PackageNotFoundError:
        pytest.skip(f"{package} is not installed")
    return found


def need(*modules: str) -> None:
    if missing := [name for name in modules if find_spec(name) is None]:
        pytest.skip(f"{', '.join(missing)} not installed")


def lines_of(program: str, args: list[Any], folder: Path, *options: Any) -> list[Any]:
    command: list[Any] = [sys.executable, HERE / program, *args]
    if options:
        command = [TRTC, "exec", "-q", "--summary", folder / "summary.json", *options, "--", *command]
    done = subprocess.run(list(map(str, command)), check=False, capture_output=True, text=True, timeout=300, cwd=folder)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]


def assert_alike(found: Any, wanted: Any, within: float = 1e-5) -> None:
    """Texts, labels and whole numbers are equal, and floats nearly."""
    assert type(found) is type(wanted)
    if isinstance(wanted, list):
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted, strict=True):
            assert_alike(one, other, within)
    elif isinstance(wanted, float):
        assert math.isclose(found, wanted, rel_tol=0, abs_tol=within)
    else:
        assert found == wanted


def served(folder: Path) -> dict[str, Any]:
    models = json.loads((folder / "summary.json").read_text())["models"]
    assert [(m["name"], m["through"]) for m in models] == [(m["name"], []) for m in models]
    assert all(m["bundles"] for m in models)
    return {m["name"]: m for m in models}


def built(folder: Path, *models: Path) -> list[Any]:
    for model in models:
        build(model, folder / f"{model.stem}.trtc", QUICK)
    return ["--bundles", folder]


def built_from_record(folder: Path, program: str, args: list[Any], *models: Path) -> list[Any]:
    """Record a plain run, and build each of its models from the record in one command."""
    lines_of(program, args, folder, "--record", folder / "traffic.jsonl")
    for model in models:
        command = [TRTC, "build", model, "--traffic", folder / "traffic.jsonl", "-o", folder / f"{model.stem}.trtc"]
        done = subprocess.run(list(map(str, command)), check=False, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
    return ["--bundles", folder]


def rendered_page(path: Path) -> Path:
    from PIL import Image, ImageDraw, ImageFont

    page = Image.new("RGB", (900, 360), "white")
    pen = ImageDraw.Draw(page)
    font = ImageFont.load_default(28)
    for i, line in enumerate(("Invoice 2024-117", "Two pumps, one valve", "Total 1,250.00 EUR", "Thank you")):
        pen.text((40 + 60 * i, 30 + 80 * i), line, "black", font)
    page.save(path)
    return path


def test_rapidocr_reads_the_same_from_pages(tmp_path):
    need("cv2", "pyclipper", "shapely", "six", "yaml", "PIL")
    models = [file_of("rapidocr-onnxruntime", f"{OCR}{name}.onnx") for name in OCR_MODELS]
    pages = [file_of("scikit-image", f"skimage/data/{name}.png") for name in ("page", "text")]
    pages.append(rendered_page(tmp_path / "rendered.png"))
    wanted = lines_of("read_pages.py", pages, tmp_path)
    assert any("Invoice" in line[1] for line in wanted)
    (tmp_path / "bundles").mkdir()
    found = lines_of("read_pages.py", pages, tmp_path, *built(tmp_path / "bundles", *models))
    assert_alike(found, wanted)
    assert all(m["calls"] >= 3 for m in served(tmp_path).values())
    assert len(served(tmp_path)) == 3


def test_magika_labels_the_same_for_the_files_of_this_repository(tmp_path):
    model = file_of("magika", "magika/models/standard_v3_3/model.onnx")
    files = [path for folder in ("docs", "engines", "tools") for path in sorted((HERE.parents[1] / folder).glob("*.*"))]
    wanted = lines_of("label_files.py", files, tmp_path)
    assert {line[1] for line in wanted} >= {"python", "markdown"}
    (tmp_path / "bundles").mkdir()
    found = lines_of("label_files.py", files, tmp_path, *built(tmp_path / "bundles", model))
    assert_alike(found, wanted)
    assert served(tmp_path)["model.onnx"]["calls"] >= len(files) // 2  # the smallest files need no model


def test_silero_finds_the_same_speech(tmp_path):
    """Its package imports torch, which is large: ``make programs`` installs it, an ordinary run skips this."""
    need("torch")
    model = file_of("silero-vad", "silero_vad/data/silero_vad.onnx")
    wanted = lines_of("find_speech.py", [], tmp_path)
    assert max(wanted[0]) > 0.05
    (tmp_path / "bundles").mkdir()
    found = lines_of("find_speech.py", [], tmp_path, *built(tmp_path / "bundles", model))
    assert_alike(found, wanted)
    assert served(tmp_path)["silero_vad.onnx"]["calls"] > 90


def test_magika_runs_on_a_bundle_that_its_own_record_built(tmp_path):
    model = file_of("magika", "magika/models/standard_v3_3/model.onnx")
    files = sorted((HERE.parents[1] / "docs").glob("*.md"))
    wanted = lines_of("label_files.py", files, tmp_path)
    options = built_from_record(tmp_path, "label_files.py", files, model)
    assert_alike(lines_of("label_files.py", files, tmp_path, *options), wanted)
    assert served(tmp_path)["model.onnx"]["before_s"] > 0


def test_rapidocr_and_silero_run_on_bundles_that_their_own_records_built(tmp_path):
    """Minutes of planning: ``make programs`` runs it, which installs torch, and an ordinary run skips it.

    On these lines ONNX Runtime's layouts move a score of the recogniser by more than a bundle may differ from its
    model, so the bundle does without them: nearer to the model, and 2e-4 from plain ONNX Runtime.
    """
    need("torch", "cv2", "pyclipper", "shapely", "six", "yaml", "PIL")
    models = [file_of("rapidocr-onnxruntime", f"{OCR}{name}.onnx") for name in OCR_MODELS]
    pages = [file_of("scikit-image", f"skimage/data/{name}.png") for name in ("page", "text")]
    silero = file_of("silero-vad", "silero_vad/data/silero_vad.onnx")
    for program, args, used in (("read_pages.py", pages, models), ("find_speech.py", [], [silero])):
        folder = tmp_path / program
        folder.mkdir()
        wanted = lines_of(program, args, folder)
        options = built_from_record(folder, program, args, *used)
        assert_alike(lines_of(program, args, folder, *options), wanted, 1e-3 if used is models else 1e-5)
        assert len(served(folder)) == len(used)
