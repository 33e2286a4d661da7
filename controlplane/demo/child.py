"""Runs a module as a program that ends when its parent ends or is killed.

    python -m controlplane.demo.child MODULE [ARGUMENT ...]

Standard input is a pipe to which the parent never writes. The program stops when the parent closes
its end of the pipe. If the parent is killed, the kernel closes this end.
"""

import os
import runpy
import signal
import sys
import threading
from typing import Final

STOP_WITHIN_S: Final = 12.0
"""Time for a clean stop after the parent has ended. Then the process exits without a clean stop.
The agent stops cleanly in less time.
"""


def _end_with_the_parent() -> None:
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    threading.Event().wait(STOP_WITHIN_S)
    os._exit(1)


if __name__ == "__main__":
    threading.Thread(target=_end_with_the_parent, daemon=True).start()
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
