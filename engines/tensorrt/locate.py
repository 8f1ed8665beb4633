"""Which node of the model a message of the builder is about: it names layers, which are called after nodes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from trtc.engines.build import NodeProblem
from trtc.engines.tensorrt.job import Failure

if TYPE_CHECKING:
    from collections.abc import Mapping

_WORD = re.compile(r"[^\s'\"`()\[\]{},;]+")
_SUFFIX = re.compile(r"_\d+\Z")


def located(failure: Failure, operators: Mapping[str, str]) -> Failure:
    """Name the node and its operator in every problem whose message names a layer.

    Args:
        failure: of a build.
        operators: operator of each node, by the node's name.
    """
    return Failure(failure.stage, tuple(_located(problem, operators) for problem in failure.problems))


def _located(problem: NodeProblem, operators: Mapping[str, str]) -> NodeProblem:
    if problem.node or problem.operator:
        return problem
    for word in _WORD.findall(problem.message):
        bare = word.rstrip(".:")
        for name in (bare, _SUFFIX.sub("", bare)):
            if name in operators:
                return NodeProblem(name, operators[name], problem.message)
    return problem
