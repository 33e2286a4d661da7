"""Runs a collector as on a system that reports no neighbour events, such as macOS or Windows."""

import errno
import os

from collectors.network.scan import sockets
from tests.lab.tap.patient import run


def refuse_events() -> None:
    raise OSError(errno.EACCES, os.strerror(errno.EACCES))


if __name__ == "__main__":
    sockets.NeighbourEvents = refuse_events  # type: ignore[assignment,misc]
    run()
