"""Brings the tables of an older release to the newest layout, forward only (docs/adr/0042).

The newest tables are created from the models, in an empty database and beside the tables of
release 0.1.0. Between later layouts, Alembic runs the steps in ``versions``.
"""

from typing import Final

FIRST: Final = "0001"
"""The layout of release 0.1.0, which had no table ``alembic_version``."""
LAYOUTS: Final = ("0012",)
"""The layouts with a step in ``versions``, oldest first. 0002 to 0011 were never released."""
HEAD: Final = LAYOUTS[-1]
"""The newest layout: that of `controlplane.storage.layout`."""
