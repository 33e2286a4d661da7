"""Brings a database to the newest layout, in the caller's transaction."""

from pathlib import Path

from sqlalchemy import Connection, inspect, text

from controlplane.storage.migrations import FIRST, HEAD


class DatabaseVersionError(Exception):
    """The database was made by a newer version of this service."""


def upgrade(connection: Connection) -> str | None:
    """Make or change the tables. Returns the layout there was; None where there was none.

    Raises DatabaseVersionError where the layout is not known here.
    """
    result = layout(connection)
    if result == HEAD:
        return result
    keeps_account = _has(connection, "alembic_version")
    if not keeps_account and result not in {None, FIRST}:
        raise DatabaseVersionError(f"the database has layout {result}, this program knows {HEAD}")
    # Only now: it takes as long to import as all the rest of a command.
    from alembic import command
    from alembic.config import Config
    from alembic.util import CommandError

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent))
    config.attributes["connection"] = connection
    try:
        if result == FIRST and not keeps_account:
            command.stamp(config, FIRST)
        command.upgrade(config, HEAD)
    except CommandError as error:
        raise DatabaseVersionError(
            f"the database has layout {result}, this program knows {HEAD}: {error}"
        ) from error
    return result


def layout(connection: Connection) -> str | None:
    """Return the step that the database is at, None for an empty one."""
    if _has(connection, "alembic_version"):
        return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    if _has(connection, "schema_version"):
        version = connection.execute(text("SELECT version FROM schema_version")).scalar()
        return f"{version:04}"
    return None


def _has(connection: Connection, table: str) -> bool:
    return inspect(connection).has_table(table)
