"""Hostile protobufs: too deep, too many, mutated at random. The answer is a model or one of trtc's errors."""

import random

import numpy as np
import pytest
from onnx import TensorProto, helper

from trtc.compiler.passes import limits
from trtc.profiles import ModelError, TrtcError


@pytest.fixture
def nested(model, value):
    """Build a model with subgraphs nested this deep."""

    def make(depth):
        node = helper.make_node("Neg", ["x"], ["v0"])
        for i in range(1, depth + 1):
            sub = helper.make_graph([node], f"s{i}", [], [value(node.output[0])])
            other = helper.make_graph([helper.make_node("Abs", ["x"], [f"e{i}"])], f"t{i}", [], [value(f"e{i}")])
            node = helper.make_node("If", ["c"], [f"v{i}"], then_branch=sub, else_branch=other)
        return model([node], ["x", value("c", [], TensorProto.BOOL)], [node.output[0]])

    return make


def test_subgraphs_nest_up_to_the_limit(imported, run, nested):
    loaded = imported(nested(limits.MAX_DEPTH))
    x = np.ones((1, 4), np.float32)
    assert run(loaded, {"x": x, "c": np.bool_(1)})[f"v{limits.MAX_DEPTH}"].tolist() == (-x).tolist()


def test_deeper_subgraphs_are_refused(imported, nested):
    with pytest.raises(ModelError, match="nest 31 deep"):
        imported(nested(limits.MAX_DEPTH + 1))


def encoded(number, payload):
    """Encode one length-delimited field; onnx itself cannot build what is deeper than its own limit."""
    size, length = len(payload), bytearray()
    while size > 0x7F:
        length.append(size & 0x7F | 0x80)
        size >>= 7
    return bytes([number << 3 | 2, *length, size]) + payload


def test_messages_nested_beyond_the_readers_limit_are_refused(imported):
    graph = b""
    for _ in range(2000):
        graph = encoded(1, encoded(5, encoded(6, graph)))  # graph.node.attribute.g
    with pytest.raises(ModelError, match="too deeply nested"):
        imported(encoded(7, graph))


def test_too_many_nodes_are_refused(imported, model, monkeypatch):
    monkeypatch.setattr(limits, "MAX_NODES", 10)
    nodes = [helper.make_node("Neg", ["x"], [f"v{i}"]) for i in range(11)]
    with pytest.raises(ModelError, match="11 nodes, but at most 10"):
        imported(model(nodes, outputs=["v0"]))


def test_a_name_that_is_not_text_is_refused(imported, relu):
    data = relu.SerializeToString().replace(b"\x0a\x01x", b"\x0a\x01\xff", 1)
    with pytest.raises(ModelError, match=r"onnx\..* is not UTF-8 text"):
        imported(data)


@pytest.fixture
def victim(tmp_path, model, value, weight, external):
    """A model with two branches, a function, external data, attributes and dims: something of each kind."""
    (tmp_path / "w.bin").write_bytes(np.arange(600, dtype="<f4").tobytes())
    then = helper.make_graph(
        [helper.make_node("Constant", [], ["k"], value=weight("k", [2.0])), helper.make_node("Mul", ["t", "k"], ["a"])],
        "then",
        [],
        [value("a")],
    )
    other = helper.make_graph(
        [helper.make_node("Add", ["t", "i"], ["b"])], "else", [], [value("b")], [weight("i", [1.0])]
    )
    function = helper.make_function(
        "my", "F", ["p"], ["q"], [helper.make_node("Neg", ["p"], ["q"])], [helper.make_opsetid("", 17)]
    )
    nodes = [
        helper.make_node("F", ["x"], ["u"], "call", domain="my"),
        helper.make_node("ReduceSum", ["w"], ["r"], keepdims=0),
        helper.make_node("Add", ["u", "r"], ["t"]),
        helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=other),
    ]
    inputs = ["x", value("c", [], TensorProto.BOOL)]
    tensors = [external("w", [20, 30], "w.bin", offset=0, length=2400)]
    return model(nodes, inputs, initializers=tensors, opsets={"": 17, "my": 1}, functions=[function])


def mutated(data, rng):
    """Change a few bytes: flip, set, insert, delete, repeat a run, or swap two runs."""
    out = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        at, size = rng.randrange(len(out)), rng.randrange(1, 9)
        match rng.randrange(6):
            case 0:
                out[at] ^= 1 << rng.randrange(8)
            case 1:
                out[at] = rng.choice([0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)])
            case 2:
                out[at:at] = rng.randbytes(size)
            case 3:
                del out[at : at + size]
                out = out or bytearray(b"\0")
            case 4:
                out[at:at] = out[at : at + size]
            case 5:
                other = rng.randrange(len(out))
                out[at : at + size], out[other : other + size] = out[other : other + size], out[at : at + size]
    return bytes(out)


def test_a_mutated_model_loads_or_is_refused_in_words(imported, run, tmp_path, victim):
    data = victim.SerializeToString()
    x = np.ones((1, 4), np.float32)
    total = np.arange(600, dtype=np.float32).sum()
    whole = imported(data, base=tmp_path)
    assert run(whole, {"x": x, "c": np.bool_(1)})["y"].tolist() == ((total - x) * 2).tolist()
    refused = 0
    rng = random.Random(0)  # noqa: S311 (repeatable, not secret)
    for _ in range(1500):
        try:
            loaded = imported(mutated(data, rng), base=tmp_path)
        except TrtcError:
            refused += 1
        else:
            assert not loaded.proto.functions
    assert 300 < refused < 1500
