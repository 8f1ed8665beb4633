"""Run requests through a bundle in every way that is asked for, and compare each answer with another side's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trtc.engines.errors import EngineError
from trtc.profiles import RequestError, TrtcError
from trtc.runtime import load
from trtc.tools.comparison.result import CaseResult, ComparisonResult
from trtc.tools.comparison.values import compare_outputs

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from trtc.runtime import Session
    from trtc.tools.comparison.requests import Request, Way
    from trtc.tools.comparison.rules import Rules
    from trtc.tools.comparison.sides import Side
    from trtc.tools.output import Progress


MAX_KEPT_BYTES = 2**29
"""Of answers that are kept for other ways; beyond it the other side is asked again."""


class Comparison:
    """Compares one engine of a bundle with another side.

    Args:
        bundle: its path.
        engine: name, or ``auto``.
        threads: of one call; None as measured.
        other: answers the same requests.
        rules: when answers count as equal.
    """

    def __init__(self, bundle: Path, engine: str, threads: int | None, other: Side, rules: Rules) -> None:
        self._bundle = bundle
        self._engine = engine
        self._threads = threads
        self._other = other
        self._rules = rules
        self._answers: dict[int, dict[str, Any] | TrtcError] = {}
        self._kept_bytes = 0

    def run(self, ways: Sequence[Way], requests: Sequence[Request], progress: Progress) -> ComparisonResult:
        """Run everything; a failure of one request does not end it.

        Args:
            ways: in which requests may run.
            requests: each names its ways.
            progress: told what is going on.

        Raises:
            UsageError, HostError, BundleError: when the bundle cannot be loaded.
        """
        cases = []
        for way in ways:
            numbers = [i for i, request in enumerate(requests) if way in request.ways]
            if not numbers:
                continue
            progress.stage(f"profile {way.profile}, {way.mode}: {len(numbers)} request{'s' * (len(numbers) != 1)}")
            with load(
                self._bundle,
                engine=self._engine,
                profile=way.profile,
                mode=way.mode,
                slots=1,
                threads=self._threads,
            ) as session:
                cases += [self._case(session, way, i, requests[i]) for i in numbers]
        return ComparisonResult(subject=str(self._bundle), against=self._other.name, cases=tuple(cases))

    def _case(self, session: Session, way: Way, number: int, request: Request) -> CaseResult:
        got = _attempt(session, request)
        expected = self._expected(number, request)
        ran = _run_sizes(session, request)
        facts: dict[str, Any] = {
            "request": request.name,
            "profile": way.profile,
            "mode": way.mode,
            "sizes": request.sizes,
            "run_sizes": ran,
        }
        if isinstance(got, TrtcError) and isinstance(expected, TrtcError):
            return CaseResult(**facts, refused=f"both sides failed ({_line(got)}; {_line(expected)})")
        if isinstance(got, TrtcError):
            return CaseResult(**facts, error=f"the bundle failed where {self._other.name} ran: {_line(got)}")
        if isinstance(expected, TrtcError):
            return CaseResult(**facts, error=f"{self._other.name} failed where the bundle ran: {_line(expected)}")
        return CaseResult(**facts, outputs=compare_outputs(got, expected, self._rules))

    def _expected(self, number: int, request: Request) -> dict[str, Any] | TrtcError:
        """Ask the other side; answers that another way needs are kept, up to a limit."""
        if number in self._answers:
            return self._answers[number]
        answer: dict[str, Any] | TrtcError
        try:
            answer = self._other.run(number, request.feeds)
        except (EngineError, RequestError) as error:
            answer = error
        size_bytes = 0 if isinstance(answer, TrtcError) else sum(getattr(v, "nbytes", 0) for v in answer.values())
        if len(request.ways) > 1 and self._kept_bytes + size_bytes <= MAX_KEPT_BYTES:
            self._answers[number] = answer
            self._kept_bytes += size_bytes
        return answer


def answers(session: Session, requests: Sequence[Request]) -> list[dict[str, Any]]:
    """Run requests as a program would: the profile and the mode are the bundle's own choice."""
    return [session.run(request.feeds) for request in requests]


def _attempt(session: Session, request: Request) -> dict[str, Any] | TrtcError:
    try:
        return session.run(request.feeds)
    except EngineError as error:
        return error


def _run_sizes(session: Session, request: Request) -> dict[str, int]:
    """Say at which sizes a request ran; values outside of what padding was proved for run at exact ones."""
    from trtc.tools.run import ran_at

    return ran_at(session, request.feeds, request.sizes)[1]


def _line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
