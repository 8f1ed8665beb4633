import pytest

from trtc.profiles import ProfileError, Range, UsageError
from trtc.profiles.grammar import InputShape, openvino_shapes, polygraphy_shapes, trtexec_options, trtexec_shapes


def fixed(name, *sizes):
    return InputShape(name, tuple(Range(size, size, size) for size in sizes))


@pytest.mark.parametrize("option", ["shapes", "minShapes", "opt-shapes", "--maxShapes"])
def test_one_trtexec_kind_alone_fixes_the_input(option):
    assert trtexec_shapes([(option, "x:1x3,y:4")]) == ((fixed("x", 1, 3), fixed("y", 4)),)


def test_three_trtexec_kinds_make_a_range():
    options = [("minShapes", "x:1x3"), ("optShapes", "x:2x3"), ("maxShapes", "x:8x3")]
    assert trtexec_shapes(options) == ((InputShape("x", (Range(1, 2, 8), Range(3, 3, 3))),),)


def test_a_trtexec_scalar_has_no_dims():
    assert trtexec_shapes([("shapes", "s:,x:2")]) == ((fixed("s"), fixed("x", 2)),)


def test_trtexec_options_belong_to_the_profile_before_them():
    options = [("shapes", "x:1"), ("profile", "1"), ("shapes", "x:2"), ("profile", "0"), ("shapes", "y:3")]
    assert trtexec_shapes(options) == ((fixed("x", 1), fixed("y", 3)), (fixed("x", 2),))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        pytest.param([("minShapes", "x:1"), ("maxShapes", "x:2")], "no opt shape", id="two-kinds-lack-the-third"),
        pytest.param([("profile", "0"), ("profile", "2")], "--profile=2 without --profile=1", id="gap"),
        pytest.param([("profile", "1"), ("shapes", "x:1")], "without --profile=0", id="not-from-zero"),
        pytest.param([("profile", "4096")], "at most 4096", id="too-many-profiles"),
        pytest.param([("shapes", "x:1"), ("optShapes", "x:1")], "given again by --optShapes", id="shapes-and-opt"),
        pytest.param([("optShapes", "x:1,x:2")], "given again by --optShapes", id="name-twice"),
        pytest.param([("shapes", "x:1"), ("shapes", "x:1")], "given again by --shapes", id="shapes-twice"),
        pytest.param([("optShapes", "x:1,")], "empty item", id="trailing-comma"),
        pytest.param([("optShapes", "1x3x224")], "is not of the form", id="no-name"),
        pytest.param([("optShapes", "x:1xx3")], "axis 1: '' is not a size", id="empty-axis"),
    ],
)
def test_a_trtexec_mistake_is_refused_with_the_reason(options, message):
    with pytest.raises(ProfileError, match=message):
        trtexec_shapes(options)


def test_kinds_of_different_rank_are_refused():
    with pytest.raises(ProfileError, match="min 1, opt 1x2 and max 1 of different rank"):
        trtexec_shapes([("minShapes", "x:1"), ("optShapes", "x:1x2"), ("maxShapes", "x:1")])


def test_numbers_out_of_order_name_input_axis_and_all_three():
    with pytest.raises(ProfileError, match="input 'x', axis 1: min 4, opt 2, max 8"):
        trtexec_shapes([("minShapes", "x:1x4"), ("optShapes", "x:1x2"), ("maxShapes", "x:1x8")])


def test_another_option_is_wrong_use():
    with pytest.raises(UsageError, match="not a shape option"):
        trtexec_shapes([("saveEngine", "x")])


def test_trtexec_options_are_found_in_their_order_and_spellings():
    words = [
        "build",
        "m.onnx",
        "--profile=1",
        "--min-shapes",
        "x:1",
        "-o",
        "out",
        "--maxShapes=x:2",
        "--",
        "--shapes=x:3",
    ]
    assert trtexec_options(words) == (("profile", "1"), ("min-shapes", "x:1"), ("maxShapes", "x:2"))


def test_a_trtexec_option_without_its_value_is_wrong_use():
    with pytest.raises(UsageError, match="--optShapes has no value"):
        trtexec_options(["--optShapes"])


def test_three_polygraphy_kinds_make_a_range():
    shapes = polygraphy_shapes(["x:[1, 3]"], ["x:[2, 3]"], ["x:[8, 3]"])
    assert shapes == ((InputShape("x", (Range(1, 2, 8), Range(3, 3, 3))),),)


@pytest.mark.parametrize("kind", [0, 1, 2])
def test_one_polygraphy_kind_alone_fixes_the_input(kind):
    lists = [[], [], []]
    lists[kind] = ["x:[1,3]", "s:[]"]
    assert polygraphy_shapes(*lists) == ((fixed("x", 1, 3), fixed("s")),)


def test_a_repeated_polygraphy_triple_is_another_profile():
    assert polygraphy_shapes([], ["x:[1]", "y:[2]", "y:[3]", "x:[4]"]) == (
        (fixed("x", 1), fixed("y", 2)),
        (fixed("y", 3), fixed("x", 4)),
    )


@pytest.mark.parametrize(
    ("lists", "message"),
    [
        pytest.param((["x:[1]"], ["x:[1]"], []), "has min and opt but no max shape", id="two-kinds"),
        pytest.param((["x:[1]"], ["x:[1]"], ["x:[1]", "x:[2]"]), "min for 1, opt for 1, max for 2", id="uneven"),
        pytest.param((["x:1x3"], [], []), "in square brackets", id="trtexec-spelling"),
        pytest.param((["x:[1,]"], [], []), "axis 1: '' is not a size", id="trailing-comma"),
    ],
)
def test_a_polygraphy_mistake_is_refused_with_the_reason(lists, message):
    with pytest.raises(ProfileError, match=message):
        polygraphy_shapes(*lists)


@pytest.mark.parametrize(
    ("text", "dims"),
    [
        pytest.param("x[1..8,3]", (Range(1, 8, 8), Range(3, 3, 3)), id="span-and-size"),
        pytest.param("x[?, -1]", (Range(0, None, None), Range(0, None, None)), id="open"),
        pytest.param("x[2..,..8]", (Range(2, None, None), Range(0, 8, 8)), id="half-open"),
        pytest.param("x[]", (), id="scalar"),
    ],
)
def test_an_openvino_shape_is_read(text, dims):
    assert openvino_shapes([text]) == ((InputShape("x", dims, tuned=False),),)


def test_openvino_inputs_are_split_outside_brackets():
    assert [shape.name for shape in openvino_shapes(["a[1,2],b[],c/d:0[3]"])[0]] == ["a", "b", "c/d:0"]


def test_a_bare_openvino_name_may_end_in_brackets():
    assert [shape.name for shape in openvino_shapes(["x[0][1..8,3],y[1][2]"])[0]] == ["x[0]", "y[1]"]


def test_openvino_texts_gather_inputs_until_one_comes_again():
    profiles = openvino_shapes(["a[1]", "b[2]", "a[3],b[4]"])
    assert [[shape.name for shape in profile] for profile in profiles] == [["a", "b"], ["a", "b"]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("x[8..1]", "input 'x', axis 0: min 8 is above max 1", id="out-of-order"),
        pytest.param("x[..]", "has no end", id="dots-only"),
        pytest.param("x[1,]", "axis 1: '' is not a size", id="empty-axis"),
        pytest.param("x[1", "does not end with", id="not-closed"),
        pytest.param("x[1]]", "is not a size", id="closed-twice"),
        pytest.param("[1,3]", "is not of the form", id="no-name"),
        pytest.param("x[1],x[2]", "names input 'x' twice", id="name-twice"),
    ],
)
def test_an_openvino_mistake_is_refused_with_the_reason(text, message):
    with pytest.raises(ProfileError, match=message):
        openvino_shapes([text])
