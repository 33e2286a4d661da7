"""The layout that later steps start from. `controlplane.storage.migrations.tables` creates it."""

revision = "0012"
down_revision = None


def upgrade() -> None:
    """Do nothing: there is no older step from which a database is upgraded to this one."""
