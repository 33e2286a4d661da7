"""What the packaged service starts with: its command line, or a worker of it."""

import faulthandler
import multiprocessing
import os
import sys


def main() -> int:
    # A worker is this executable with words of multiprocessing's own.
    multiprocessing.freeze_support()
    os.environ.setdefault("PYTHONTZPATH", "/usr/share/zoneinfo:/usr/lib/zoneinfo:/etc/zoneinfo")
    if sys.argv[1:2] == ["serve"]:
        # The watchdog ends a hung service by SIGABRT: the log then names the place that hung.
        faulthandler.enable()
    from controlplane.cli.main import main as cli

    return cli()


if __name__ == "__main__":
    sys.exit(main())
