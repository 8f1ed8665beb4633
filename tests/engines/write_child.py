"""A process that writes a bundle and can be stopped, limited or robbed of its rights on the way.

Run as ``python write_child.py ORDERS.json``. Orders: ``path`` and a list ``bundles`` of ``[manifest file, sources]``,
written one after the other; ``kill_at``: kill this process after that many steps; ``limit_bytes``: largest file;
``user``: become that user; ``pause``: after the lock was taken say so, and go on when told.
Prints the error's exit code and text as JSON, or ``null``.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from pathlib import Path

from trtc.engines.bundle import write_bundle
from trtc.engines.manifest_json import decode_manifest
from trtc.profiles import TrtcError

orders = json.loads(Path(sys.argv[1]).read_text())
steps: list[str] = []


def on_step(name: str) -> None:
    steps.append(name)
    if len(steps) == orders.get("kill_at"):
        os.kill(os.getpid(), signal.SIGKILL)
    if name == "lock" and orders.get("pause"):
        sys.stdout.write("locked\n")
        sys.stdout.flush()
        sys.stdin.readline()


bundles = [
    (decode_manifest(Path(manifest).read_bytes()), {path: Path(source) for path, source in sources.items()})
    for manifest, sources in orders["bundles"]
]
if "limit_bytes" in orders:
    resource.setrlimit(resource.RLIMIT_FSIZE, (orders["limit_bytes"], orders["limit_bytes"]))
if "user" in orders:
    os.setgroups([])
    os.setgid(orders["user"])
    os.setuid(orders["user"])
result = None
try:
    for bundle, sources in bundles:
        write_bundle(Path(orders["path"]), bundle, sources, on_step=on_step)
except TrtcError as error:
    result = [error.exit_code, str(error)]
sys.stdout.write(json.dumps(result) + "\n")
