"""Where the ``trtc`` command begins.

Ctrl-C has its one meaning before the command's own code is imported, and ``trtc exec`` does without most of it: the
program that it starts waits for every import.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress

from trtc.tools.stopping import INTERRUPTED, INTERRUPTED_TEXT, Stops

TYPE_CHECKING = False  # importing typing takes 2 ms
if TYPE_CHECKING:
    from trtc.tools.exec_line import Line


def main() -> None:
    """Run the command. Until it handles signals itself nothing has been begun, so SIGINT may leave at once."""
    ended = False

    def leave(_number: int, _frame: object) -> None:
        if not ended:
            os.write(2, f"{INTERRUPTED_TEXT}\n".encode())
            os._exit(INTERRUPTED)

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not where it is ignored, as under nohup
        signal.signal(signal.SIGINT, leave)
    if sys.stderr is None:  # closed: what is said goes nowhere, and no file that is opened takes its place
        sys.stderr = open(os.devnull, "w", errors="backslashreplace")  # noqa: PTH123, SIM115 (open until the end)
    try:
        line = _plain_line(sys.argv[1:])
        if line is not None:
            code = _run_program(line)
            with suppress(OSError):
                sys.stderr.flush()
            os._exit(code)  # nothing is left to be done, and taking the interpreter down takes 3 ms
        from trtc.tools.cli import main as run

        run()
    finally:
        ended = True


def _plain_line(words: list[str]) -> Line | None:
    """Read the line of ``trtc exec`` where that needs no click; None for everything else."""
    if words[:1] != ["exec"] or sys.stdout is None:
        return None
    from trtc.tools.exec_line import read_line

    return read_line(words[1:])


def _run_program(line: Line) -> int:
    """Run a program; errors of ours become one message and the documented exit code."""
    with Stops() as stops:
        try:
            from trtc.tools.exec_program import run_program

            code = run_program(line)
        except BaseException as error:  # noqa: BLE001 (a user never sees a traceback that was not asked for)
            from trtc.tools.cli import conclude

            code = conclude(error)
        stops.settled = True
    return code


if __name__ == "__main__":
    main()
