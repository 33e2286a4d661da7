"""The entry point of the packaged service. It runs the command line or a worker process."""

import faulthandler
import multiprocessing
import os
import signal
import sys
from types import FrameType


def main() -> int:
    # multiprocessing starts a worker by running this executable with special arguments. This call
    # runs the worker if these arguments are present.
    multiprocessing.freeze_support()
    os.environ.setdefault("PYTHONTZPATH", "/usr/share/zoneinfo:/usr/lib/zoneinfo:/etc/zoneinfo")
    if sys.argv[1:2] == ["serve"]:
        # The watchdog kills a hung service with SIGABRT. The log then shows where it hung.
        faulthandler.enable()
        if os.getpid() == 1:
            # Signals without a handler do not end the first process of a container. The service
            # replaces this handler when it starts to listen.
            signal.signal(signal.SIGTERM, _end)
    from controlplane.cli.main import main as cli

    return cli()


def _end(number: int, _frame: FrameType | None) -> None:
    os._exit(128 + number)


if __name__ == "__main__":
    sys.exit(main())
