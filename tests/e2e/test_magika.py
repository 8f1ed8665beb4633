"""A file type classifier: only the batch varies, and an empty batch works."""

from __future__ import annotations

import json

import numpy as np
import pytest

from trtc.compiler import BuildOptions, ShapeOptions, build
from trtc.runtime import load

PART, PADDING = 1024, 256
BATCH, SCORES = "unk__214", "target_label"


def tokens_of(content):
    """The first and the last 1,024 bytes without blanks around, int32 [2048]; 256 stands for no byte."""
    row = np.full(2 * PART, PADDING, np.int32)
    begin, end = content[: 4 * PART].lstrip()[:PART], content[-4 * PART :].rstrip()[-PART:]
    row[: len(begin)] = np.frombuffer(begin, np.uint8)
    row[2 * PART - len(end) :] = np.frombuffer(end, np.uint8)
    return row


@pytest.fixture(scope="module")
def session(magika_path, tmp_path_factory):
    options = BuildOptions(shapes=ShapeOptions(dim=(f"{BATCH}=0:2:8",)), measure_s=0.0, verify_s=2.0)
    report = build(magika_path, tmp_path_factory.mktemp("bundles") / "magika.trtc", options)
    with load(report.path) as session:
        yield session


def test_files_of_this_repository_get_the_labels_of_the_model(
    session, magika_path, plain, assert_equal_outputs, repository
):
    labels = json.loads((magika_path.parent / "config.min.json").read_text())["target_labels_space"]
    files = ["pyproject.toml", "Makefile", "engines/bundle.py", "runtime/session.py"]
    feeds = {"bytes": np.stack([tokens_of((repository / name).read_bytes()) for name in files])}
    got = session.run(feeds)
    assert_equal_outputs(session, got, plain(magika_path)(feeds))
    assert [labels[i] for i in got[SCORES].argmax(axis=1)] == ["toml", "makefile", "python", "python"]


def test_an_empty_batch_gives_empty_scores(session):
    got = session.run({"bytes": np.empty((0, 2 * PART), np.int32)})
    assert got[SCORES].shape == (0, 214)
    assert got[SCORES].dtype == np.float32


def test_every_batch_size_equals_the_model(session, magika_path, plain, assert_equal_outputs):
    for rows in range(1, 9):
        feeds = {"bytes": np.random.default_rng(rows).integers(0, 257, (rows, 2 * PART), np.int32)}
        assert_equal_outputs(session, session.run(feeds), plain(magika_path)(feeds))
