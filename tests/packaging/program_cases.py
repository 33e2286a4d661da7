"""The cases of `verify_programs`: every command of both programs, with every option.

The programs' own parsers define the commands and options. `missing` lists the commands and options
that no case uses.
"""

import argparse
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from agent import __version__
from agent.cli.main import VERBS
from agent.cli.main import _parser as agent_parser
from controlplane.cli.main import build_parser

AGENT: Final = "venue-agent"
CONTROL: Final = "venue-control"
COMMON: Final = frozenset({"--help", "--version", "--debug"})
"""Options that both programs have. Commands can have them too. For each program, one case that uses
them is sufficient."""
NOT_USED: Final[dict[tuple[str, str], str]] = {}
"""Options that no case uses. Maps the command and the option to the reason."""
_PLACEHOLDER: Final = re.compile(r"\{(\w+)\}")
_ANY_ID: Final = "00000000-0000-4000-8000-000000000000"


@dataclass(frozen=True, slots=True)
class Case:
    """One run of a packaged program.

    Args:
        words: The command line. ``{name}`` is replaced by the value that a group of this name
            matched in the output of an earlier case of the story.
        exit_code: The exit code that the program must return.
        output: A regular expression that its output must match. Later cases of the story can use
            the values of its named groups.
        into: File that receives standard output.
        writes: File that the program must have written.
        stays: The program runs until a step `Stop` ends it, or until the story ends. It counts as
            started when its output matches ``output``. SIGTERM must end it with ``exit_code``.
    """

    program: str
    words: str
    exit_code: int = 0
    output: str = ""
    into: str = ""
    writes: str = ""
    stays: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """An HTTP request to a packaged service. It tests code that the service imports only on the
    first call that needs this code.

    Args:
        output: A regular expression that the body of the reply must match.
        body: The JSON to send. A call with a body is a POST, any other call is a GET.
        key_file: The file of the story that contains the API key.
    """

    url: str
    status: int = 200
    output: str = ""
    body: str = ""
    key_file: str = ""


@dataclass(frozen=True, slots=True)
class Stop:
    """Ends the program that was started last and still runs."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """Waits until the webhook at this path has been called."""

    path: str


@dataclass(frozen=True, slots=True)
class Story:
    """Consecutive steps in one directory. Stories run concurrently, each in its own directory.

    ``files`` has the name and the text of each file that the directory contains at the beginning.
    """

    name: str
    steps: tuple[Case | Call | Delivery | Stop, ...]
    files: dict[str, str] = field(default_factory=dict)


def agent(words: str, exit_code: int = 0, output: str = "", **more: str | bool) -> Case:
    return Case(AGENT, words, exit_code, output, **more)  # type: ignore[arg-type]


def control(words: str, exit_code: int = 0, output: str = "", **more: str | bool) -> Case:
    return Case(CONTROL, words, exit_code, output, **more)  # type: ignore[arg-type]


UUID: Final = "[0-9a-f]{8}-[0-9a-f-]{27}"
# The verification runs in its own network namespace, in which every port is free.
HOOKS_PORT: Final = 9000
TLS_PORT: Final = 8443
VENUE_PORT: Final = 8470
HOOKS: Final = f"http://127.0.0.1:{HOOKS_PORT}"
LISTENS: Final = "listening on http://127.0.0.1:{}"
DB: Final = "--database service.db"
FILTERS: Final = (
    f"--location loc-0001 --platform linux --app-version {__version__} --app-version-not 9.9.9"
    " --search till"
)
CLIENT: Final = f"--base-url http://127.0.0.1:{VENUE_PORT} --api-key-file key"
RETAIL_PORT: Final = 8471
RETAIL_URL: Final = f"--base-url http://127.0.0.1:{RETAIL_PORT}"
RETAIL: Final = f"{RETAIL_URL} --retail-key-file retail-key"
NO_SYSTEMD: Final = "systemd"
"""A word in the message that a command prints if it needs systemd and there is none."""
INITIALIZE: Final = (
    '{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"capabilities": {},'
    ' "protocolVersion": "2025-06-18", "clientInfo": {"name": "verify", "version": "1"}}}'
)
AGENT_CONFIG: Final = """\
[service]
base_url = "http://127.0.0.1:8470"
location_id = "loc-0001"
api_key_file = "{home}/key"
[device]
legacy_install_id = "till"
state_dir = "{home}/state"
[heartbeat]
interval_seconds = 1
[network]
max_duration_seconds = 5
"""

# The agent without a service, without systemd and without a network.
ALONE: Final = Story(
    "agent-alone",
    (
        agent("--version", output=r"venue-agent \d"),
        agent("--help", output="doctor"),
        agent("config example", output=r"\[service\]"),
        agent("config schema", output=r'"\$schema"'),
        agent("config check --config absent.toml --json", 2),
        agent("config show --config agent.toml", output="127.0.0.1"),
        agent("config show --config agent.toml --json", output="interval_seconds"),
        agent("collect application --config agent.toml --json", output='"completeness"'),
        agent(
            "collect network --config agent.toml --ndjson --html network.html",
            output='"completeness"', writes="network.html",
        ),
        agent("collect network --config agent.toml", output="Interfaces"),
        agent("status --config agent.toml", 2),
        agent("history --config agent.toml", output="no requests yet"),
        agent("timeline --config agent.toml", output="Nothing is recorded yet"),
        agent("check till --config agent.toml", 1, "this machine has no printer 'till'"),
        agent("check till --config agent.toml --json", 1, "this machine has no printer"),
        agent("printers --config agent.toml", output="no printer is remembered"),
        agent("printers list --config agent.toml --json", output='"printers"'),
        agent("printers forget till --config agent.toml", 1, "name one printer to forget"),
        agent("--debug doctor --config agent.toml", 1, "connect|refused"),
        agent("service status", 1, NO_SYSTEMD),
        agent("service status --json", 1, NO_SYSTEMD),
        agent(
            "service install --base-url http://127.0.0.1:1 --location loc-0001 --api-key-file key",
            1, NO_SYSTEMD,
        ),
        agent("service start", 1, NO_SYSTEMD),
        agent("service stop", 1, NO_SYSTEMD),
        agent("service uninstall --purge", 1, NO_SYSTEMD),
        agent("upgrade check --config agent.toml", output="interrupts nothing"),
        agent("upgrade check --config agent.toml --json", output='"package_manager"'),
    ),
    {"agent.toml": AGENT_CONFIG.replace("{home}", "/agent-alone"), "key": "vck_none\n"},
)  # fmt: skip

VENUE_CONFIG: Final = AGENT_CONFIG.replace("{home}", "/venue")
# A service with both webhooks (the tracker and notifications), an agent, and an operator.
VENUE: Final = Story(
    "venue",
    (
        control(f"keys create --write --name operator {DB}", into="key"),
        control(
            f"serve {DB} --host 127.0.0.1 --port {VENUE_PORT} --tracker-url {HOOKS}/tracker"
            f" --tracker-attempts 3 --notify-url {HOOKS}/notify --notify-secret-file secret"
            " --smtp 127.0.0.1:9 --smtp-from a@example.com --smtp-user a"
            " --smtp-password-file secret --identity-providers providers.toml"
            " --notify-after 0 --notify-end-after 0 --online-window 3 --rate 0",
            output=LISTENS.format(VENUE_PORT), stays=True,
        ),
        agent("config check --config agent.toml --json", output="."),
        agent("config check --config tls.toml", output="."),
        agent("enroll --config agent.toml --json", output=f'"instanceId": "(?P<device>{UUID})"'),
        agent("enroll --config agent.toml", output="enrolled before"),
        agent("enroll --config agent.toml --force", output="enrolled"),
        agent("run --config agent.toml", stays=True),
        control(
            f"request till application --wait --out reports {CLIENT}",
            output=f"report (?P<first>{UUID})", writes="reports",
        ),
        control(f"request --all application --wait --at-once 1 --yes {FILTERS} {CLIENT}"),
        control(f"request till network --wait {CLIENT}", output=f"report {UUID}"),
        control(f"request till application --when-back --until 1h {CLIENT}"),
        control(f"devices --online {FILTERS} --json {CLIENT}", output='"legacyInstallId": "till"'),
        control(f"devices --offline --ndjson {CLIENT}"),
        control(f"devices --revoked --csv {CLIENT}"),
        control(f"devices --health healthy --json {CLIENT}"),
        control(f"devices --base-url https://localhost:{TLS_PORT} --api-key-file key",
                output="till"),
        control(f"printers --state broken {FILTERS} --json {CLIENT}"),
        control(f"printers --csv {CLIENT}"),
        control(f"incidents --location loc-0001 --days 30 --json {CLIENT}"),
        control(f"incidents --csv {CLIENT}", output="beganAt"),
        control(f"findings --state healthy --location loc-0001 --platform linux --app-version 1"
                f" --search till --json {CLIENT}"),
        control(f"findings printer-unreachable --new --csv {CLIENT}", output="reportId"),
        control(f"alerts list --location loc-0001 --json {CLIENT}", output=r"\["),
        control(f"alerts silence --location loc-0001 --device till --rule offline --reason paint"
                f" --until 2999-12-01T06:00 {CLIENT}", output="rule offline"),
        control(f"alerts silences --json {CLIENT}", output="paint"),
        # The id of a device is not the id of a silence or an alert, so both commands fail.
        control(f"alerts unsilence {{device}} {CLIENT}", 1, output=""),
        control(f"alerts acknowledge {{device}} {CLIENT}", 1, output=""),
        control(f"device till {CLIENT}", output="till"),
        control(f"device {{device}} --json {CLIENT}", output="{device}"),
        control(f"reports {CLIENT}", output="till"),
        control(f"reports --device till --kind application --since 1h --json {FILTERS} {CLIENT}",
                output="{first}"),
        control(f"report {{first}} {CLIENT}"),
        control(f"report {{first}} --html page.html {CLIENT}", writes="page.html"),
        control(f"report {{first}} --csv facts {CLIENT}"),
        control(f"report --latest till network --json {CLIENT}", output='"payload"'),
        control(f"report --latest till application --against {{first}} {CLIENT}"),
        control(f"changes till application {CLIENT}"),
        control(f"changes till application --json {CLIENT}"),
        control(f"locations set --zone Europe/Riga --open 'Mon-Fri 08:00-22:00' loc-0001"
                f" --organization org-0001 {DB}", output="Europe/Riga"),
        control(f"locations set --zone Pacific/Apia --always-open loc-0002 {DB}"),
        control(f"locations name loc-0001 Harbour --organization org-0001 {DB}"),
        control(f"locations name --of-organization Harbour {DB}"),
        control(f"locations quiet loc-0001 --device {{device}} --from 2026-12-01T06:00"
                f" --until 2999-12-01T06:00 --reason paint --organization org-0001 {DB}"),
        control(f"locations quiet loc-0001 --device {{device}} --end {DB}"),
        control(f"locations list --organization org-0001 {DB}", output="Harbour"),
        agent("status --config agent.toml", output="."),
        agent("status --config agent.toml --json", output="{device}"),
        agent("history --config agent.toml --limit 2 --json", output="submitted"),
        agent("history {first} --config agent.toml --html history.html", writes="history.html"),
        agent("timeline --config agent.toml --days 2", output="since"),
        agent("timeline --config agent.toml --hours 3 --json", output='"hours"'),
        agent("printers --config agent.toml"),
        agent("doctor --config agent.toml --all --bundle whole.zip", 0, "the service answers",
              writes="whole.zip"),
        agent("doctor --config agent.toml --json --bundle case.zip --no-collect", 0, "caseId",
              writes="case.zip"),
        Call(f"http://127.0.0.1:{VENUE_PORT}/", output="<script"),
        Call(f"http://127.0.0.1:{VENUE_PORT}/api/mcp/v1", body=INITIALIZE, key_file="key",
             output="protocolVersion"),
        Call(f"http://127.0.0.1:{VENUE_PORT}/api/auth/oauth2/register", 201,
             body='{"redirect_uris": ["http://127.0.0.1:1/back"], "client_name": "verify"}'),
        Delivery("/tracker"),
        Stop(),  # ends the agent
        Delivery("/notify"),
        control(f"revoke till --yes {CLIENT}"),
        control(f"backup copy.db {DB}", writes="copy.db"),
        Stop(),
        control(f"restore copy.db {DB}", output="restored"),
    ),
    {
        "agent.toml": VENUE_CONFIG,
        "tls.toml": VENUE_CONFIG.replace(
            f'http://127.0.0.1:{VENUE_PORT}"',
            f'https://localhost:{TLS_PORT}"\nca_file = "/etc/ssl/certs/ca-certificates.crt"',
        ),
        "providers.toml": (
            '[[provider]]\nid = "contoso"\nlabel = "Contoso"\nclient_id = "venue"\n'
            'issuer = "https://contoso.invalid"\ndomains = ["contoso.invalid"]\n'
            '[[provider.roles]]\norganization = "org-0001"\ngroup = "staff"\nrole = "viewer"\n'
        ),
        "secret": "whsec_" + "QUJDREVGR0hJSktMTU5PUFFSU1RVVldY" + "\n",
    },
)  # fmt: skip

# A generated merchant (the sandbox) and the retail API.
MERCHANT: Final = Story(
    "merchant",
    (
        control("sandbox load --seed 7 --locations 1 --days 2 --sales-per-day 5 --goods 30"
                f" --awkward --until 2026-11-20 --replace --organization org-0001 {DB}"),
        control(f"sandbox run --once --every 1 --organization org-0001 {DB}"),
        control(f"sandbox export shop.ndjson --organization org-0001 {DB}", writes="shop.ndjson"),
        control("sandbox import shop.ndjson --database other.db"),
        control(f"sandbox rebuild {DB}"),
        control(f"keys create --name reader {DB}", into="key"),
        control(f"retail keys create --write --live --name till --organization org-0001 {DB}",
                into="retail-key"),
        control(f"retail keys create --name old {DB}"),
        control(f"retail keys list {DB}", output="old"),
        control(f"retail keys revoke old {DB}", output="revoked"),
        control(f"retail rotate-signing-key {DB}"),
        control(f"serve --port {RETAIL_PORT} {DB}", output=LISTENS.format(RETAIL_PORT), stays=True),
        control(f"sales --since 2026-11-01 --until 2026-11-21 --sort number_asc --limit 3 --json"
                f" {RETAIL}", output='"id"'),
        control(f"sales --csv {RETAIL}"),
        control(f"sales {RETAIL}"),
        control(f"catalog goods --json {RETAIL}", output=f'"id": "(?P<good>{UUID})"'),
        control(f"catalog goods --csv {RETAIL}"),
        control(f"catalog categories --json {RETAIL}"),
        control(f"catalog categories --csv {RETAIL}"),
        control(f"catalog uoms --json {RETAIL}"),
        control(f"catalog uoms --csv {RETAIL}"),
        control(f"catalog fees --json {RETAIL}"),
        control(f"catalog fees --csv {RETAIL}"),
        control(f"catalog good {{good}} {RETAIL}"),
        control(f"catalog good {{good}} --json {RETAIL}", output="{good}"),
        control(f"figures --period last7 --location loc-0001 {RETAIL_URL} --api-key-file key"),
        control(f"figures --from 2026-11-19 --to 2026-11-20 --all --location loc-0001 --json"
                f" {RETAIL_URL} --api-key-file key"),
    ),
)  # fmt: skip

# Commands that open the database directly, and commands that fail without systemd or in a package.
ACCOUNTS: Final = Story(
    "accounts",
    (
        control("--version", output=r"venue-control \d"),
        control("--help", output="sandbox"),
        control(f"setup --organization-name Harbour --email bea@example.com --name Bea"
                f" --password-file password --location-name Quay --location loc-0001"
                f" --zone Europe/Riga --organization org-0003 {DB}", output="vck_"),
        control(f"keys create --location loc-0001 --organization org-0001 --count 2"
                f" --locations-file locations --new-locations --out keys {DB}",
                writes="keys/manifest.csv"),
        control(f"keys create --write --name old {DB}"),
        control(f"keys list {DB}", output="old"),
        control(f"keys revoke old {DB}", output="revoked"),
        control(f"users add --name Ada --role owner --location loc-0001 --password-file password"
                f" --new-locations ada@example.com --organization org-0001 {DB}"),
        control(f"users add ada@example.com --known --role viewer --organization org-0002 {DB}"),
        control(f"users role ada@example.com viewer --location loc-0002 --new-locations"
                f" --organization org-0001 {DB}"),
        control(f"users role ada@example.com manager --every-location {DB}"),
        control(f"users password --password-file password ada@example.com {DB}"),
        control(f"users list --organization org-0001 {DB}", output="ada@example.com"),
        control(f"users policy --organization org-0001 --passwords accepted"
                f" --second-factor optional {DB}", output="second factor optional"),
        control(f"users reset-second-factor ada@example.com {DB}", 1),
        control(f"users remove ada@example.com --organization org-0001 {DB}"),
        control(f"support channels set telegram @venue --hours 'Mon-Fri 9-18' {DB}"),
        control(f"support channels list {DB}", output="@venue"),
        control(f"support channels remove telegram @venue {DB}"),
        control(f"support link --channel 'telegram @venue' --asked-by Ada {DB}"),
        control(f"support list {DB}"),
        control(f"support list --json {DB}", output=f'"id": "(?P<link>{UUID})"'),
        control(f"support disconnect {{link}} {DB}"),
        control(f"audit --since 7d --by operator --limit 9 --organization org-0001 --json {DB}"),
        control(f"audit --of-nobody --csv {DB}"),
        control(f"audit {DB}", output="member.add"),
        control("service install --dry-run -- --port 8470", output="ExecStart="),
        control("service install", 1, NO_SYSTEMD),
        control("service uninstall --purge", 1, NO_SYSTEMD),
        control("service start", 1, NO_SYSTEMD),
        control("service stop", 1, NO_SYSTEMD),
        control("service status", 1, NO_SYSTEMD),
        control("--debug figures --help", output="--period"),
        control("demo --lan --dir demo --keep", 1, "this package has no demo"),
    ),
    {"locations": "loc-0001\nloc-0002\n", "password": "correct horse battery staple\n"},
)  # fmt: skip

# The service in two forms: with an options file, which has every option that no other story uses,
# and with several processes on PostgreSQL.
SERVE: Final = Story(
    "serve",
    (
        control("serve @serve.conf", output=LISTENS.format(8472), stays=True),
        Call("http://127.0.0.1:9470/metrics", output="# TYPE"),
        Stop(),
        control(f"serve --workers 2 --port 0 {DB}", 2, "PostgreSQL"),
        control("database copy service.db {postgresql}", output="copied"),
        control("serve --workers 2 --port 8473 --metrics 127.0.0.1:9473 --log-format text"
                " --database {postgresql}", output=LISTENS.format(8473), stays=True),
        control("keys create --name reader --database {postgresql}", into="key"),
        control("devices --base-url http://127.0.0.1:8473 --api-key-file key"),
        Call("http://127.0.0.1:9473/metrics", output="# TYPE"),
        Stop(),
    ),
    {
        "serve.conf": """\
# every option that no other story uses
--database service.db
--port 8472
--origin https://venue.example
--trusted-proxy 127.0.0.1
--request-ttl 900
--challenge-ttl 300
--body-limit 2097152
--burst 100
--device-report-bytes 3000000000
--organization-report-bytes 0
--keep-reports forever
--keep-audit 400d
--offline-after 3
--log-level debug
--log-format json
--metrics 127.0.0.1:9470
""",
    },
)  # fmt: skip

STORIES: Final = (VENUE, MERCHANT, ACCOUNTS, ALONE, SERVE)


# ---------------------------------------------------------------------------- coverage


@dataclass(frozen=True, slots=True)
class Command:
    """A command of a program, with all names of each of its optional arguments."""

    program: str
    words: tuple[str, ...]
    options: frozenset[tuple[str, ...]]


def commands() -> Iterator[Command]:
    """Yield every command of both programs, and each program itself as a command without words."""
    for verb in VERBS:
        # The parser has only the options of the given verb.
        yield from _commands(AGENT, (verb,), _subparsers(agent_parser((verb,)))[verb])
    for program, parser in ((AGENT, agent_parser(())), (CONTROL, build_parser())):
        yield Command(program, (), frozenset(_optional(parser)))
    for name, sub in _subparsers(build_parser()).items():
        yield from _commands(CONTROL, (name,), sub)


def _commands(
    program: str, words: tuple[str, ...], parser: argparse.ArgumentParser
) -> Iterator[Command]:
    subparsers = _subparsers(parser)
    for name, sub in subparsers.items():
        yield from _commands(program, (*words, name), sub)
    if not subparsers:
        options = {names for names in _optional(parser) if not COMMON & set(names)}
        yield Command(program, words, frozenset(options))


def _subparsers(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def _optional(parser: argparse.ArgumentParser) -> Iterator[tuple[str, ...]]:
    for action in parser._actions:
        if action.option_strings:
            yield tuple(action.option_strings)
        elif action.nargs in {"?", "*", "..."}:
            yield (action.dest,)


def words_of(case: Case, values: dict[str, str]) -> list[str]:
    """Return the command line with its placeholders replaced. Raises KeyError for a placeholder
    without a value.
    """
    return [
        _PLACEHOLDER.sub(lambda match: values[match[1]], word) for word in shlex.split(case.words)
    ]


def missing(stories: tuple[Story, ...] = STORIES) -> list[str]:
    """Return the commands without a case, and the options that no case uses."""
    all_commands = list(commands())
    used_options: dict[Command, set[str]] = {}
    for story in stories:
        for case in (step for step in story.steps if isinstance(step, Case)):
            for command, names in _options_used(case, story.files, all_commands):
                used_options.setdefault(command, set()).update(names)
    lines = []
    for command in all_commands:
        title = " ".join((command.program, *command.words))
        if command not in used_options:
            lines.append(f"{title}: no case")
            continue
        lines += [
            f"{title}: no case uses {names[0]}"
            for names in sorted(command.options)
            if not used_options[command] & set(names) and (title, names[0]) not in NOT_USED
        ]
    return lines


def _options_used(
    case: Case, files: dict[str, str], all_commands: list[Command]
) -> Iterator[tuple[Command, set[str]]]:
    """Yield the program and the command that a case runs, each with the options that the case
    uses.
    """
    words = words_of(case, _AnyId())
    in_files = " ".join(files.get(word[1:], "") for word in words if word.startswith("@")).split()
    names = {word for word in (*words, *in_files) if word.startswith("--")}
    words_without_options = tuple(word for word in words if not word.startswith("--"))
    candidates = [
        command
        for command in all_commands
        if command.program == case.program
        and command.words == words_without_options[: len(command.words)]
    ]
    program, command = min(candidates, key=_length), max(candidates, key=_length)
    yield program, names
    if command.words:
        yield command, names | _positionals(command, words)


def _length(command: Command) -> int:
    return len(command.words)


def _positionals(command: Command, words: list[str]) -> set[str]:
    """Return the optional positional arguments that a command line contains."""
    positional = {names[0] for names in command.options if not names[0].startswith("-")}
    if not positional or "--help" in words:
        return set()
    parser = build_parser() if command.program == CONTROL else agent_parser(words)
    parsed = vars(parser.parse_args(words))
    return {name for name in positional if parsed[name] not in (None, [])}


class _AnyId(dict[str, str]):
    """A dictionary that has the same id for every placeholder."""

    def __missing__(self, name: str) -> str:
        return _ANY_ID
