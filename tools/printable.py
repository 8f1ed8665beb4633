"""Text that a terminal shows and does not obey.

Names in models, bundles and files are anybody's text: an escape sequence in one could clear the screen, change the
title, or turn the letters around so that a message says something else.
"""

from __future__ import annotations

import re

_OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters but for line ends and tabs, marks that change the direction of writing, and lone surrogates."""


def printable(text: str) -> str:
    r"""Write every character that a terminal would obey as ``\xNN`` or ``\uNNNN``."""
    return _OBEYED.sub(_escaped, text)


def printable_json(text: str) -> str:
    r"""The same for JSON, where such a character stands inside a string and may be written as ``\uNNNN``."""
    return _OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _escaped(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"  # noqa: PLR2004 (two digits are enough)
