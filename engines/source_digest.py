"""The digest of a model by content, computed alike by the compiler and by whoever meets the model's file again.

It covers the model file and every range of other files that its tensors use. Paths, names and times have no part in it.
"""

from __future__ import annotations

import hashlib

_SCHEME = b"trtc-source-1\0"


def source_digest(file_digest: bytes, external_digest: bytes) -> str:
    """Return the digest of a source, 64 hexadecimal digits.

    Args:
        file_digest: SHA-256 of the model file.
        external_digest: SHA-256 over the SHA-256 of each external piece, in order of location and offset; empty
            without external data.
    """
    return hashlib.sha256(_SCHEME + file_digest + external_digest).hexdigest()
