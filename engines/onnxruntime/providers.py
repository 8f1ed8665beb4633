"""Which execution providers a target stands for, and what they are told. Deciding only: nothing is opened.

Names and options are those of onnxruntime-gpu 1.31 (its libraries hold them; Python does not check them).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtc.engines.errors import EngineError
from trtc.engines.value import Value
from trtc.profiles import UsageError, dim_value

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from trtc.engines.signature import Signature, TensorSpec
    from trtc.profiles import Ladder

PROVIDER = "provider"
"""Option of an engine's record: one of ``PROVIDERS``; an engine for the CPU has none."""

CPU, CUDA, TENSORRT = "CPUExecutionProvider", "CUDAExecutionProvider", "TensorrtExecutionProvider"
PROVIDERS = {"cuda": CUDA, "tensorrt": TENSORRT}

SHAPES = ("trt_profile_min_shapes", "trt_profile_opt_shapes", "trt_profile_max_shapes")

_CUDA_OPTIONS = {
    # Whole regions of a power of two never shrink again where sizes vary.
    "arena_extend_strategy": "kSameAsRequested",
    # The default tries every algorithm again for each new shape.
    "cudnn_conv_algo_search": "HEURISTIC",
    # float32 is float32: TF32 keeps 10 bits of a factor, which no tolerance of ours for float32 allows.
    "use_tf32": "0",
}
_TENSORRT_OPTIONS = {
    # Contexts of all subgraphs run one after the other, so they may share their scratch memory.
    "trt_context_memory_sharing_enable": "1",
    "trt_fp16_enable": "0",
}


class GpuSetting(Value, frozen=True):
    """How the providers of one engine are set up.

    Attributes:
        device: index of the GPU, as CUDA counts.
        graphs: capture a CUDA graph for each prepared call.
        cache: folder that TensorRT may keep engines and timings in; None for none.
    """

    device: int = 0
    graphs: bool = False
    cache: Path | None = None


def wanted_provider(options: Mapping[str, str]) -> str:
    """Return which provider an engine's options name: a key of ``PROVIDERS``, or ``cpu``.

    Raises:
        EngineError: for one that this version does not know.
    """
    name = options.get(PROVIDER, "cpu")
    if name != "cpu" and name not in PROVIDERS:
        raise EngineError(
            f"the engine wants provider {name!r} of ONNX Runtime, this version of trtc knows {', '.join(PROVIDERS)}; "
            "use the trtc version that built it"
        )
    return name


def provider_list(options: Mapping[str, str], setting: GpuSetting) -> list[tuple[str, dict[str, str]]]:
    """Return the providers in order of preference, with their options, as ``InferenceSession`` takes them.

    The CPU stands last: nodes that compute shapes belong there, and models with operators that the GPU lacks run.

    Args:
        options: of the engine's record.
        setting: of this host.
    """
    cuda = {"device_id": str(setting.device), **_CUDA_OPTIONS}
    if wanted_provider(options) == "cuda":
        graphs = {"enable_cuda_graph": "1"} if setting.graphs else {}
        return [(CUDA, cuda | graphs), (CPU, {})]
    tensorrt = {"device_id": str(setting.device), **_TENSORRT_OPTIONS}
    tensorrt |= {name: options[name] for name in SHAPES if name in options}
    if setting.cache is not None:
        folder = str(setting.cache)
        tensorrt |= {"trt_engine_cache_enable": "1", "trt_engine_cache_path": folder}
        tensorrt |= {"trt_timing_cache_enable": "1", "trt_timing_cache_path": folder}
    if setting.graphs:
        tensorrt["trt_cuda_graph_enable"] = "1"
    return [(TENSORRT, tensorrt), (CUDA, cuda), (CPU, {})]


def shapes_text(signature: Signature, ladder: Ladder) -> dict[str, str]:
    """Return the one profile that the TensorRT provider is given: it covers the whole ladder.

    The provider can be told several profiles, but its context stays in the first one, and inputs of the others fail
    (microsoft/onnxruntime pull request 31624, open). One profile from the least to the largest sizes serves all; it is
    tuned for the largest profile, where the time goes.

    Returns:
        The three options of the provider, such as ``input_ids:1x8,attention_mask:1x8``; empty for a model whose inputs
        have fixed shapes.

    Raises:
        UsageError: for open ranges.
        EngineError: for an input without a known rank, or whose name the provider could not read.
    """
    fed = [spec for spec in signature.inputs if spec.used and (spec.dims is None or spec.symbols)]
    if not fed:
        return {}
    ranges = [profile.ranges for profile in ladder.profiles]
    lows = {symbol: min(each[symbol].min for each in ranges) for symbol in ranges[0]}
    likely = {symbol: r.opt for symbol, r in ranges[-1].items()}
    tops = {symbol: [each[symbol].max for each in ranges] for symbol in ranges[0]}
    highs = {
        symbol: max(top for top in found if top is not None) for symbol, found in tops.items() if None not in found
    }
    if unbounded := sorted(set(tops) - set(highs)):
        raise UsageError(
            f"target ort-tensorrt needs a range for {', '.join(unbounded)}; such as --dim {unbounded[0]}=1..64"
        )
    sizes = (lows, {symbol: highs[symbol] if opt is None else opt for symbol, opt in likely.items()}, highs)
    return {name: ",".join(_shape(spec, each) for spec in fed) for name, each in zip(SHAPES, sizes, strict=True)}


def _shape(spec: TensorSpec, sizes: Mapping[str, int]) -> str:
    if spec.dims is None or not spec.in_memory:
        raise EngineError(
            f"building the engine for target ort-tensorrt: input {spec.name!r} has no shape that could be stated; "
            "build for --target cuda"
        )
    if not spec.name or set(spec.name) & set(":,"):
        raise EngineError(
            f"building the engine for target ort-tensorrt: input {spec.name!r} cannot be named to the provider, which "
            "separates names with : and ,; rename that input, or build for --target cuda"
        )
    return f"{spec.name}:" + "x".join(str(dim_value(dim, sizes)) for dim in spec.dims)
