import pytest

from trtc.profiles import Derived, PadRule, UsageError


def test_a_pad_rule_accepts_no_error_unless_told():
    assert PadRule("seq", "right", {"ids": 0}).accept_error is False


@pytest.mark.parametrize(
    ("kind", "symbol"),
    [
        pytest.param("positions", None, id="positions-need-a-symbol"),
        pytest.param("ones", "seq", id="ones-take-none"),
        pytest.param("zeros", "seq", id="zeros-take-none"),
    ],
)
def test_only_positions_count_along_a_symbol(kind, symbol):
    with pytest.raises(UsageError, match="NAME=positions:SYMBOL"):
        Derived("ids", kind, symbol)


@pytest.mark.parametrize(
    ("kind", "symbol"),
    [
        pytest.param("positions", "seq", id="positions"),
        pytest.param("ones", None, id="ones"),
        pytest.param("zeros", None, id="zeros"),
    ],
)
def test_each_kind_with_its_own_arguments_is_a_derived_input(kind, symbol):
    assert Derived("ids", kind, symbol).symbol == symbol
