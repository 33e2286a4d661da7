"""Runs `venue-control` with forked workers. A spawned worker would first import the service, which
takes seconds. `test_workers.py` uses spawned workers.
"""

import multiprocessing
import sys

from controlplane import workers
from controlplane.cli.main import main

if __name__ == "__main__":
    workers._spawn = multiprocessing.get_context("fork")  # type: ignore[assignment]
    sys.exit(main())
