import json

import pytest

from trtc.profiles import ProfileError, Range, UsageError
from trtc.profiles.grammar import InputShape, openvino_shapes, polygraphy_shapes, trtexec_shapes

NAME = "line\nbreak, 'quote' and \"quote\": π"


@pytest.fixture
def shape_file(tmp_path):
    def write(text):
        file = tmp_path / "shapes, 1.json"
        file.write_text(text, encoding="utf-8")
        return f"@{file}"

    return write


@pytest.mark.parametrize(
    "read",
    [
        pytest.param(lambda text: trtexec_shapes([("optShapes", text)]), id="trtexec-opt"),
        pytest.param(lambda text: trtexec_shapes([("shapes", text)]), id="trtexec-all"),
        pytest.param(lambda text: polygraphy_shapes([text]), id="polygraphy"),
        pytest.param(lambda text: openvino_shapes([text]), id="openvino"),
    ],
)
def test_every_grammar_takes_a_file_for_names_that_cannot_be_typed(shape_file, read):
    ((shape,),) = read(shape_file(json.dumps({NAME: [2, 3]})))
    assert (shape.name, shape.dims) == (NAME, (Range(2, 2, 2), Range(3, 3, 3)))


def test_a_file_can_state_min_opt_and_max(shape_file):
    text = shape_file('{"x": {"min": [1], "opt": [2], "max": [8]}}')
    assert openvino_shapes([text]) == ((InputShape("x", (Range(1, 2, 8),)),),)


def test_a_file_can_state_spans(shape_file):
    assert openvino_shapes([shape_file('{"x": ["1..8", "?", 3]}')])[0][0].dims == (
        Range(1, 8, 8),
        Range(0, None, None),
        Range(3, 3, 3),
    )


@pytest.mark.parametrize(
    "content",
    [
        pytest.param("", id="empty"),
        pytest.param("[1]", id="no-object"),
        pytest.param("{}", id="no-names"),
        pytest.param('{"x": [1], "x": [2]}', id="name-twice"),
        pytest.param('{"": [1]}', id="empty-name"),
        pytest.param('{"x": 1}', id="no-list"),
        pytest.param('{"x": [1.0]}', id="fraction"),
        pytest.param('{"x": [true]}', id="bool"),
        pytest.param('{"x": [-2]}', id="negative"),
        pytest.param('{"x": [9223372036854775808]}', id="too-large"),
        pytest.param('{"x": [1' + "0" * 5000 + "]}", id="far-too-large"),
        pytest.param('{"x": {}}', id="no-kind"),
        pytest.param('{"x": {"opt": [1], "best": [1]}}', id="unknown-kind"),
        pytest.param('{"x": {"min": [1], "opt": [1]}}', id="two-kinds"),
        pytest.param('{"x": {"min": [3], "opt": [2], "max": [4]}}', id="out-of-order"),
        pytest.param('{"x": ' + "[" * 100_000, id="nested-deeply"),
        pytest.param('{"x": [' + "1," * 64 + "1]}", id="too-many-axes"),
        pytest.param(json.dumps({f"x{i}": [1] for i in range(4097)}), id="too-many-names"),
    ],
)
def test_a_file_that_does_not_follow_the_form_is_refused(shape_file, content):
    with pytest.raises(ProfileError):
        openvino_shapes([shape_file(content)])


def test_spans_are_refused_where_one_kind_is_stated(shape_file):
    with pytest.raises(ProfileError, match="whole numbers"):
        trtexec_shapes([("optShapes", shape_file('{"x": ["1..8"]}'))])


@pytest.mark.parametrize("path", ["", "absent.json", "\x00", "a\ud800"])
def test_a_file_that_is_not_there_is_wrong_use(path):
    with pytest.raises(UsageError, match="path of a JSON file"):
        openvino_shapes([f"@{path}"])


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(UsageError, match="path of a JSON file"):
        openvino_shapes([f"@{tmp_path}"])


def test_a_file_in_another_encoding_is_wrong_use(tmp_path):
    (tmp_path / "latin.json").write_bytes('{"é": [1]}'.encode("latin-1"))
    with pytest.raises(UsageError, match="cannot be read"):
        openvino_shapes([f"@{tmp_path / 'latin.json'}"])
