"""The checksum of a manifest: its last field, over every other byte of the file.

Blobs are covered by the digests in the manifest; this covers the manifest itself, so that a digit that changed on a
disk or on the way is noticed too. It is no signature: whoever edits a file on purpose can compute it again.
"""

from __future__ import annotations

import hashlib
import re

from trtc.engines.errors import BundleError

CHECKSUM = "checksum"
UNSEALED = "0" * 64
"""What stands in the place of the checksum while it is computed."""

_LAST_FIELD = re.compile(rb'"checksum": "([0-9a-f]{64})"\n\}\n\Z')


def sealed(data: bytes) -> bytes:
    """Write the checksum of a file into its last field, whatever stands there.

    Raises:
        BundleError: when the file does not end with that field.
    """
    start, stop = _place(data)
    return data[:start] + _checksum(data, start, stop) + data[stop:]


def check_seal(data: bytes) -> None:
    """Compare the checksum in a file with its bytes.

    Raises:
        BundleError: when the file does not end with a checksum, or has another one.
    """
    start, stop = _place(data)
    found, wanted = _checksum(data, start, stop).decode(), data[start:stop].decode()
    if found != wanted:
        raise BundleError(f"altered: its bytes have checksum {found}, it says {wanted}")


def _place(data: bytes) -> tuple[int, int]:
    found = _LAST_FIELD.search(data, max(0, len(data) - 128))
    if found is None:
        raise BundleError("altered: its last line is not the checksum that it was written with")
    return found.span(1)


def _checksum(data: bytes, start: int, stop: int) -> bytes:
    digest = hashlib.sha256(data[:start])
    digest.update(UNSEALED.encode())
    digest.update(data[stop:])
    return digest.hexdigest().encode()
