"""The entry point of `venue-control`.

A command's module is imported when the command is run, so that ``--help`` and small commands do
not load the libraries of other commands.
"""

import argparse
import importlib
import io
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import cast

from controlplane.cli.arguments import client, database, serve
from controlplane.cli.arguments.command import Parser, add_commands
from controlplane.client.errors import CommandError

EXIT_BAD = 1
EXIT_INTERRUPTED = 130
CommandFunction = Callable[[argparse.Namespace], int | None]
"""Runs a command. Returns its exit code, or None for success."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    0 is success, 1 a failure, 2 wrong usage, 3 missing access, and 130 an interruption (Ctrl-C).
    """
    options = build_parser().parse_args(arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # the terminal may not support every character
    try:
        return _load(options.function)(options) or 0
    except CommandError as error:
        if options.debug:
            raise
        print(f"venue-control: {error}", file=sys.stderr)
        if error.hint:
            print(error.hint, file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:
        with suppress(BrokenPipeError):  # stderr can be the closed pipe
            sys.stderr.close()  # otherwise Python reports the closed pipe when it exits
        return EXIT_BAD
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands, without importing the libraries of the service."""
    parser = Parser(prog="venue-control", description="The reference service of the venue agent.")
    parser.add_argument("--debug", action="store_true", help="show tracebacks")
    add_commands(
        parser,
        serve.GROUPS | database.GROUPS | client.GROUPS,
        (*serve.COMMANDS, *database.COMMANDS, *client.COMMANDS),
    )
    return parser


def _load(path: str) -> CommandFunction:
    """Import a command's function. Raises CommandError if a library is not installed."""
    module, _, name = path.partition(":")
    try:
        return cast(
            CommandFunction, getattr(importlib.import_module(f"controlplane.cli.{module}"), name)
        )
    except ModuleNotFoundError as error:
        library = (error.name or "").partition(".")[0]
        if library in {"agent", "controlplane"}:
            raise
        raise CommandError(
            f"this command requires the libraries of the service, and {library} is missing",
            "Install them: pip install 'venue-agent[controlplane]'",
        ) from None
