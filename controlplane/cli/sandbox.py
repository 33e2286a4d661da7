"""``venue-control sandbox``: a generated merchant in the database, to try the service."""

import argparse
import shlex
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import IO

from sqlalchemy.orm import Session

from controlplane.accounts.keys import key_store
from controlplane.audit.command_line import note_new_key, note_new_retail_key
from controlplane.cli.chosen_database import in_database, open_database, require_database
from controlplane.client.connection import API_KEY, RETAIL_KEY
from controlplane.client.errors import CommandError, UsageError
from controlplane.clock import system_clock
from controlplane.merchant.rebuild import rebuild
from controlplane.retail.credentials import clients
from controlplane.sandbox.contents import delete_merchant
from controlplane.sandbox.loading import (
    LoadCounts,
    NoSandboxError,
    OccupiedError,
    continue_sales,
    last_sale_at,
    stored_generator,
    stored_plan,
)
from controlplane.sandbox.loading import load as load_plan
from controlplane.sandbox.ndjson import FormatError, load_lines
from controlplane.sandbox.ndjson import export as export_lines
from controlplane.sandbox.plan import Plan
from controlplane.storage.merchant.merchant_tables import Organization

KEY_NAME = "sandbox"


def load(options: argparse.Namespace) -> None:
    now = system_clock()
    last_day = options.until or now.date()
    plan = Plan(
        seed=options.seed,
        locations=options.locations,
        days=options.days,
        sales_per_day=options.sales_per_day,
        goods=options.goods,
        until=last_day,
        organization_id=options.organization,
        is_awkward=options.awkward,
    )
    end_of_last_day = datetime.combine(last_day + timedelta(days=1), datetime.min.time(), UTC)
    until = now if options.until is None else end_of_last_day

    def work(session: Session) -> tuple[LoadCounts, tuple[str, str]]:
        _clear_old_sandbox(session, plan.organization_id, replace=options.replace)
        counts = load_plan(session, plan, until, _show_progress)
        return counts, _make_keys(session, plan.organization_id, now)

    began_s = time.monotonic()
    with _as_command_errors():
        counts, (api_key, retail_key) = in_database(options, work, may_create=True)
    duration_s = time.monotonic() - began_s
    sys.stderr.write(
        f"\r{counts.sales} sales and {counts.refunds} refunds at {counts.locations} locations,"
        f" generated in {duration_s:.0f} s. The first location is loc-0001.\n"
        "Access of these keys: read only. Save the keys: they are shown only once.\n"
    )
    sys.stdout.write(
        f"export {API_KEY.variable}={api_key}\nexport {RETAIL_KEY.variable}={retail_key}\n"
    )
    sys.stdout.flush()
    database_option = f" --database {shlex.quote(options.database)}" if options.database else ""
    sys.stderr.write(
        f"Next: venue-control serve{database_option}\n"
        "Then, with these variables: venue-control sales\n"
        "                            venue-control figures --location loc-0001 --all\n"
    )


def _make_keys(session: Session, organization_id: str, now: datetime) -> tuple[str, str]:
    """Create an API key and a retail API key, both with read access only."""
    key_id, api_key = key_store.create_key(
        session, name=KEY_NAME, can_write=False, locations=(), now=now,
        organization_id=organization_id,
    )  # fmt: skip
    note_new_key(session, key_id, now)
    retail_id, retail_key = clients.create_key(
        session, name=KEY_NAME, can_write=False, environment="test", now=now,
        organization_id=organization_id,
    )  # fmt: skip
    note_new_retail_key(session, retail_id, "test", now)
    return api_key, retail_key


def run(options: argparse.Namespace) -> None:
    """Generate sales until Ctrl-C. A service with the same database shows the new sales."""
    require_database(options.database)
    with open_database(options.database) as database, _as_command_errors():
        plan = database.read(lambda session: stored_plan(session, options.organization))
        generator, venues = database.read(lambda session: stored_generator(session, plan))
        since = database.read(lambda session: last_sale_at(session, options.organization))
        while True:
            now = system_clock()
            sales, refunds = database.write(
                partial(continue_sales, generator=generator, venues=venues, since=since, until=now)
            )
            since = now
            if sales or refunds:
                print(f"{now:%H:%M:%S} {sales} sales, {refunds} refunds", flush=True)
            if options.once:
                return
            time.sleep(options.every)


def export(options: argparse.Namespace) -> None:
    require_database(options.database)
    with open_database(options.database) as database, _open_file(options.file, "w") as out:

        def work(session: Session) -> None:
            if session.get(Organization, options.organization) is None:
                raise CommandError(f"there is no organization {options.organization}")
            for line in export_lines(session, options.organization):
                out.write(line)

        database.read(work)


def import_file(options: argparse.Namespace) -> None:
    with _open_file(options.file, "r") as lines, _as_command_errors():
        counts = in_database(options, lambda s: load_lines(s, lines), may_create=True)
    sys.stderr.write(", ".join(f"{count} {name}" for name, count in counts.items()) + "\n")


def rebuild_all(options: argparse.Namespace) -> int:
    """Recalculate all sums. Returns 1 if a stored sum was wrong, otherwise 0."""
    wrong_counts = in_database(options, rebuild)
    for table, count in wrong_counts.items():
        print(f"{table}: {count} wrong")
    return int(any(wrong_counts.values()))


def _clear_old_sandbox(session: Session, organization_id: str, *, replace: bool) -> None:
    organization = session.get(Organization, organization_id)
    if organization is None or not replace:
        return
    if organization.sandbox is None:
        raise CommandError(f"organization {organization_id} is not a sandbox and is not replaced")
    delete_merchant(session, organization_id)
    session.expunge_all()


def _show_progress(counts: LoadCounts) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r{counts.sales} sales ...")
        sys.stderr.flush()


@contextmanager
def _as_command_errors() -> Iterator[None]:
    try:
        yield
    except OccupiedError as error:
        raise UsageError(str(error), "Use --replace to replace a sandbox.") from error
    except NoSandboxError as error:
        raise UsageError(str(error), "Create one: venue-control sandbox load") from error
    except FormatError as error:
        raise CommandError(f"the file is not an export of a sandbox: {error}") from error


@contextmanager
def _open_file(name: str, mode: str) -> Iterator[IO[str]]:
    if name == "-":
        yield sys.stdout if mode == "w" else sys.stdin
        return
    try:
        with Path(name).open(mode, encoding="utf-8", newline="\n") as file:
            yield file
    except OSError as error:
        raise UsageError(f"cannot open {name}: {error.strerror}") from error
