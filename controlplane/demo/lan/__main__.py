"""Plays the venue behind a TAP device that is open already: ``python -m controlplane.demo.lan FD``.

A signal ends it.
"""

import sys

from controlplane.demo.lan.lan import TapLan, play_for_a_while
from controlplane.demo.venue import VENUE


def main() -> None:
    tap_fd = int(sys.argv[1])
    lan = TapLan(VENUE, tap_fd)
    while True:
        play_for_a_while(lan, tap_fd)


if __name__ == "__main__":
    main()
