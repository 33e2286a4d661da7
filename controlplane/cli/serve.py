"""``venue-control serve``: run the service until SIGTERM or SIGINT."""

import argparse
import os
import socket
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from agent.wire.addresses import is_loopback
from controlplane.accounts.oidc.providers import (
    IdentityProvider,
    ProviderFileError,
    read_providers,
)
from controlplane.cli.arguments.serve_settings import settings_of
from controlplane.cli.chosen_database import DATABASE_ERRORS, database_error
from controlplane.client.errors import UsageError
from controlplane.server import announce, bind, serve, url_of
from controlplane.settings import Settings
from controlplane.storage.database import Database, sqlite_file
from controlplane.storage.default_database import default_database
from controlplane.web.observability.listener import MetricsListener
from controlplane.web.observability.logs import set_up_logging
from controlplane.workers import run_workers


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


def identity_providers_of(file: Path | None) -> tuple[IdentityProvider, ...]:
    if file is None:
        return ()
    try:
        return read_providers(file)
    except ProviderFileError as error:
        raise UsageError(f"--identity-providers: {error}") from error
