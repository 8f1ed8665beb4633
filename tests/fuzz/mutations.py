"""Edits of bytes, texts and JSON trees; all randomness comes from the generator that is handed in."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

PATHS = ["../outside/secret.txt", "/etc/passwd", "..", ".", "", "a\0b", "blobs/../manifest.json", "link", "C:\\x"]
NUMBERS = [0, -1, 1, 2, 7, 255, 2**31, 2**32, 2**53 + 1, 2**63 - 1, 2**63, -(2**63), -(2**64), 10**40]
REALS = [0.0, -0.0, 1e-320, 1e308, -1e308, 0.1]
TEXTS = ["x", "batch", "null", "1.0", "2.0", "\ud800", "\uffff", "\u0000", "a" * 5000, "float", "seq(tensor(float))"]
RAW = ["NaN", "Infinity", "-Infinity", "1e999", "-0", "01", "1.", ".5", "0x1", '"\\ud800"', "[" * 2000, "{" * 50, "//"]


def edited_bytes(data: bytes, rng: random.Random) -> bytes:
    """Change a few bytes: flip, set, insert, delete, repeat a run, cut, or swap two runs."""
    out = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 2, 4, 8])):
        at, size = rng.randrange(len(out) + 1), rng.choice([1, 1, 2, 4, 8, 64])
        match rng.randrange(7):
            case 0 if at < len(out):
                out[at] ^= 1 << rng.randrange(8)
            case 1 if at < len(out):
                out[at] = rng.choice([0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)])
            case 2:
                out[at:at] = rng.randbytes(size)
            case 3:
                del out[at : at + size]
            case 4:
                out[at:at] = out[at : at + size] * rng.choice([1, 1, 3, 50])
            case 5 if rng.random() < 0.2:
                del out[at:]
            case _:
                other = rng.randrange(len(out) + 1)
                out[at : at + size], out[other : other + size] = out[other : other + size], out[at : at + size]
    return bytes(out)


def edited_text(text: str, pieces: Sequence[str], rng: random.Random) -> str:
    """Change a few places of a text: insert or replace by a piece, delete, repeat, or swap."""
    for _ in range(rng.choice([1, 1, 2, 3, 6])):
        at, size = rng.randrange(len(text) + 1), rng.choice([0, 0, 1, 1, 3])
        match rng.randrange(5):
            case 0 | 1:
                text = text[:at] + rng.choice(pieces) + text[at + size :]
            case 2:
                text = text[:at] + text[at + max(size, 1) :]
            case 3:
                text = text[: at + size] + text[at:] * rng.choice([1, 1, 20])
            case _:
                text = text[at:] + text[:at]
        text = text[:20_000]
    return text


def places(tree: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """List the way to every value inside a tree."""
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    return [way for key, item in items for way in ((*at, key), *places(item, (*at, key)))]


def edited_json(data: bytes, rng: random.Random) -> bytes:
    """Change a few values, keys or members of a JSON document; now and then text that is no JSON comes in."""
    tree = json.loads(data)
    marks: list[tuple[str, str]] = []
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        ways = places(tree)
        if not ways:
            break
        way = rng.choice(ways)
        parent = tree
        for key in way[:-1]:
            parent = parent[key]
        key = way[-1]
        match rng.randrange(8):
            case 0:
                del parent[key]
            case 1:
                parent[key] = anything(rng)
            case 2:
                parent[key] = _near(parent[key], rng)
            case 3:
                parent[key] = _at(tree, rng.choice(ways))
            case 4 if isinstance(parent, dict):
                parent[rng.choice([f"{key}x", "", "schema", rng.choice(TEXTS)])] = parent.pop(key)
            case 5 if isinstance(parent, dict):
                parent[rng.choice(["unknown", "min", "symbol", "const", *TEXTS])] = anything(rng)
            case 6 if isinstance(parent, list):
                parent.insert(key, _at(tree, rng.choice([way, rng.choice(ways)])))
            case _:
                marks.append((f"mark {len(marks)} of an edit", rng.choice(RAW)))
                parent[key] = marks[-1][0]
    text = json.dumps(tree, indent=rng.choice([None, 2]), ensure_ascii=rng.random() < 0.5)
    for mark, raw in marks:
        text = text.replace(f'"{mark}"', raw)
    return text.encode("utf-8", "surrogatepass")


def anything(rng: random.Random, depth: int = 2) -> Any:
    """Make any JSON value."""
    match rng.randrange(8 if depth else 6):
        case 0:
            return rng.choice([None, True, False])
        case 1 | 2:
            return rng.choice(NUMBERS)
        case 3:
            return rng.choice(REALS)
        case 4:
            return rng.choice(TEXTS)
        case 5:
            return rng.choice(PATHS)
        case 6:
            return [anything(rng, depth - 1) for _ in range(rng.randrange(4))]
        case _:
            return {rng.choice(TEXTS): anything(rng, depth - 1) for _ in range(rng.randrange(3))}


def _near(value: Any, rng: random.Random) -> Any:
    """Make another value of the same kind."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return rng.choice([value + 1, value - 1, -value, value * 2, rng.choice(NUMBERS)])
    if isinstance(value, float):
        return rng.choice([-value, value * 1e300, rng.choice(REALS)])
    if isinstance(value, str):
        return rng.choice([value[:-1], f"{value}\n", value.swapcase(), rng.choice(PATHS), rng.choice(TEXTS)])
    if isinstance(value, list):
        return rng.choice([value[::-1], value * 2, [value], []])
    if isinstance(value, dict):
        return rng.choice([{}, [value], dict(reversed(value.items()))])
    return anything(rng)


def _at(tree: Any, way: tuple[Any, ...]) -> Any:
    for key in way:
        try:
            tree = tree[key]
        except (KeyError, IndexError, TypeError):
            return None
    return json.loads(json.dumps(tree))
