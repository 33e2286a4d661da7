"""``python -m controlplane`` is ``venue-control``."""

import sys

from controlplane.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
