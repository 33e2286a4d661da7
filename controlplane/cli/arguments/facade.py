"""The verbs that speak the public facade, to this service or any other of the contract."""

import argparse
from typing import TYPE_CHECKING, Final

from controlplane.cli.arguments.values import age, count
from controlplane.cli.arguments.verb import add_verb, take_words_between
from controlplane.cli.watching.options import add_wish_options

if TYPE_CHECKING:
    from controlplane.cli.arguments.verb import Subparsers

KINDS: Final = ("network", "application")
PLATFORMS: Final = ("android", "ios", "macos", "windows", "linux")
CSV_TABLES: Final = ("hosts", "endpoints", "printers", "facts")
DEFAULT_URL: Final = "http://127.0.0.1:8470"
_DEVICE = "its name, its id or the first characters of the id"
_WEEK_S = 7 * 86_400.0


def add_facade_verbs(verbs: "Subparsers") -> None:
    _add_devices(verbs)
    _add_request(verbs)
    _add_reports(verbs)
    _add_revoke(verbs)


def _add_devices(verbs: "Subparsers") -> None:
    devices = add_verb(
        verbs, "devices", "devices.verbs:list_all", "list the enrolled devices, and count them",
        "venue-control devices --offline",
        "venue-control devices --location loc-0001 --csv > devices.csv",
        "venue-control devices --app-version-not 0.2.0     # who is not there yet",
    )  # fmt: skip
    _add_filters(devices)
    state = devices.add_mutually_exclusive_group()
    for word in ("online", "offline", "revoked"):
        text = f"only those that are {word}"
        state.add_argument(f"--{word}", dest="state", action="store_const", const=word, help=text)
    form = devices.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print the records as a JSON array")
    form.add_argument("--ndjson", action="store_true", help="print the records, one on each line")
    form.add_argument("--csv", action="store_true", help="print them as CSV, with headings")
    text = "show a device, its requests and reports"
    device = add_verb(verbs, "device", "devices.verbs:show", text)
    device.add_argument("instance", help=_DEVICE)
    device.add_argument("--json", action="store_true", help="print the record as JSON")
    for parser in (devices, device):
        add_connection(parser)


def _add_request(verbs: "Subparsers") -> None:
    request = add_verb(
        verbs, "request", "requests.create:create", "ask devices for a report",
        "venue-control request bar-till network --wait",
        "venue-control request --location loc-0001 application --wait",
        "venue-control request --all network --when-back --until 3d",
        "venue-control request --all network --wait --at-once 10 --yes --out reports/",
    )  # fmt: skip
    take_words_between(request)
    add = request.add_argument
    add("instance", nargs="*", metavar="DEVICE", help=_DEVICE)
    add("kind", choices=KINDS, help="what to report on")
    add("--all", action="store_true", help="every device that is heard, and that filters let pass")
    _add_filters(request)
    add("--wait", action="store_true", help="until the requests are finished")
    add(
        "--at-once",
        "--limit",
        type=count,
        metavar="N",
        help="with --wait: ask N at once, and the next as one is finished (default: all)",
    )
    add_wish_options(request)
    add("--yes", action="store_true", help="do not ask, however many devices it is")
    add("--out", metavar="DIR", help="with --wait: keep each report there, as JSON and as a page")
    add_connection(request)


def _add_reports(verbs: "Subparsers") -> None:
    reports = add_verb(
        verbs, "reports", "reports.verbs:list_all", "list reports, the newest first",
        "venue-control reports --since 12h",
        "venue-control reports --device bar-till --kind network",
    )  # fmt: skip
    add = reports.add_argument
    add("--device", metavar="DEVICE", help=_DEVICE)
    add("--kind", choices=KINDS)
    add("--since", type=age, default=_WEEK_S, metavar="AGE", help="as 30m, 12h, 7d (default: 7d)")
    add("--json", action="store_true", help="print the records as a JSON array")
    _add_filters(reports)
    report = add_verb(
        verbs, "report", "reports.verbs:show", "show a report",
        "venue-control report 3f2a91c0",
        "venue-control report --latest bar-till network --html bar.html",
        "venue-control report --latest bar-till network --csv printers",
    )  # fmt: skip
    report.add_argument("id", nargs="?", help="the reportId or its first characters")
    report.add_argument(
        "--latest", nargs=2, metavar=("DEVICE", "KIND"), help="the newest one of a device"
    )
    report.add_argument(
        "--against", metavar="OTHER", help="say only what changed between it and this other one"
    )
    form = report.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print the whole record as JSON")
    form.add_argument("--html", metavar="FILE", help="write it as a page")
    form.add_argument(
        "--csv",
        choices=CSV_TABLES,
        metavar="LIST",
        help=f"print one of its lists as CSV: {', '.join(CSV_TABLES)}",
    )
    changes = add_verb(
        verbs, "changes", "reports.changes:latest", "say what changed since the report before",
        "venue-control changes bar-till network",
    )  # fmt: skip
    changes.add_argument("instance", metavar="DEVICE", help=_DEVICE)
    changes.add_argument("kind", choices=KINDS)
    changes.add_argument("--json", action="store_true", help="print them as JSON")
    for parser in (reports, report, changes):
        add_connection(parser)


def _add_revoke(verbs: "Subparsers") -> None:
    revoke = add_verb(verbs, "revoke", "devices.verbs:revoke", "end a device's binding")
    revoke.add_argument("instance", metavar="DEVICE", help=_DEVICE)
    revoke.add_argument("--yes", action="store_true", help="do not ask")
    add_connection(revoke)


def _add_filters(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("which devices")
    add = group.add_argument
    add("--location", action="append", default=[], metavar="ID", help="at it; may be repeated")
    add("--platform", action="append", default=[], choices=PLATFORMS, help="may be repeated")
    add("--app-version", action="append", default=[], metavar="V", help="may be repeated")
    add("--app-version-not", action="append", default=[], metavar="V", help="any but this")
    add("--search", default="", metavar="WORDS", help="in name, location, version, start of id")
    parser.set_defaults(state=None)


def add_connection(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("the service")
    group.add_argument(
        "--base-url",
        metavar="URL",
        help=f"where it is (default: $VENUE_CONTROL_URL, or {DEFAULT_URL})",
    )
    group.add_argument(
        "--api-key-file",
        metavar="FILE",
        help="file with the API key (default: $VENUE_CONTROL_API_KEY)",
    )
