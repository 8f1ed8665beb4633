"""Option texts: the four shape grammars, shape files, padding, fills, derived inputs, value ranges, sizes to run at."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import click
from mutations import edited_json, edited_text

from trtc.engines.signature import Signature, TensorSpec
from trtc.profiles import TrtcError
from trtc.profiles.grammar import (
    ShapeOptions,
    bind_shapes,
    derived_inputs,
    openvino_shapes,
    pad_rules,
    polygraphy_shapes,
    profiles_from_options,
    symbol_ranges,
    trtexec_options,
    trtexec_shapes,
    val_ranges,
)
from trtc.profiles.ladder import Ladder
from trtc.tools.inputs import requested_sizes
from trtc.tools.quantities import FiniteRange, MemorySize

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

DIMS = {"x": ("batch", "seq", 3), "a/b:0": ("batch",), "-1": ("?", "seq")}
SIGNATURE = Signature(tuple(TensorSpec(name, "float", dims) for name, dims in DIMS.items()), ())
PIECES = [*"x:=[],.?'\"\\ @0189*-+()|;/{}~#%&$`\n\t\0", "a/b:0", "-1", "batch", "seq", "..", "...", "1:2:3", "1..8"]
PIECES += ["min", "opt", "max", "9223372036854775807", "9223372036854775808", "9" * 400, "1_0", "1e3", "inf", "nan"]
PIECES += ["\uff11", "\u00b2", "\u0661", "\ud800", "\u202e", "\u2028", "\ufeff", "\xa0", "é", "e\u0301", "😀", "ones"]
PIECES += ["positions:", "positions:seq", "left", "right", "rows", "@file.json", "1x8", "x:1x8x3", "[1,8,3]", "true"]

SHAPE_FILE = (
    b'{"x": {"min": [1, 1, 3], "opt": [2, 8, 3], "max": [4, 16, 3]}, "a/b:0": [1, 2, 4], "-1": ["1..4", "?", 3.5],'
    b' "profiles": [{"x": {"min": [1, 1, 3]}}], "seq": {"min": 1, "max": 8}}'
)


def one(option: str) -> Callable[[str], object]:
    return lambda text: profiles_from_options(ShapeOptions(**{option: (text,)}), DIMS)


def ladder(text: str) -> object:
    """Read profiles, and use them: pick one for sizes."""
    profiles = bind_shapes(symbol_ranges([], [], [text]), DIMS)
    return Ladder(profiles) if profiles else None


READERS: dict[str, tuple[Callable[[str], object], tuple[str, ...]]] = {
    "dim": (one("dim"), ("batch=1:2:8", "seq=1..128", "'?'=3", "seq=?", "batch=1..,seq=1:4:9")),
    "bucket": (one("bucket"), ("batch=8,seq=128", "seq=16")),
    "buckets": (one("buckets"), ("seq=32,64,128", "batch=1,2,4")),
    "shape": (one("shape"), ("x[1..8,?,3]", "x[1,2,3],a/b:0[1]", "[1..8,..128,3]")),
    "trt-min": (one("trt_min_shapes"), ("x:[1,2,3] a/b:0:[1]", "x:[1,2,3]")),
    "trt-all": (
        lambda text: bind_shapes(polygraphy_shapes([text], [text], [text]), DIMS),
        ("x:[1,2,3] a/b:0:[1]", "'x':[4,8,3]"),
    ),
    "openvino": (lambda text: bind_shapes(openvino_shapes([text, text]), DIMS), ("x[1..8,?,3]", "a/b:0[..4]")),
    "trtexec": (
        lambda text: bind_shapes(trtexec_shapes([("minShapes", text), ("optShapes", text)]), DIMS),
        ("x:1x8x3,a/b:0:1", "'x':4x128x3"),
    ),
    "trtexec-profile": (lambda text: trtexec_shapes([("profile", text), ("shapes", "x:1x1x3")]), ("0", "1", "3")),
    "trtexec-words": (
        lambda text: trtexec_options([*text.split(" "), text]),
        ("--minShapes=x:1x8x3 --optShapes x:2x8x3", "--profile=1 --shapes=x:1x1x3"),
    ),
    "ladder": (ladder, ("seq=32,64,128", "batch=1,2,4")),
    "pad": (lambda text: pad_rules([text], ["x=0"], DIMS), ("seq", "seq:left", "batch:rows", "seq=0")),
    "fill": (lambda text: pad_rules(["seq"], [text], DIMS), ("x=0", "a/b:0=1e-3", "x=true", "x=-inf")),
    "derive": (lambda text: derived_inputs([text], DIMS), ("x=ones", "a/b:0=positions:seq", "x=zeros")),
    "val-range": (lambda text: val_ranges([text]), ("x:[0,1]", "a/b:0:-1e3:5", "x:0,1")),
    "sizes": (lambda text: requested_sizes([text], ShapeOptions(), SIGNATURE), ("batch=2,seq=17", "'?'=3")),
    "sizes-shape": (
        lambda text: requested_sizes([], ShapeOptions(shape=(text,)), SIGNATURE),
        ("x[2,17,3]", "x[2,17,3],a/b:0[2]"),
    ),
    "memory": (lambda text: MemorySize().convert(text, None, None), ("512M", "2GiB", "64k", "3")),
    "seconds": (lambda text: FiniteRange(min=0).convert(text, None, None), ("0.5", "1e-3", "3")),
}


class Texts:
    """Each case is one option and one text; one in eight edits a shape file instead."""

    name = "texts"
    outcomes = ("refused", "read")
    secrets = None

    def __init__(self, seed: int, folder: Path) -> None:
        self._seed = seed
        self._file = folder / "shapes.json"
        self._file.write_bytes(SHAPE_FILE)
        self.folders = (folder,)

    def case(self, number: int) -> tuple[str, str | bytes]:
        rng = random.Random(f"{self._seed} {number}")  # noqa: S311 (repeatable, not secret)
        if rng.random() < 0.125:
            return rng.choice(["shape", "openvino", "trt-all", "trt-min"]), edited_json(SHAPE_FILE, rng)
        name = rng.choice(list(READERS))
        text = rng.choice(READERS[name][1])
        if rng.random() < 0.2:
            text = "".join(rng.choice(PIECES) for _ in range(rng.randrange(12)))
        return name, edited_text(text, PIECES, rng).replace("@", "@@" if rng.random() < 0.5 else "")

    def run(self, case: tuple[str, str | bytes]) -> str:
        name, text = case
        if isinstance(text, bytes):
            self._file.write_bytes(text)
            text = f"@{self._file}"
        try:
            READERS[name][0](text)
        except (TrtcError, click.ClickException) as error:
            if not str(error) and not isinstance(error, click.ClickException):
                raise AssertionError("an error that says nothing") from error
            return "refused"
        return "read"

    def saved(self, case: tuple[str, str | bytes]) -> bytes:
        name, text = case
        return text if isinstance(text, bytes) else f"{name} {text}".encode("utf-8", "surrogatepass")
