"""The shape options of one command line, in whichever grammar, as one value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trtc.profiles.errors import ProfileError
from trtc.profiles.grammar.bind import bind_shapes
from trtc.profiles.grammar.openvino import openvino_shapes
from trtc.profiles.grammar.polygraphy import polygraphy_shapes
from trtc.profiles.grammar.symbols import symbol_ranges
from trtc.profiles.grammar.trtexec import trtexec_shapes

if TYPE_CHECKING:
    from trtc.profiles.grammar.values import InputDims, ParsedShapes
    from trtc.profiles.ranges import Profile


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeOptions:
    """What was typed, one text for each occurrence of an option.

    Attributes:
        dim: ``--dim``.
        bucket: ``--bucket``.
        buckets: ``--buckets``.
        shape: ``--shape``, in OpenVINO's spelling.
        trtexec: pairs that ``trtexec_options`` found, in the order typed.
        trt_min_shapes: ``--trt-min-shapes``, in Polygraphy's spelling.
        trt_opt_shapes: ``--trt-opt-shapes``.
        trt_max_shapes: ``--trt-max-shapes``.
    """

    dim: tuple[str, ...] = ()
    bucket: tuple[str, ...] = ()
    buckets: tuple[str, ...] = ()
    shape: tuple[str, ...] = ()
    trtexec: tuple[tuple[str, str], ...] = ()
    trt_min_shapes: tuple[str, ...] = ()
    trt_opt_shapes: tuple[str, ...] = ()
    trt_max_shapes: tuple[str, ...] = ()


def parse_shapes(options: ShapeOptions) -> ParsedShapes:
    """Read the one grammar that was used; nothing when none was.

    Raises:
        UsageError: when a shape file cannot be read.
        ProfileError: for a text that does not follow its grammar, or two grammars together.
    """
    found: dict[str, ParsedShapes] = {
        "--dim, --bucket and --buckets": symbol_ranges(options.dim, options.bucket, options.buckets),
        "--shape": openvino_shapes(options.shape),
        "--minShapes, --optShapes, --maxShapes, --shapes and --profile": trtexec_shapes(options.trtexec),
        "--trt-min-shapes, --trt-opt-shapes and --trt-max-shapes": polygraphy_shapes(
            options.trt_min_shapes, options.trt_opt_shapes, options.trt_max_shapes
        ),
    }
    used = [name for name, shapes in found.items() if shapes]
    if len(used) > 1:
        raise ProfileError(
            f"shapes come in {len(used)} grammars at once ({'; '.join(used)}); state all of them in one of these"
        )
    return found[used[0]] if used else ()


def profiles_from_options(options: ShapeOptions, input_dims: InputDims) -> tuple[Profile, ...]:
    """Read the shape options and bind them to the inputs of a model.

    Raises:
        UsageError: as ``parse_shapes`` does.
        ProfileError: as ``parse_shapes`` and ``bind_shapes`` do.
    """
    return bind_shapes(parse_shapes(options), input_dims)
