"""``venue-control serve``: run the service until SIGTERM or SIGINT."""

import argparse
import ipaddress
import os
import socket
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from agent.wire.addresses import is_loopback, is_web_url
from controlplane.accounts.oidc.providers import (
    IdentityProvider,
    ProviderFileError,
    read_providers,
)
from controlplane.accounts.users import require_email
from controlplane.cli.chosen_database import DATABASE_ERRORS, database_error
from controlplane.client.errors import UsageError
from controlplane.server import announce, bind, serve, url_of
from controlplane.settings import Settings, Smtp
from controlplane.storage.database import Database, sqlite_file
from controlplane.storage.location import default_database
from controlplane.web.observability.listener import MetricsListener
from controlplane.web.observability.logs import set_up_logging
from controlplane.workers import run_workers

ORGANIZATION_RATE_FACTOR = 100
"""The rate limit of an organization is this multiple of the rate limit of one API key."""
SECRET_MAX = 4096


def run(options: argparse.Namespace) -> int:
    settings = settings_of(options)
    try:
        listener = bind(options.host, options.port)
    except (OSError, OverflowError) as error:
        raise UsageError(f"cannot listen on {options.host} port {options.port}: {error}") from error
    with listener:
        if not is_loopback(listener.getsockname()[0]):
            sys.stderr.write(
                f"warning: {url_of(listener)} is plain HTTP and other machines can reach it."
                " Use a proxy with TLS, otherwise API keys are sent unencrypted.\n"
            )
        try:
            return _serve(options, settings, listener)
        except DATABASE_ERRORS as error:
            raise database_error(error) from error


def _serve(options: argparse.Namespace, settings: Settings, listener: socket.socket) -> int:
    database = options.database or default_database(os.environ)
    work = partial(
        serve, database, settings, options.log_level, log_format=options.log_format,
        identity_providers=identity_providers_of(options.identity_providers),
    )  # fmt: skip
    if options.workers == 1:
        with _metrics_listener(options, listener) as metrics:
            work(listener, partial(announce, listener, metrics), metrics=metrics)
        return 0
    if sqlite_file(database) is not None:
        raise UsageError(
            "several workers require PostgreSQL: an SQLite file has only one writer",
            "Use --database postgresql+psycopg://…, or omit --workers.",
        )
    # Open the database once here: an error is then reported once, and not by each worker.
    Database(database).close()
    set_up_logging(options.log_level, options.log_format)
    with _metrics_listener(options, listener) as metrics:
        on_listening = partial(announce, listener, metrics)
        return run_workers(options.workers, partial(work, metrics=metrics), listener, on_listening)


@contextmanager
def _metrics_listener(
    options: argparse.Namespace, listener: socket.socket
) -> Iterator[MetricsListener | None]:
    """Listen at the address of --metrics. Without this option, yield None.

    Several workers write their metrics to one directory, so that /metrics covers all of them.
    """
    if options.metrics is None:
        yield None
        return
    host, port = options.metrics
    try:
        metrics = bind(host, port)
    except (OSError, OverflowError) as error:
        raise UsageError(f"cannot listen on {host} port {port} for metrics: {error}") from error
    with metrics, tempfile.TemporaryDirectory(prefix="venue-control-metrics-") as directory:
        if metrics.getsockname()[1] == listener.getsockname()[1]:
            raise UsageError("--metrics requires a port other than --port")
        if not is_loopback(metrics.getsockname()[0]):
            sys.stderr.write(
                f"warning: other machines can read the metrics at {url_of(metrics)} without a key\n"
            )
        yield MetricsListener(metrics, Path(directory) if options.workers > 1 else None)


def settings_of(options: argparse.Namespace) -> Settings:
    """Return the settings of `serve`. Raises UsageError."""
    for name, url in (("tracker", options.tracker_url), ("notify", options.notify_url)):
        if url is not None and not is_web_url(url):
            raise UsageError(f"--{name}-url {url!r} is not an http or https address")
    return Settings(
        origin=_origin(options.origin),
        trusted_proxies=_proxies(options.trusted_proxy),
        online_window_s=options.online_window,
        request_ttl_s=options.request_ttl,
        challenge_ttl_s=options.challenge_ttl,
        body_limit_bytes=options.body_limit,
        rate_per_s=options.rate,
        burst=options.burst,
        device_report_bytes=options.device_report_bytes,
        organization_report_bytes=options.organization_report_bytes,
        keep_reports_s=options.keep_reports,
        keep_audit_s=options.keep_audit,
        organization_rate_per_s=options.rate * ORGANIZATION_RATE_FACTOR,
        organization_burst=options.burst * ORGANIZATION_RATE_FACTOR,
        offline_after=options.offline_after,
        alert_fire_after_s=options.notify_after,
        alert_resolve_after_s=options.notify_end_after,
        notify_url=options.notify_url,
        notify_secret=_secret(options),
        smtp=_smtp(options),
        tracker_url=options.tracker_url,
        tracker_attempts_max=options.tracker_attempts,
    )


def identity_providers_of(file: Path | None) -> tuple[IdentityProvider, ...]:
    if file is None:
        return ()
    try:
        return read_providers(file)
    except ProviderFileError as error:
        raise UsageError(f"--identity-providers: {error}") from error


def _origin(text: str | None) -> str | None:
    """Return the origin as browsers send it (RFC 6454, 6.2)."""
    if text is None:
        return None
    parts = urlsplit(text) if is_web_url(text) else None
    if parts is None or not parts.netloc or parts.path not in {"", "/"} or "@" in parts.netloc:
        raise UsageError(f"--origin {text!r} is not an origin such as https://venue.example")
    default = {"http": ":80", "https": ":443"}[parts.scheme]
    return f"{parts.scheme}://{parts.netloc.lower().removesuffix(default)}"


def _proxies(addresses: Sequence[str]) -> frozenset[str]:
    try:
        return frozenset(str(ipaddress.ip_address(address)) for address in addresses)
    except ValueError as error:
        raise UsageError(f"--trusted-proxy requires an IP address: {error}") from error


def _smtp(options: argparse.Namespace) -> Smtp | None:
    user, file = options.smtp_user, options.smtp_password_file
    if options.smtp is None:
        if any((options.smtp_from, user, file)):
            raise UsageError("--smtp-from, --smtp-user and --smtp-password-file require --smtp")
        return None
    if (user is None) != (file is None):
        raise UsageError("--smtp-user and --smtp-password-file require each other")
    try:
        sender = require_email(options.smtp_from or "")
    except ValueError as error:
        raise UsageError("--smtp requires --smtp-from with an e-mail address") from error
    try:
        password = None if file is None else file.read_text(encoding="utf-8").strip()[:SECRET_MAX]
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"cannot use the password in {file}: {reason}") from error
    return Smtp(
        host=options.smtp[0], port=options.smtp[1], sender=sender, user=user, password=password
    )


def _secret(options: argparse.Namespace) -> bytes | None:
    file = options.notify_secret_file
    if file is None:
        return None
    if options.notify_url is None:
        raise UsageError("--notify-secret-file requires --notify-url")
    from controlplane.web.webhooks.alerts import read_secret

    try:
        with file.open(encoding="utf-8") as stream:
            return read_secret(stream.read(SECRET_MAX))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"cannot use the secret in {file}: {reason}") from error
