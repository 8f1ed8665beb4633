"""Build for TensorRT or TensorRT for RTX: one engine that holds an optimization profile for each of the ladder's.

One path serves both libraries; what one of them lacks is asked of its members. The build runs in a process of its own.
"""

from __future__ import annotations

from hashlib import file_digest
from pathlib import Path
from typing import TYPE_CHECKING

import onnx

from trtc.engines.build import BuiltEngine, NodeProblem
from trtc.engines.errors import EngineError
from trtc.engines.gpu import DEVICE_KIND
from trtc.engines.host import this_host
from trtc.engines.manifest import Requirements
from trtc.engines.tensorrt.examine import examine
from trtc.engines.tensorrt.explain import crash_error, failure_error
from trtc.engines.tensorrt.isolate import isolate
from trtc.engines.tensorrt.job import BuildJob, Failure
from trtc.engines.tensorrt.locate import located
from trtc.engines.tensorrt.log import scratch_bytes, unused_inputs, weights_bytes
from trtc.engines.tensorrt.options import refuse_options
from trtc.engines.tensorrt.process import run_job
from trtc.engines.tensorrt.reach import reaching
from trtc.engines.tensorrt.rules import all_nodes
from trtc.engines.tensorrt.shapes import profile_jobs, tensor_facts

if TYPE_CHECKING:
    from trtc.engines.build import EngineRequest
    from trtc.engines.tensorrt.job import BuildOutcome

__all__ = ["build_engine", "examine", "refuse_options"]

NETWORK = "trtc"
"""Name of every engine: a name of the builder's own making would differ between equal builds."""
PLAN = "engine.plan"


def build_engine(request: EngineRequest) -> BuiltEngine:
    """Build the engine.

    Raises:
        UsageError: for options that the library does not have, and for ranges of values that are missing.
        ProfileError: for ranges without an upper end.
        ModelError: for a model that the library cannot build; it names nodes, and the profile or the compute
            capability that fails alone.
        EngineError: when the builder crashes.
        HostError: when the library is missing.
    """
    refuse_options(request.target, request.builder)
    job = build_job(request)
    try:
        outcome = run_job(job, request.folder / "builder.log", request.tell)
        if outcome.failure is not None:
            where, failure = isolate(job, outcome.failure, request.folder, request.tell)
            raise failure_error(request.target, located(failure, _operators(job)), where)
    except EngineError as error:
        raise crash_error(request.target, error) from error
    if (lost := _ignored(job, outcome)) is not None:
        raise failure_error(request.target, lost)
    return _as_blob(request, job, outcome)


def build_job(request: EngineRequest) -> BuildJob:
    """Write a request as the plain values that the building process takes."""
    builder = request.builder
    specs = request.signature
    return BuildJob(
        library=request.target.backend,
        model=str(_source(request)),
        inputs=tensor_facts(specs.inputs),
        outputs=tensor_facts(specs.outputs),
        profiles=profile_jobs(request),
        output=str(request.folder / PLAN),
        network=NETWORK,
        compute_capabilities=request.target.compute_capabilities,
        threads=request.threads,
        workspace_bytes=builder.workspace_bytes,
        optimization_level=builder.optimization_level,
        version_compatible=builder.version_compatible,
        hardware_compatibility=builder.hardware_compatibility,
        tf32=builder.tf32,
        timing_cache="" if builder.timing_cache is None else str(builder.timing_cache),
    )


def _source(request: EngineRequest) -> Path:
    """Return the model without inputs that no node reads: callers may leave those out, and engines cannot."""
    unread = {spec.name for spec in request.signature.inputs if not spec.used}
    if not unread:
        return request.model_path
    proto = onnx.load(request.model_path, load_external_data=False)
    kept = [value for value in proto.graph.input if value.name not in unread]
    del proto.graph.input[:]
    proto.graph.input.extend(kept)
    # External data is looked for beside the model.
    path = request.model_path.with_name("read-inputs.onnx")
    path.write_bytes(proto.SerializeToString(deterministic=True))
    return path


def _ignored(job: BuildJob, outcome: BuildOutcome) -> Failure | None:
    """Find inputs that decide the model's answers and not the engine's: to the library that is only a warning."""
    unused = unused_inputs(outcome.log)
    lost = reaching(onnx.load(job.model, load_external_data=False).graph, unused) if unused else ()
    why = "the library does not use it, so answers would not depend on it"
    return Failure("tensors", tuple(NodeProblem("", f"input {name!r}", why) for name in lost)) if lost else None


def _operators(job: BuildJob) -> dict[str, str]:
    """Return the operator of each node by its name; the builder leaves both out of its messages."""
    return {node.name: node.op_type for node in all_nodes(onnx.load(job.model, load_external_data=False).graph)}


def _as_blob(request: EngineRequest, job: BuildJob, outcome: BuildOutcome) -> BuiltEngine:
    plan = request.folder / PLAN
    name = f"{_sha256(plan)}.plan"
    entry = f"blobs/{name}"
    host = this_host()
    needs = Requirements(
        system=host.system,
        architecture=host.architecture,
        library=job.library,
        library_version=outcome.version,
        exact_version=not job.version_compatible,
        device=DEVICE_KIND,
        compute_capabilities=job.compute_capabilities,
    )
    scratch = scratch_bytes(outcome.log, len(job.profiles))
    return BuiltEngine(
        entry,
        {entry: plan.rename(plan.with_name(name))},
        needs,
        "model",
        _options(job, outcome),
        dict(zip((profile.name for profile in job.profiles), scratch, strict=False)),
    )


def _options(job: BuildJob, outcome: BuildOutcome) -> dict[str, str]:
    """Return what was in force, as text for the manifest."""
    weights = weights_bytes(outcome.log)
    found = {
        "network": job.network,
        "onnx_sha256": _sha256(Path(job.model)),
        "workspace_bytes": job.workspace_bytes,
        "optimization_level": job.optimization_level,
        "tf32": str(job.tf32).lower(),
        "version_compatible": "true" if job.version_compatible else None,
        "hardware_compatibility": None if job.hardware_compatibility == "none" else job.hardware_compatibility,
        "timing_cache_sha256": _sha256(Path(job.timing_cache)) if job.timing_cache else None,
        "weights_bytes": weights,
        "shape_inputs": " ".join(outcome.shape_inputs) or None,
    }
    return {name: str(value) for name, value in found.items() if value is not None}


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()
