"""Judge a share of the tests, one line of JSON before and after each, so that a parent sees which one ended us."""

from __future__ import annotations

import faulthandler
import json
import sys
import time

import suite
import verdicts

CASE_LIMIT_S = 60


def main() -> None:
    """Run the tests ``first``, ``first + step``, ... that are not below ``skip``."""
    first, step, skip = (int(word) for word in sys.argv[1:4])
    cases = suite.collect()
    say(count=len(cases[first::step]))
    for index in range(first, len(cases), step):
        if index < skip:
            continue
        case = cases[index]
        say(begin=index, name=case.name, operator=case.operator)
        faulthandler.dump_traceback_later(CASE_LIMIT_S, exit=True)
        plain = verdicts.judge_plain(case)
        start_s = time.perf_counter()
        ours = verdicts.judge_ours(case)
        seconds = time.perf_counter() - start_s
        faulthandler.cancel_dump_traceback_later()
        say(
            end=index,
            ours=[ours.verdict, ours.reason],
            plain=[plain.verdict, plain.reason],
            seconds=round(seconds, 4),
        )


def say(**words: object) -> None:
    """Write one line."""
    print(json.dumps(words), flush=True)


if __name__ == "__main__":
    main()
