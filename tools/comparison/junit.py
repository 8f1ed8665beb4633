"""Verdicts as a JUnit file, which build servers show beside their tests."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from trtc.engines.files import host_error, replacing, sync_folder
from trtc.tools.places import require_file_place

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from trtc.tools.comparison.figures import Verdict

_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write_junit(path: Path, suite: str, verdicts: Sequence[Verdict]) -> None:
    """Write one test case for each condition; what is within the noise is skipped, with its reason.

    Args:
        path: of the file; replaced in one step.
        suite: name of the suite.
        verdicts: what became of the conditions.

    Raises:
        UsageError: when the folder is not there, or something else is in the way.
        HostError: when the file system refuses.
    """
    require_file_place(path, "")
    states = [verdict.state for verdict in verdicts]
    root = ET.Element(
        "testsuite",
        name=_text(suite),
        tests=str(len(verdicts)),
        failures=str(states.count("failed")),
        errors="0",
        skipped=str(states.count("noise")),
    )
    for verdict in verdicts:
        case = ET.SubElement(root, "testcase", classname="trtc.diff", name=_text(verdict.condition))
        if verdict.state == "failed":
            ET.SubElement(case, "failure", message=_text(verdict.detail))
        elif verdict.state == "noise":
            ET.SubElement(case, "skipped", message=_text(verdict.detail))
        else:
            ET.SubElement(case, "system-out").text = _text(verdict.detail)
    data = ET.tostring(root, encoding="utf-8", xml_declaration=True) + b"\n"
    try:
        with replacing(path) as fd, os.fdopen(os.dup(fd), "wb") as stream:
            stream.write(data)
        sync_folder(path.parent)
    except OSError as error:
        raise host_error(error, path, len(data)) from error


def _text(text: str) -> str:
    """Drop characters that XML cannot hold at all."""
    return _NOT_IN_XML.sub("?", text)
