"""Flags of trtexec that people have in their fingers: harmless ones are dropped, the others refused by name.

Nothing that would change an answer or a file is ignored silently.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from trtc.profiles import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

_NO_EFFECT = frozenset(
    [
        *("explicitBatch", "stronglyTyped", "useCudaGraph", "noDataTransfers", "useSpinWait", "separateProfileRun"),
        "noTF32",  # the default here: float32 stays float32
    ]
)
"""What trtc does anyway, or what has no meaning on its targets."""

_PRECISION = (
    "an engine keeps the precision of its model, and lowering it is not there yet; "
    "convert the model to that precision, then build the converted model"
)
_QUANTIZED = (
    "quantizing is not there yet; "
    "a model that holds QuantizeLinear and DequantizeLinear nodes is built as it is: quantize it first"
)
_LAYERS = "types of layers are part of the model (as in strongly typed networks); put Cast nodes into it"
_TENSORRT = "trtc builds TensorRT engines without it, and has nothing in its place"
_REFIT = "engines are not refitted; build again when weights change"
_BENCH = "it belongs to measuring: 'trtc bench BUNDLE' takes it, or says what it has instead"

REFUSED = {
    **dict.fromkeys(["fp16", "bf16", "best"], _PRECISION),
    **dict.fromkeys(["int8", "fp8", "int4", "fp4", "calib", "calibProfile"], _QUANTIZED),
    **dict.fromkeys(
        ["precisionConstraints", "layerPrecisions", "layerOutputTypes", "inputIOFormats", "outputIOFormats"], _LAYERS
    ),
    "refit": _REFIT,
    "useProfile": "the session picks the profile of every request by itself; 'trtc run --json' says which",
    "dumpOptimizationProfile": "'trtc inspect BUNDLE' shows the profiles",
    "allocationStrategy": "the memory of contexts is planned by trtc, as with userManaged",
    **dict.fromkeys(
        (
            *("weightStreamingBudget", "sparsity", "useDLACore", "allowGPUFallback", "layerDeviceTypes", "plugins"),
            *("staticPlugins", "dynamicPlugins", "tacticSources"),
        ),
        _TENSORRT,
    ),
    **dict.fromkeys(
        (
            *("duration", "warmUp", "percentile", "streams", "exportTimes", "exportProfile", "exportLayerInfo"),
            *("dumpProfile", "dumpLayerInfo", "avgRuns"),
        ),
        _BENCH,
    ),
    "skipInference": "a build does not run inference for timing beyond what it verifies; leave it out",
}


def kebab(name: str) -> str:
    """Spell a camelCase name as trtc does: ``minShapes`` becomes ``min-shapes``."""
    return "".join(f"-{c.lower()}" if c.isupper() else c for c in name)


_NAMES = {spelling: name for name in [*REFUSED, *_NO_EFFECT] for spelling in (name, kebab(name))}


def without_foreign_flags(arguments: Sequence[str]) -> list[str]:
    """Drop flags of trtexec that have no effect here.

    Args:
        arguments: the words of a command line; a lone ``--`` ends the options.

    Raises:
        UsageError: for a flag whose effect trtc does not have; it names the replacement.
    """
    kept: list[str] = []
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        if word == "--":
            return [*kept, word, *rest]
        name = _NAMES.get(word[2:].partition("=")[0]) if word.startswith("--") else None
        if name in REFUSED:
            raise UsageError(f"{word.partition('=')[0]}: {REFUSED[name]}")
        if name is None:
            kept.append(word)
    return kept


_POLYGRAPHY = tuple(f"--trt-{kind}-shapes" for kind in ("min", "opt", "max"))
_BRACKETED = re.compile(r".+:\s*\[[^\[\]]*\]\Z", re.DOTALL)


def one_value_each(arguments: Sequence[str]) -> list[str]:
    """Repeat Polygraphy's shape options before each value: it takes several, ``--trt-min-shapes a:[1] b:[1]``.

    Args:
        arguments: the words of a command line; a lone ``--`` ends the options.
    """
    kept: list[str] = []
    flag, valued = "", True
    for i, word in enumerate(arguments):
        if word == "--":
            return [*kept, *arguments[i:]]
        name = word.partition("=")[0]
        if name in _POLYGRAPHY:
            flag, valued = name, word != name
        elif not flag or word.startswith("-"):
            flag = ""
        elif not valued:
            valued = True
        elif _BRACKETED.match(word):
            kept.append(flag)
        else:
            flag = ""
        kept.append(word)
    return kept
