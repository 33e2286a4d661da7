"""Runs `venue-control`, but sends a comment on each stream only every hour.

Comments are the keep-alive of server-sent events. Without them, a proxy that buffers never delivers
a command, because no further data follows the command.
"""

import sys

from tests.packaging.service.frequent_comments import run

if __name__ == "__main__":
    sys.exit(run(3600))
