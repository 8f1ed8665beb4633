"""The plan as a value, and as the file ``plan.toml`` that people read, review and commit."""

from __future__ import annotations

import hashlib
import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, cast, get_args

from trtc.profiles.errors import ProfileError, UsageError
from trtc.profiles.ladder import Ladder
from trtc.profiles.ranges import Profile, Range
from trtc.profiles.strict_table import StrictTable

if TYPE_CHECKING:
    from pathlib import Path

    from trtc.profiles.cost import CostModel

FORMAT = 1
"""The version of the file that this program writes, and the only one that it reads."""
MAX_BYTES = 4 * 2**20

RunMode: TypeAlias = Literal["exact", "bucket"]


@dataclass(frozen=True, slots=True)
class PlannedBuild:
    """Options of the build that the plan fixes, as typed.

    Attributes:
        targets: in order of preference.
        pads: ``--pad`` texts.
        fills: ``--fill`` texts.
        derives: ``--derive`` texts.
        accept_padding_error: padding that moves answers is accepted.
        atol: absolute part of the tolerance.
        rtol: relative part.
        seed: of generated values.
        callers: that the program has at once; 0 for as many as help. Files that leave it out say 0.
    """

    targets: tuple[str, ...]
    pads: tuple[str, ...]
    fills: tuple[str, ...]
    derives: tuple[str, ...]
    accept_padding_error: bool
    atol: float
    rtol: float
    seed: int
    callers: int = 0


@dataclass(frozen=True, slots=True)
class PlannedExecution:
    """How requests run.

    Attributes:
        mode: at their own sizes, or padded to the bucket.
        slots: calls at once; 0 where the machine decides at load.
        threads: of each call; 0 where the machine decides at load.
        reason: why.
    """

    mode: RunMode
    slots: int
    threads: int
    reason: str


@dataclass(frozen=True, slots=True)
class PlannedTraffic:
    """The traffic that the plan is for.

    Attributes:
        digest: ``Traffic.digest``.
        requests: how many it was counted from; 0 for a distribution.
        summary: lines that describe it.
    """

    digest: str
    requests: int
    summary: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PlannedCost:
    """What the plan promises, and what that rests on.

    Attributes:
        expected_s: mean seconds of a request, padded to its bucket.
        exact_s: mean seconds of a request at its own sizes.
        lower_s: no ladder as long has a lower ``expected_s``.
        waste: padded minus useful elements, over padded elements.
        refused: share of the traffic that no profile takes.
        source: ``measured`` or ``analytic``.
        model: digest of the cost model, see ``cost_digest``.
        error: its median error at sizes that were kept apart, as a share; None where none were.
        reason: why the ladder has this many profiles.
    """

    expected_s: float
    exact_s: float
    lower_s: float
    waste: float
    refused: float
    source: Literal["measured", "analytic"]
    model: str
    error: float | None
    reason: str


@dataclass(frozen=True, slots=True)
class PlanFile:
    """A plan.

    Attributes:
        model: SHA-256 of the model that it was made for, 64 hex digits.
        symbols: of every profile, in order.
        ladder: with costs, where they are known.
        build: options that it fixes.
        execution: how requests run; None where the build is to measure.
        traffic: None where it was not planned for traffic.
        cost: None where it was not planned for traffic.

    Raises:
        UsageError: for a digest that is none, or profiles whose symbols differ from ``symbols``.
    """

    model: str
    symbols: tuple[str, ...]
    ladder: Ladder
    build: PlannedBuild
    execution: PlannedExecution | None = None
    traffic: PlannedTraffic | None = None
    cost: PlannedCost | None = None

    def __post_init__(self) -> None:
        _check_digest("model.sha256", self.model)
        if len(set(self.symbols)) != len(self.symbols):
            raise UsageError(f"symbols {list(self.symbols)}: one stands twice; keep one")
        for profile in self.ladder.profiles:
            if tuple(profile.ranges) != self.symbols:
                raise UsageError(
                    f"profile {profile.name!r} has ranges of {', '.join(profile.ranges) or 'nothing'}, but the plan's "
                    f"symbols are {', '.join(self.symbols) or 'none'}; give one range for each, in this order"
                )


def cost_digest(cost: CostModel) -> str:
    """SHA-256 of a cost model's symbols, grid and seconds (9 digits each), as 64 hex digits."""
    content = repr((cost.symbols, cost.grid, [f"{s:.9g}" for s in cost.grid_s], cost.source))
    return hashlib.sha256(content.encode()).hexdigest()


def read_plan(path: Path) -> PlanFile:
    """Read a plan from a file.

    Raises:
        UsageError: naming the file and the key, for everything that ``parse_plan`` refuses, or a file that cannot be
            read.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            raise UsageError(f"{path}: larger than {MAX_BYTES // 2**20} MiB; give a plan that trtc plan wrote")
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}; give a plan that trtc plan wrote") from error
    return parse_plan(text, str(path))


def parse_plan(text: str, name: str = "plan.toml") -> PlanFile:
    """Read a plan from text.

    Args:
        text: as ``plan_text`` writes it; edited by hand is fine.
        name: of the file, for errors.

    Raises:
        UsageError: for text that is no TOML, unknown or missing keys, wrong types, and contradictions; each names the
            path of the key.
    """
    try:
        values = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        raise UsageError(f"{name}: {error}; correct that line, or write the plan again with trtc plan") from error
    top = StrictTable(f"{name}: ", values)
    if top.whole("format") != FORMAT:
        raise UsageError(
            f"{top.path('format')} is {values['format']}, but this trtc reads {FORMAT}; plan again with it"
        )
    model = top.table("model")
    digest, symbols = model.text("sha256"), model.texts("symbols")
    model.done()
    ladder = _ladder(top)
    plan = (
        _build(top.table("build")),
        _execution(top.table("execution")) if top.has("execution") else None,
        _traffic(top.table("traffic")) if top.has("traffic") else None,
        _cost(top.table("cost")) if top.has("cost") else None,
    )
    top.done()
    try:
        return PlanFile(digest, symbols, ladder, *plan)
    except UsageError as error:
        raise UsageError(f"{name}: {error}") from error


def _ladder(top: StrictTable) -> Ladder:
    tables = top.tables("profiles")
    try:
        return Ladder(tuple(map(_profile, tables)), _costs(tables, top.path("profiles")))
    except ProfileError as error:
        raise UsageError(f"{top.path('profiles')}: {error}") from error


def _profile(table: StrictTable) -> Profile:
    name, ranges = table.text("name"), table.table("ranges")
    table.has("cost_s")
    table.done()
    return Profile(name, {symbol: _range(ranges, symbol) for symbol in ranges.keys()})  # noqa: SIM118 - no mapping


def _range(ranges: StrictTable, symbol: str) -> Range:
    numbers = ranges.list_of(symbol, int, "whole numbers: [min, opt, max], or [min] without an upper end")
    try:
        if len(numbers) == 1:
            return Range(numbers[0], None, None)
        low, opt, high = numbers
        return Range(low, opt, high)
    except ValueError as error:
        raise UsageError(
            f"{ranges.path(symbol)} is {numbers}; write [min, opt, max], or [min] without an end"
        ) from error


def _costs(tables: list[StrictTable], where: str) -> tuple[float, ...]:
    known = [table.has("cost_s") for table in tables]
    if any(known) and not all(known):
        raise UsageError(f"{where}: {sum(known)} of {len(known)} profiles have cost_s; give it to each, or to none")
    return tuple(table.number("cost_s") for table in tables) if all(known) else ()


def _build(table: StrictTable) -> PlannedBuild:
    found = PlannedBuild(
        targets=table.texts("targets"),
        pads=table.texts("pad"),
        fills=table.texts("fill"),
        derives=table.texts("derive"),
        accept_padding_error=table.flag("accept_padding_error"),
        atol=table.number("atol"),
        rtol=table.number("rtol"),
        seed=table.whole("seed"),
        callers=table.whole("callers") if table.has("callers") else 0,
    )
    table.done()
    if not found.targets:
        raise UsageError(f"{table.path('targets')} is empty; name one target at least, such as 'cpu'")
    return found


def _execution(table: StrictTable) -> PlannedExecution:
    mode = cast("RunMode", table.one_of("mode", get_args(RunMode)))
    found = PlannedExecution(mode, table.whole("slots"), table.whole("threads"), table.text("reason"))
    table.done()
    return found


def _traffic(table: StrictTable) -> PlannedTraffic:
    found = PlannedTraffic(table.text("digest"), table.whole("requests"), table.texts("summary"))
    _check_digest(table.path("digest"), found.digest)
    table.done()
    return found


def _cost(table: StrictTable) -> PlannedCost:
    found = PlannedCost(
        expected_s=table.number("expected_s"),
        exact_s=table.number("exact_s"),
        lower_s=table.number("lower_s"),
        waste=table.number("waste"),
        refused=table.number("refused"),
        source=cast("Literal['measured', 'analytic']", table.one_of("source", ("measured", "analytic"))),
        model=table.text("model"),
        error=table.number("error") if table.has("error") else None,
        reason=table.text("reason"),
    )
    _check_digest(table.path("model"), found.model)
    for key, share in (("waste", found.waste), ("refused", found.refused)):
        if share > 1:
            raise UsageError(f"{table.path(key)} is {share}; it is a share from 0 to 1")
    table.done()
    return found


def _check_digest(where: str, digest: str) -> None:
    if len(digest) != 64 or set(digest) - set("0123456789abcdef"):  # noqa: PLR2004 - SHA-256 in hex digits
        raise UsageError(f"{where} is {digest[:70]!r}; it is a SHA-256, 64 hex digits")
