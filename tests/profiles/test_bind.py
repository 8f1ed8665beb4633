import pytest

from trtc.profiles import Expr, Profile, ProfileError, Range, Step, Term
from trtc.profiles.grammar import bind_shapes, openvino_shapes, require_closed, symbol_ranges, trtexec_shapes

OPEN = Range(0, None, None)
PAIR = {"a": ("N", 2), "b": ("N", 2)}
TWICE = Expr((Term(2, (Step("n"),)),))


def triple(low, opt, high):
    return trtexec_shapes([("minShapes", low), ("optShapes", opt), ("maxShapes", high)])


def only_ranges(profiles):
    (profile,) = profiles
    return profile.ranges


def test_without_shapes_every_symbol_is_open():
    assert bind_shapes((), {"ids": ("batch", "seq"), "mask": ("batch", 4)}) == (
        Profile("p0", {"batch": OPEN, "seq": OPEN}),
    )


def test_a_static_model_without_shapes_has_one_profile_without_ranges():
    assert bind_shapes((), {"x": (2, 4)}) == (Profile("p0", {}),)


def test_a_static_model_accepts_its_own_shape():
    assert bind_shapes(trtexec_shapes([("shapes", "x:2x4")]), {"x": (2, 4)}) == (Profile("p0", {}),)


def test_a_static_model_refuses_another_shape_and_tells_its_own():
    with pytest.raises(ProfileError, match="input 'x', axis 0 is always 2 in this model, but 4 was given"):
        bind_shapes(trtexec_shapes([("shapes", "x:4x4")]), {"x": (2, 4)})


@pytest.mark.parametrize("dims", ["x[1..2,4]", "x[?,4]", "x[2..,4]"])
def test_a_static_axis_takes_no_range(dims):
    with pytest.raises(ProfileError, match="axis 0 is always 2"):
        bind_shapes(openvino_shapes([dims]), {"x": (2, 4)})


def test_a_zero_in_the_model_is_a_real_zero():
    assert bind_shapes(trtexec_shapes([("shapes", "x:0x2")]), {"x": (0, 2)}) == (Profile("p0", {}),)


def test_a_zero_in_the_model_is_not_any_size():
    with pytest.raises(ProfileError, match="axis 0 is always 0"):
        bind_shapes(trtexec_shapes([("shapes", "x:3x2")]), {"x": (0, 2)})


def test_a_symbol_that_was_left_out_is_open():
    ranges = only_ranges(bind_shapes(symbol_ranges(["seq=1..8"]), {"ids": ("batch", "seq")}))
    assert ranges == {"batch": OPEN, "seq": Range(1, 8, 8)}


def test_an_unknown_symbol_is_refused_with_the_nearest():
    with pytest.raises(ProfileError, match="unknown symbol 'sec'; did you mean 'seq'"):
        bind_shapes(symbol_ranges(["sec=1..8"]), {"ids": ("batch", "seq")})


def test_symbols_that_differ_in_a_blank_are_different():
    with pytest.raises(ProfileError, match="unknown symbol 'batch '; did you mean 'batch'"):
        bind_shapes(symbol_ranges(["'batch '=1"]), {"a": ("batch",)})


def test_an_unknown_input_is_refused_with_the_nearest():
    with pytest.raises(ProfileError, match=r"unknown input 'idz'; did you mean 'ids'\?"):
        bind_shapes(trtexec_shapes([("shapes", "ids:1,idz:1")]), {"ids": ("batch",)})


def test_a_wrong_rank_is_refused_with_the_shape_of_the_model():
    with pytest.raises(ProfileError, match=r"input 'x' has 2 axes \[B, 4\], but 1 were given"):
        bind_shapes(trtexec_shapes([("shapes", "x:1")]), {"x": ("B", 4)})


@pytest.mark.parametrize("way", [r"--dim M=MIN:OPT:MAX", r"--buckets M=SIZE,SIZE", r"--shape 'NAME\[MIN\.\.MAX,3\]'"])
def test_a_dynamic_input_without_a_shape_lists_its_dims_and_three_ways(way):
    with pytest.raises(ProfileError, match=rf"input 'y', axis 1 \(M\).*{way}"):
        bind_shapes(trtexec_shapes([("shapes", "x:1")]), {"x": ("N",), "y": (3, "M")})


def test_an_empty_trtexec_profile_of_a_dynamic_model_is_refused():
    with pytest.raises(ProfileError, match="no shape for dynamic dims"):
        bind_shapes(trtexec_shapes([("profile", "0")]), {"x": ("N",)})


def test_a_static_input_needs_no_shape():
    assert only_ranges(bind_shapes(trtexec_shapes([("shapes", "x:5")]), {"x": ("N",), "c": (3,)})) == {
        "N": Range(5, 5, 5)
    }


def test_one_symbol_on_two_inputs_takes_the_sizes_that_both_allow():
    shapes = triple("a:1x2,b:2x2", "a:3x2,b:3x2", "a:4x2,b:8x2")
    assert only_ranges(bind_shapes(shapes, PAIR)) == {"N": Range(2, 3, 4)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("a[1..4,2],b[2..8,2]", Range(2, 4, 4), id="opt-follows-the-common-max"),
        pytest.param("a[?,2],b[2..8,2]", Range(2, 8, 8), id="open-and-bounded"),
        pytest.param("a[3..,2],b[2..,2]", Range(3, None, None), id="open-and-open"),
        pytest.param("a[..0,2],b[0..5,2]", Range(0, 0, 0), id="zero-is-a-max"),
    ],
)
def test_spans_of_one_symbol_are_intersected(text, expected):
    assert only_ranges(bind_shapes(openvino_shapes([text]), PAIR)) == {"N": expected}


def test_two_axes_of_one_input_with_one_symbol_are_intersected():
    assert only_ranges(bind_shapes(openvino_shapes(["x[1..4,2..8]"]), {"x": ("N", "N")})) == {"N": Range(2, 4, 4)}


def test_ranges_without_a_common_size_name_both_inputs_axes_and_ranges():
    with pytest.raises(ProfileError, match=r"input 'b', axis 0 \(3\) and input 'a', axis 0 \(1\) share the symbol 'N'"):
        bind_shapes(trtexec_shapes([("shapes", "a:1x2,b:3x2")]), PAIR)


def test_unequal_opts_of_one_symbol_name_both_inputs():
    shapes = triple("a:1x2,b:1x2", "a:2x2,b:3x2", "a:4x2,b:4x2")
    with pytest.raises(ProfileError, match=r"input 'a', axis 0 \(opt 2\) and input 'b', axis 0 \(opt 3\)"):
        bind_shapes(shapes, PAIR)


def test_an_opt_that_another_input_does_not_allow_is_refused():
    tuned, spans = triple("a:1x2", "a:6x2", "a:8x2")[0], openvino_shapes(["b[1..4,2]"])[0]
    with pytest.raises(ProfileError, match=r"input 'a', axis 0 has opt 6, but .* allow 1\.\.4"):
        bind_shapes((tuned + spans,), PAIR)


def test_in_several_profiles_the_message_tells_which():
    options = [("profile", "0"), ("shapes", "a:1x2,b:1x2"), ("profile", "1"), ("shapes", "a:1x2,b:3x2")]
    with pytest.raises(ProfileError, match=r"^profile 1: "):
        bind_shapes(trtexec_shapes(options), PAIR)


def test_an_axis_that_follows_from_a_symbol_accepts_what_follows():
    shapes = triple("x:1,y:2", "x:3,y:6", "x:4,y:8")
    assert only_ranges(bind_shapes(shapes, {"x": ("n",), "y": (TWICE,)})) == {"n": Range(1, 3, 4)}


@pytest.mark.parametrize("text", ["x[1..4],y[?]", "x[?],y[?]", "x[1..4],y[2..8]"])
def test_an_axis_that_follows_from_a_symbol_may_be_open(text):
    assert list(only_ranges(bind_shapes(openvino_shapes([text]), {"x": ("n",), "y": (TWICE,)}))) == ["n"]


def test_an_axis_that_follows_from_a_symbol_refuses_other_sizes():
    with pytest.raises(ProfileError, match=r"input 'y', axis 0 is 2\*n, so its sizes are 2, 8, but 1, 8 was given"):
        bind_shapes(openvino_shapes(["x[1..4],y[1..8]"]), {"x": ("n",), "y": (TWICE,)})


def test_a_symbol_that_stands_nowhere_alone_is_asked_for_by_name():
    with pytest.raises(ProfileError, match="write --dim n=MIN:OPT:MAX"):
        bind_shapes(openvino_shapes(["y[2..8]"]), {"y": (TWICE,)})


def test_a_symbol_inside_an_expression_only_can_be_given_by_name():
    assert only_ranges(bind_shapes(symbol_ranges(["n=1..4"]), {"y": (TWICE,)})) == {"n": Range(1, 4, 4)}


def test_an_axis_of_unknown_size_cannot_be_bound():
    with pytest.raises(ProfileError, match="axis 0: the model does not tell"):
        bind_shapes(openvino_shapes(["y[2..8]"]), {"y": (None,)})


def test_a_target_that_needs_ranges_refuses_open_symbols_and_lists_them():
    with pytest.raises(
        ProfileError, match=r"target tensorrt needs .*'batch', 'seq' have no upper end; write --dim batch="
    ):
        require_closed(bind_shapes((), {"ids": ("batch", "seq", 3)}), "tensorrt")


def test_a_target_that_needs_ranges_accepts_closed_ones():
    profiles = bind_shapes(symbol_ranges(["seq=1..8"]), {"ids": ("seq",)})
    assert require_closed(profiles, "tensorrt") is None


def test_an_input_without_a_shape_takes_the_ranges_of_its_symbols_from_others():
    dims = {"ids": ("batch", "seq"), "mask": ("batch", "seq", 4), "twice": (Expr((Term(2, (Step("batch"),)),)),)}
    assert only_ranges(bind_shapes(triple("ids:1x1", "ids:2x4", "ids:4x8"), dims)) == {
        "batch": Range(1, 2, 4),
        "seq": Range(1, 4, 8),
    }


def test_only_the_axes_whose_symbols_no_input_tells_are_demanded():
    with pytest.raises(ProfileError, match=r"dims: input 'y', axis 1 \(M\); write --dim M=MIN:OPT:MAX,"):
        bind_shapes(trtexec_shapes([("shapes", "x:1")]), {"x": ("N",), "y": ("N", "M")})


@pytest.mark.parametrize(("name", "quoted"), [("in put:0,a", True), ("ids", False), ('a"b', True)])
def test_quotes_are_offered_where_the_nearest_name_needs_them(name, quoted):
    with pytest.raises(ProfileError, match="unknown input") as caught:
        bind_shapes(trtexec_shapes([("shapes", f"{name[:-1].rstrip(',')}z:1")]), {name: ("N",)})
    assert ("put the name in double quotes: " in str(caught.value)) is quoted
