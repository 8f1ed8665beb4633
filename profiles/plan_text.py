"""Writes a plan as ``plan.toml``: equal plans give equal bytes, and comments say what each part means."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeAlias, cast

from trtc.profiles.errors import UsageError
from trtc.profiles.plan_file import FORMAT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trtc.profiles.plan_file import PlanFile, PlannedBuild, PlannedCost, PlannedExecution, PlannedTraffic
    from trtc.profiles.ranges import Range

    Value: TypeAlias = str | bool | int | float | Sequence["Value"] | Mapping[str, "Value"]

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_LONG = 100


def plan_text(plan: PlanFile) -> str:
    """Write a plan; ``parse_plan`` reads the same plan back.

    Raises:
        UsageError: for a text that is no Unicode, or a number that is not finite.
    """
    sections = [
        "# A plan, written by `trtc plan`. Build exactly this with: trtc build MODEL --plan FILE --frozen",
        f"format = {FORMAT}",
        _section(
            "model",
            "The model that this plan was made for; a frozen build refuses any other.",
            {"sha256": plan.model, "symbols": plan.symbols},
        ),
        _section("build", "Options of the build that this plan fixes.", _build(plan.build)),
    ]
    if plan.execution is not None:
        sections.append(
            _section(
                "execution",
                "exact: requests run at their own sizes; bucket: padded to a profile's max. 0: decided when loading.",
                _execution(plan.execution),
            )
        )
    sections.append(_profiles(plan))
    if plan.traffic is not None:
        sections.append(
            _section("traffic", "What the profiles were chosen for. Only for people to read.", _traffic(plan.traffic))
        )
    if plan.cost is not None:
        sections.append(
            _section(
                "cost", "What to expect, in seconds a request and shares. Only for people to read.", _cost(plan.cost)
            )
        )
    text = "\n\n".join(sections) + "\n"
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise UsageError(f"a text of the plan is no Unicode: {error}; rename what it names") from error
    return text


def _profiles(plan: PlanFile) -> str:
    ladder = plan.ladder
    blocks = [
        "# The profiles: [min, opt, max] of each symbol, or [min] without an upper end; cost_s is one run at max."
    ]
    for i, profile in enumerate(ladder.profiles):
        lines = ["[[profiles]]", _line("name", profile.name)]
        if ladder.cost_s:
            lines.append(_line("cost_s", ladder.cost_s[i]))
        lines.append(_line("ranges", {symbol: _range(r) for symbol, r in profile.ranges.items()}))
        blocks.append("\n".join(lines))
    return blocks[0] + "\n" + "\n\n".join(blocks[1:])


def _range(r: Range) -> list[int]:
    return [r.min] if r.opt is None or r.max is None else [r.min, r.opt, r.max]


def _build(build: PlannedBuild) -> dict[str, Value]:
    return {
        "targets": build.targets,
        "pad": build.pads,
        "fill": build.fills,
        "derive": build.derives,
        "accept_padding_error": build.accept_padding_error,
        "atol": build.atol,
        "rtol": build.rtol,
        "seed": build.seed,
        "callers": build.callers,
    }


def _execution(execution: PlannedExecution) -> dict[str, Value]:
    return {
        "mode": execution.mode,
        "slots": execution.slots,
        "threads": execution.threads,
        "reason": execution.reason,
    }


def _traffic(traffic: PlannedTraffic) -> dict[str, Value]:
    return {"digest": traffic.digest, "requests": traffic.requests, "summary": traffic.summary}


def _cost(cost: PlannedCost) -> dict[str, Value]:
    values: dict[str, Value] = {
        "expected_s": cost.expected_s,
        "exact_s": cost.exact_s,
        "lower_s": cost.lower_s,
        "waste": cost.waste,
        "refused": cost.refused,
        "source": cost.source,
        "model": cost.model,
    }
    if cost.error is not None:
        values["error"] = cost.error
    return values | {"reason": cost.reason}


def _section(name: str, comment: str, values: Mapping[str, Value]) -> str:
    return "\n".join([f"# {comment}", f"[{name}]", *(_line(key, value) for key, value in values.items())])


def _line(key: str, value: Value) -> str:
    written = _value(value)
    if isinstance(value, (list, tuple)) and len(written) > _LONG:
        written = "[\n" + "".join(f"    {_value(item)},\n" for item in value) + "]"
    return f"{_key(key)} = {written}"


def _value(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        if value - value != 0:
            raise UsageError(f"a figure of the plan is {value}; plans hold finite numbers")
        return repr(value)
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_value, value)) + "]"
    items = [f"{_key(key)} = {_value(item)}" for key, item in cast("Mapping[str, Value]", value).items()]
    return "{ " + ", ".join(items) + " }" if items else "{}"


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _text(key)


def _text(text: str) -> str:
    return '"' + "".join(_ESCAPES.get(c) or (f"\\u{ord(c):04x}" if c < " " or c == "\x7f" else c) for c in text) + '"'
