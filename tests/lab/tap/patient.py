"""Runs a collector that may search for watched devices as long as its job permits.

The usual limit of this search, some seconds, is too short on a busy machine. Then the snapshot
reports that the time was up. This is correct, but the tests need the complete result.
"""

import os
import sys

from collectors.__main__ import main
from collectors.application.readers.network.watched_devices import read_watched_devices


def run() -> None:
    object.__setattr__(read_watched_devices, "limit_s", 300.0)
    code = main()
    sys.stdout.flush()
    os._exit(code)


if __name__ == "__main__":
    run()
