"""Recorded traffic for a bundle: the sizes to send, and how often each came."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trtc.profiles import RequestError, UsageError
from trtc.profiles.traffic_files import ReadOptions, read_traffic

if TYPE_CHECKING:
    from pathlib import Path

    from trtc.engines.manifest import Manifest


@dataclass(frozen=True, slots=True)
class Recorded:
    """Traffic that a bundle serves.

    Attributes:
        rows: distinct sizes that are served, each with its weight: how often it came, in any unit.
        notes: what was changed on the way.
    """

    rows: tuple[tuple[dict[str, int], float], ...]
    notes: tuple[str, ...] = ()


def recorded_traffic(path: Path, manifest: Manifest) -> Recorded:
    """Read a file that ``session.record_traffic`` or ``trtc exec --record`` wrote, or any other traffic file.

    Args:
        path: of the file, or of a folder of samples.
        manifest: of the bundle that is to serve it; nothing of the bundle is loaded.

    Raises:
        UsageError: for a file that cannot be read, naming the line, or symbols that are not those of the bundle.
        RequestError: when no profile of the bundle takes any of it. What some do not take is left out with a note: a
            session also records the requests that it refuses.
    """
    signature = manifest.signature
    if not signature.symbols:
        raise UsageError("this bundle has one size only, so there is no traffic to tell apart; leave --traffic out")
    if path.suffix.lower() == ".txt" and not path.is_dir():
        raise UsageError(f'{path}: texts have no sizes yet; count their tokens, one JSON object a line: {{"seq": 37}}')
    reading = read_traffic(
        [path],
        ReadOptions(
            symbols=signature.symbols,
            model="" if manifest.original is None else manifest.original.file_sha256,
            input_dims={spec.name: spec.dims for spec in signature.inputs if spec.dims is not None},
        ),
    )
    traffic = reading.traffic
    if missing := [symbol for symbol in signature.symbols if symbol not in traffic.symbols]:
        raise UsageError(f"{path}: no size for {', '.join(missing)}; each request gives all symbols of the bundle")
    rows = tuple(
        (dict(zip(traffic.symbols, sizes, strict=True)), weight)
        for sizes, weight in zip(traffic.sizes.tolist(), traffic.weights.tolist(), strict=True)
    )
    served = tuple(row for row in rows if any(p.fits(row[0], manifest.padded) for p in manifest.ladder.profiles))
    if len(served) == len(rows):
        return Recorded(rows, reading.notes)
    why = next(
        manifest.ladder.misfit(sizes, manifest.padded) for sizes, weight in rows if (sizes, weight) not in served
    )
    if not served:
        raise RequestError(f"{path}: {why}")
    lost = 1 - sum(weight for _, weight in served) / traffic.total
    return Recorded(served, (*reading.notes, f"{lost:.2%} of the traffic is left out, for no profile serves it: {why}"))
