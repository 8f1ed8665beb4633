"""What ``trtc exec`` was told, read from a plain command line without click: the program waits for every import.

Only what ends well is read here. Anything else (help, an unknown option, a value that is missing) gives None, and click
reads it again and says what is wrong.
"""

from __future__ import annotations

from collections import namedtuple

TYPE_CHECKING = False  # importing typing takes 2 ms
if TYPE_CHECKING:
    from typing import Any

Line = namedtuple(  # noqa: PYI024 (typing again)
    "Line",
    ["record", "samples", "no_values", "bundles", "folders", "record_before", "summary", "quiet", "command"],
    defaults=[None, None, False, (), (), None, None, False, ()],
)
Line.__doc__ = """What ``trtc exec`` was told.

Attributes:
    record, record_before, summary: paths as texts, or None.
    samples: how many inputs are kept for each model, or None.
    no_values, quiet: flags.
    bundles, folders: tuples of paths as texts.
    command: the program and its arguments.
"""

_TEXTS = {"--record": "record", "--record-before": "record_before", "--summary": "summary"}
_LISTS = {"--bundle": "bundles", "--bundles": "folders"}
_FLAGS = {"--no-values": "no_values", "--quiet": "quiet", "-q": "quiet"}
_SAMPLES = "--samples"
MAX_SAMPLES = 4096


def read_line(words: list[str]) -> Line | None:
    """Read the words after ``trtc exec``; None where click has to."""
    said: dict[str, Any] = {}
    rest = list(reversed(words))
    while rest:
        word = rest.pop()
        if word == "--" or not word.startswith("-"):
            command = rest[::-1] if word == "--" else [word, *rest[::-1]]
            return Line(**said, command=tuple(command)) if command else None
        if word in _FLAGS:
            said[_FLAGS[word]] = True
            continue
        name, given, value = word.partition("=")
        if not given and rest:
            value = rest.pop()
        elif not given:
            return None
        if name in _TEXTS:
            said[_TEXTS[name]] = value
        elif name in _LISTS:
            said[_LISTS[name]] = (*said.get(_LISTS[name], ()), value)
        elif name == _SAMPLES and _is_number(value):
            said["samples"] = int(value)
        else:
            return None
    return None


def _is_number(text: str) -> bool:
    """Tell whether a text is a number of samples; Python reads no number of thousands of digits."""
    return text.isascii() and text.isdigit() and len(text) <= len(str(MAX_SAMPLES)) and int(text) <= MAX_SAMPLES
