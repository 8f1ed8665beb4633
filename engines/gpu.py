"""NVIDIA GPUs that this process can see, and which of them a user means. Deciding only: ``gpu_driver`` asks."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from trtc.engines.value import Value
from trtc.profiles import HostError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

DEVICE_KIND = "cuda"
"""What ``Requirements.device`` says of an engine that runs on an NVIDIA GPU."""


class Gpu(Value, frozen=True):
    """One GPU, or one MIG instance of one.

    Attributes:
        index: as CUDA counts in this process, after ``CUDA_VISIBLE_DEVICES``.
        uuid: such as ``GPU-8f2a...``; ``MIG-...`` for an instance.
        name: of the product.
        compute_capability: such as ``sm89``.
        memory_bytes: all of it, used or not.
        driver_version: such as ``580.65.06``; empty where only CUDA's own version is known.
        cuda_version: newest CUDA that the driver runs, such as ``13.0``.
        mig: whether this is a MIG instance.
    """

    index: int
    uuid: str
    name: str
    compute_capability: str
    memory_bytes: int
    driver_version: str = ""
    cuda_version: str = ""
    mig: bool = False

    def __str__(self) -> str:
        """The GPU as messages name it."""
        return f"GPU {self.index} ({self.name}, {self.compute_capability})"


class GpuSurvey(Value, frozen=True):
    """What looking for GPUs gave.

    Attributes:
        gpus: in CUDA's order.
        reason: why there are none, and what to do; empty when there are some.
        faulty: a driver is there, yet it cannot be used: there probably is a GPU, and nobody can say which.
    """

    gpus: tuple[Gpu, ...] = ()
    reason: str = ""
    faulty: bool = False

    @property
    def expected(self) -> bool:
        """Whether this machine has a GPU, as far as anyone can tell: then a CPU engine is no silent substitute."""
        return bool(self.gpus) or self.faulty


@cache
def survey_gpus() -> GpuSurvey:
    """Look for GPUs once for each process; the driver is not touched where its library is missing.

    Asking initialises CUDA in this process, so a child that is forked later cannot use it. Whoever may do without
    (a bundle without a GPU engine) does not ask.
    """
    from trtc.engines.gpu_driver import ask_driver

    return ask_driver()


def choose_gpu(text: str, survey: GpuSurvey) -> Gpu:
    """Find the GPU that a user means.

    Args:
        text: an index (``1`` or ``cuda:1``), a UUID or the start of one (``GPU-8f2a``, ``MIG-...``), as CUDA takes
            them; empty for the first.
        survey: what there is.

    Raises:
        HostError: when no GPU is visible; it says why.
        UsageError: for a text that names none, or several; it lists those that are there.
    """
    gpus = survey.gpus
    if not gpus:
        raise HostError(f"no GPU can be used here: {survey.reason}")
    if not text:
        return gpus[0]
    word = text.removeprefix("cuda:")
    if word.isascii() and word.isdigit():
        found = [gpu for gpu in gpus if gpu.index == int(word)]
    else:
        found = [gpu for gpu in gpus if _is_start(word, gpu.uuid)]
    if len(found) == 1:
        return found[0]
    problem = "names several GPUs" if found else "names no GPU of this machine"
    raise UsageError(f"device {text!r} {problem}; give an index or a UUID of: {listed(found or gpus)}")


def listed(gpus: Sequence[Gpu]) -> str:
    """Name GPUs for a message, each with what a user can type."""
    return ", ".join(f"{gpu.index} = {gpu.uuid} ({gpu.name})" for gpu in gpus)


def _is_start(word: str, uuid: str) -> bool:
    """Whether a word is the start of a UUID: its kind and at least one digit of it, in any case."""
    kind = next((k for k in ("GPU-", "MIG-") if word.upper().startswith(k)), "")
    return len(word) > len(kind) > 0 and uuid.lower().startswith(word.lower())
