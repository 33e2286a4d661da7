"""What can go wrong on the command line, said in one or two plain lines.

CommandError       exit 1: the thing asked for went badly
  ├── UsageError   exit 2: the call or its surroundings are wrong
  └── ClosedError  exit 3: closed to this user
"""


class CommandError(Exception):
    """``hint`` is a second line: what to do about it."""

    exit_code = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class UsageError(CommandError):
    exit_code = 2


class ClosedError(CommandError):
    exit_code = 3


def database_error(error: Exception) -> CommandError:
    """Return what to print about an error of the database."""
    if isinstance(error, PermissionError):
        return ClosedError(
            f"the database {error.filename} is closed to this user",
            "Ask as its owner or as root, or name another one by --database.",
        )
    reason = str(getattr(error, "orig", None) or error).splitlines()[0]
    return UsageError(f"cannot use the database: {reason}", "--database takes a URL or a file")
