"""The four grammars say the same thing in different words."""

import json

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from trtc.profiles import Profile, Range
from trtc.profiles.grammar import bind_shapes, openvino_shapes, polygraphy_shapes, symbol_ranges, trtexec_shapes

ODD_CHARS = ":/. ,='\"[]\\@é漢π\u00a0xX7"
BARE_CHARS = "ab:/.é π7"


@st.composite
def typed_names(draw):
    """A name and how it is typed: bare where every grammar can, else quoted, with escapes written by this test."""
    if draw(st.booleans()):
        bare = draw(st.text(BARE_CHARS, min_size=1, max_size=8))
        assume(bare == bare.strip() and bare)
        return bare, bare
    odd = draw(st.text(ODD_CHARS, min_size=1, max_size=8) | st.text(min_size=1, max_size=8))
    quote = draw(st.sampled_from("'\""))
    return odd, quote + "".join("\\" + char if char in ("\\", quote) else char for char in odd) + quote


RANGES = st.tuples(st.integers(0, 2**63 - 1), st.integers(0, 2**63 - 1)).map(sorted).map(tuple)


@st.composite
def specs(draw, profiles=1):
    """Names of inputs and symbols, dims of each input, and (min, max) of each symbol in each profile."""
    inputs = dict(draw(st.lists(typed_names(), min_size=1, max_size=4)))
    symbols = dict(draw(st.lists(typed_names(), min_size=1, max_size=3)))
    dims = {
        name: tuple(draw(st.lists(st.sampled_from([*symbols, 0, 3, 768]), min_size=index == 0, max_size=4)))
        for index, name in enumerate(inputs)
    }
    carried = list(dict.fromkeys(dim for shape in dims.values() for dim in shape if isinstance(dim, str)))
    assume(carried)
    sizes = [{symbol: draw(RANGES) for symbol in carried} for _ in range(profiles)]
    return inputs, symbols, dims, sizes


def ends(dims, sizes, end):
    return [dim if isinstance(dim, int) else sizes[dim][end] for dim in dims]


def as_trtexec(inputs, dims, sizes):
    def text(end):
        return ",".join(f"{typed}:{'x'.join(map(str, ends(dims[name], sizes, end)))}" for name, typed in inputs.items())

    return [("minShapes", text(0)), ("optShapes", text(1)), ("maxShapes", text(1))]


def as_polygraphy(inputs, dims, sizes, end):
    return [f"{typed}:{ends(dims[name], sizes, end)}" for name, typed in inputs.items()]


def as_openvino(inputs, dims, sizes):
    def axis(dim):
        return str(dim) if isinstance(dim, int) else f"{sizes[dim][0]}..{sizes[dim][1]}"

    return ",".join(f"{typed}[{','.join(map(axis, dims[name]))}]" for name, typed in inputs.items())


def expected_profiles(sizes):
    return tuple(
        Profile(f"p{index}", {symbol: Range(low, high, high) for symbol, (low, high) in one.items()})
        for index, one in enumerate(sizes)
    )


@given(spec=specs())
def test_symbol_ranges_bind_to_the_stated_profile(spec):
    _, symbols, dims, sizes = spec
    typed = [f"{symbols[symbol]}={low}:{high}:{high}" for symbol, (low, high) in sizes[0].items()]
    assert bind_shapes(symbol_ranges(typed), dims) == expected_profiles(sizes)


@given(spec=specs(profiles=2))
def test_trtexec_binds_to_the_stated_profiles(spec):
    inputs, _, dims, sizes = spec
    options = [
        pair for index, one in enumerate(sizes) for pair in [("profile", str(index)), *as_trtexec(inputs, dims, one)]
    ]
    assert bind_shapes(trtexec_shapes(options), dims) == expected_profiles(sizes)


@given(spec=specs(profiles=2))
def test_polygraphy_binds_to_the_stated_profiles(spec):
    inputs, _, dims, sizes = spec
    low, high = ([text for one in sizes for text in as_polygraphy(inputs, dims, one, end)] for end in (0, 1))
    assert bind_shapes(polygraphy_shapes(low, high, high), dims) == expected_profiles(sizes)


@given(spec=specs(profiles=2))
def test_openvino_binds_to_the_stated_profiles(spec):
    inputs, _, dims, sizes = spec
    texts = [as_openvino(inputs, dims, one) for one in sizes]
    assert bind_shapes(openvino_shapes(texts), dims) == expected_profiles(sizes)


@given(spec=specs())
def test_the_order_of_symbols_is_that_of_the_signature(spec):
    _, symbols, dims, sizes = spec
    typed = [f"{symbols[symbol]}={low}..{high}" for symbol, (low, high) in reversed(sizes[0].items())]
    assert list(bind_shapes(symbol_ranges(typed), dims)[0].ranges) == list(sizes[0])


@pytest.mark.parametrize("content", ["lists", "triples"])
def test_a_shape_file_binds_as_the_typed_text_does(tmp_path, content):
    name, dims = "../../x, 'y'[0]:\u3000π", ("batch", 3)
    triple = {"min": [1, 3], "opt": [8, 3], "max": [8, 3]}
    file = tmp_path / "shapes.json"
    file.write_text(json.dumps({name: triple if content == "triples" else ["1..8", 3]}))
    expected = (Profile("p0", {"batch": Range(1, 8, 8)}),)
    assert bind_shapes(openvino_shapes([f"@{file}"]), {name: dims}) == expected


def test_buckets_bind_as_the_trtexec_blocks_that_they_stand_for():
    dims = {"ids": ("batch", "seq")}
    ours = symbol_ranges(["batch=1..4"], (), ["seq=32,64"])
    blocks = [
        ("profile", "0"), ("minShapes", "ids:1x1"), ("optShapes", "ids:4x32"), ("maxShapes", "ids:4x32"),
        ("profile", "1"), ("minShapes", "ids:1x1"), ("optShapes", "ids:4x64"), ("maxShapes", "ids:4x64"),
    ]  # fmt: skip
    assert bind_shapes(ours, dims) == bind_shapes(trtexec_shapes(blocks), dims)
