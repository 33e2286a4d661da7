"""Brings a database to the newest layout, in the caller's transaction."""

from pathlib import Path

from sqlalchemy import Connection, inspect, text

from controlplane.storage.migrations import FIRST, HEAD, LAYOUTS


class DatabaseVersionError(Exception):
    """The database has a layout that this program cannot use. ``hint`` is what the user can do."""

    def __init__(self, revision: str) -> None:
        if revision > HEAD:
            super().__init__(f"it has layout {revision}, and this program supports {HEAD}")
            self.hint = "Install the release that created the database, or a newer one."
        else:
            super().__init__(f"it has layout {revision}, which only development versions had")
            self.hint = (
                "Use a new database, or first upgrade this one with a development version that"
                f" has the steps to layout {LAYOUTS[0]}."
            )


def upgrade(connection: Connection) -> str | None:
    """Create the tables, or bring them to the newest layout.

    Returns:
        The previous layout, or None if the database was empty.

    Raises:
        DatabaseVersionError: The layout is not supported. Nothing was changed.
    """
    old_layout = layout(connection)
    if old_layout == HEAD:
        return old_layout
    if old_layout is not None:
        require_supported(old_layout)
    # Not imported if the layout is the newest: the imports take as long as the rest of a command.
    from alembic import command
    from alembic.config import Config

    from controlplane.storage.migrations.tables import convert_first_release, create_tables

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent))
    config.attributes["connection"] = connection
    if old_layout in LAYOUTS:
        command.upgrade(config, HEAD)
        return old_layout
    if old_layout is None:
        create_tables(connection)
    else:
        convert_first_release(connection)
    command.stamp(config, HEAD, purge=True)
    return old_layout


def require_supported(revision: str) -> None:
    """Raise DatabaseVersionError if this layout cannot be upgraded to the newest."""
    if revision != FIRST and revision not in LAYOUTS:
        raise DatabaseVersionError(revision)


def layout(connection: Connection) -> str | None:
    """Return the layout of a database, None for an empty one."""
    if _has(connection, "alembic_version"):
        return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    if _has(connection, "schema_version"):
        version = connection.execute(text("SELECT version FROM schema_version")).scalar()
        return f"{version:04}"
    return None


def _has(connection: Connection, table: str) -> bool:
    return inspect(connection).has_table(table)
