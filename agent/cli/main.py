"""`venue-agent`: finds the verb, runs it, turns errors into one or two plain lines.

Exit codes: 0 done, 1 the thing asked about is bad, 2 usage or configuration error, 3 closed to this
user. Each verb's module is imported only when it runs, so that the daemon and a quick `status`
start at once.
"""

import argparse
import importlib
import io
import os
import shlex
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NoReturn

from agent import __version__
from agent.config.rights import as_root
from agent.errors import AgentError, ConfigError, NotVisible
from agent.presentation.command_line import SuggestingParser
from agent.redaction.known import redact, remember
from agent.wire.controls import without_controls
from collectors.programs import use_system_programs_only

EXIT_BAD: Final = 1
EXIT_USAGE: Final = 2
EXIT_NOT_VISIBLE: Final = 3
EXIT_INTERRUPTED: Final = 130

VERBS: Final = {
    "run": "the daemon, in the foreground, as service managers start it",
    "enroll": "enroll at the service now and print the record",
    "collect": "collect a report here and now, without a service",
    "status": "what the daemon is doing, and what is wrong",
    "doctor": "check everything the agent needs, each with what to do",
    "history": "requests and reports from the journal",
    "printers": "what is remembered of this machine's printers; forget one",
    "config": "check, show or describe the configuration",
    "service": "install, uninstall, start, stop and look at the service",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    _write_any_character()
    if arguments is None:
        use_system_programs_only()
    words = list(sys.argv[1:] if arguments is None else arguments)
    options = _parser(words).parse_args(words)

    def act() -> int:
        _know_the_secrets(getattr(options, "config", None))
        code: int = importlib.import_module(f"agent.cli.{options.verb}").run(options)
        return code

    return run_command(act, debug=options.debug, words=shlex.join(words))


def run_command(act: Callable[[], int], *, debug: bool = False, words: str = "") -> int:
    """Return what ``act`` returns, or the exit code of its error, told in plain lines.

    ``words`` are those that were typed.
    """
    try:
        return act()
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader has seen enough; Python must not complain while it closes stdout.
        sys.stderr.close()
        return EXIT_BAD
    except Exception as error:  # noqa: BLE001 - the boundary: run_command, with --debug in full
        if debug:
            sys.stderr.write(redact("".join(traceback.format_exception(error))))
            return EXIT_BAD  # as Python does after a traceback
        for line in _lines_of(error, words):
            sys.stderr.write(f"venue-agent: {redact(without_controls(line))}\n")
        return _code_of(error)


def _know_the_secrets(config: Path | None) -> None:
    """Find what must not be told before anything is, also where the configuration is broken."""
    from agent.config.model import default_config_path  # the verb needs it, --help not
    from agent.redaction.places import secrets_here

    remember(*secrets_here(config or default_config_path(), os.environ))


def _lines_of(error: Exception, words: str) -> list[str]:
    if not isinstance(error, AgentError):
        return [
            f"unexpected {type(error).__name__}: {error}",
            "run it again with --debug and send what it prints",
        ]
    lines = str(error).splitlines()
    if isinstance(error, NotVisible):
        lines.append(error.advice or as_root(words))
    return lines


def _code_of(error: Exception) -> int:
    if isinstance(error, NotVisible):
        return EXIT_NOT_VISIBLE
    return EXIT_USAGE if isinstance(error, ConfigError) else EXIT_BAD


class _Parser(SuggestingParser):
    """What it does not understand it repeats, but no secret."""

    version = f"venue-agent {__version__}"

    def error(self, message: str) -> NoReturn:
        moved = "; the demo is `venue-control demo` now" if "choice: 'demo'" in message else ""
        super().error(redact(message) + moved)


def _write_any_character() -> None:
    """Have no character end the program. Windows gives a pipe or a file a code page that lacks
    many, and there everything that reads ours reads UTF-8; a locale elsewhere may lack some too."""
    for stream in (sys.stdout, sys.stderr):
        if not isinstance(stream, io.TextIOWrapper):
            continue
        if sys.platform == "win32":
            stream.reconfigure(encoding="utf-8")
        if stream.errors == "strict":
            stream.reconfigure(errors="replace")


def _parser(words: Sequence[str]) -> argparse.ArgumentParser:
    parser = _Parser(
        prog="venue-agent", description="Remote control and diagnostics agent of a venue's machine."
    )
    parser.add_argument("--debug", action="store_true", help="show tracebacks")
    verbs = parser.add_subparsers(title="verbs", dest="verb", required=True, metavar="VERB")
    wanted = next((word for word in words if word in VERBS), None)
    for name, summary in VERBS.items():
        sub = verbs.add_parser(name, help=summary, description=summary)
        sub.add_argument("--debug", action="store_true", default=argparse.SUPPRESS)
        # Only the verb that will run says what it takes: the others need not be imported.
        if name == wanted:
            importlib.import_module(f"agent.cli.{name}").add_arguments(sub)
    return parser
