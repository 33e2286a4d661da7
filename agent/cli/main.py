"""`venue-agent`: runs a verb, and prints errors as plain lines.

Exit codes: 0 success, 1 a problem or an error, 2 an error in usage or configuration (`status`: the
agent does not run), 3 this user is not permitted to read what the verb needs, 130 Ctrl-C. Each
verb's module is imported only when that verb runs, so that every verb starts fast.
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
from agent.config.rights import how_to_run_as_root, name_configuration, with_config
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
    "run": "run the daemon in the foreground, as service managers do",
    "enroll": "enroll at the service now and print the enrollment",
    "collect": "collect a report on this machine now, without a service",
    "check": "check one printer now: what is wrong with it, and what to do",
    "status": "show the daemon's state and its problems",
    "doctor": "check everything that the agent needs, with a fix for each problem",
    "history": "list requests and reports, or show one report again",
    "timeline": "show when the connection was interrupted, and why",
    "printers": "show the state of all printers of this machine, the broken ones first",
    "config": "check, show or describe the configuration",
    "service": "install, uninstall, start or stop the service, or show its state",
    "upgrade": "show the installed and available version, and what an upgrade would do now",
}
_PROGRAM_OPTIONS: Final = frozenset({"-h", "--help", "--version", "--debug"})


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    _prevent_encoding_errors()
    if arguments is None:
        use_system_programs_only()
    words = put_options_after_verb(sys.argv[1:] if arguments is None else arguments)
    options = _parse(words)
    name_configuration(getattr(options, "config", None))

    def act() -> int:
        _find_secrets(getattr(options, "config", None))
        code: int = importlib.import_module(f"agent.cli.{options.verb}").run(options)
        return code

    try:
        return run_command(act, debug=options.debug, words=shlex.join(words))
    finally:
        name_configuration(None)


def put_options_after_verb(words: Sequence[str]) -> list[str]:
    """Return the command line with the options of the verb after the verb.

    `--config` may be anywhere. The other options of a verb may precede the verb.
    """
    ordered_words: list[str] = []
    moved_words: list[str] = []
    remaining_words = iter(words)
    for word in remaining_words:
        is_config = word == "--config" or word.startswith("--config=")
        (moved_words if is_config else ordered_words).append(word)
        if word == "--config" and (path := next(remaining_words, None)) is not None:
            moved_words.append(path)
    if not ordered_words:
        return []
    verb_index = next((i for i, word in enumerate(ordered_words) if word in VERBS), 0)
    words_before_verb = ordered_words[:verb_index]
    program_options = [word for word in words_before_verb if word in _PROGRAM_OPTIONS]
    moved_words = [word for word in words_before_verb if word not in _PROGRAM_OPTIONS] + moved_words
    return [*program_options, *ordered_words[verb_index:], *moved_words]


def run_command(act: Callable[[], int], *, debug: bool = False, words: str = "") -> int:
    """Run ``act`` and return its exit code. An error is printed and becomes an exit code.

    ``words`` is the command line. The advice to run the command again as root contains it.
    """
    try:
        return act()
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader has closed the pipe. When Python exits, it cannot flush stdout, and would print
        # an error for this on stderr.
        sys.stderr.close()
        return EXIT_BAD
    except Exception as error:  # noqa: BLE001 - the outermost boundary; --debug prints a traceback
        if debug:
            sys.stderr.write(redact("".join(traceback.format_exception(error))))
            return EXIT_BAD  # Python's own exit code after a traceback
        for line in _error_lines(error, words):
            sys.stderr.write(f"venue-agent: {with_config(redact(without_controls(line)))}\n")
        return _exit_code(error)


def _find_secrets(config: Path | None) -> None:
    """Find the secrets that all output must redact, even if the configuration is invalid."""
    from agent.config.model import default_config_path  # not needed for --help
    from agent.redaction.secret_sources import find_secrets

    remember(*find_secrets(config or default_config_path(), os.environ))


def _error_lines(error: Exception, words: str) -> list[str]:
    if not isinstance(error, AgentError):
        return [
            f"unexpected {type(error).__name__}: {error}",
            "run the command again with --debug, and send the output to support",
        ]
    lines = str(error).splitlines()
    if isinstance(error, NotVisible):
        lines.append(error.advice or how_to_run_as_root(words))
    return lines


def _exit_code(error: Exception) -> int:
    if isinstance(error, NotVisible):
        return EXIT_NOT_VISIBLE
    return EXIT_USAGE if isinstance(error, ConfigError) else EXIT_BAD


class _Parser(SuggestingParser):
    """The agent's parser. Its errors repeat invalid arguments, but no secrets."""

    version = f"venue-agent {__version__}"

    def error(self, message: str) -> NoReturn:
        # Earlier versions had the verb `demo`.
        hint = "; the demo is `venue-control demo` now" if "choice: 'demo'" in message else ""
        super().error(redact(message) + hint)


def _prevent_encoding_errors() -> None:
    """Prevent encoding errors on stdout and stderr.

    On Windows, pipes and files have a code page that lacks many characters, and readers expect
    UTF-8. On other systems, characters that the locale's encoding lacks are replaced.
    """
    for stream in (sys.stdout, sys.stderr):
        if not isinstance(stream, io.TextIOWrapper):
            continue
        if sys.platform == "win32":
            stream.reconfigure(encoding="utf-8")
        if stream.errors == "strict":
            stream.reconfigure(errors="replace")


def _parse(words: Sequence[str]) -> argparse.Namespace:
    """Parse the command line. The parser's memory is freed before the verb runs."""
    parser = _parser(words)
    if not words:
        parser.print_help(sys.stderr)
        parser.exit(EXIT_USAGE)
    return parser.parse_args(words)


def _parser(words: Sequence[str]) -> argparse.ArgumentParser:
    parser = _Parser(
        prog="venue-agent",
        usage="%(prog)s VERB [OPTIONS]",
        description="Finds out what is wrong with this machine, its printers and its network.",
        epilog="`venue-agent VERB --help` describes a verb and its options.",
    )
    parser.add_argument("--debug", action="store_true", help="show tracebacks")
    verbs = parser.add_subparsers(
        title="verbs", dest="verb", required=True, metavar="VERB", prog="venue-agent"
    )
    verb = next((word for word in words if word in VERBS), None)
    for name, summary in VERBS.items():
        sub = verbs.add_parser(name, help=summary, description=summary)
        sub.add_argument(
            "--debug", action="store_true", default=argparse.SUPPRESS, help="show tracebacks"
        )
        # Only the module of the verb that runs is imported, for its options.
        if name == verb:
            importlib.import_module(f"agent.cli.{name}").add_arguments(sub)
    return parser
