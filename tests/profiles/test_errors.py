import pytest

from trtc.profiles import CheckError, HostError, ModelError, ProfileError, RequestError, TrtcError, UsageError


@pytest.mark.parametrize(
    ("error", "exit_code"),
    [(CheckError, 1), (UsageError, 2), (ProfileError, 2), (RequestError, 2), (ModelError, 3), (HostError, 4)],
)
def test_each_kind_of_error_has_its_exit_code(error, exit_code):
    assert (issubclass(error, TrtcError), error.exit_code) == (True, exit_code)


@pytest.mark.parametrize("error", [ProfileError, RequestError])
def test_wrong_values_are_value_errors_too(error):
    assert issubclass(error, ValueError)
