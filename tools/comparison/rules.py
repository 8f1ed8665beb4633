"""When two values count as equal: tolerances and statistics, for every output or for one, typed as for Polygraphy."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from trtc.profiles import UsageError, unknown_name
from trtc.profiles.grammar.digits import parse_number
from trtc.profiles.grammar.names import QUOTES, read_quoted

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

Stat: TypeAlias = Literal["tensor", "elemwise", "max", "mean", "median", "quantile"]
STATS: tuple[str, ...] = get_args(Stat)


@dataclass(frozen=True, slots=True)
class Rule:
    """How one output is judged.

    Attributes:
        atol: absolute tolerance.
        rtol: relative tolerance.
        stat: ``tensor``: the largest difference is at most ``atol + rtol * largest magnitude of the reference``; or
            one of Polygraphy's: the absolute error is within ``atol`` or the relative one within ``rtol``, of each
            element (``elemwise``), or of the greatest, the mean, the median or the 99 percent quantile of the errors.
        finite: any NaN or infinity fails, also where both sides have it.
        coarse: with ``tensor``, allow types coarser than float32 a few epsilons of their own, as a build does: the
            relative tolerance was not stated for them.
    """

    atol: float
    rtol: float
    stat: Stat = "tensor"
    finite: bool = False
    coarse: bool = True


@dataclass(frozen=True, slots=True)
class Rules:
    """How outputs are judged.

    Attributes:
        default: for every output that has nothing of its own.
        atol, rtol, stat: by output name.
    """

    default: Rule
    atol: Mapping[str, float] = field(default_factory=dict)
    rtol: Mapping[str, float] = field(default_factory=dict)
    stat: Mapping[str, Stat] = field(default_factory=dict)

    def of(self, output: str) -> Rule:
        """Return the rule of one output."""
        d = self.default
        return Rule(
            atol=self.atol.get(output, d.atol),
            rtol=self.rtol.get(output, d.rtol),
            stat=self.stat.get(output, d.stat),
            finite=d.finite,
            coarse=d.coarse and output not in self.rtol,
        )

    def refuse_unknown(self, outputs: Collection[str]) -> None:
        """Refuse rules for outputs that nobody has.

        Raises:
            UsageError: naming the nearest one.
        """
        for flag, named in (("--atol", self.atol), ("--rtol", self.rtol), ("--check-error-stat", self.stat)):
            for name in named:
                if name not in outputs:
                    raise UsageError(f"{flag}: {unknown_name('output', name, outputs)}")


def read_rules(
    atol: Sequence[str], rtol: Sequence[str], stat: Sequence[str], default: Rule, *, finite: bool = False
) -> Rules:
    """Read ``VALUE`` and ``OUTPUT:VALUE`` texts.

    Args:
        atol: numbers of 0 or more.
        rtol: the same.
        stat: names of statistics.
        default: what holds where nothing is given.
        finite: refuse NaN and infinities.

    Raises:
        UsageError: for anything else, or an output given twice.
    """
    atols, rtols = _tolerances("--atol", atol), _tolerances("--rtol", rtol)
    stats: dict[str, Stat] = {}
    for name, text in _split("--check-error-stat", stat):
        stats[name] = _stat(text)
    coarse = default.coarse and "" not in rtols
    chosen = Rule(
        atols.pop("", default.atol), rtols.pop("", default.rtol), stats.pop("", default.stat), finite, coarse=coarse
    )
    return Rules(chosen, atols, rtols, stats)


def _tolerances(flag: str, texts: Sequence[str]) -> dict[str, float]:
    found = {}
    for name, text in _split(flag, texts):
        number = float(parse_number(text, flag))
        if number < 0:
            raise UsageError(f"{flag} {text}: a tolerance is 0 or more")
        found[name] = number
    return found


def _split(flag: str, texts: Sequence[str]) -> list[tuple[str, str]]:
    """Split at the last colon; names hold colons far more often than values do."""
    found: dict[str, str] = {}
    for text in texts:
        if text[:1] in QUOTES and text:
            name, end = read_quoted(text, 0)
            rest = text[end:].removeprefix(":")
        else:
            name, _, rest = text.rpartition(":")
        if not rest:
            raise UsageError(f"{flag} {text!r}; write VALUE, or OUTPUT:VALUE for one output")
        if name in found:
            raise UsageError(f"{flag} is given twice for {f'output {name!r}' if name else 'all outputs'}; keep one")
        found[name] = rest
    return list(found.items())


def _stat(text: str) -> Stat:
    for known in STATS:
        if text == known:
            return known  # type: ignore[return-value]
    raise UsageError(f"--check-error-stat: {unknown_name('statistic', text, STATS)}")
