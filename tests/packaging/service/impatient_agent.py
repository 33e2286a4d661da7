"""Runs `venue-agent`, but checks a revocation again after a second instead of after a minute."""

import sys
from unittest import mock

from agent.cli.main import main
from agent.rules import retry

if __name__ == "__main__":
    with mock.patch.object(retry, "REVOKED", retry.Backoff(base_s=1.0, cap_s=1.0)):
        sys.exit(main())
