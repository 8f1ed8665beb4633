"""What NVIDIA's management library tells; what it does not tell is None, and never an error."""

from __future__ import annotations

import contextlib

import pytest

from trtc.engines.nvml import open_nvml


def health_of(fake):
    with open_nvml(fake) as nvml:
        (found,) = nvml.health()
    return found


def test_a_healthy_gpu(gpu_fakes):
    found = health_of(gpu_fakes.FakeNvml())
    assert (found.name, found.compute_capability, found.free_bytes) == ("NVIDIA H200", "sm90", 90 * 2**30)
    assert (found.ecc, found.uncorrected_errors, found.rows_pending, found.rows_failed) == (True, 0, False, False)
    assert (found.recovery, found.slowed_by) == ("NONE", ("EVENT_REASON_GPU_IDLE",))
    assert (found.persistence, found.mig, found.mig_uuids, found.error) == (True, False, (), "")


def test_versions_and_free_memory(gpu_fakes):
    with open_nvml(gpu_fakes.FakeNvml()) as nvml:
        assert (nvml.driver_version(), nvml.cuda_version()) == ("580.65.06", "13.0")
        assert nvml.free_bytes("MIG-1") == 90 * 2**30
    with open_nvml(gpu_fakes.FakeNvml(device_get_handle_by_uuid=gpu_fakes.FakeNvml.ABSENT)) as nvml:
        assert nvml.free_bytes("MIG-1") is None


def test_what_a_gpu_does_not_have_is_none(gpu_fakes):
    absent = gpu_fakes.FakeNvml.ABSENT
    names = ("ecc_mode", "total_ecc_errors", "remapped_rows", "retired_pages_pending_status", "mig_mode")
    names += ("persistence_mode", "current_clocks_event_reasons", "compute_mode", "memory_info_v2")
    found = health_of(gpu_fakes.FakeNvml(recovery=absent, **{f"device_get_{name}": absent for name in names}))
    assert found.name == "NVIDIA H200"
    for field in ("ecc", "uncorrected_errors", "rows_pending", "rows_failed", "mig", "persistence", "slowed_by"):
        assert getattr(found, field) is None, field
    assert (found.recovery, found.compute_mode, found.free_bytes) == (None, None, None)


def test_a_gpu_before_ampere_retires_pages_instead_of_rows(gpu_fakes):
    absent = gpu_fakes.FakeNvml.ABSENT
    found = health_of(gpu_fakes.FakeNvml(device_get_remapped_rows=absent, device_get_retired_pages_pending_status=1))
    assert (found.rows_pending, found.rows_failed) == (True, None)


def test_the_instances_of_a_divided_gpu_are_named(gpu_fakes):
    found = health_of(gpu_fakes.FakeNvml(device_get_mig_mode=(1, 1), device_get_max_mig_device_count=2))
    assert (found.mig, found.mig_uuids) == (True, (gpu_fakes.UUIDS[0],) * 2)


def test_a_lost_gpu_is_an_entry_with_its_error(gpu_fakes):
    found = health_of(gpu_fakes.FakeNvml(device_get_handle_by_index_v2=gpu_fakes.Refusal("GPU is lost")))
    assert (found.index, found.name, found.error) == (0, None, "GPU is lost")


def test_values_newer_than_the_bindings_are_shown_as_numbers(gpu_fakes):
    assert health_of(gpu_fakes.FakeNvml(recovery=77)).recovery == "77"


@pytest.mark.parametrize("inside", [False, True])
def test_the_library_is_closed_again_whatever_happens(gpu_fakes, inside):
    fake = gpu_fakes.FakeNvml()
    with contextlib.suppress(KeyError), open_nvml(fake):
        assert fake.started == 1
        if inside:
            raise KeyError
    assert fake.started == 0


def test_a_library_that_does_not_start_is_none(gpu_fakes):
    class Broken(gpu_fakes.FakeNvml):
        def init_v2(self) -> None:
            raise gpu_fakes.Refusal("Driver Not Loaded")

    fake = Broken()
    with open_nvml(fake) as nvml:
        assert nvml is None
    assert fake.started == 0
