"""Runs a collector as on a system that reports no neighbour events, such as macOS or Windows."""

import errno
import os
import sys

from collectors.__main__ import main
from collectors.network.scan import sockets


def refuse_events() -> None:
    raise OSError(errno.EACCES, os.strerror(errno.EACCES))


if __name__ == "__main__":
    sockets.NeighbourEvents = refuse_events  # type: ignore[assignment,misc]
    code = main()
    sys.stdout.flush()
    os._exit(code)
