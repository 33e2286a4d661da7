"""Runs a module as a program that ends with its parent, however that ends.

    python -m controlplane.demo.tied MODULE [ARGUMENT ...]

The parent holds the other end of standard input and writes nothing: its closing is the word to
stop, and the kernel gives it for a parent that was killed.
"""

import os
import runpy
import signal
import sys
import threading
from typing import Final

STOP_WITHIN_S: Final = 12.0
"""More than the agent takes for a clean stop, and then it is over."""


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
