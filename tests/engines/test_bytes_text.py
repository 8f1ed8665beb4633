"""Amounts of memory in errors: exact, and short where they can be."""

from __future__ import annotations

import pytest

from trtc.engines.memory import bytes_text


@pytest.mark.parametrize(("size_bytes", "text"), [
    (0, "0 bytes"), (1023, "1023 bytes"), (1024, "1 KiB"), (409600, "400 KiB"), (409601, "409601 bytes"),
    (3 << 20, "3 MiB"), (5 << 30, "5 GiB"), (1 << 40, "1 TiB"), (2000 << 40, "2000 TiB"),
])  # fmt: skip
def test_an_amount_of_memory_is_written_exactly(size_bytes, text):
    assert bytes_text(size_bytes) == text
