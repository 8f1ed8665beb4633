"""Real trained models as engines of TensorRT for RTX, their profiles read back from the engines' own bytes."""

from __future__ import annotations

import pytest
from plan_file import profiles_in

from trtc.engines.tensorrt.build import build_engine

REC_SYMBOLS = ("p2o.DynamicDimension.0", "x_2", "p2o.DynamicDimension.1")
DET_SYMBOLS = ("p2o.DynamicDimension.0", "p2o.DynamicDimension.1", "p2o.DynamicDimension.2")


def read_back(built):
    return profiles_in(built.files[built.entry].read_bytes())


@pytest.fixture(scope="module")
def minilm(request_for, minilm_path):
    """Eight profiles for two compute capabilities, built once."""
    lengths = (16, 32, 48, 64, 96, 128, 192, 256)
    profiles = [{"batch_size": (1, 8, 8), "sequence_length": (1, high, high)} for high in lengths]
    return lengths, build_engine(request_for(minilm_path, *profiles, target="rtx:sm89,sm120"))


def test_eight_profiles_for_two_compute_capabilities_stand_in_one_engine(minilm):
    lengths, built = minilm
    shapes = [((1, 1), (8, high), (8, high)) for high in lengths]
    assert read_back(built) == [[shape, shape] for shape in shapes]
    assert built.requirements.compute_capabilities == ("sm89", "sm120")


def test_memory_of_each_profile_is_known_without_a_gpu(minilm):
    lengths, built = minilm
    assert list(built.scratch_bytes) == [f"p{i}" for i in range(len(lengths))]
    assert built.scratch_bytes["p7"] > built.scratch_bytes["p0"] > 0
    assert int(built.options["weights_bytes"]) > 60_000_000


def test_the_recogniser_of_ppocr(request_for, ppocr_rec_path):
    profiles = [dict(zip(REC_SYMBOLS, ((1, 2, 4), (48, 48, 48), (8, w, w)), strict=True)) for w in (160, 320)]
    built = build_engine(request_for(ppocr_rec_path, *profiles))
    assert read_back(built) == [[((1, 3, 48, 8), (2, 3, 48, w), (4, 3, 48, w))] for w in (160, 320)]


def test_the_detector_of_ppocr(request_for, ppocr_det_path):
    sides = ((32, 320, 320), (32, 640, 640))
    profiles = [dict(zip(DET_SYMBOLS, ((1, 1, 1), side, side), strict=True)) for side in sides]
    built = build_engine(request_for(ppocr_det_path, *profiles, target="rtx:sm86"))
    assert read_back(built) == [[((1, 3, 32, 32), (1, 3, top, top), (1, 3, top, top))] for _, top, _ in sides]


def test_the_voice_detector_without_ifs(request_for, silero_ifless_path):
    profiles = [{"batch": (1, rows, rows), "sequence": (576, 576, 576)} for rows in (1, 8)]
    built = build_engine(request_for(silero_ifless_path, *profiles))
    scalar = ((), (), ())
    assert [sorted(shapes) for shapes in read_back(built)] == [
        [scalar, ((1, 576), (rows, 576), (rows, 576)), ((2, 1, 128), (2, rows, 128), (2, rows, 128))] for rows in (1, 8)
    ]
