import pytest

from trtc.profiles import Profile, ProfileError, Range
from trtc.profiles.grammar import ShapeOptions, parse_shapes, profiles_from_options

DIMS = {"ids": ("seq",)}


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(ShapeOptions(dim=("seq=1..8",)), id="dim"),
        pytest.param(ShapeOptions(bucket=("seq=8",)), id="bucket"),
        pytest.param(ShapeOptions(buckets=("seq=8",)), id="buckets"),
        pytest.param(ShapeOptions(shape=("ids[1..8]",)), id="shape"),
        pytest.param(
            ShapeOptions(trtexec=(("minShapes", "ids:1"), ("optShapes", "ids:8"), ("maxShapes", "ids:8"))), id="trtexec"
        ),
        pytest.param(
            ShapeOptions(trt_min_shapes=("ids:[1]",), trt_opt_shapes=("ids:[8]",), trt_max_shapes=("ids:[8]",)),
            id="polygraphy",
        ),
    ],
)
def test_any_one_grammar_gives_the_profiles(options):
    assert profiles_from_options(options, DIMS) == (Profile("p0", {"seq": Range(1, 8, 8)}),)


def test_no_options_state_nothing():
    assert parse_shapes(ShapeOptions()) == ()


def test_two_grammars_at_once_are_refused_with_both_named():
    with pytest.raises(ProfileError, match=r"--dim.*--shape"):
        parse_shapes(ShapeOptions(dim=("seq=4",), shape=("ids[4]",)))
