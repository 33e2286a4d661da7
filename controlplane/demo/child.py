"""Runs a module as a program that ends when its parent ends or is killed.

    python -m controlplane.demo.child MODULE [ARGUMENT ...]

The parent has the other end of standard input, and never writes to it. The program stops when the
parent closes it. The kernel closes it if the parent is killed.
"""

import os
import runpy
import signal
import sys
import threading
from typing import Final

STOP_WITHIN_S: Final = 12.0
"""Longer than a clean stop of the agent. After it, the program is ended."""


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
