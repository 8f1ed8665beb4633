"""The list of tests that run on the CPU only holds tests that are there, each once."""

from __future__ import annotations

import re
from pathlib import Path

from simulator.cpu_only import CPU_ONLY


def test_every_entry_of_the_list_is_a_test_or_a_file_of_this_folder():
    folder = Path(__file__).parent
    files = list(folder.glob("test_*.py"))
    there = {file.name for file in files}
    for file in files:
        there |= set(re.findall(r"^def (test_\w+)\(", file.read_text(), re.MULTILINE))
    assert not CPU_ONLY.keys() - there
    assert all(CPU_ONLY.values())
