"""Checking a request: everything that is wrong with it, in one error; and arrays of the model's types.

This is the careful path. A request whose arrays and shapes were seen before does not come here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trtc.profiles import RequestError, nearest_name, shape_text
from trtc.runtime.values import as_value

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from trtc.engines.signature import Signature, TensorSpec


def check_request(
    signature: Signature,
    feeds: Mapping[str, Any],
    required: Collection[str],
    misfits: Callable[[Mapping[str, int]], list[str]],
) -> tuple[dict[str, Any], dict[str, int]]:
    """Check a request and bring its values into the model's types.

    Args:
        signature: of the bundle.
        feeds: what the caller gave, by input name; any mapping.
        required: inputs that may not be left out.
        misfits: says what keeps sizes out of the ladder; asked when something else is wrong as well (sizes alone
            are looked at when their route is prepared).

    Returns:
        The values by name in the signature's order (see ``as_value``), and the size of each symbol that they show.

    Raises:
        RequestError: listing every problem: missing, extra, type, rank, fixed sizes, contradictory symbols, range.
    """
    problems: list[str] = []
    if not hasattr(feeds, "keys"):
        raise RequestError(f"inputs came as {type(feeds).__name__}; give a dict of input name to array")
    given = {name: feeds[name] for name in feeds.keys()}  # noqa: SIM118 (any object with keys and items will do)
    specs = {spec.name: spec for spec in signature.inputs}
    _check_names(specs, given, required, problems)
    values: dict[str, Any] = {}
    sizes: dict[str, int] = {}
    seen: dict[str, str] = {}
    for name, spec in specs.items():
        if name not in given:
            continue
        try:
            value = values[name] = as_value(spec, given[name])
        except RequestError as error:
            problems.append(str(error))
            continue
        if spec.is_tensor:
            _check_shape(spec, value.shape, sizes, seen, problems)
    if problems:
        raise RequestError("; ".join([*problems, *misfits(sizes)]))
    return values, sizes


def _check_names(
    specs: Mapping[str, TensorSpec], given: Mapping[str, Any], required: Collection[str], problems: list[str]
) -> None:
    problems += [f"input {name!r} is missing: {specs[name]}" for name in required if name not in given]
    for name in given:
        if name not in specs:
            near = nearest_name(str(name), specs)
            hint = f", did you mean {near!r}?" if near else ""
            problems.append(f"there is no input {name!r}{hint} (inputs: {', '.join(map(repr, specs))})")


def _check_shape(
    spec: TensorSpec, shape: tuple[int, ...], sizes: dict[str, int], seen: dict[str, str], problems: list[str]
) -> None:
    if spec.dims is None:
        return
    if len(shape) != len(spec.dims):
        problems.append(f"input {spec.name!r}: shape {list(shape)}, but the model takes {shape_text(spec.dims)}")
        return
    for axis, (dim, size) in enumerate(zip(spec.dims, shape, strict=True)):
        if isinstance(dim, int) and dim != size:
            problems.append(f"input {spec.name!r}: axis {axis} is {size}, but the model takes exactly {dim}")
        elif isinstance(dim, str):
            if sizes.setdefault(dim, size) != size:
                problems.append(
                    f"input {spec.name!r}: axis {axis} ({dim}) is {size}, "
                    f"but input {seen[dim]!r} has {dim}={sizes[dim]}; they must be equal"
                )
            seen.setdefault(dim, spec.name)
