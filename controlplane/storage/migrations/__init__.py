"""Upgrades the tables of an older release to the newest layout. There is no downgrade.

In an empty database, all tables are created from the models. In a database of release 0.1.0, the
missing tables are created from the models. For the upgrade of a later layout, Alembic runs the
steps in ``versions`` (docs/adr/0042).
"""

from typing import Final

FIRST: Final = "0001"
"""The layout of release 0.1.0, which had no table ``alembic_version``."""
LAYOUTS: Final = ("0012", "0013", "0014", "0015", "0016", "0017", "0018", "0019")
"""The layouts with a step in ``versions``, oldest first. 0002 to 0011 were never released."""
HEAD: Final = LAYOUTS[-1]
"""The newest layout, which the models of `controlplane.storage.layout` define."""
