"""Refuse text that means nothing outside the place where it was written.

    python .ci/stray_text.py [CHECKOUT]

Looks at every file that git tracks or would track, prints ``file:line: what`` for each finding, and exits 1 if there
was one.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

STRAY = {
    # Absolute folders of one machine; a reader has others.
    "a path of one machine": r"(?<![\w.$}])/(?:home|root|Users|work|workspace|mnt|media)/\w",
    "a private temporary folder": r"/tmp/\w/",  # noqa: S108 (a pattern, not a folder in use)
    "a folder beside the checkout": r"(?<!\w)\.\./(?:shared|main)\b",
    # Where packages come from is the reader's configuration; naming an index breaks mirrors and offline builds.
    "a package index": r"\b(?:pypi\.(?:org|python)|pythonhosted\.|test\.pypi|anaconda\.org|registry\.npmjs)",
    "a package index option": r"--(?:(?:extra-)?index-url|find-links|trusted-host)\b",
    # Labels such as a letter and two digits point into a list that is kept elsewhere.
    "a label of a list that is not here": r"\b[C]\d\d\b(?!%)",
    "an unresolved merge": r"^(?:<{7}|>{7}) ",
}


def tracked_files(checkout: Path) -> list[Path]:
    """List the files that git tracks or would track with ``git add``."""
    command = ["git", "-C", str(checkout), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout  # noqa: S603 (fixed words)
    return [path for name in listed.split("\0") if name and (path := checkout / name).is_file()]


def findings(text: str) -> list[tuple[int, str, str]]:
    """Return line number, kind and matched text of everything stray."""
    patterns = [(what, re.compile(pattern)) for what, pattern in STRAY.items()]
    return [
        (number, what, match.group())
        for number, line in enumerate(text.splitlines(), 1)
        for what, pattern in patterns
        for match in pattern.finditer(line)
    ]


def main(checkout: Path) -> int:
    """Check a checkout; return the exit code."""
    files = tracked_files(checkout)
    if not files:
        print(f"{checkout}: git lists no file here", file=sys.stderr)
        return 1
    count = 0
    for path in files:
        data = path.read_bytes()
        if b"\0" in data:  # not text
            continue
        for number, what, match in findings(data.decode(errors="replace")):
            print(f"{path.relative_to(checkout)}:{number}: {what}: {match!r}")
            count += 1
    print(
        f"{len(files)} files hold {count} pieces of stray text" if count else f"{len(files)} files hold no stray text"
    )
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if sys.argv[1:] else ".").resolve()))
