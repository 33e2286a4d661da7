"""Errors of the command line, with texts of one or two lines for users.

CommandError              exit 1: the operation failed
  ├── UsageError          exit 2: the arguments or the environment are wrong
  └── AccessDeniedError   exit 3: the operating system denies access to this user
"""


class CommandError(Exception):
    """An error with a message for users. ``hint`` is a second line that contains what to do."""

    exit_code = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class UsageError(CommandError):
    exit_code = 2


class AccessDeniedError(CommandError):
    exit_code = 3
