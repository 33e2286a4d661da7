"""How the tables of one release become those of the next, forward only, by Alembic.

Each step is a file in ``versions``; a database is brought to the newest when the service starts.
"""

from typing import Final

HEAD: Final = "0012"
"""The newest step: the layout of `controlplane.storage.layout`."""
FIRST: Final = "0001"
"""The layout of release 0.1.0, which kept no account of steps."""
