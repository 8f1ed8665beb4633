"""Find the first node where two graphs part: its inputs agree, its output does not.

Inner tensors that both graphs have by the same name are marked as outputs, a few at a time, and compared. The search
follows one output that differs: among the tensors that it depends on, in the order in which they are computed, it
narrows the gap between the last that agrees and the first that does not. Difference need not grow along that order
(branches run beside each other), so the inputs of what was found are looked at as well: when one of them differs, the
search goes on from there. What it ends with is a fact about that node, however it was found.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from trtc.engines.errors import EngineError
from trtc.tools.comparison.graphs import Graph, require_room
from trtc.tools.comparison.result import OutputResult
from trtc.tools.comparison.values import compare_value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trtc.tools.comparison.rules import Rule
    from trtc.tools.output import Progress

LARGEST_BATCH = 16
"""Tensors of one run at most, also where more would fit into the memory."""


class Parting(msgspec.Struct, frozen=True, kw_only=True):
    """Where two graphs part.

    ``tensor`` is the first that differs, ``ours`` and ``theirs`` say which node makes it on either side. ``inputs``
    are the tensors that the nodes read and that both sides have, all of which agree; ``beyond``: tensors between
    these and the node that only one side has, such as those inside of a fused node. ``seen``: every tensor that was
    compared, in the order in which they are computed. ``runs`` counts runs of each graph.
    """

    tensor: str
    ours: str
    theirs: str
    inputs: tuple[str, ...]
    beyond: tuple[str, ...]
    seen: tuple[OutputResult, ...]
    runs: int


@dataclass(frozen=True, slots=True)
class Pair:
    """What is searched.

    Attributes:
        ours: graph of the bundle.
        theirs: of what it is compared with; its order counts.
        feeds: inputs of the request that failed.
    """

    ours: Graph
    theirs: Graph
    feeds: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Limits:
    """How the search compares, and what it may use.

    Attributes:
        rule: when tensors count as equal.
        memory_bytes: of all tensors that one run returns, on both sides together.
    """

    rule: Rule
    memory_bytes: int


def localize(pair: Pair, output: str, limits: Limits, progress: Progress) -> Parting | None:
    """Search from an output that differs; None when it agrees in these graphs, run at exact sizes.

    Args:
        pair: two graphs and the inputs of the request that failed.
        output: name in both graphs.
        limits: tolerance and memory.
        progress: told what is going on.

    Raises:
        EngineError: when a graph fails.
        HostError: when a tensor is larger than the limit by itself.
    """
    return _Search(pair, limits, progress).run(output)


class _Search:
    def __init__(self, pair: Pair, limits: Limits, progress: Progress) -> None:
        self._ours, self._theirs, self._feeds = pair.ours, pair.theirs, pair.feeds
        self._limits = limits
        self._progress = progress
        self._order = {name: i for i, name in enumerate(pair.theirs.makers)}
        self._seen: dict[str, OutputResult] = {}
        self._bytes = self._theirs.inferred_bytes(self._feeds)
        self._hopeless: dict[str, str] = {}
        self._runs = 0

    def run(self, output: str) -> Parting | None:
        self._look([output])
        if output in self._hopeless:
            raise EngineError(f"--localize: output {output!r} cannot be looked at: {self._hopeless[output]}")
        if self._agrees(output):
            return None
        suspect = output
        while True:
            candidates = self._candidates(suspect)
            suspect = self._narrow(candidates, suspect)
            inputs, beyond = self._boundary(suspect)
            self._look(inputs)
            worse = [name for name in inputs if not self._agrees(name)]
            if not worse:
                return self._found(suspect, inputs, beyond)
            suspect = min(worse, key=self._order.__getitem__)

    def _candidates(self, output: str) -> list[str]:
        """List the shared tensors that an output depends on, in order."""
        found: set[str] = set()
        stack = [output]
        while stack:
            maker = self._theirs.makers.get(stack.pop())
            for name in maker.inputs if maker else ():
                if name in self._order and name not in found:
                    found.add(name)
                    stack.append(name)
        return sorted((n for n in found if self._shared(n)), key=self._order.__getitem__)

    def _narrow(self, candidates: list[str], suspect: str) -> str:
        """Return the first of the candidates that is seen to differ, or the suspect itself."""
        low, high = -1, len(candidates)
        while high - low > 1:
            room = min(LARGEST_BATCH, high - low - 1)
            picks = sorted({low + (high - low) * (i + 1) // (room + 1) for i in range(room)} - {low, high})
            picks = picks or [low + 1]
            self._progress.stage(f"comparing {len(picks)} of {high - low - 1} inner tensors")
            self._look([candidates[i] for i in picks])
            wrong = [i for i in picks if not self._agrees(candidates[i])]
            high = min(wrong, default=high)
            low = max((i for i in picks if i < high), default=low)
        return candidates[high] if high < len(candidates) else suspect

    def _boundary(self, tensor: str) -> tuple[list[str], list[str]]:
        """List the nearest shared tensors that a tensor is made from, and what lies between."""
        inputs: list[str] = []
        between: list[str] = []
        stack, visited = [tensor], {tensor}
        while stack:
            maker = self._theirs.makers.get(stack.pop())
            for name in maker.inputs if maker else ():
                if name in visited or name not in self._order:
                    continue
                visited.add(name)
                if self._shared(name):
                    inputs.append(name)
                else:
                    between.append(name)
                    stack.append(name)
        return sorted(inputs, key=self._order.__getitem__), sorted(between, key=self._order.__getitem__)

    def _shared(self, name: str) -> bool:
        return name in self._ours.makers and name not in self._hopeless

    def _agrees(self, name: str) -> bool:
        self._look([name])
        return name in self._hopeless or self._seen[name].passed

    def _look(self, names: Sequence[str]) -> None:
        """Compare tensors that were not compared yet, as many in a run as fit into the memory.

        One whose size inference does not tell is looked at by itself.
        """
        batch: list[str] = []
        used_bytes = 0
        for name in dict.fromkeys(names):
            if name in self._seen or name in self._hopeless:
                continue
            size_bytes = 2 * self._bytes.get(name, self._limits.memory_bytes)
            if name in self._bytes:
                require_room(size_bytes, self._limits.memory_bytes, f"tensor {name!r}")
            if batch and used_bytes + size_bytes > self._limits.memory_bytes:
                self._compare(batch)
                batch, used_bytes = [], 0
            batch.append(name)
            used_bytes += size_bytes
        if batch:
            self._compare(batch)

    def _compare(self, names: list[str]) -> None:
        try:
            got, expected = self._ours.run(self._feeds, names), self._theirs.run(self._feeds, names)
        except EngineError as error:
            # A tensor that one library cannot return is passed over; which one, a run for each tells.
            if len(names) == 1:
                self._hopeless[names[0]] = str(error)
                return
            for name in names:
                self._compare([name])
            return
        self._runs += 1
        for name in names:
            if not isinstance(got[name], np.ndarray) or not isinstance(expected[name], np.ndarray):
                self._hopeless[name] = "it is no tensor"
                continue
            one, other = got[name], expected[name]
            size_bytes = one.nbytes + other.nbytes
            require_room(size_bytes, self._limits.memory_bytes, f"tensor {name!r}")
            if (one.shape, one.dtype) != (other.shape, other.dtype) and name not in self._ours.outputs:
                # One name for two things, such as a tensor in the memory order of a kernel: nothing to compare.
                self._hopeless[name] = "its shapes or types differ"
            else:
                self._seen[name] = compare_value(name, got[name], expected[name], self._limits.rule)

    def _found(self, tensor: str, inputs: list[str], beyond: list[str]) -> Parting:
        return Parting(
            tensor=tensor,
            ours=str(self._ours.makers[tensor]),
            theirs=str(self._theirs.makers[tensor]),
            inputs=tuple(inputs),
            beyond=tuple(beyond),
            seen=tuple(sorted(self._seen.values(), key=lambda r: self._order.get(r.output, -1))),
            runs=self._runs,
        )
