"""A manifest as JSON: deterministic encoding, strict decoding. Its parts are the types of ``manifest.py``."""

from __future__ import annotations

import dataclasses
import math
import re
import sys
from typing import Any

import msgspec

from trtc.engines.checksum import CHECKSUM, UNSEALED, check_seal, sealed
from trtc.engines.errors import BundleError
from trtc.engines.manifest import SCHEMA, Manifest
from trtc.profiles import TrtcError

MAX_MANIFEST_BYTES = 64 * 2**20
"""A manifest is text about engines, not data; anything larger is not one of ours."""


class _Header(msgspec.Struct, frozen=True):
    schema: str


class _Sealed(Manifest, frozen=True, kw_only=True):
    """A manifest as it lies on disk."""

    checksum: str


def encode_manifest(manifest: Manifest) -> bytes:
    """Write a manifest as indented JSON with its checksum; equal manifests give equal bytes.

    JSON has no infinities: a number that is not finite is written as the largest double of its sign, NaN as the
    largest positive one. A deviation then stays above every tolerance, and a value domain of NaN holds nothing.

    Raises:
        BundleError: for text that is no Unicode, or an integer beyond 64 bits.
    """
    try:
        plain = _finite(msgspec.to_builtins(manifest, order="deterministic")) | {CHECKSUM: UNSEALED}
        return sealed(msgspec.json.format(msgspec.json.encode(plain), indent=2) + b"\n")
    except (UnicodeEncodeError, OverflowError) as error:
        raise BundleError(f"the manifest cannot be written: {error}; rename or change that value") from error


def _finite(value: Any) -> Any:
    """Replace numbers that JSON cannot write, in plain dicts, lists and tuples."""
    if isinstance(value, float):
        return value if math.isfinite(value) else -sys.float_info.max if value == -math.inf else sys.float_info.max
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list | tuple) else value


def decode_manifest(data: bytes, where: str = "manifest.json") -> Manifest:
    """Read a manifest, strictly.

    Args:
        data: the file's bytes.
        where: what to call the file in errors.

    Raises:
        BundleError: for anything that is not exactly one manifest of a schema that this version reads, byte for byte
            as it was written.
    """
    if len(data) > MAX_MANIFEST_BYTES:
        raise BundleError(f"{where}: {len(data)} bytes, a manifest has up to {MAX_MANIFEST_BYTES}; rebuild the bundle")
    try:
        _refuse_unknown_schema(msgspec.json.decode(data, type=_Header).schema, where)
        manifest = msgspec.json.decode(data, type=_Sealed)
        _refuse_unknown_fields(msgspec.json.decode(data), manifest, "$")
    except BundleError:
        raise
    except (msgspec.MsgspecError, TrtcError, ValueError, RecursionError) as error:
        raise BundleError(
            f"{where}: not a manifest of schema {SCHEMA} ({error}); copy the bundle again, rebuild it, "
            "or use the trtc version that wrote it"
        ) from error
    try:
        check_seal(data)
    except BundleError as error:
        raise BundleError(f"{where}: {error}; copy the bundle again or rebuild it") from error
    return Manifest(**{name: getattr(manifest, name) for name in Manifest.__struct_fields__})


def _refuse_unknown_schema(schema: str, where: str) -> None:
    """Read every minor version of our major one: what a newer one added is refused by name, where it is used."""
    major = SCHEMA.partition(".")[0]
    if re.fullmatch(major + r"\.[0-9]{1,6}", schema) is None:
        raise BundleError(
            f"{where}: schema {schema!r}, this version of trtc reads {major}.x; "
            "rebuild the bundle, or use the trtc version that wrote it"
        )


def _refuse_unknown_fields(raw: Any, value: Any, where: str) -> None:
    """Refuse fields that a dataclass does not have: the decoder checks this for its own structs only."""
    if dataclasses.is_dataclass(value) or isinstance(value, msgspec.Struct):
        known = {f.name for f in dataclasses.fields(value)} if dataclasses.is_dataclass(value) else raw.keys()
        if unknown := sorted(raw.keys() - known):
            raise ValueError(f"unknown field {unknown[0]!r} at {where}")
        for name, item in raw.items():
            _refuse_unknown_fields(item, getattr(value, name), f"{where}.{name}")
    elif isinstance(raw, list) and isinstance(value, tuple):
        for i, (item, inner) in enumerate(zip(raw, value, strict=True)):
            _refuse_unknown_fields(item, inner, f"{where}[{i}]")
    elif isinstance(raw, dict) and isinstance(value, dict):
        for name, item in raw.items():
            _refuse_unknown_fields(item, value[name], f"{where}.{name}")
