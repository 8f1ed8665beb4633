"""Where the ``trtc`` command begins: Ctrl-C has its one meaning before the command's own code is imported."""

from __future__ import annotations

import os
import signal

from trtc.tools.stopping import INTERRUPTED, INTERRUPTED_TEXT


def main() -> None:
    """Run the command. Until it handles signals itself nothing has been begun, so SIGINT may leave at once."""
    ended = False

    def leave(_number: int, _frame: object) -> None:
        if not ended:
            os.write(2, f"{INTERRUPTED_TEXT}\n".encode())
            os._exit(INTERRUPTED)

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not where it is ignored, as under nohup
        signal.signal(signal.SIGINT, leave)
    from trtc.tools.cli import main as run

    try:
        run()
    finally:
        ended = True


if __name__ == "__main__":
    main()
