"""Simulates the venue behind a TAP device: ``python -m controlplane.demo.lan DESCRIPTOR``.

The argument is the file descriptor of the open TAP device. The program runs until a signal ends it.
"""

import sys

from controlplane.demo.lan.lan import TapLan
from controlplane.demo.venue import VENUE


def main() -> None:
    lan = TapLan(VENUE, int(sys.argv[1]))
    while True:
        lan.run_once()


if __name__ == "__main__":
    main()
