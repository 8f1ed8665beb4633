"""Options about traffic that ``build`` and ``plan`` share, and their way into ``PlanOptions``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from trtc.profiles import UsageError
from trtc.tools.quantities import FiniteRange, MemorySize, WholeRange

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trtc.compiler.plan_options import PlanOptions

F = TypeVar("F", bound="Callable[..., Any]")
_ONLY_WITH_TRAFFIC = {
    "tokenizer": "--tokenizer",
    "text_symbol": "--text-symbol",
    "max_tokens": "--max-tokens",
    "max_profiles": "--max-profiles",
    "align": "--align",
    "rare": "--rare",
    "refuse_share": "--refuse-share",
    "max_slot_bytes": "--max-slot-memory",
    "within": "--within",
}
_RARE = ("cover", "catch-all", "refuse")


def traffic_options(command: F) -> F:
    """Add them. Each is None or empty where it was not given: only then is its default what counts."""
    from trtc.compiler.plan_options import PlanOptions

    default = PlanOptions()
    options = [
        click.option("--traffic", multiple=True, type=click.Path(path_type=Path), metavar="FILE",
                     help="Sizes that are requested: .jsonl, .csv, .parquet, .npz, or .txt with --tokenizer; repeat."),
        click.option("--tokenizer", type=click.Path(path_type=Path), metavar="FILE",
                     help="tokenizer.json that counts the lengths of texts."),
        click.option("--text-symbol", metavar="SYMBOL", help="The symbol that lengths of texts are sizes of."),
        click.option("--max-tokens", type=WholeRange(1), metavar="N",
                     help="Texts are cut to N tokens, as the program that serves them does."),
        click.option("--max-profiles", type=WholeRange(1, 256), metavar="K",
                     help=f"At most this many profiles.  [default: {default.max_profiles}]"),
        click.option("--align", multiple=True, metavar="SYMBOL=N", help="Buckets are multiples of N; repeat."),
        click.option("--rare", type=click.Choice(_RARE),
                     help="Rare sizes: cover those in the traffic, add a catch-all up to the largest size that the "
                          "model takes, or refuse the costliest.  [default: cover]"),
        click.option("--refuse-share", type=FiniteRange(0), metavar="SHARE",
                     help="With --rare refuse: share of the requests, such as 0.001."),
        click.option("--max-slot-memory", "max_slot_bytes", type=MemorySize(), metavar="SIZE",
                     help="Planned memory that one call may need, such as 64M."),
        click.option("--within", type=FiniteRange(0), metavar="SHARE",
                     help="Take a shorter ladder that costs at most this share more than the best.  "
                          f"[default: {default.within}]"),
    ]  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


def plan_options_from(given: Mapping[str, Any]) -> PlanOptions:
    """Read them.

    Args:
        given: parameters of a command; those that are not there count as not given.

    Raises:
        UsageError: for options that need ``--traffic``, or make no sense together.
    """
    from trtc.compiler.plan_options import PlanOptions

    traffic = tuple(given.get("traffic", ()))
    used = {name: given[name] for name in _ONLY_WITH_TRAFFIC if given.get(name) not in (None, ())}
    if used and not traffic:
        name = next(iter(used))
        raise UsageError(f"{_ONLY_WITH_TRAFFIC[name]} says how traffic is planned for; add --traffic FILE")
    plan, frozen = given.get("plan_file"), bool(given.get("frozen"))
    if plan is not None and traffic:
        raise UsageError(f"--plan {plan} states the ladder and --traffic would choose another; give one of the two")
    if frozen and plan is None:
        raise UsageError("--frozen builds exactly what a plan file says; add --plan plan.toml")
    if "align" in used:
        used["align"] = dict(_aligned(text) for text in used["align"])
    if "rare" in used:
        used["rare"] = used["rare"].replace("-", "_")
    if used.get("refuse_share", 0) >= 1:
        raise UsageError(f"--refuse-share {used['refuse_share']:g} leaves nothing to serve; give a share below 1")
    if (used.get("rare") == "refuse") != (used.get("refuse_share", 0) > 0):
        raise UsageError("--rare refuse and --refuse-share go together, such as --rare refuse --refuse-share 0.001")
    return PlanOptions(traffic=traffic, **used)


def _aligned(text: str) -> tuple[str, int]:
    symbol, _, number = text.rpartition("=")
    symbol = symbol.strip().strip('"')
    if not symbol or not number.strip().isdecimal() or not 1 <= int(number) <= 2**31:
        raise UsageError(f"--align {text!r}; write SYMBOL=N with N of 1 or more, such as --align seq=8")
    return symbol, int(number)
