"""The layout that later steps start from. Earlier versions of this program created it."""

revision = "0012"
down_revision = None


def upgrade() -> None:
    """Do nothing: there is no older step from which a database is upgraded to this one."""
