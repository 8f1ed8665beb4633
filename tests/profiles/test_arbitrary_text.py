"""Whatever is typed: a value, or one of our errors that says something."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from trtc.profiles import TrtcError
from trtc.profiles.grammar import (
    bind_shapes,
    derived_inputs,
    openvino_shapes,
    pad_rules,
    polygraphy_shapes,
    symbol_ranges,
    trtexec_options,
    trtexec_shapes,
    val_ranges,
)

DIMS = {"x": ("batch", "seq", 3), "a/b:0": ("batch",)}
PIECES = ["x", "a/b:0", "batch", "seq", ":", "=", "x", "[", "]", ",", "..", "?", "-1", "'", '"', "\\", " ", "@", "0"]
PIECES += ["1", "8", "9223372036854775807", "9223372036854775808", "1_0", "\uff11", "+", "-", "e", "inf", "nan", "ones"]
PIECES += ["positions:", "left", "min", "\x00", "\ud800", "\u00b2"]
TEXTS = st.text(max_size=30) | st.lists(st.sampled_from(PIECES), max_size=14).map("".join)

PARSERS = {
    "dim": lambda text: bind_shapes(symbol_ranges([text]), DIMS),
    "bucket": lambda text: bind_shapes(symbol_ranges([], [text]), DIMS),
    "buckets": lambda text: bind_shapes(symbol_ranges([], [], [text]), DIMS),
    "shape": lambda text: bind_shapes(openvino_shapes([text]), DIMS),
    "trtexec-opt": lambda text: bind_shapes(trtexec_shapes([("optShapes", text)]), DIMS),
    "trtexec-all": lambda text: bind_shapes(trtexec_shapes([("shapes", text)]), DIMS),
    "trtexec-profile": lambda text: trtexec_shapes([("profile", text)]),
    "trtexec-option": lambda text: trtexec_shapes([(text, "x:1")]),
    "trtexec-words": lambda text: trtexec_options([text, f"--{text}", text]),
    "polygraphy": lambda text: bind_shapes(polygraphy_shapes([text]), DIMS),
    "pad": lambda text: pad_rules([text], [], DIMS),
    "fill": lambda text: pad_rules(["seq"], [text], DIMS),
    "derive": lambda text: derived_inputs([text], DIMS),
    "val-range": lambda text: val_ranges([text]),
}
READERS = [name for name in PARSERS if name != "trtexec-words"]  # which leaves words that are no option alone


@pytest.mark.parametrize("parser", PARSERS.values(), ids=PARSERS)
@given(text=TEXTS)
@example(text="x" * 100_000)
@example(text="x=" + "9" * 100_000)
@example(text="x:[" + "1," * 100_000 + "1]")
@example(text="x[" * 50_000)
@example(text="'" * 99_999)
@example(text="a'" * 50_000)
@example(text="x:" + "1x" * 100_000 + "1")
def test_a_parser_returns_or_raises_an_error_of_ours(parser, text):
    try:
        parser(text)
    except TrtcError as error:
        message = str(error)
    else:
        message = "parsed"
    assert message


@pytest.mark.parametrize("parser", [PARSERS[name] for name in READERS], ids=READERS)
@pytest.mark.parametrize("text", ["", " ", ",", "=", ":", "x", "x=", "x:", "=1", ":1", "[1]", "''=1", "'':[1]", "x:[1"])
def test_unfinished_text_is_never_read_as_something(parser, text):
    with pytest.raises(TrtcError):
        parser(text)


@pytest.mark.parametrize(
    "size", ["-1", "1.5", "1_0", "\uff11", "\u00b2", "+1", "0b1", "1e3", "9223372036854775808", "9" * 5000]
)
@pytest.mark.parametrize(
    "read",
    [
        pytest.param(lambda size: symbol_ranges([f"seq=1:{size}:{size}"]), id="dim"),
        pytest.param(lambda size: symbol_ranges([], [f"seq={size}"]), id="bucket"),
        pytest.param(lambda size: symbol_ranges([], [], [f"seq=1,{size}"]), id="buckets"),
        pytest.param(lambda size: trtexec_shapes([("optShapes", f"a:3x{size}")]), id="trtexec"),
        pytest.param(lambda size: polygraphy_shapes([f"a:[{size}]"]), id="polygraphy"),
        pytest.param(lambda size: openvino_shapes([f"a[1..{size}]"]), id="openvino"),
    ],
)
def test_only_whole_numbers_in_ascii_below_two_to_the_63_are_sizes(read, size):
    with pytest.raises(TrtcError, match="is not a size"):
        read(size)


@pytest.mark.parametrize(
    "read",
    [
        pytest.param(lambda: trtexec_shapes([("optShapes", "a:" + "x".join(["1"] * 65))]), id="trtexec"),
        pytest.param(lambda: polygraphy_shapes([f"a:{[1] * 65}"]), id="polygraphy"),
        pytest.param(lambda: openvino_shapes([f"a{[1] * 65}"]), id="openvino"),
    ],
)
def test_more_than_64_axes_are_refused(read):
    with pytest.raises(TrtcError, match="at most 64"):
        read()


@pytest.mark.parametrize(
    "read",
    [
        pytest.param(lambda: trtexec_shapes([("optShapes", ",".join(f"a{i}:1" for i in range(4097)))]), id="trtexec"),
        pytest.param(lambda: openvino_shapes([f"a{i}[1]" for i in range(4097)]), id="openvino"),
        pytest.param(lambda: polygraphy_shapes([f"a{i}:[1]" for i in range(4097)]), id="polygraphy"),
        pytest.param(lambda: symbol_ranges([f"a{i}=1" for i in range(4097)]), id="dim"),
        pytest.param(
            lambda: symbol_ranges([], [], [f"{s}={','.join(map(str, range(65)))}" for s in "ab"]), id="product"
        ),
    ],
)
def test_more_than_4096_entries_are_refused(read):
    with pytest.raises(TrtcError, match="at most 4096"):
        read()
