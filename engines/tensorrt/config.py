"""Set the builder's options and profiles, and read each back: what the library lacks, it passes over in silence."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtc.engines.build import NodeProblem
from trtc.engines.tensorrt.job import Failure
from trtc.engines.tensorrt.log import error_texts, unsupported_settings

if TYPE_CHECKING:
    from trtc.engines.tensorrt.job import BuildJob, ProfileJob

_LEVELS = {"ampere+": "AMPERE_PLUS", "same-compute-capability": "SAME_COMPUTE_CAPABILITY"}


def set_options(library: Any, builder: Any, config: Any, job: BuildJob, logger: Any) -> Failure | None:
    """Set everything but the profiles.

    Returns:
        The options that the library does not take; None when all of them are in force.
    """
    problems: list[str] = []
    builder.max_threads = job.threads
    if job.workspace_bytes is not None:
        pool = library.MemoryPoolType.WORKSPACE
        config.set_memory_pool_limit(pool, job.workspace_bytes)
        _expect(problems, "workspace", job.workspace_bytes, config.get_memory_pool_limit(pool))
    if job.optimization_level is not None:
        config.builder_optimization_level = job.optimization_level
        _expect(problems, "optimization level", job.optimization_level, config.builder_optimization_level)
    tf32 = library.BuilderFlag.TF32
    (config.set_flag if job.tf32 else config.clear_flag)(tf32)
    _expect(problems, "TF32", job.tf32, config.get_flag(tf32))
    if job.version_compatible:
        # The lean runtime is installed where the engine runs, instead of travelling inside of it as code.
        for name in ("VERSION_COMPATIBLE", "EXCLUDE_LEAN_RUNTIME"):
            config.set_flag(getattr(library.BuilderFlag, name))
            _expect(problems, name, job.version_compatible, config.get_flag(getattr(library.BuilderFlag, name)))
    if job.hardware_compatibility != "none":
        level = getattr(library.HardwareCompatibilityLevel, _LEVELS[job.hardware_compatibility])
        config.hardware_compatibility_level = level
        _expect(problems, "hardware compatibility", level, config.hardware_compatibility_level)
    if job.timing_cache:
        cache = config.create_timing_cache(Path(job.timing_cache).read_bytes())
        if cache is None or not config.set_timing_cache(cache, ignore_mismatch=False):
            problems.append("timing cache: the library refuses it; it belongs to this version and this GPU only")
    problems += _set_capabilities(library, config, job)
    problems += unsupported_settings(logger.lines)
    return _failure("options", problems)


def _set_capabilities(library: Any, config: Any, job: BuildJob) -> list[str]:
    if not job.compute_capabilities:
        return []
    if not hasattr(library, "ComputeCapability") or not hasattr(config, "set_compute_capability"):
        return [f"{job.library} is not built for chosen compute capabilities"]
    known = library.ComputeCapability.__members__
    if missing := [c for c in job.compute_capabilities if c.upper() not in known]:
        there = ", ".join(sorted(name.lower() for name in known if name.startswith("SM")))
        return [f"{job.library} here has no kernels for {', '.join(missing)}; it has {there}"]
    config.num_compute_capabilities = len(job.compute_capabilities)
    problems: list[str] = []
    for i, capability in enumerate(job.compute_capabilities):
        config.set_compute_capability(known[capability.upper()], i)
        _expect(problems, "compute capability", known[capability.upper()], config.get_compute_capability(i))
    return problems


def add_profiles(builder: Any, network: Any, config: Any, job: BuildJob, logger: Any) -> Failure | None:
    """Add every profile of the job, in order.

    Returns:
        What the library refused or dropped; None when the config holds all profiles as asked.
    """
    tensors = {t.name: t for t in (network.get_input(i) for i in range(network.num_inputs))}
    problems: list[str] = []
    for i, wanted in enumerate(job.profiles):
        profile = builder.create_optimization_profile()
        said = _fill(profile, wanted, tensors)
        if not said:
            before = len(logger.lines)
            index = config.add_optimization_profile(profile)
            if index != i:
                said = error_texts(logger.lines[before:]) or (f"the library gave it the index {index}, not {i}",)
        problems += [f"profile {wanted.name}: {text}" for text in said]
    return _failure("profiles", problems)


def _fill(profile: Any, wanted: ProfileJob, tensors: dict[str, Any]) -> tuple[str, ...]:
    problems: list[str] = []
    if unlike := sorted(wanted.shapes.keys() ^ tensors.keys()):
        return (f"ranges and inputs are not of the same names: {', '.join(map(repr, unlike))}",)
    for name, tensor in tensors.items():
        bounds = wanted.shapes[name]
        if tensor.is_shape_tensor:
            problems += _fill_values(profile, wanted, name)
        else:
            profile.set_shape(name, bounds.min, bounds.opt, bounds.max)
            kept = [tuple(shape) for shape in profile.get_shape(name)]
            _expect(problems, f"shape of {name!r}", [bounds.min, bounds.opt, bounds.max], kept)
    return tuple(problems)


def _fill_values(profile: Any, wanted: ProfileJob, name: str) -> list[str]:
    if name not in wanted.values:
        return [f"the values of input {name!r} decide shapes, and no range of them is known"]
    bounds = wanted.values[name]
    try:
        profile.set_shape_input(name, bounds.min, bounds.opt, bounds.max)
    except (RuntimeError, ValueError) as error:
        return [f"values of {name!r}: {error}"]
    problems: list[str] = []
    kept = [tuple(values) for values in profile.get_shape_input(name)]
    _expect(problems, f"values of {name!r}", [bounds.min, bounds.opt, bounds.max], kept)
    return problems


def _expect(problems: list[str], what: str, wanted: object, kept: object) -> None:
    if kept != wanted:
        problems.append(f"{what}: {wanted} was asked for, and the library took {kept}")


def _failure(stage: str, problems: list[str]) -> Failure | None:
    return Failure(stage, tuple(NodeProblem("", "", text) for text in problems)) if problems else None
