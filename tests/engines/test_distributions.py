"""Libraries are found whatever the distribution that brought them is called."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError

import pytest

from trtc.engines.distributions import Distribution, find_distribution


def installed(*names: str):
    def version_of(name: str) -> str:
        if name not in names:
            raise PackageNotFoundError(name)
        return "1.2.3"

    return version_of


@pytest.mark.parametrize(
    ("library", "distribution", "cuda"),
    [
        ("onnxruntime", "onnxruntime", None),
        ("onnxruntime", "onnxruntime-gpu", None),
        ("onnxruntime-gpu", "onnxruntime-gpu", None),
        ("tensorrt", "tensorrt", None),
        ("tensorrt", "tensorrt-cu13", 13),
        ("tensorrt", "tensorrt-lean-cu12", 12),
        ("tensorrt_rtx", "tensorrt-rtx-cu13", 13),
        ("tensorrt_rtx", "tensorrt-rtx-cu12", 12),
        ("numpy", "numpy", None),
    ],
)
def test_a_library_is_found_in_each_distribution_that_brings_it(library, distribution, cuda):
    found = find_distribution(library, installed(distribution))
    assert found == Distribution(distribution, "1.2.3")
    assert found.cuda_major == cuda


def test_a_library_of_the_cpu_does_not_stand_for_that_of_the_gpu():
    assert find_distribution("onnxruntime-gpu", installed("onnxruntime"), lambda _: ()) is None


def test_a_distribution_of_another_name_is_found_by_its_module():
    found = find_distribution(
        "tensorrt_rtx", installed("our-own-build-cu13"), lambda module: [f"our-own-build-cu{len(module) + 1}"]
    )
    assert found == Distribution("our-own-build-cu13", "1.2.3")


def test_the_installed_packages_are_really_asked():
    assert find_distribution("pytest").name == "pytest"
    assert find_distribution("_pytest").name == "pytest"
    assert find_distribution("no_such_library") is None
