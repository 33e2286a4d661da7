"""The files and the user of the installed service."""

from pathlib import Path
from typing import Final

UNIT: Final = "venue-control.service"
USER: Final = "venue-control"
SYSUSERS: Final = "venue-control.sysusers"
OPTIONS: Final = Path("/etc/venue-control/serve.conf")
"""The options of `venue-control serve`, one on each line."""
STATE: Final = Path("/var/lib/venue-control")
RESOURCES: Final = Path(__file__).parent
"""The directory that contains the files `UNIT` and `SYSUSERS`."""
