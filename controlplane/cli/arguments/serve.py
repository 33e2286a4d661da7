"""The commands that run the service, install it, and copy its database."""

import argparse
from pathlib import Path
from typing import Final

from controlplane.cli.arguments.command import Command, flag, option, positional, repeated
from controlplane.cli.arguments.database import DATABASE
from controlplane.cli.arguments.values import (
    count,
    days_or_forever,
    duration,
    host_port,
    port,
    seconds,
    within,
)
from controlplane.settings import Settings

DEFAULT_PORT: Final = 8470
BYTES_MAX: Final = 10**15
_DEFAULTS: Final = Settings()

GROUPS: Final = {
    "service": "run the service with systemd; changes require root",
    "database": "move the service to another database",
}
COMMANDS: Final = (
    Command(
        "serve", "serve:run", "run the service until SIGTERM; @FILE reads options from a file",
        (
            DATABASE,
            option("--host", "HOST", "address to listen on", default="127.0.0.1"),
            option("--port", "PORT", "port to listen on; 0 selects a free port", type=port,
                   default=DEFAULT_PORT),
            option("--origin", "URL", "public address of a service behind a proxy, such as"
                   " https://venue.example; session cookies are valid only there (default: the"
                   " address that the browser calls)"),
            repeated("--trusted-proxy", "ADDRESS", "IP address of a proxy whose X-Forwarded-For"
                     " header is trusted; may be repeated"),
            option("--identity-providers", "FILE", "TOML file with the OpenID providers with which"
                   " users sign in (docs/accounts.md)", type=Path),
            option("--workers", "N", "number of processes; more than one requires PostgreSQL",
                   type=count, default=1),
            option("--tracker-url", "URL", "webhook that gets a message about each report"),
            option("--tracker-attempts", "N", "maximum number of attempts to send the message about"
                   " a report to --tracker-url", type=count,
                   default=_DEFAULTS.tracker_attempts_max),
            option("--online-window", "SECONDS", "time after a heartbeat in which a device is"
                   " online", type=seconds, default=_DEFAULTS.online_window_s),
            option("--request-ttl", "SECONDS", "time until a request expires", type=seconds,
                   default=_DEFAULTS.request_ttl_s),
            option("--challenge-ttl", "SECONDS", "time until an enrollment challenge expires",
                   type=seconds, default=_DEFAULTS.challenge_ttl_s),
            option("--body-limit", "BYTES", "maximum size of a request body", type=count,
                   default=_DEFAULTS.body_limit_bytes),
            option("--rate", "PER_SECOND", "calls per second of one API key; 0 means no limit",
                   type=within(float, 0, 1_000_000), default=_DEFAULTS.rate_per_s),
            option("--burst", "N", "calls that one API key can send at once", type=count,
                   default=_DEFAULTS.burst),
            option("--device-report-bytes", "BYTES", "total size of the reports that one device can"
                   " send in a day; 0 means no limit", type=within(int, 0, BYTES_MAX),
                   default=_DEFAULTS.device_report_bytes),
            option("--organization-report-bytes", "BYTES", "total size of the reports that all"
                   " devices of an organization can send in a day; 0 means no limit",
                   type=within(int, 0, BYTES_MAX), default=_DEFAULTS.organization_report_bytes),
            option("--keep-reports", "DAYSd", "delete reports and requests after this time, such as"
                   " 90d; the newest report of each kind of a device is kept; the value forever"
                   " keeps all reports and requests (default: 180d)", type=days_or_forever,
                   default=_DEFAULTS.keep_reports_s),
            option("--keep-audit", "DAYSd", "delete audit log entries after this time (default:"
                   " 400d)", type=duration("d"), default=_DEFAULTS.keep_audit_s),
            option("--offline-after", "N", "number of missed heartbeats after which a device is"
                   " offline, at one heartbeat per minute; a device is never offline before its"
                   " online window ends (default: offline when the online window ends)",
                   type=within(int, 1, 1440)),
            option("--notify-url", "URL", "webhook URL for alert notifications"),
            option("--notify-secret-file", "FILE", "file with the secret that signs alert"
                   " notifications: whsec_ followed by Base64", type=Path),
            option("--smtp", "HOST:PORT", "SMTP server for e-mail notifications of alerts; TLS is"
                   " required, except at a loopback address; on port 465 the connection begins"
                   " with TLS, on other ports STARTTLS is used", type=host_port),
            option("--smtp-from", "ADDRESS", "sender of the e-mails"),
            option("--smtp-user", "NAME", "user at the SMTP server (default: no authentication)"),
            option("--smtp-password-file", "FILE", "file with the password of --smtp-user",
                   type=Path),
            option("--notify-after", "SECONDS",
                   "time for which a condition must be active before its alert fires",
                   type=within(float, 0, 86_400), default=_DEFAULTS.alert_fire_after_s),
            option("--notify-end-after", "SECONDS",
                   "time for which a condition must be inactive before its alert resolves",
                   type=within(float, 0, 86_400), default=_DEFAULTS.alert_resolve_after_s),
            option("--log-level", None, "lowest level of messages on stderr", default="info",
                   choices=("debug", "info", "warning", "error")),
            option("--log-format", None, "json writes one object per line", default="text",
                   choices=("text", "json")),
            option("--metrics", "HOST:PORT", "serve Prometheus metrics at this address under"
                   " /metrics, without authentication (default: off)", type=host_port),
        ),
        reads_files=True,
    ),
    Command(
        "demo", "demo:run", "run a simulated venue: this service, an agent and two reports",
        (
            flag("--lan", "simulate nothing; scan this machine's networks"),
            option("--dir", "DIR", "directory for all files", type=Path, default=Path(".demo")),
            flag("--keep", "keep the service, the agent and the console running until Ctrl-C"),
        ),
    ),
    Command(
        "service install", "service:install", "start the service now and at every boot",
        (
            flag("--dry-run", "print the unit and the options file, and change nothing"),
            positional("options", "options of `serve` for a new options file, after --",
                       nargs=argparse.REMAINDER, metavar="-- OPTIONS"),
        ),
    ),
    Command(
        "service uninstall", "service:uninstall", "stop the service and do not start it at boot",
        (flag("--purge", "also delete the SQLite database, the options file and the user"),),
    ),
    Command("service start", "service:start", "start the service and wait until it listens"),
    Command("service stop", "service:stop", "stop the service and wait until it has ended"),
    Command("service status", "service:status",
            "show the state of the service; exit code 0 if it runs, otherwise 1"),
    Command(
        "backup", "database:backup", "copy an SQLite database while it is in use",
        (positional("file", "file to create; an existing file is not replaced", metavar="FILE"),
         DATABASE),
    ),
    Command(
        "restore", "database:restore", "replace an SQLite database with a backup",
        (positional("file", "file that `backup` created; stop the service first", metavar="FILE"),
         DATABASE),
    ),
    Command(
        "database copy", "database:copy", "copy all rows to an empty SQLite or PostgreSQL database",
        (
            positional("source", "database URL or SQLite file", metavar="FROM"),
            positional("target", "database URL or SQLite file without keys and devices",
                       metavar="TO"),
        ),
    ),
)  # fmt: skip
