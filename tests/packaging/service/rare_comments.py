"""Runs `venue-control`, but sends a comment on each stream only every hour.

A proxy that buffers then never delivers a command, because no further data follows it.
"""

import sys

from tests.packaging.service.frequent_comments import run

if __name__ == "__main__":
    sys.exit(run(3600))
