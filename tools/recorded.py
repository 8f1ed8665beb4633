"""The options that a manifest records, as words that a shell takes again."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_ENDS = {
    **dict.fromkeys(["dim", "bucket", "buckets", "fill", "derive", "align"], r"=\S+"),
    **dict.fromkeys(["shape", "trt-min-shapes", "trt-opt-shapes", "trt-max-shapes", "val-range"], r"\]"),
    "trtexec": r"(?=\s--|\Z)",
}
"""How one value of each option ends: the manifest keeps all of one option in one text, and names may hold blanks."""


def options_text(options: Mapping[str, str]) -> str:
    """Write the options of a build as one text that can be pasted. Paths of samples are not recorded, so not told."""
    words: list[str] = []
    for name, text in options.items():
        values = re.findall(rf"\S.*?{_ENDS.get(name, '')}(?=\s|\Z)", text)
        if name == "trtexec":
            words += values
        elif name == "accept-padding-error":
            words.append(f"--{name}")
        elif name != "samples":
            words += [word for value in values for word in (f"--{name}", value)]
    return shlex.join(words)
