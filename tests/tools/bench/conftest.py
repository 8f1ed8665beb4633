"""A clock that only moves when a call says so, or when somebody waits: no test here depends on the machine's speed."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest


class FakeClock:
    """Time as a number."""

    def __init__(self) -> None:
        self.s = 100.0

    def now_s(self) -> float:
        return self.s

    def wait_until_s(self, moment_s: float) -> None:
        self.s = max(self.s, moment_s)


@dataclass
class Calls:
    """A call whose duration each request states, in seconds; ``stalls`` adds seconds to the n-th call."""

    clock: FakeClock
    stalls: dict[int, float] = field(default_factory=dict)
    made: list[float] = field(default_factory=list)

    def __call__(self, seconds: float) -> None:
        self.clock.s += seconds + self.stalls.get(len(self.made), 0.0)
        self.made.append(seconds)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def calls(clock: FakeClock) -> Calls:
    return Calls(clock)
