"""Runs `venue-control` with small limits for connections, so that a test can reach them.

Usage: python -m tests.unit.controlplane.small_limits ARGUMENTS OF VENUE-CONTROL
"""

import sys
from dataclasses import replace
from typing import Final
from unittest import mock

from controlplane.cli import serve
from controlplane.cli.main import main

# Connections that wait for their clients (`Settings.awaited_max`): in total, and of one network
WAITING_CONNECTIONS_MAX: Final = 80
NETWORK_WAITING_CONNECTIONS_MAX: Final = 40
WRITE_TIMEOUT_S: Final = 0.5
KEEP_ALIVE_S: Final = 0.1

if __name__ == "__main__":
    settings_of = serve.settings_of
    with mock.patch.object(
        serve,
        "settings_of",
        lambda options: replace(
            settings_of(options),
            awaited_max=WAITING_CONNECTIONS_MAX,
            network_awaited_max=NETWORK_WAITING_CONNECTIONS_MAX,
            write_timeout_s=WRITE_TIMEOUT_S,
            keep_alive_s=KEEP_ALIVE_S,
        ),
    ):
        sys.exit(main())
