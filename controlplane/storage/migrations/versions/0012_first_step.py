"""The layout that later steps start from. `controlplane.storage.migrations.tables` creates it."""

revision = "0012"
down_revision = None


def upgrade() -> None:
    """Do nothing: no database comes here from an older step."""
