"""A process that asks the build cache for a key.

Run as ``python cache_child.py ORDERS.json``. Orders: ``cache``, ``key``, ``destination``; ``manifest`` and
``sources`` of what a build makes; ``log``: a file that each build adds a line to; ``pause``: say so when building, and
go on when told; ``die``: kill this process while it builds; ``user``: become that user. Says ``waiting`` when it has
to wait, and prints whether it was a hit, and the notes, as JSON.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

from trtc.compiler.cache import BuildCache, Built
from trtc.engines.manifest_json import decode_manifest

orders = json.loads(Path(sys.argv[1]).read_text())
manifest = decode_manifest(Path(orders["manifest"]).read_bytes())


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def build(folder: Path) -> Built:
    if "log" in orders:
        with Path(orders["log"]).open("a") as log:
            log.write("built\n")
    sources = {}
    for i, (path, source) in enumerate(orders["sources"].items()):
        sources[path] = folder / str(i)
        sources[path].write_bytes(Path(source).read_bytes())
    if orders.get("die"):
        os.kill(os.getpid(), signal.SIGKILL)
    if orders.get("pause"):
        say("building")
        sys.stdin.readline()
    return Built(manifest, sources)


if "user" in orders:
    os.setgroups([])
    os.setgid(orders["user"])
    os.setuid(orders["user"])
outcome = BuildCache(Path(orders["cache"])).get_or_build(
    orders["key"], Path(orders["destination"]), build, on_wait=lambda: say("waiting")
)
say(json.dumps([outcome.hit, outcome.notes]))
