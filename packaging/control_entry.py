"""The entry point of the packaged service. It runs the command line or a worker process."""

import faulthandler
import multiprocessing
import os
import sys


def main() -> int:
    # multiprocessing starts a worker by running this executable with special arguments. This call
    # runs the worker if these arguments are present.
    multiprocessing.freeze_support()
    os.environ.setdefault("PYTHONTZPATH", "/usr/share/zoneinfo:/usr/lib/zoneinfo:/etc/zoneinfo")
    if sys.argv[1:2] == ["serve"]:
        # The watchdog kills a hung service with SIGABRT. The log then shows where it hung.
        faulthandler.enable()
    from controlplane.cli.main import main as cli

    return cli()


if __name__ == "__main__":
    sys.exit(main())
