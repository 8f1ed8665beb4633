"""A simulated machine: what a test hands to the backend."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simulator.cuda_core import Cuda
from simulator.runtime_api import TensorRT
from simulator.world import World
from trtc.engines.gpu import Gpu, GpuSurvey
from trtc.engines.tensorrt.device import cuda_device
from trtc.engines.tensorrt.toolkit import Toolkit

if TYPE_CHECKING:
    import pytest

    from simulator.store import EngineStore

UUIDS = ("GPU-11111111-2222-3333-4444-555555555555", "GPU-22222222-2222-3333-4444-555555555555")


class Machine:
    """Two GPUs that are not there.

    Attributes:
        world: their memory and streams.
        toolkit: the two libraries.
    """

    def __init__(self, real: Any, store: EngineStore, device_bytes: int | None = None) -> None:
        self.world = World(len(UUIDS), device_bytes)
        self.toolkit = Toolkit(TensorRT(real, self.world, store), Cuda(self.world))
        self.survey = GpuSurvey(
            tuple(Gpu(i, uuid, "Simulated", "sm89", 2**40) for i, uuid in enumerate(UUIDS)),
        )

    def install(self, patch: pytest.MonkeyPatch) -> None:
        """Make the backend find this machine instead of the real one."""
        patch.setattr("trtc.engines.tensorrt.load.open_toolkit", lambda _: self.toolkit)
        patch.setattr("trtc.engines.gpu.survey_gpus", lambda: self.survey)
        patch.setattr("trtc.runtime.verdicts.survey_gpus", lambda: self.survey)
        patch.setattr("trtc.runtime.verdicts._free_bytes", lambda _: None)

    def leave(self) -> None:
        """Forget the devices of this machine, and check that nothing is pending or held."""
        cuda_device.cache_clear()
        held = [a for a in self.world.allocations if not a.freed]
        assert not held, f"{len(held)} allocations are still held: {held[:3]}"
        assert not any(stream.pending for stream in self.world.streams.values())
