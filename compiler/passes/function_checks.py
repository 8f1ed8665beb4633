"""What must hold for local functions before they are inlined, and how large a body becomes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import onnx

from trtc.compiler.passes.supported import runtime_operators
from trtc.compiler.passes.walk import (
    STANDARD_DOMAIN,
    node_graphs,
    node_text,
    node_uses,
    walk_nodes,
)
from trtc.profiles import ModelError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def function_key(function: onnx.FunctionProto) -> tuple[str, str, str]:
    """Return domain, name and overload."""
    return function.domain, function.name, function.overload


def node_key(node: onnx.NodeProto) -> tuple[str, str, str]:
    """Return the key of the function that a node would call."""
    return node.domain, node.op_type, node.overload


@dataclass(frozen=True, slots=True)
class Expansion:
    """What a list of nodes becomes once every call in it is replaced.

    Attributes:
        nodes: how many.
        size_bytes: of them all, serialized.
        depth: levels of subgraphs.
    """

    nodes: int
    size_bytes: int
    depth: int

    @staticmethod
    def of(nodes: Iterable[onnx.NodeProto], sizes: Mapping[tuple[str, str, str], Expansion]) -> Expansion:
        """Measure nodes; ``sizes`` holds every function that they call."""
        count, size_bytes, deepest = 0, 0, 0
        waiting = [(nodes, 0)]
        while waiting:
            body, depth = waiting.pop()
            for node in body:
                callee = sizes.get(node_key(node))
                subgraphs = node_graphs(node)
                count += callee.nodes if callee else 1
                size_bytes += callee.size_bytes if callee else 0
                size_bytes += node.ByteSize() if not depth else 0  # subgraphs are part of their node
                deepest = max(deepest, depth + (callee.depth if callee else 0))
                waiting.extend((graph.node, depth + 1) for graph in subgraphs)
        return Expansion(count, size_bytes, deepest)


def check_references(model: onnx.ModelProto) -> None:
    """Only a function's body may refer to attributes of a call.

    Raises:
        ModelError: naming the node and the attribute.
    """
    for node in walk_nodes(model.graph.node):
        for attribute in node.attribute:
            if attribute.ref_attr_name:
                raise ModelError(
                    f"{node_text(node)}: attribute {attribute.name!r} refers to {attribute.ref_attr_name!r} of a "
                    "function, but stands in no function; export the model again"
                )


def check_functions(model: onnx.ModelProto) -> None:
    """Check each function by itself, and that every domain that is called was imported.

    Raises:
        ModelError: naming the function and what is missing or twice.
    """
    functions = {function_key(function): function for function in model.functions}
    if len(functions) < len(model.functions):
        seen: set[tuple[str, str, str]] = set()
        twice = next(f for f in model.functions if function_key(f) in seen or seen.add(function_key(f)))  # type: ignore[func-returns-value]
        raise ModelError(f"local function {_text(twice)} is defined twice; keep one")
    versions = {entry.domain: entry.version for entry in model.opset_import}
    _check_imports(walk_nodes(model.graph.node), versions, functions, "the model")
    for function in model.functions:
        if (function.domain, function.name) in runtime_operators():
            raise ModelError(
                f"local function {_text(function)} has the name of a built-in operator, and libraries disagree which "
                "one a node means; rename the function"
            )
        _check_names(function)
        own = {entry.domain: entry.version for entry in function.opset_import}
        nodes = list(walk_nodes(function.node))
        _check_imports(nodes, own, functions, f"local function {_text(function)}")
        for node in nodes:
            _check_same_operator(node, own.get(node.domain, 0), versions.get(node.domain), function)


def _check_imports(
    nodes: Iterable[onnx.NodeProto],
    versions: Mapping[str, int],
    functions: Mapping[tuple[str, str, str], onnx.FunctionProto],
    whose: str,
) -> None:
    for node in nodes:
        local = node_key(node) in functions
        if node.domain not in versions and (local or whose != "the model"):  # other nodes of the graph: see operators
            called = "calls a local function" if local else "uses an operator"
            raise ModelError(
                f"{node_text(node)} {called} of domain {node.domain or 'ai.onnx'!r}, which {whose} does not import; "
                f"add an opset import of {node.domain or 'ai.onnx'!r}"
            )


def _check_names(function: onnx.FunctionProto) -> None:
    """A body sees its own inputs and what it makes; each is made once."""
    made: set[str] = set()
    for name in function.input:
        if not name or name in made:
            raise ModelError(
                f"local function {_text(function)}: input {name!r} is empty or listed twice; export it again"
            )
        made.add(name)
    for node in function.node:
        for name in node.output:
            if name in made:
                raise ModelError(f"local function {_text(function)}: value {name!r} is made twice; export it again")
            made.update([name] if name else [])
    for node in function.node:
        if missing := next((name for name in node_uses(node) if name not in made), None):
            raise ModelError(
                f"local function {_text(function)}: {node_text(node)} reads {missing!r}, which the function neither "
                "takes nor makes; export the model again"
            )
    if missing := next((name for name in function.output if name not in made), None):
        raise ModelError(f"local function {_text(function)}: output {missing!r} is made by none of its nodes")


def _check_same_operator(node: onnx.NodeProto, own: int, outer: int | None, function: onnx.FunctionProto) -> None:
    """Refuse a body whose operator means something else under the model's operator set."""
    if outer is None or own == outer or node.domain != STANDARD_DOMAIN:
        return
    versions = [_since(node.op_type, version) for version in (own, outer)]
    if versions[0] != versions[1]:
        raise ModelError(
            f"local function {_text(function)} is written for opset {own} and the model for {outer}, and "
            f"{node.op_type} differs between them; export both for one opset"
        )


def _since(op_type: str, version: int) -> int:
    try:
        return int(onnx.defs.get_schema(op_type, version, STANDARD_DOMAIN).since_version)
    except onnx.defs.SchemaError:
        return 0


def _text(function: onnx.FunctionProto) -> str:
    return f"{function.domain or 'ai.onnx'}::{function.name}"
