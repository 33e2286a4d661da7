"""Runs `venue-control`, but sends a comment on each stream every 0.1 s instead of every 20 s.

A test can then use a proxy with a short time-out.
"""

import sys
from dataclasses import replace
from unittest import mock

from controlplane.cli import serve
from controlplane.cli.main import main

COMMENT_EVERY_S = 0.1


def run(comment_every_s: float) -> int:
    """Run `venue-control`, and send a comment on each stream at this interval."""
    settings_of = serve.settings_of
    with mock.patch.object(
        serve,
        "settings_of",
        lambda options: replace(settings_of(options), keep_alive_s=comment_every_s),
    ):
        return main()


if __name__ == "__main__":
    sys.exit(run(COMMENT_EVERY_S))
