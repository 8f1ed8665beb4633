"""Judge a share of the tests. A line of JSON goes before and after each step, so that a parent sees what ended us."""

from __future__ import annotations

import faulthandler
import json
import sys
import time

import suite
import verdicts

CASE_LIMIT_S = 60
"""A test that takes longer hangs: most take 20 ms."""


def main() -> None:
    """Run the tests ``first``, ``first + step``, ... that are not below ``skip``."""
    first, step, skip = (int(word) for word in sys.argv[1:4])
    cases = suite.collect()
    for index in range(first, len(cases), step):
        if index < skip:
            continue
        case = cases[index]
        say(index=index, begin=[case.name, case.operator])
        faulthandler.dump_traceback_later(CASE_LIMIT_S, exit=True)
        start_s = time.perf_counter()
        ours = verdicts.judge_ours(case)
        say(index=index, ours=[ours.verdict, ours.reason], seconds=round(time.perf_counter() - start_s, 4))
        plain = verdicts.judge_plain(case)
        faulthandler.cancel_dump_traceback_later()
        say(index=index, plain=[plain.verdict, plain.reason])
    say(done=True)


def say(**words: object) -> None:
    """Write one line."""
    sys.stdout.write(json.dumps(words) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
