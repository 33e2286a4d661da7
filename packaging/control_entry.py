"""The entry point of the packaged service: its command line, or one of its workers."""

import faulthandler
import multiprocessing
import os
import sys


def main() -> int:
    # multiprocessing starts a worker as this executable with arguments of its own.
    multiprocessing.freeze_support()
    os.environ.setdefault("PYTHONTZPATH", "/usr/share/zoneinfo:/usr/lib/zoneinfo:/etc/zoneinfo")
    if sys.argv[1:2] == ["serve"]:
        # The watchdog kills a hung service by SIGABRT; the log then shows where it hung.
        faulthandler.enable()
    from controlplane.cli.main import main as cli

    return cli()


if __name__ == "__main__":
    sys.exit(main())
