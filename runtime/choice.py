"""Which engine of a bundle is loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtc.engines.gpu import choose_gpu
from trtc.engines.value import Value
from trtc.profiles import HostError, UsageError, unknown_name
from trtc.runtime.verdicts import CPU, Accelerators, Verdict, judge, this_machine

if TYPE_CHECKING:
    from trtc.engines.host import Host
    from trtc.engines.manifest import EngineRecord, Manifest

AUTO = "auto"


class Wish(Value, frozen=True):
    """What a caller asked for.

    Attributes:
        engine: name of an engine, or ``auto``.
        device: a GPU by index or UUID, ``cpu`` for none, or empty for what fits.
        fallback: ``cpu`` to take a CPU engine where no GPU engine can be used; None to fail.
        allow_plugins: engines may bring libraries of plug-ins.
    """

    engine: str = AUTO
    device: str = ""
    fallback: str | None = None
    allow_plugins: bool = False


class Choice(Value, frozen=True):
    """What is loaded.

    Attributes:
        record: the engine.
        device: index of its GPU, as CUDA counts; empty for an engine that needs none.
        verdicts: on every engine of the bundle, in its order.
    """

    record: EngineRecord
    device: str
    verdicts: tuple[Verdict, ...]


def choose(
    manifest: Manifest, host: Host, wish: Wish | None = None, accelerators: Accelerators | None = None
) -> Choice:
    """Choose the engine to load: the one that was asked for, else the first that fits.

    Engines for a GPU come before the others, each in the order of the bundle. Where this machine has a GPU and the
    bundle an engine for one, the others do not count at all: a service must not slide onto the CPU unnoticed. The
    null backend is taken only when it is asked for by name, or the bundle has nothing else.

    Args:
        manifest: of the bundle.
        host: this host.
        wish: what was asked for.
        accelerators: the GPUs; None for those of this machine.

    Raises:
        UsageError: for an engine that the bundle does not have, a device that is none, or an unknown fallback.
        HostError: when nothing that counts fits; it lists the reasons.
    """
    wish, accelerators = wish or Wish(), accelerators or this_machine()
    candidates = _candidates(manifest, wish, accelerators)
    verdicts = tuple(
        judge(record, host, wish.device, accelerators, allow_plugins=wish.allow_plugins) for record in manifest.engines
    )
    found = dict(zip((record.name for record in manifest.engines), verdicts, strict=True))
    for record in candidates:
        if found[record.name].fits:
            return Choice(record, found[record.name].device, verdicts)
    reasons = "; ".join(f"{record.name}: {found[record.name].reason}" for record in candidates)
    spared = [r for r in _computing(manifest) if r not in candidates and found[r.name].fits]
    if spared and all(record.requirements.device for record in candidates):
        raise HostError(
            f"no engine for a GPU can be used here ({reasons}), and the CPU does not take over unasked; "
            f"mend that, or ask for it with fallback='cpu' (--fallback cpu): engine {spared[0].name} fits"
        )
    raise HostError(f"no engine of this bundle can run here ({reasons or 'it holds none'})")


def _candidates(manifest: Manifest, wish: Wish, accelerators: Accelerators) -> list[EngineRecord]:
    """List the engines that count, best first."""
    records = {record.name: record for record in manifest.engines}
    if wish.engine != AUTO and wish.engine not in records:
        raise UsageError(unknown_name("engine", wish.engine, list(records)))
    if wish.fallback not in (None, CPU):
        raise UsageError(f"fallback={wish.fallback!r}; give 'cpu', or leave it out to fail where no GPU can be used")
    computing = _computing(manifest)
    on_gpu = [record for record in computing if record.requirements.device]
    others = [record for record in computing if not record.requirements.device]
    spare = others if wish.fallback == CPU else []
    if wish.engine != AUTO:
        named = records[wish.engine]
        _check_device(wish, [named] if named.requirements.device else [], accelerators)
        return [named, *(record for record in spare if record is not named)]
    _check_device(wish, on_gpu, accelerators)
    if wish.device == CPU:
        return others
    if wish.device or (on_gpu and wish.fallback is None and accelerators.survey().expected):
        return [*on_gpu, *spare]
    return [*on_gpu, *others]


def _check_device(wish: Wish, on_gpu: list[EngineRecord], accelerators: Accelerators) -> None:
    """Refuse a device that means nothing: that is a mistake of the caller, not of the host."""
    if wish.device in ("", CPU):
        return
    if not on_gpu:
        what = "this bundle holds no engine for a GPU" if wish.engine == AUTO else f"engine {wish.engine} needs none"
        raise UsageError(f"device {wish.device!r}: {what}; leave the device out, or build with a GPU target")
    if accelerators.survey().gpus:
        choose_gpu(wish.device, accelerators.survey())


def _computing(manifest: Manifest) -> list[EngineRecord]:
    return [record for record in manifest.engines if record.backend != "null"] or list(manifest.engines)
