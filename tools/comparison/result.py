"""What a comparison found: for one output, for one request, for all of them."""

from __future__ import annotations

from typing import Any

import msgspec


class OutputResult(msgspec.Struct, frozen=True, kw_only=True):
    """One output of one request.

    Differences are over the elements that are finite on both sides; None where there are none, or the values are no
    numbers. ``max_rel`` leaves out elements whose reference is 0. ``where`` is the index of the worst element:
    of the largest difference, or the first that may not be at all; ``got`` and ``expected`` are the values there.
    ``nan`` and ``inf`` count positions: ``both`` (infinities of one sign), ``got`` only, ``expected`` only; and for
    infinities ``opposite`` signs. ``reason`` says why it failed.
    """

    output: str
    passed: bool
    reason: str = ""
    dtype: str = ""
    shape: tuple[int, ...] = ()
    elements: int = 0
    differing: int | None = None
    max_abs: float | None = None
    max_rel: float | None = None
    mean_abs: float | None = None
    cosine: float | None = None
    where: tuple[int, ...] | None = None
    got: Any = None
    expected: Any = None
    nan: dict[str, int] = {}
    inf: dict[str, int] = {}
    stat: str = ""
    atol: float | None = None
    rtol: float | None = None


class CaseResult(msgspec.Struct, frozen=True, kw_only=True):
    """One request, run one way. ``refused``: neither side could run it, so it says nothing."""

    request: str
    profile: str
    mode: str
    sizes: dict[str, int]
    run_sizes: dict[str, int]
    outputs: tuple[OutputResult, ...] = ()
    error: str = ""
    refused: str = ""

    @property
    def compared(self) -> bool:
        """Whether outputs were looked at, or one side failed where the other did not."""
        return not self.refused

    @property
    def passed(self) -> bool:
        """Whether everything that was compared agreed."""
        return not self.error and all(output.passed for output in self.outputs)


class ComparisonResult(msgspec.Struct, frozen=True, kw_only=True):
    """All requests in all the ways that they ran. ``notes`` are for people."""

    subject: str
    against: str
    cases: tuple[CaseResult, ...]
    notes: tuple[str, ...] = ()

    @property
    def failures(self) -> list[str]:
        """Say what failed, one sentence each; a comparison of nothing has failed as well."""
        found = []
        for case in self.cases:
            place = f"{case.request} in {case.profile}, {case.mode}"
            if case.error:
                found.append(f"{place}: {case.error}")
            found += [f"{place}: output {o.output!r}: {o.reason}" for o in case.outputs if not o.passed]
        if not any(case.compared for case in self.cases):
            why = next((case.refused for case in self.cases), "no request ran in any profile")
            found.append(f"nothing was compared: {why}")
        return found
