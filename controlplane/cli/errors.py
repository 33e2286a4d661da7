"""Errors of the database, as the command line prints them."""

from controlplane.client.errors import ClosedError, CommandError, UsageError


def database_error(error: Exception) -> CommandError:
    """Return what to print about an error of the database."""
    if isinstance(error, PermissionError):
        return ClosedError(
            f"the database {error.filename} is closed to this user",
            "Ask as its owner or as root, or name another one by --database.",
        )
    reason = str(getattr(error, "orig", None) or error).splitlines()[0]
    return UsageError(f"cannot use the database: {reason}", "--database takes a URL or a file")
