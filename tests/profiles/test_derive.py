import pytest

from trtc.profiles import Derived, ProfileError
from trtc.profiles.grammar import derived_inputs

DIMS = {"mask": ("batch", "seq"), "pos": ("batch", "seq"), "a=b": ("s=t",), "fixed": (3,)}


@pytest.mark.parametrize(
    ("text", "derived"),
    [
        pytest.param("mask=ones", Derived("mask", "ones"), id="ones"),
        pytest.param("mask=zeros", Derived("mask", "zeros"), id="zeros"),
        pytest.param("pos=positions:seq", Derived("pos", "positions", "seq"), id="positions"),
        pytest.param("a=b=ones", Derived("a=b", "ones"), id="equals-sign-in-the-name"),
        pytest.param("a=b=positions:s=t", Derived("a=b", "positions", "s=t"), id="equals-sign-in-both"),
        pytest.param("'a=b'=positions:'s=t'", Derived("a=b", "positions", "s=t"), id="quoted"),
    ],
)
def test_a_derived_input_is_read(text, derived):
    assert derived_inputs([text], DIMS) == (derived,)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        pytest.param(["msk=ones"], "unknown input 'msk'; did you mean 'mask'", id="unknown-input"),
        pytest.param(["mask=twos"], "'twos' is not a kind", id="unknown-kind"),
        pytest.param(["mask=positions"], "'positions' is not a kind", id="positions-without-symbol"),
        pytest.param(["pos=positions:sec"], "unknown symbol 'sec'; did you mean 'seq'", id="unknown-symbol"),
        pytest.param(["fixed=positions:seq"], "known: none", id="symbol-of-another-input"),
        pytest.param(["mask=ones", "mask=zeros"], "'mask' twice", id="twice"),
        pytest.param(["mask"], "is not of the form", id="no-kind"),
    ],
)
def test_a_derive_mistake_is_refused_with_the_reason(texts, message):
    with pytest.raises(ProfileError, match=message):
        derived_inputs(texts, DIMS)
