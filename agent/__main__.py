"""`python -m agent` is `venue-agent`."""

import sys

from agent.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
