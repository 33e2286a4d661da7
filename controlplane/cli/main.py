"""The command line of the service: what there is to type.

Each verb lives in ``controlplane.cli`` and is imported when it is run, so that ``--help`` and
the small verbs do not wait for the libraries of the others.
"""

import argparse
import importlib
import io
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from agent import __version__
from agent.presentation.command_line import SuggestingParser
from controlplane.cli.arguments.audit import add_audit_verb
from controlplane.cli.arguments.facade import add_facade_verbs
from controlplane.cli.arguments.figures import add_figures_verb
from controlplane.cli.arguments.keys import add_database, add_key_verbs
from controlplane.cli.arguments.retail import add_retail_verbs
from controlplane.cli.arguments.sandbox import add_sandbox_verbs
from controlplane.cli.arguments.service import (
    add_database_verbs,
    add_service_verbs,
    words_of_line,
)
from controlplane.cli.arguments.support import add_support_verbs
from controlplane.cli.arguments.users import add_user_verbs
from controlplane.cli.arguments.values import count, days, host_port, port, rate, seconds
from controlplane.cli.arguments.verb import add_verb
from controlplane.cli.watching.options import add_locations, add_serve_options
from controlplane.client.errors import CommandError
from controlplane.settings import Settings

if TYPE_CHECKING:
    from controlplane.cli.arguments.verb import Subparsers

EXIT_BAD = 1
EXIT_INTERRUPTED = 130
DEFAULT_PORT = 8470
Verb = Callable[[argparse.Namespace], int]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb. Returns 0 when done, 1 when it went badly, 2 for a wrong call."""
    options = build_parser().parse_args(arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a locale may lack characters of a report
    try:
        return _load(options.verb)(options)
    except CommandError as error:
        if options.debug:
            raise
        print(f"venue-control: {error}", file=sys.stderr)
        if error.hint:
            print(error.hint, file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:
        sys.stderr.close()  # the reader has seen enough: Python must not complain at its end
        return EXIT_BAD
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED


def build_parser() -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = _Parser(
        prog="venue-control", description="The reference service of the venue agent."
    )
    parser.add_argument("--debug", action="store_true", help="show tracebacks")
    verbs = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_serve(verbs)
    add_key_verbs(verbs)
    add_user_verbs(verbs)
    add_support_verbs(verbs)
    add_audit_verb(verbs)
    add_facade_verbs(verbs)
    add_locations(verbs)
    _add_demo(verbs)
    add_service_verbs(verbs)
    add_database_verbs(verbs)
    add_figures_verb(verbs)
    add_retail_verbs(verbs)
    add_sandbox_verbs(verbs)
    return parser


class _Parser(SuggestingParser):
    version = f"venue-control {__version__}"

    def convert_arg_line_to_args(self, arg_line: str) -> list[str]:
        return words_of_line(arg_line)


def _load(path: str) -> Verb:
    """Import a verb. Raises CommandError where the libraries of the service are not installed."""
    module, _, name = path.partition(":")
    try:
        return cast(Verb, getattr(importlib.import_module(f"controlplane.cli.{module}"), name))
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in {"agent", "controlplane"}:
            raise
        raise CommandError(
            f"this needs the service's own libraries, and {error.name} is not installed",
            "install them: pip install 'venue-agent[controlplane]'",
        ) from None


def _add_serve(verbs: "Subparsers") -> None:
    text = "run the service until SIGTERM; @FILE has options"
    parser = add_verb(verbs, "serve", "serve:run", text)
    parser.fromfile_prefix_chars = "@"
    defaults = Settings()
    add = parser.add_argument
    add_database(parser)
    add("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    add("--port", type=port, default=DEFAULT_PORT, help="0: any free one (default: %(default)s)")
    add(
        "--origin",
        metavar="URL",
        help="where browsers find it behind a proxy, as https://venue.example: cookies are bound to"
        " it (default: what they call)",
    )
    add(
        "--trusted-proxy",
        action="append",
        default=[],
        metavar="ADDRESS",
        help="a proxy's address: from it X-Forwarded-For is believed; may be repeated",
    )
    add(
        "--workers",
        type=count,
        default=1,
        metavar="N",
        help="processes, on PostgreSQL: one for each processor (default: %(default)s)",
    )
    add("--tracker-url", metavar="URL", help="webhook that is told of each report")
    add(
        "--tracker-attempts",
        type=count,
        default=defaults.tracker_attempts_max,
        metavar="N",
        help="how often it is tried before a report counts as failed (default: %(default)s)",
    )
    add(
        "--online-window",
        type=seconds,
        default=defaults.online_window_s,
        metavar="SECONDS",
        help="how long after a heartbeat a device is online (default: %(default)s)",
    )
    add(
        "--request-ttl",
        type=seconds,
        default=defaults.request_ttl_s,
        metavar="SECONDS",
        help="when a request expires (default: %(default)s)",
    )
    add(
        "--challenge-ttl",
        type=seconds,
        default=defaults.challenge_ttl_s,
        metavar="SECONDS",
        help="when a challenge expires (default: %(default)s)",
    )
    add(
        "--body-limit",
        type=count,
        default=defaults.body_limit_bytes,
        metavar="BYTES",
        help="the largest body of a call (default: %(default)s)",
    )
    add(
        "--rate",
        type=rate,
        default=defaults.rate_per_s,
        metavar="PER_SECOND",
        help="calls with one API key in the long run, 0 for no limit (default: %(default)s)",
    )
    add(
        "--burst",
        type=count,
        default=defaults.burst,
        metavar="N",
        help="calls with one API key at once (default: %(default)s)",
    )
    add(
        "--keep-reports",
        type=days,
        metavar="DAYSd",
        help="delete reports and requests that are older, as 180d, but for the newest report"
        " of each kind of a device (default: kept for ever)",
    )
    add(
        "--keep-audit",
        type=days,
        default=defaults.keep_audit_s,
        metavar="DAYSd",
        help="delete lines of the audit log that are older (default: 400d)",
    )
    add_serve_options(parser)
    add(
        "--log-level",
        choices=("debug", "info", "warning", "error"),
        default="info",
        help="what is written to stderr (default: %(default)s)",
    )
    add(
        "--log-format",
        choices=("text", "json"),
        default="text",
        help="json: an object a line (default: %(default)s)",
    )
    add(
        "--metrics",
        type=host_port,
        metavar="HOST:PORT",
        help="serve /metrics for Prometheus there, without a key (default: nowhere)",
    )


def _add_demo(verbs: "Subparsers") -> None:
    parser = add_verb(
        verbs, "demo", "demo:run", "play a venue: this service, an agent, two reports"
    )
    add = parser.add_argument
    add("--lan", action="store_true", help="play nothing: look at this machine's networks")
    add("--dir", type=Path, default=Path(".demo"), help="where everything is kept (default .demo)")
    add("--keep", action="store_true", help="keep service, agent and console until Ctrl-C")
