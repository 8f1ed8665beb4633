"""Numbers as people type them: ASCII digits only, bounded, and nothing that Python's ``int`` lets through by kindness.

``int()`` takes ``1_0``, blanks and full-width digits; a shape that holds those is a typing error.
"""

from __future__ import annotations

from math import isfinite
from typing import Final

from trtc.profiles.errors import ProfileError

MAX_SIZE: Final = 2**63 - 1
MAX_AXES: Final = 64
MAX_ENTRIES: Final = 4096
BLANKS: Final = " \t\r\n"

_SHOWN_CHARS = 120
_INT_DIGITS = 19
_FLOAT_CHARS = frozenset("0123456789+-.eE")


def shown(text: str) -> str:
    """Quote a text for a message, cut where it is long."""
    return repr(text) if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]!r}... ({len(text)} characters)"


def parse_size(text: str, where: str) -> int:
    """Read one size, in elements.

    Args:
        text: what was typed; blanks around it are allowed.
        where: what the size belongs to, for the message.

    Raises:
        ProfileError: unless it is a whole number in ASCII digits, from 0 to 2**63 - 1.
    """
    digits = text.strip(BLANKS)
    if digits.isascii() and digits.isdigit():
        significant = digits.lstrip("0") or "0"
        if len(significant) <= _INT_DIGITS and int(significant) <= MAX_SIZE:
            return int(significant)
    raise ProfileError(f"{where}: {shown(text)} is not a size; write a whole number from 0 to {MAX_SIZE}, such as 64")


def parse_number(text: str, where: str) -> int | float:
    """Read one finite number: ``-100`` is an int, ``0.5`` and ``1e-3`` are floats.

    Infinity is refused because the manifest is JSON, which has none.

    Raises:
        ProfileError: for anything else.
    """
    body = text.strip(BLANKS)
    unsigned = body[1:] if body[:1] in {"+", "-"} else body
    if unsigned.isascii() and unsigned.isdigit() and len(unsigned) <= _INT_DIGITS:
        return int(body)
    if body and len(body) <= _SHOWN_CHARS and _FLOAT_CHARS.issuperset(body):
        try:
            value = float(body)
        except ValueError:
            value = float("nan")
        if isfinite(value):
            return value
    raise ProfileError(
        f"{where}: {shown(text)} is not a number; write a finite one, such as 0, -1.5 or 1e-3 "
        "(for minus infinity write the lowest number of the type, such as -65504 or -3.4e38)"
    )
