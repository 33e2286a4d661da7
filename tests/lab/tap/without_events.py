"""Runs a collector on a system that reports no neighbour events, as macOS and Windows."""

import errno
import os
import sys

from collectors.__main__ import main
from collectors.network.scan import sockets


def denied() -> None:
    raise OSError(errno.EACCES, os.strerror(errno.EACCES))


if __name__ == "__main__":
    sockets.NeighbourEvents = denied  # type: ignore[assignment,misc]
    code = main()
    sys.stdout.flush()
    os._exit(code)
