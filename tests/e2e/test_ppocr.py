"""Text recogniser, direction classifier and detector: images whose padding is not neutral, and steps in sizes."""

from __future__ import annotations

import subprocess
import sys
from itertools import groupby

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont

from trtc.compiler import BuildOptions, PaddingRefusedError, ShapeOptions, build
from trtc.runtime import RequestError, load

BATCH, HEIGHT, WIDTH = "p2o.DynamicDimension.0", "x_2", "p2o.DynamicDimension.1"
DET_HEIGHT, DET_WIDTH = "p2o.DynamicDimension.1", "p2o.DynamicDimension.2"
SCORES = "softmax_11.tmp_0"
LINES = ("Python 3", "nothing happens", "Room 12, Floor 4", "Room 21, Floor 4", "The pass statement")


def rendered(text):
    """One line of text as float32 [1, 3, 48, width], -1 to 1, black on white."""
    font = ImageFont.load_default(size=32)
    image = Image.new("RGB", (round(font.getlength(text)) + 16, 48), "white")
    ImageDraw.Draw(image).text((8, 24), text, "black", font, anchor="lm")
    return (np.asarray(image, np.float32).transpose(2, 0, 1) / 127.5 - 1)[None]


def read(scores, metadata):
    alphabet = ["", *metadata["character"].splitlines(), " "]
    return "".join(alphabet[label] for label, _ in groupby(scores.argmax(axis=-1).tolist())).strip()


@pytest.fixture(scope="module")
def session(recogniser):
    with load(recogniser.path) as session:
        yield session


@pytest.fixture(scope="module")
def reference(plain, ppocr_rec_path):
    return plain(ppocr_rec_path)


def test_padded_widths_are_refused_with_output_sizes_and_error_named(ppocr_rec_path, tmp_path):
    shapes = ShapeOptions(dim=(f"{BATCH}=1..2", f"{HEIGHT}=48", f"{WIDTH}=32..96"))
    options = BuildOptions(shapes=shapes, pads=(WIDTH,), fills=("x=0",), measure_s=0.0)
    with pytest.raises(PaddingRefusedError) as refused:
        build(ppocr_rec_path, tmp_path / "refused.trtc", options)
    message = str(refused.value)
    assert refused.value.exit_code == 1
    assert f"output {SCORES!r} moved by" in message
    assert f"{WIDTH} padded=" in message
    assert "allowed is" in message
    assert f"build without --pad {WIDTH}" in message
    assert not (tmp_path / "refused.trtc").exists()


def test_the_command_refuses_padded_widths_with_exit_code_1_and_one_message(ppocr_rec_path, tmp_path):
    words = [
        "--dim",
        f"{BATCH}=1",
        "--dim",
        f"{HEIGHT}=48",
        "--dim",
        f"{WIDTH}=40..64",
        "--pad",
        WIDTH,
        "--fill",
        "x=1",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "trtc.tools.cli", "build", ppocr_rec_path, "-o", tmp_path / "no.trtc", "-q", *words],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith(f"trtc: error: padding {WIDTH} is refused: output {SCORES!r}")
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "no.trtc").exists()


def test_rows_are_proven_independent(recogniser):
    (rows,) = [e for e in recogniser.manifest.evidence if e.kind == "rows"]
    assert (rows.symbol, rows.accepted) == (BATCH, True)


@pytest.mark.parametrize("rows", [1, 2, 3, 4])
def test_padded_rows_equal_the_model(session, reference, assert_equal_outputs, rows):
    feeds = {"x": np.random.default_rng(rows).uniform(-1, 1, (rows, 3, 48, 72)).astype(np.float32)}
    assert session.explain({BATCH: rows, HEIGHT: 48, WIDTH: 72}).run_sizes == {BATCH: 4, HEIGHT: 48, WIDTH: 72}
    assert_equal_outputs(session, session.run(feeds), reference(feeds))


def test_steps_follow_widths_as_the_model_makes_them(session, reference):
    dims = session.signature.outputs[0].dims
    assert str(dims[1]) == f"({WIDTH}+3)//8"
    for width in (8, 12, 13, 43, 44, 45, 46, 47, 52, 53, 100, 317):
        feeds = {"x": np.zeros((1, 3, 48, width), np.float32)}
        assert session.run(feeds)[SCORES].shape == reference(feeds)[SCORES].shape, width


def test_a_width_that_no_profile_holds_is_refused(session):
    with pytest.raises(RequestError, match=r"=600.*8\.\.512"):
        session.run({"x": np.zeros((1, 3, 48, 600), np.float32)})


def test_rendered_lines_are_read_back(session, reference, assert_equal_outputs):
    images = sorted(((rendered(line), line) for line in LINES), key=lambda pair: pair[0].shape[3])
    batches = [list(group) for _, group in groupby(images, key=lambda pair: pair[0].shape[3])]
    assert max(len(batch) for batch in batches) > 1
    for batch in batches:
        feeds = {"x": np.concatenate([image for image, _ in batch])}
        got = session.run(feeds)
        assert_equal_outputs(session, got, reference(feeds))
        for (_, line), scores in zip(batch, got[SCORES], strict=True):
            assert read(scores, session.manifest.metadata) == line


def test_a_classifier_with_odd_symbol_names_builds_without_options(
    ppocr_cls_path, plain, assert_equal_outputs, tmp_path
):
    report = build(ppocr_cls_path, tmp_path / "cls.trtc", BuildOptions(measure_s=0.0, verify_s=2.0))
    assert report.manifest.signature.symbols == ("x_0", "x_2", "x_3")
    with load(report.path) as session:
        for shape in [(1, 3, 48, 192), (3, 3, 48, 192), (2, 3, 32, 100)]:
            feeds = {"x": np.random.default_rng(0).uniform(-1, 1, shape).astype(np.float32)}
            assert_equal_outputs(session, session.run(feeds), plain(ppocr_cls_path)(feeds))


@pytest.fixture(scope="module")
def detector(ppocr_det_path, tmp_path_factory):
    shapes = ShapeOptions(dim=(f"{BATCH}=1..2", f"{DET_HEIGHT}=32:64:128", f"{DET_WIDTH}=32:64:128"))
    return build(
        ppocr_det_path,
        tmp_path_factory.mktemp("bundles") / "det.trtc",
        BuildOptions(shapes=shapes, measure_s=0.0, verify_s=2.0),
    )


def test_a_detector_answers_as_the_model_at_multiples_of_32(detector, ppocr_det_path, plain, assert_equal_outputs):
    with load(detector.path) as session:
        for shape in [(1, 3, 32, 32), (2, 3, 64, 128), (1, 3, 128, 96)]:
            feeds = {"x": np.random.default_rng(0).uniform(-1, 1, shape).astype(np.float32)}
            assert_equal_outputs(session, session.run(feeds), plain(ppocr_det_path)(feeds))


def test_the_multiples_that_a_detector_needs_are_found_and_said(detector):
    notes = " ".join(e.detail for e in detector.manifest.evidence if e.kind == "relations")
    assert f"{DET_HEIGHT} 32, 64, 96, 128" in notes
