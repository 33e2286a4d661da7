"""`python -I -m agent` is `venue-agent`.

Without -I Python itself looks for modules in the current directory first."""

import sys

from agent.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
