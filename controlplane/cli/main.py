"""The command line of the service: what there is to type.

Each verb lives in ``controlplane.cli`` and is imported when it is run, so that ``--help`` and
the small verbs do not wait for the libraries of the others.
"""

import argparse
import importlib
import io
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, cast

from agent import __version__
from controlplane.cli import sandbox_verbs
from controlplane.cli.errors import CommandError
from controlplane.settings import Settings

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]  # noqa: SLF001

EXIT_BAD = 1
EXIT_INTERRUPTED = 130
DEFAULT_PORT = 8470
DEFAULT_ORGANIZATION = "org-0001"
DAYS_MAX = 36_500
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
    _add_keys(verbs)
    _add_facade_verbs(verbs)
    _add_demo(verbs)
    _add_sandbox(verbs)
    return parser


class _Parser(argparse.ArgumentParser):
    """Tells the version at every verb, and what was meant with its verb's usage."""

    def __init__(self, **keywords: Any) -> None:
        super().__init__(**keywords)
        version = f"venue-control {__version__}"
        text = "show the version and exit"
        self.add_argument("--version", action="version", version=version, help=text)

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        options, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return options, unknown

    def error(self, message: str) -> NoReturn:
        from agent.presentation.command_line import did_you_mean  # where there is a mistake only

        super().error(message + did_you_mean(message, self.format_help()))


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


def _verb(verbs: "Subparsers", name: str, path: str, text: str) -> argparse.ArgumentParser:
    parser = verbs.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
    parser.set_defaults(verb=path)
    return parser


def _add_serve(verbs: "Subparsers") -> None:
    parser = _verb(verbs, "serve", "serve:run", "run the service until SIGTERM")
    defaults = Settings()
    add = parser.add_argument
    _add_database(parser)
    add("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    add("--port", type=_port, default=DEFAULT_PORT, help="0: any free one (default: %(default)s)")
    add(
        "--workers",
        type=_count,
        default=1,
        metavar="N",
        help="processes, on PostgreSQL: one for each processor (default: %(default)s)",
    )
    add("--tracker-url", metavar="URL", help="webhook that is told of each report")
    add(
        "--tracker-attempts",
        type=_count,
        default=defaults.tracker_attempts_max,
        metavar="N",
        help="how often it is tried before a report counts as failed (default: %(default)s)",
    )
    add(
        "--online-window",
        type=_seconds,
        default=defaults.online_window_s,
        metavar="SECONDS",
        help="how long after a heartbeat a device is online (default: %(default)s)",
    )
    add(
        "--request-ttl",
        type=_seconds,
        default=defaults.request_ttl_s,
        metavar="SECONDS",
        help="when a request expires (default: %(default)s)",
    )
    add(
        "--challenge-ttl",
        type=_seconds,
        default=defaults.challenge_ttl_s,
        metavar="SECONDS",
        help="when a challenge expires (default: %(default)s)",
    )
    add(
        "--body-limit",
        type=_count,
        default=defaults.body_limit_bytes,
        metavar="BYTES",
        help="the largest body of a call (default: %(default)s)",
    )
    add(
        "--rate",
        type=_rate,
        default=defaults.rate_per_s,
        metavar="PER_SECOND",
        help="calls with one API key in the long run, 0 for no limit (default: %(default)s)",
    )
    add(
        "--burst",
        type=_count,
        default=defaults.burst,
        metavar="N",
        help="calls with one API key at once (default: %(default)s)",
    )
    add(
        "--keep-reports",
        type=_age,
        metavar="DAYSd",
        help="delete reports and requests that are older, as 180d, but for the newest report"
        " of each kind of a device (default: kept for ever)",
    )
    add(
        "--log-level",
        choices=("debug", "info", "warning", "error"),
        default="info",
        help="what is written to stderr (default: %(default)s)",
    )


def _add_keys(verbs: "Subparsers") -> None:
    parser = verbs.add_parser("keys", help="make, list and revoke API keys in the database")
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    create = _verb(actions, "create", "keys:create", "make an API key and print it, once")
    create.add_argument("--write", action="store_true", help="with a write grant")
    create.add_argument(
        "--location",
        action="append",
        default=[],
        metavar="ID",
        help="only this location; may be repeated (default: every location)",
    )
    create.add_argument("--name", default="", help="what it is for")
    create.add_argument(
        "--organization",
        default=DEFAULT_ORGANIZATION,
        metavar="ID",
        help="whose key it is (default: %(default)s)",
    )
    revoke = _verb(actions, "revoke", "keys:revoke", "end an API key")
    revoke.add_argument("id", help="the key's id, see `keys list`")
    for action in (create, revoke, _verb(actions, "list", "keys:list_all", "list API keys")):
        _add_database(action)


def _add_facade_verbs(verbs: "Subparsers") -> None:
    devices = _verb(verbs, "devices", "devices:list_all", "list the enrolled devices")
    device = _verb(verbs, "device", "devices:show", "show a device, its requests and reports")
    request = _verb(verbs, "request", "requests:create", "ask a device for a report")
    report = _verb(verbs, "report", "reports:show", "show a report")
    revoke = _verb(verbs, "revoke", "devices:revoke", "end a device's binding")
    for parser in (device, request, revoke):
        parser.add_argument("instance", help="its name, its id or the first characters of the id")
    for parser in (devices, device):
        parser.add_argument("--json", action="store_true", help="print the records as JSON")
    request.add_argument("kind", choices=("network", "application"))
    request.add_argument("--wait", action="store_true", help="until the request is finished")
    report.add_argument("id", help="the reportId")
    form = report.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print the whole record as JSON")
    form.add_argument("--html", metavar="FILE", help="write it as a page")
    for parser in (devices, device, request, report, revoke):
        _add_connection(parser)


def _add_demo(verbs: "Subparsers") -> None:
    parser = _verb(verbs, "demo", "demo:run", "play a venue: this service, an agent, two reports")
    add = parser.add_argument
    add("--lan", action="store_true", help="play nothing: look at this machine's networks")
    add("--dir", type=Path, default=Path(".demo"), help="where everything is kept (default .demo)")
    add("--keep", action="store_true", help="keep service, agent and console until Ctrl-C")


def _add_sandbox(verbs: "Subparsers") -> None:
    parser = verbs.add_parser("sandbox", help="make a merchant up, to try the service with")
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    for verb in sandbox_verbs.add_verbs(partial(_verb, actions)):
        _add_database(verb)


def _add_database(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--database",
        metavar="URL",
        help="database URL or SQLite file (default: $VENUE_CONTROL_DATABASE, "
        "or a file in the state directory)",
    )


def _add_connection(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--base-url",
        metavar="URL",
        help=f"the service (default: $VENUE_CONTROL_URL, or http://127.0.0.1:{DEFAULT_PORT})",
    )
    parser.add_argument(
        "--api-key-file",
        metavar="FILE",
        help="file with the API key (default: $VENUE_CONTROL_API_KEY)",
    )


def _port(text: str) -> int:
    port = int(text)
    if not 0 <= port <= 65535:  # the 16 bits of a port
        raise argparse.ArgumentTypeError("a port is 0 to 65535")
    return port


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds <= 366 * 86400:
        raise argparse.ArgumentTypeError("must be more than 0 seconds, and at most a year")
    return seconds


def _age(text: str) -> float:
    """Return the seconds of ``180d``."""
    days, unit = text[:-1], text[-1:]
    if unit != "d" or not days.isascii() or not days.isdecimal() or not 1 <= int(days) <= DAYS_MAX:
        raise argparse.ArgumentTypeError(f"must be days, 1d to {DAYS_MAX}d")
    return int(days) * 86400.0


def _rate(text: str) -> float:
    rate = float(text)
    if not 0 <= rate <= 1e6:  # keeps inf and nan out
        raise argparse.ArgumentTypeError("must be 0 to 1000000")
    return rate


def _count(text: str) -> int:
    count = int(text)
    if count < 1:
        raise argparse.ArgumentTypeError("must be 1 or more")
    return count
