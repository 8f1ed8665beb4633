"""Texts: one request a line, as long as a tokenizer finds it."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from trtc.profiles.errors import HostError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from trtc.profiles.traffic_files.collect import Collector
    from trtc.profiles.traffic_files.read import ReadOptions

_LINES_AT_ONCE = 1024
_MAX_LINE_BYTES = 16 * 2**20


def read_texts(path: Path, options: ReadOptions, collector: Collector) -> None:
    """Count every text of a file; empty lines are left out.

    Args:
        path: UTF-8 text.
        options: tokenizer, symbol, longest length, sizes of the other symbols.
        collector: counts them.

    Raises:
        UsageError: without a tokenizer or a symbol for the lengths, and for lines that are not UTF-8.
        HostError: when tokenizers is not installed.
        OSError: when the file cannot be read.
    """
    if options.tokenizer is None or options.text_symbol is None:
        raise UsageError(
            f"{path}: texts need a tokenizer.json and the symbol that their lengths are sizes of; "
            "add --tokenizer FILE --text-symbol SYMBOL, or count the tokens yourself in JSON lines"
        )
    tokenizer = _tokenizer(options.tokenizer)
    with path.open("rb") as file:
        lines = _lines(path, file)
        while some := list(islice(lines, _LINES_AT_ONCE)):
            texts = [text for _, text in some]
            for (number, _), found in zip(some, tokenizer.encode_batch(texts), strict=True):
                length = len(found.ids)
                sizes: dict[str, object] = {
                    options.text_symbol: min(length, options.longest) if options.longest else length,
                    **options.other_sizes,
                }
                collector.add(sizes, 1, None, f"{path}, line {number}")


def _lines(path: Path, file: Any) -> Iterator[tuple[int, str]]:
    number = 0
    while line := file.readline(_MAX_LINE_BYTES + 1):
        number += 1
        if len(line) > _MAX_LINE_BYTES:
            raise UsageError(f"{path}, line {number}: longer than 16 MiB; write one text a line")
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8").strip()
        except UnicodeDecodeError as error:
            raise UsageError(f"{path}, line {number}: {error}; write the texts in UTF-8") from error
        if text:
            yield number, text


def _tokenizer(path: Path) -> Any:
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise HostError(
            "texts are counted with tokenizers, which is not installed; pip install tokenizers, or write token counts"
        ) from error
    if not path.is_file():
        raise UsageError(f"{path}: there is no such file; give the tokenizer.json of the model")
    try:
        found = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises bare Exception for a file that it cannot read
        raise UsageError(f"{path}: {error}; give the tokenizer.json of the model") from error
    found.no_padding()
    found.no_truncation()
    return found
