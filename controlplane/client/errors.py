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
