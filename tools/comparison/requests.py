"""What a comparison runs: real requests, and generated ones at the telling sizes of every profile."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from trtc.profiles import RequestError, UsageError, sizes_text, unknown_name
from trtc.tools.generated import Domain, generate, value_domains
from trtc.tools.inputs import shown_sizes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trtc.engines.manifest import Manifest, Mode
    from trtc.profiles import Profile, Sizes

OPEN_SIZES = (2, 1, 3, 5, 8, 17, 33, 64)
"""Where a range has no upper end, sizes that nobody asked for must stay small."""


@dataclass(frozen=True, slots=True)
class Way:
    """One way through a bundle: a profile, at exact sizes or padded to its bucket."""

    profile: str
    mode: Mode


@dataclass(frozen=True, slots=True)
class Request:
    """One request.

    Attributes:
        name: for people.
        feeds: inputs by name.
        sizes: of every symbol.
        ways: that it is run in.
    """

    name: str
    feeds: dict[str, Any] = field(repr=False)
    sizes: dict[str, int]
    ways: tuple[Way, ...]


class ModelValues(Protocol):
    """Makes inputs inside what the graph of a model allows."""

    def feeds(self, sizes: Sizes, rng: np.random.Generator) -> dict[str, Any]:
        """Make a value for each input."""


class Values:
    """Values for inputs: what the bundle was proved for, then what the model allows, then what is harmless.

    Args:
        manifest: of the bundle.
        val_ranges: ``--val-range`` texts.
        model: knows what the graph allows; None where no model is at hand.
        seed: of everything generated.
    """

    def __init__(
        self, manifest: Manifest, val_ranges: Sequence[str] = (), model: ModelValues | None = None, seed: int = 0
    ) -> None:
        self._specs = [spec for spec in manifest.signature.inputs if not spec.has_default]
        self._domains: dict[str, Domain] = value_domains(manifest, val_ranges)
        self._model = model
        self.rng = np.random.default_rng(seed)

    def feeds(self, sizes: Sizes) -> dict[str, Any]:
        """Make one request.

        Raises:
            UsageError: when no legal value can be made up.
        """
        known = self._model.feeds(sizes, self.rng) if self._model is not None else {}
        return {
            spec.name: known[spec.name]
            if spec.name in known and spec.name not in self._domains
            else generate(spec, sizes, self._domains.get(spec.name), self.rng)
            for spec in self._specs
        }


def ways_of(manifest: Manifest, profiles: Sequence[str], mode: str) -> list[Way]:
    """List the ways through a bundle that are asked for.

    Args:
        manifest: of the bundle.
        profiles: names; none for all.
        mode: ``exact``, ``bucket`` or ``all``. A profile that pads nothing has no second way.

    Raises:
        UsageError: for an unknown profile, or when ``bucket`` is asked of a bundle that pads nothing.
    """
    names = [profile.name for profile in manifest.ladder.profiles]
    for name in profiles:
        if name not in names:
            raise UsageError(f"--profile: {unknown_name('profile', name, names)}")
    wanted = [p for p in manifest.ladder.profiles if not profiles or p.name in profiles]
    found = [Way(profile.name, "exact") for profile in wanted] if mode != "bucket" else []
    if mode != "exact":
        found += [Way(profile.name, "bucket") for profile in wanted if _pads(profile, manifest)]
    if not found:
        raise UsageError("--mode bucket: this bundle pads nothing there; leave it out, or build with --pad and buckets")
    return found


def generated(manifest: Manifest, ways: Sequence[Way], values: Values, count: int) -> list[Request]:
    """Make requests for each way: at opt, min and max, then at random sizes; padded ones are smaller than the bucket.

    Args:
        manifest: of the bundle.
        ways: to make requests for.
        values: makes inputs.
        count: of requests for each way, at most: where there are fewer sizes, each comes once.
    """
    by_name = {profile.name: profile for profile in manifest.ladder.profiles}
    found = []
    for way in ways:
        profile = by_name[way.profile]
        rows: list[dict[str, int]] = []
        for turn in range(count):
            row = _row(profile, turn, values.rng)
            row = _smaller(row, turn, profile, manifest.padded) if way.mode == "bucket" else row
            if row not in rows:
                rows.append(row)
        found += [Request(sizes_text(row) or "fixed sizes", values.feeds(row), row, (way,)) for row in rows]
    return found


def real(manifest: Manifest, ways: Sequence[Way], feeds: Sequence[tuple[str, dict[str, Any]]]) -> list[Request]:
    """Assign requests to all ways that take them; a padded way that would pad nothing is left out.

    Args:
        manifest: of the bundle.
        ways: that are asked for.
        feeds: name and inputs of each request, checked against the signature.

    Raises:
        RequestError: for one that none of the ways takes.
    """
    by_name = {profile.name: profile for profile in manifest.ladder.profiles}
    wanted = {way.profile for way in ways}
    found = []
    for name, inputs in feeds:
        sizes = shown_sizes(inputs, manifest.signature)
        taken = []
        for way in ways:
            profile = by_name[way.profile]
            if not profile.fits(sizes, manifest.padded):
                continue
            padded = profile.run_sizes(sizes, manifest.padded, to_bucket=True)
            if way.mode == "exact" or padded != sizes:
                taken.append(way)
        if not taken and not any(by_name[n].fits(sizes, manifest.padded) for n in wanted):
            raise RequestError(f"{name}: {manifest.ladder.misfit(sizes, manifest.padded)}")
        found.append(Request(name, inputs, sizes, tuple(taken)))
    return found


def _pads(profile: Profile, manifest: Manifest) -> bool:
    tops = [profile.ranges[symbol].max for symbol in manifest.padded if symbol in profile.ranges]
    return any(top is not None and top > 1 for top in tops)


def _row(profile: Profile, turn: int, rng: np.random.Generator) -> dict[str, int]:
    row = {}
    for symbol, r in profile.ranges.items():
        if r.max is None or r.opt is None:
            row[symbol] = max(r.min, OPEN_SIZES[turn % len(OPEN_SIZES)])
        elif turn < 3:  # noqa: PLR2004 (opt, min, max)
            row[symbol] = (r.opt, r.min, r.max)[turn]
        else:
            row[symbol] = int(rng.integers(r.min, r.max + 1))
    return row


def _smaller(row: dict[str, int], turn: int, profile: Profile, padded: frozenset[str]) -> dict[str, int]:
    """Make padded symbols smaller than their bucket: by one, down to one, to half, to a third."""
    small = {}
    for symbol, size in row.items():
        top = profile.ranges[symbol].max if symbol in padded else None
        small[symbol] = size if top is None or top <= 1 else (top - 1, 1, -(-top // 2), -(-top // 3))[turn % 4]
    return small
