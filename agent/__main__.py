"""Runs the command line: `python -I -m agent` is equivalent to `venue-agent`.

Without -I, Python would import modules from the current directory first.
"""

import sys

from agent.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
