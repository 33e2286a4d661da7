"""The commands that read and change the service's database directly."""

from functools import partial
from typing import Final

from controlplane.cli.arguments.command import (
    Command,
    Group,
    flag,
    one_of,
    option,
    positional,
    repeated,
)
from controlplane.cli.arguments.values import count, full_date, time_range, within

DEFAULT_ORGANIZATION: Final = "org-0001"
ROLES: Final = ("owner", "manager", "viewer")
"""Copied from `controlplane.storage.account_tables.Role`, because that module imports SQLAlchemy,
which would slow down every command.
"""
AUDIT_LIMIT: Final = 50

DATABASE: Final = option(
    "--database", "URL", "database URL or SQLite file (default: $VENUE_CONTROL_DATABASE, or a file"
    " in the state directory)",
)  # fmt: skip
_ORGANIZATION: Final = option(
    "--organization", "ID", "organization to use", default=DEFAULT_ORGANIZATION
)
_JSON_ARRAY: Final = flag("--json", "print the records as a JSON array")
_LOCATION_ID: Final = positional("id", "locationId of the location")
_EMAIL: Final = positional("email", "e-mail address of the user", metavar="EMAIL")
_ROLE_HELP: Final = "owner and manager can change data; viewer can only read"
_ACCESS: Final = repeated(
    "--location", "ID",
    "give access to this location only; may be repeated (default: unchanged; for a new member, all"
    " locations)",
)  # fmt: skip
_NEW_LOCATIONS: Final = flag("--new-locations", "permit locations that do not exist yet")
_PASSWORD: Final = option(
    "--password-file", "FILE", "file with the password on its first line; - is standard input"
    " (default: prompt for it)",
)  # fmt: skip
_KEY_HELP: Final = "id of the key, start of the id, name, or last four characters of the key"
_CHANNEL: Final = (
    positional("kind", "one word: phone, email, telegram, ...", metavar="KIND"),
    positional("address", "phone number or address", metavar="ADDRESS"),
)
_SIZE: Final = within(int, 1, 1_000_000)
_FILE: Final = partial(positional, "file", nargs="?", default="-")

GROUPS: Final = {
    "keys": "create, list and revoke API keys",
    "users": "manage the users of an organization and their roles",
    "support": "link support chats with organizations",
    "support channels": "manage the contact details of support",
    "locations": "set names, opening hours and maintenance windows of locations",
    "retail": "manage access to the retail API",
    "retail keys": "create, list and revoke keys of the retail API",
    "sandbox": "generate a merchant with test data",
}

COMMANDS: Final = (
    Command(
        "setup", "setup.verbs:run",
        "create organization, owner, location and key; prompts for missing values",
        (
            option("--organization-name", "NAME", "name of the business"),
            option("--email", "EMAIL", "e-mail address of the owner"),
            option("--name", "NAME", "name of the owner (default: the e-mail address)"),
            _PASSWORD,
            option("--location-name", "NAME", "name of the first location"),
            option("--location", "ID", "locationId of the first location", default="loc-0001"),
            option("--zone", "ZONE", "time zone of the first location, such as Europe/Riga"
                   " (default: this machine's)"),
            _ORGANIZATION, DATABASE,
        ),
        (
            "venue-control setup",
            "venue-control setup --email ada@example.com --password-file -",
        ),
    ),
    Command(
        "keys create", "keys:create", "create an API key, or one key file for each machine",
        (
            flag("--write", "grant write access, which an agent requires"),
            repeated("--location", "ID",
                     "limit the key to this location; may be repeated (default: all locations)"),
            _NEW_LOCATIONS,
            option("--name", "NAME", "purpose of the key; with --out, a prefix of each key's name",
                   default=""),
            _ORGANIZATION,
            Group((
                option("--out", "DIR",
                       "new directory for the key files and their list, manifest.csv"),
                option("--count", "N", "keys for each location (default: 1)", type=count),
                option("--locations-file", "FILE", "file with more location ids, one on each line"),
            ), "for a rollout: one file for each key, and one location for each key"),
            DATABASE,
        ),
        (
            'venue-control keys create --write --name "first key"',
            "venue-control keys create --write --location loc-0001 --count 3 --out keys/",
            "venue-control keys create --write --locations-file venues.txt --out keys/",
        ),
    ),
    Command("keys revoke", "keys:revoke", "revoke an API key",
            (positional("id", f"{_KEY_HELP}; see `keys list`"), DATABASE)),
    Command("keys list", "keys:list_all", "list API keys", (DATABASE,)),
    Command(
        "users add", "users:add", "add a user to an organization",
        (
            option("--name", "NAME", "name to show in lists (default: the e-mail address)",
                   default=""),
            option("--role", None, _ROLE_HELP, required=True, choices=ROLES),
            flag("--known", "add the existing account of the address and keep its password; first"
                 " make sure that the account belongs to this user"),
            _ACCESS, _NEW_LOCATIONS, _PASSWORD, _EMAIL, _ORGANIZATION, DATABASE,
        ),
        (
            'venue-control users add ada@example.com --name "Ada" --role owner',
            "venue-control users add bob@example.com --role viewer --location loc-0001",
            "venue-control users add bob@example.com --known --role viewer --organization org-0002",
        ),
    ),
    Command(
        "users role", "users:change_role", "change the role or the locations of a member",
        (
            _EMAIL, positional("role", _ROLE_HELP, choices=ROLES),
            one_of(_ACCESS, flag("--every-location", "give access to all locations")),
            _NEW_LOCATIONS, _ORGANIZATION, DATABASE,
        ),
    ),
    Command("users remove", "users:remove", "remove a member and revoke the member's keys",
            (_EMAIL, _ORGANIZATION, DATABASE)),
    Command("users password", "users:change_password",
            "set a user's password and end the user's sessions", (_PASSWORD, _EMAIL, DATABASE)),
    Command("users reset-second-factor", "users:reset_second_factor",
            "remove a user's second factor and recovery codes, and end the user's sessions",
            (_EMAIL, DATABASE)),
    Command(
        "users policy", "users:policy", "show or set how members of an organization sign in",
        (
            option("--passwords", None, "whether members may sign in with a password",
                   choices=("accepted", "refused")),
            option("--second-factor", None, "whether a sign-in with a password also needs a second"
                   " factor", choices=("optional", "required")),
            _ORGANIZATION, DATABASE,
        ),
        (
            "venue-control users policy",
            "venue-control users policy --passwords refused",
        ),
    ),
    Command("users list", "users:list_all", "list the members of an organization",
            (_ORGANIZATION, DATABASE)),
    Command(
        "support link", "support.verbs:create_link",
        "create a token that links a support chat with an organization, and print it",
        (
            option("--channel", "TEXT", "name of the chat, shown to the merchant",
                   required=True),
            option("--asked-by", "NAME", "name of the support employee, shown to the merchant",
                   required=True),
            DATABASE,
        ),
        ('venue-control support link --channel "telegram @venue" --asked-by "Ada of support"',),
    ),
    Command("support list", "support.verbs:list_links", "list links, newest first",
            (_JSON_ARRAY, DATABASE)),
    Command(
        "support disconnect", "support.verbs:disconnect", "end a link, or revoke an unused token",
        (positional("id", "id of the link or its first characters; see `support list`"), DATABASE),
    ),
    Command("support channels list", "support.verbs:list_channels",
            "list the contact details of support", (DATABASE,)),
    Command(
        "support channels set", "support.verbs:set_channel",
        "add a contact channel or change its hours",
        (*_CHANNEL, option("--hours", "TEXT", "hours of support (default: not stated)"), DATABASE),
        (
            'venue-control support channels set phone "+971 4 123 4567" --hours "Mon-Fri 9-18"',
            "venue-control support channels set email support@example.com",
        ),
    ),
    Command("support channels remove", "support.verbs:remove_channel", "remove a contact channel",
            (*_CHANNEL, DATABASE)),
    Command(
        "audit", "audit:show", "list requests and changes with their user or API key",
        (
            option("--since", "WHEN", "start of the period, such as 7d, 2026-11-20 or"
                   " 2026-11-20T09:30", type=time_range),
            option("--by", "TEXT", "part of the name of a user or key, or the end of an API key"),
            option("--limit", "N", f"newest N entries (default: {AUDIT_LIMIT}; no limit with"
                   " --since, --json or --csv)", type=count),
            one_of(
                _ORGANIZATION,
                flag("--of-nobody", "entries of no organization, such as sign-ins of unknown"
                     " users"),
            ),
            one_of(_JSON_ARRAY, flag("--csv", "print the records as CSV with a header row")),
            DATABASE,
        ),
        (
            "venue-control audit --since 7d --by ada@example.com",
            "venue-control audit --since 2026-11-01 --csv > audit.csv",
        ),
    ),
    Command(
        "locations set", "locations:set_hours", "set the opening hours of a location",
        (
            option("--zone", "ZONE", "time zone, such as Europe/Riga", required=True),
            one_of(
                repeated("--open", "HOURS", 'opening hours, such as "Mon-Fri 08:00-22:00" or'
                         ' "Sat 10:00-02:00"; may be repeated', default=None),
                flag("--always-open", "the location is always open, and has no opening hours"),
                is_required=True,
            ),
            _LOCATION_ID, _ORGANIZATION, DATABASE,
        ),
    ),
    Command(
        "locations name", "locations:set_name", "name a location or its organization",
        (
            positional("id", "locationId of the location", nargs="?"),
            positional("name", "name to show in lists and reports"),
            flag("--of-organization", "name the organization"),
            _ORGANIZATION, DATABASE,
        ),
        (
            'venue-control locations name loc-0001 "Harbour"',
            'venue-control locations name --of-organization "Harbour Hospitality"',
        ),
    ),
    Command(
        "locations quiet", "locations:set_maintenance", "start or end a maintenance window",
        (
            option("--device", "INSTANCE", "instanceId of a device, if the window is for one"
                   " device only"),
            one_of(
                option("--until", "WHEN", "end of the window in the location's time zone, such as"
                       " 2026-12-01T06:00"),
                flag("--end", "end the current maintenance window and delete planned ones"),
                is_required=True,
            ),
            option("--from", "WHEN", "start of the window (default: now)", dest="since"),
            option("--reason", "TEXT", "reason of the maintenance", default=""),
            _LOCATION_ID, _ORGANIZATION, DATABASE,
        ),
    ),
    Command("locations list", "locations:list_all",
            "list names, opening hours and maintenance windows", (_ORGANIZATION, DATABASE)),
    Command(
        "retail keys create", "retail.keys:create", "create a retail API key and print it",
        (
            flag("--write", "grant write access, which creating goods requires"),
            flag("--live", "create a venue_live_ key (default: a venue_test_ key)"),
            option("--name", "NAME", "purpose of the key", default=""),
            _ORGANIZATION, DATABASE,
        ),
        (
            "venue-control retail keys create",
            'venue-control retail keys create --live --write --name "the web shop"',
        ),
    ),
    Command("retail keys list", "retail.keys:list_all", "list retail API keys", (DATABASE,)),
    Command("retail keys revoke", "retail.keys:revoke", "revoke a retail API key",
            (positional("id", _KEY_HELP), DATABASE)),
    Command("retail rotate-signing-key", "retail.keys:rotate_signing_key",
            "rotate the signing key and revoke existing access tokens", (DATABASE,)),
    Command(
        "sandbox load", "sandbox:load", "generate a merchant with a year of sales, and print keys",
        (
            option("--seed", "N", "the same seed generates the same merchant", type=int,
                   default=1),
            option("--locations", "N", "number of locations", type=_SIZE, default=3),
            option("--days", "N", "days of sales, ending with --until", type=_SIZE, default=365),
            option("--sales-per-day", "N", "sales of a location in a day", type=_SIZE, default=60),
            option("--goods", "N", "number of goods", type=_SIZE, default=60),
            option("--until", "DATE", "the last day (default: today, until now)",
                   type=partial(full_date, year_min=1990)),
            flag("--awkward", "include difficult data: unknown taxes, other currencies, refunds"
                 " without a date, locations without a time zone"),
            flag("--replace", "replace the existing sandbox"),
            _ORGANIZATION, DATABASE,
        ),
        (
            "venue-control sandbox load",
            "venue-control sandbox load --seed 7 --locations 10 --days 92 --sales-per-day 200",
        ),
    ),
    Command(
        "sandbox run", "sandbox:run", "generate sales as time passes, until Ctrl-C",
        (
            option("--every", "SECONDS", "time between two writes of new sales",
                   type=within(float, 0.1, 3600), default=5.0),
            flag("--once", "generate the sales until now, then exit"),
            _ORGANIZATION, DATABASE,
        ),
    ),
    Command("sandbox export", "sandbox:export", "write the merchant as lines of JSON",
            (_FILE("file to write (default: standard output)"), _ORGANIZATION, DATABASE)),
    Command("sandbox import", "sandbox:import_file", "create a merchant from an export",
            (_FILE("file to read (default: standard input)"), DATABASE)),
    Command("sandbox rebuild", "sandbox:rebuild_all",
            "recalculate all sums from the sales, and count the wrong sums", (DATABASE,)),
)  # fmt: skip
