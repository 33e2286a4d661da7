"""The commands that call a service over HTTP.

Most commands work with every service that implements the contract. The commands ``alerts``,
``findings``, ``incidents`` and ``printers``, and the options ``--health`` and ``--when-back``,
require operations that the contract does not have.
"""

from typing import Final

from controlplane.cli.arguments.command import (
    Argument,
    Command,
    Group,
    flag,
    one_of,
    option,
    positional,
    repeated,
)
from controlplane.cli.arguments.values import count, duration, full_date, time_range, within

KINDS: Final = ("network", "application")
PLATFORMS: Final = ("android", "ios", "macos", "windows", "linux")
CSV_TABLES: Final = ("hosts", "endpoints", "printers", "facts")
PERIODS: Final = ("today", "yesterday", "last7", "thisMonth")
ORDERS: Final = tuple(
    f"{field}_{direction}"
    for field in ("initiated_at", "created_at", "updated_at", "number")
    for direction in ("asc", "desc")
)
CATALOG_LISTS: Final = {
    "goods": "goods with their prices",
    "categories": "categories of goods",
    "uoms": "units of measure",
    "fees": "taxes and fees",
}
SALES_LIMIT: Final = 50
HEALTHS: Final = ("healthy", "warning", "broken", "offline", "never-connected", "revoked")
STATES: Final = (*HEALTHS, "online", "closed", "maintenance", "busy")
PRINTER_STATES: Final = ("broken", "warning", "unknown", "healthy")
DAYS_MAX: Final = 30
DAYS_DEFAULT: Final = 7
DEFAULT_URL: Final = "http://127.0.0.1:8470"

_DEVICE_HELP: Final = "name of the device, its id, or the first characters of the id"
_DEVICE: Final = positional("instance", _DEVICE_HELP, metavar="DEVICE")
_KIND: Final = positional("kind", "kind of report", choices=KINDS)
_JSON_OBJECT: Final = flag("--json", "print the record as JSON")
_JSON_ARRAY: Final = flag("--json", "print the records as a JSON array")
_CSV: Final = flag("--csv", "print the records as CSV with a header row")


def _filters(search: str) -> Group:
    return Group((
        repeated("--location", "ID", "id or name of a location; may be repeated"),
        repeated("--platform", None, "operating system; may be repeated", choices=PLATFORMS),
        repeated("--app-version", "V", "version of the agent; may be repeated"),
        repeated("--app-version-not", "V", "exclude a version of the agent; may be repeated"),
        option("--search", "TEXT", search, default=""),
    ), "filters")  # fmt: skip


_FILTERS: Final = _filters("words of the name, location or version, or the start of the id")
_DEVICE_FILTERS: Final = _filters(
    "words of the name, location, version or newest reports, or the start of the id"
)
_PRINTER_FILTERS: Final = _filters(
    "words of the printer's name, address or problem, or of the device's name or location"
)


def _connection(name: str, key: str, variable: str) -> Group:
    url = f"address of the service (default: $VENUE_CONTROL_URL, or {DEFAULT_URL})"
    file = option(name, "FILE", f"file with the {key} (default: the key in ${variable})")
    return Group((option("--base-url", "URL", url), file), "the service")


_SERVICE: Final = _connection("--api-key-file", "API key", "VENUE_CONTROL_API_KEY")
_RETAIL: Final = _connection("--retail-key-file", "retail API key", "VENUE_CONTROL_RETAIL_KEY")


def _state_flag(name: str) -> Argument:
    text = f"list {name} devices only"
    return Argument((f"--{name}",), {
        "dest": "state", "action": "store_const", "const": name, "help": text,
    })  # fmt: skip


GROUPS: Final = {
    "alerts": "list and acknowledge firing alerts, add and end silences",
    "catalog": "show the catalog of a merchant",
}
COMMANDS: Final = (
    Command(
        "devices", "devices.verbs:list_all", "list and count the enrolled devices",
        (
            _DEVICE_FILTERS,
            repeated("--health", "HEALTH", f"{', '.join(HEALTHS)}; may be repeated",
                     choices=HEALTHS),
            one_of(*(_state_flag(name) for name in ("online", "offline", "revoked"))),
            one_of(
                _JSON_ARRAY, flag("--ndjson", "print the records as JSON, one on each line"), _CSV
            ),
            _SERVICE,
        ),
        (
            "venue-control devices --health broken --health offline",
            "venue-control devices --search paper",
            "venue-control devices --location loc-0001 --csv > devices.csv",
            "venue-control devices --app-version-not 0.2.0     # devices to update",
        ),
    ),
    Command("device", "devices.verbs:show", "show a device with its requests and reports",
            (_DEVICE, _JSON_OBJECT, _SERVICE)),
    Command(
        "request", "requests.create:create", "request reports from devices",
        (
            positional("instance", _DEVICE_HELP, nargs="*", metavar="DEVICE"),
            _KIND,
            flag("--all", "request from every device that matches the filters; without"
                 " --when-back, only from online devices"),
            _FILTERS,
            flag("--wait", "wait until the requests are finished"),
            Argument(("--at-once", "--limit"), {
                "type": count, "metavar": "N",
                "help": "with --wait: maximum number of open requests (default: no maximum)",
            }),
            flag("--when-back", "for each device, create a pending request, which is dispatched"
                 " when the device is online"),
            option("--until", "3d", "with --when-back: lifetime of the pending requests, such as"
                   " 12h or 3d (default: 3d)", type=duration(days_max=92), default=3 * 86_400.0),
            flag("--yes", "do not ask for confirmation"),
            option("--out", "DIR", "with --wait: directory in which each report is saved as JSON"
                   " and HTML"),
            _SERVICE,
        ),
        (
            "venue-control request bar-till network --wait",
            "venue-control request --location loc-0001 application --wait",
            "venue-control request --all network --when-back --until 3d",
            "venue-control request --all network --wait --at-once 10 --yes --out reports/",
        ),
        is_intermixed=True,
    ),
    Command(
        "reports", "reports.verbs:list_all", "list reports, newest first",
        (
            option("--device", "DEVICE", _DEVICE_HELP),
            option("--kind", None, "kind of report", choices=KINDS),
            option("--since", "AGE", "maximum age, such as 30m, 12h or 7d (default: 7d)",
                   type=duration(), default=7 * 86_400.0),
            _JSON_ARRAY, _FILTERS, _SERVICE,
        ),
        (
            "venue-control reports --since 12h",
            "venue-control reports --device bar-till --kind network",
        ),
    ),
    Command(
        "printers", "devices.printers:list_all", "list the printers of all devices, broken first",
        (
            option("--state", None, "state of the printer", dest="printer_state",
                   choices=PRINTER_STATES),
            one_of(_JSON_ARRAY, _CSV), _PRINTER_FILTERS, _SERVICE,
        ),
        (
            "venue-control printers --state broken",
            "venue-control printers --location loc-0001",
        ),
    ),
    Command(
        "findings", "devices.findings:show",
        "count the devices that have each finding, or list the devices with one finding",
        (
            positional("rule", "name of a finding, to list the devices that have it", nargs="?"),
            flag("--new", "list the devices with findings that began less than a day ago"),
            option("--state", None, "state of the devices", dest="device_state", choices=STATES),
            option("--location", "ID", "id of a location"),
            option("--platform", None, "operating system", choices=PLATFORMS),
            option("--app-version", "V", "version of the agent"),
            option("--search", "TEXT", "words of the name, location, version or newest reports",
                   default=""),
            one_of(_JSON_ARRAY, _CSV), _SERVICE,
        ),
        (
            "venue-control findings",
            "venue-control findings printer-unreachable --location loc-0001",
            "venue-control findings --new --csv > new.csv",
        ),
    ),
    Command("alerts list", "devices.alerts:list_all", "list firing alerts, newest first",
            (option("--location", "ID", "id of a location"), _JSON_ARRAY, _SERVICE)),
    Command("alerts acknowledge", "devices.alerts:acknowledge", "acknowledge an alert",
            (positional("id", "id of the alert or its first characters; see `alerts list`"),
             _SERVICE)),
    Command(
        "alerts silence", "devices.alerts:silence", "mute matching alerts until a time",
        (
            option("--location", "ID", "id of a location (default: every location)"),
            option("--device", "DEVICE", f"{_DEVICE_HELP} (default: every device)"),
            option("--rule", "NAME", "name of a rule, such as offline (default: every rule)"),
            option("--until", "WHEN", "end of the silence, such as 2026-12-01T06:00, in the time"
                   " zone of the location or device (UTC if neither is given)", required=True),
            option("--reason", "TEXT", "reason of the silence", default=""),
            _SERVICE,
        ),
        ("venue-control alerts silence --location loc-0001 --until 2026-12-01T06:00",),
    ),
    Command("alerts silences", "devices.alerts:list_silences",
            "list current and planned silences, ordered by their end", (_JSON_ARRAY, _SERVICE)),
    Command("alerts unsilence", "devices.alerts:end_silence", "end a silence now",
            (positional("id", "id of the silence or its first characters; see `alerts silences`"),
             _SERVICE)),
    Command(
        "incidents", "devices.incidents:list_all", "list interruptions at locations, newest first",
        (
            option("--location", "ID", "id of a location"),
            option("--days", "N", f"the last N days, at most {DAYS_MAX} (default: {DAYS_DEFAULT})",
                   type=within(int, 1, DAYS_MAX), default=DAYS_DEFAULT),
            one_of(_JSON_ARRAY, flag("--csv", "print a CSV row for each incident of a device")),
            _SERVICE,
        ),
        (
            "venue-control incidents --days 1",
            "venue-control incidents --location loc-0001 --csv > incidents.csv",
        ),
    ),
    Command(
        "report", "reports.verbs:show", "show a report",
        (
            positional("id", "reportId or its first characters", nargs="?"),
            option("--latest", ("DEVICE", "KIND"), "show the newest report of a device", nargs=2),
            option("--against", "OTHER", "show only the differences from this other report"),
            one_of(
                _JSON_OBJECT,
                option("--html", "FILE", "write the report as an HTML page"),
                option("--csv", "TABLE", f"print a table of the report as CSV:"
                       f" {', '.join(CSV_TABLES)}", choices=CSV_TABLES),
            ),
            _SERVICE,
        ),
        (
            "venue-control report 3f2a91c0",
            "venue-control report --latest bar-till network --html bar.html",
            "venue-control report --latest bar-till network --csv printers",
        ),
    ),
    Command(
        "changes", "reports.changes:latest", "show the differences between the latest two reports",
        (_DEVICE, _KIND, flag("--json", "print the differences as JSON"), _SERVICE),
        ("venue-control changes bar-till network",),
    ),
    Command("revoke", "devices.verbs:revoke", "revoke a device's binding",
            (_DEVICE, flag("--yes", "do not ask for confirmation"), _SERVICE)),
    Command(
        "figures", "figures.verbs:show", "show sales figures and the figures of the period before",
        (
            option("--period", None, "period in the location's time zone (default: today)",
                   choices=PERIODS),
            option("--from", "DATE", "first day", dest="first", type=full_date),
            option("--to", "DATE", "last day, included", dest="last", type=full_date),
            repeated("--location", "ID", "id of a location; may be repeated (default: all locations"
                     " together)"),
            flag("--all", "with --location: show all locations together, not only this one"),
            flag("--json", "print the financial summary as JSON"),
            _SERVICE,
        ),
        (
            "venue-control figures --location loc-0001",
            "venue-control figures --location loc-0001 --all --period last7",
            "venue-control figures --location loc-0001 --from 2026-11-01 --to 2026-11-15 --json",
        ),
    ),
    Command(
        "sales", "retail.sales:list_all", "list completed sales in AED, newest first",
        (
            option("--since", "WHEN", "start of the period, such as 7d, 12h, 2026-11-01 or"
                   " 2026-11-01T09:30", type=time_range),
            option("--until", "WHEN", "end of the period, in the format of --since; for a"
                   " date, the end of this day",
                   type=time_range),
            option("--sort", "ORDER", "initiated_at, created_at, updated_at or number, with _asc or"
                   " _desc", choices=ORDERS, default="initiated_at_desc"),
            option("--limit", "N", f"at most N sales (default: {SALES_LIMIT}; no limit with"
                   " --since, --json or --csv)", type=count),
            one_of(_JSON_ARRAY, _CSV), _RETAIL,
        ),
        (
            "venue-control sales --since 7d",
            "venue-control sales --since 2026-11-01 --until 2026-11-07 --csv > sales.csv",
        ),
    ),
    *(
        Command(f"catalog {name}", f"retail.catalog:{name}", f"list {text}",
                (one_of(_JSON_ARRAY, _CSV), _RETAIL))
        for name, text in CATALOG_LISTS.items()
    ),
    Command(
        "catalog good", "retail.catalog:good", "show a good with its variations",
        (positional("id", "id of the good or its first characters; see `catalog goods`"),
         _JSON_OBJECT, _RETAIL),
    ),
)  # fmt: skip
