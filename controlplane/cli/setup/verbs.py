"""``venue-control setup``: creates what a new service needs, in one dialog and one transaction.

The user is asked for each required value that is not given as an option. The command changes
nothing that exists already, so it can be repeated.
"""

import argparse
import os
import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from sqlalchemy import select
from sqlalchemy.orm import Session

from agent.wire.addresses import join_host_port
from controlplane.accounts import users
from controlplane.accounts.keys import key_store
from controlplane.accounts.names import known_locations
from controlplane.audit.command_line import note_new_key
from controlplane.cli.arguments.serve import DEFAULT_PORT
from controlplane.cli.chosen_database import (
    add_audit_entry,
    chosen_database,
    in_database,
    service_options,
)
from controlplane.cli.keys import LISTED_MAX, require_location_ids
from controlplane.cli.locations import require_name
from controlplane.cli.screen.cells import shorten_list
from controlplane.cli.screen.output import print_secret
from controlplane.cli.users import read_password_hash, require_email
from controlplane.client.errors import UsageError
from controlplane.clock import system_clock
from controlplane.devices.locations.locations import set_zone_and_hours
from controlplane.devices.locations.opening_hours import describe_hours, require_zone
from controlplane.merchant.locations import name_location, name_organization, valid_zone
from controlplane.operation.audit_entries import Operation, Subject, describe_role, user_subject
from controlplane.storage.merchant.merchant_tables import Organization
from controlplane.storage.tables import ApiKey

KEY_NAME: Final = "first key"
Parser = Callable[[str], str]
"""Returns the value of a valid answer. Otherwise raises UsageError with a message for users."""


@dataclass(frozen=True, slots=True)
class SetupState:
    """The existing parts of an organization. `setup` creates the missing ones.

    Attributes:
        name: the name of the organization, or None if it has none.
        owners: e-mail addresses of the owners that have access to all locations.
        locations: names of the locations by id.
        keys: descriptions of the valid API keys.
    """

    name: str | None
    owners: tuple[str, ...]
    locations: dict[str, str | None]
    keys: tuple[str, ...]

    @property
    def is_complete(self) -> bool:
        return bool(self.name and self.owners and self.locations and self.keys)


@dataclass(frozen=True, slots=True)
class Plan:
    """The parts to create. None or an empty text means that the part exists already.

    Attributes:
        organization: the name of the organization.
        email: the e-mail address of the owner.
        user_name: the name of the owner.
        password_hash: the hash of the owner's password.
        location: id, name and time zone of the first location.
    """

    organization: str | None
    email: str | None
    user_name: str
    password_hash: str
    location: tuple[str, str, str] | None


def run(options: argparse.Namespace) -> None:
    read_existing = partial(_read_existing, organization_id=options.organization)
    existing = in_database(options, read_existing, may_create=True)
    if existing.is_complete:
        print(f"{options.organization} is set up already: nothing was changed.")
        _print_existing(existing)
    else:
        try:
            plan = _make_plan(options, existing)
        except EOFError:
            raise UsageError("the input ended: nothing was created") from None
        secret = in_database(options, lambda session: _create(session, options, plan))
        _print_existing(in_database(options, read_existing))
        if secret is not None:
            print_secret(secret, "This is the first key. Save it: it is shown only once.")
    _print_next(options)


def _read_existing(session: Session, organization_id: str) -> SetupState:
    organization = session.get(Organization, organization_id)
    keys = select(ApiKey).where(
        ApiKey.organization_id == organization_id, ApiKey.revoked_at.is_(None)
    )
    return SetupState(
        None if organization is None else organization.name,
        tuple(
            member.user.email
            for member in users.members(session, organization_id)
            if member.membership.role == "owner" and not member.membership.locations
        ),
        known_locations(session, organization_id),
        tuple(f"{key.name or 'unnamed'} (…{key.hint})" for key in session.scalars(keys)),
    )


def _make_plan(options: argparse.Namespace, existing: SetupState) -> Plan:
    """Return what to create, from the options and the answers of the user. Raises UsageError."""
    must_ask = {
        "--organization-name": not existing.name and not options.organization_name,
        "--email": not existing.owners and not options.email,
        "--password-file": not existing.owners and options.password_file is None,
        "--location-name": not existing.locations and not options.location_name,
    }
    missing = [name for name, is_missing in must_ask.items() if is_missing]
    if missing and not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError(
            f"there is no terminal for questions, so these options are needed: {' '.join(missing)}",
            "`venue-control setup --help` describes them.",
        )
    organization = email = location = None
    user_name = password_hash = ""
    if not existing.name:
        organization = _value(options.organization_name, "Name of your business", require_name)
    if not existing.owners:
        email = _value(options.email, "Your e-mail address", require_email)
        # Ask for the name only if the e-mail address was asked for.
        if must_ask["--email"] and not options.name:
            user_name = _ask("Your name", require_name)
        else:
            user_name = require_name(options.name or email)
        if must_ask["--password-file"]:
            password_hash = _retry(lambda: read_password_hash(options))
        else:
            password_hash = read_password_hash(options)
    if not existing.locations:
        require_location_ids([options.location])
        location_name = _value(options.location_name, "Name of the first location", require_name)
        if must_ask["--location-name"] and options.zone is None:
            zone = _ask("Time zone of the location", _require_zone, system_zone())
        else:
            zone = _require_zone(options.zone or system_zone())
        location = (options.location, location_name, zone)
    return Plan(organization, email, user_name, password_hash, location)


def _value(option: str | None, question: str, parse: Parser) -> str:
    return parse(option) if option else _ask(question, parse)


def _require_zone(text: str) -> str:
    try:
        require_zone(text)
    except ValueError as error:
        raise UsageError(str(error)) from error
    return text


def system_zone() -> str:
    """Return the time zone of this machine, or UTC if its name is unknown."""
    zone_name = os.environ.get("TZ") or os.path.realpath("/etc/localtime").partition("zoneinfo/")[2]
    return valid_zone(zone_name) or "UTC"


def _create(session: Session, options: argparse.Namespace, plan: Plan) -> str | None:
    """Create the parts of the plan, and an API key if the organization has none.

    Returns the secret of the new key, or None if there is a key already.
    """
    organization_id, now = options.organization, system_clock()

    def add_entry(operation: Operation, subject: Subject, detail: str = "") -> None:
        add_audit_entry(session, operation, subject, detail, organization_id=organization_id)

    if plan.organization is not None:
        name_organization(session, organization_id, plan.organization, now)
        add_entry("organization.name", Subject("organization", organization_id), plan.organization)
    if plan.email is not None:
        if users.find_user(session, plan.email) is not None:
            raise UsageError(
                f"{plan.email} has an account already",
                "Add it with `venue-control users add --known`, or use another address.",
            )
        user = users.add_user(
            session,
            email=plan.email,
            name=plan.user_name,
            password_hash=plan.password_hash,
            now=now,
        )
        users.set_membership(
            session, user.id, organization_id, role="owner", locations=(), now=now
        )  # fmt: skip
        add_entry("member.add", user_subject(user), describe_role("owner", ()))
    if plan.location is not None:
        location_id, name, zone = plan.location
        name_location(session, (organization_id, location_id), name, now)
        set_zone_and_hours(session, (organization_id, location_id), zone, None, now)
        add_entry("location.name", Subject("location", location_id), name)
        add_entry("location.hours", Subject("location", location_id), describe_hours(None, zone))
    if _read_existing(session, organization_id).keys:
        return None
    key = key_store.new_key(name=KEY_NAME, locations=())
    key_store.add_keys(session, [key], can_write=True, organization_id=organization_id, now=now)
    note_new_key(session, key.id, now)
    return key.secret


def _print_existing(existing: SetupState) -> None:
    locations = [
        f"{name or 'no name'} ({location_id})" for location_id, name in existing.locations.items()
    ]
    for title, values in (
        ("organization", (existing.name or "",)),
        ("owner", existing.owners),
        ("location", locations),
        ("key", existing.keys),
    ):
        print(f"{title:13} {shorten_list(values, LISTED_MAX)}")


def _print_next(options: argparse.Namespace) -> None:
    """Print the next command.

    If root has set up the installed service, print the address of the console instead.
    """
    if chosen_database(options.database).is_opened_as_service:
        installed = service_options()
        address = installed.origin or f"http://{join_host_port(installed.host, installed.port)}"
        sys.stderr.write(f"Next: open {address} in a browser and sign in.\n")
    else:
        database_option = f" --database {shlex.quote(options.database)}" if options.database else ""
        sys.stderr.write(
            f"Next: venue-control serve{database_option}\n"
            f"Then open http://127.0.0.1:{DEFAULT_PORT} in a browser and sign in.\n"
        )


# ---------------------------------------------------------------------------- questions


def _ask(question: str, parse: Parser, default: str = "") -> str:
    """Ask until the answer is valid. An empty answer selects ``default``."""
    prompt = f"{question} [{default}]: " if default else f"{question}: "
    return _retry(lambda: parse(_read_line(prompt) or default))


def _retry(work: Callable[[], str]) -> str:
    """Repeat ``work`` until it raises no UsageError, and return its result. Print the errors."""
    while True:
        try:
            return work()
        except UsageError as error:
            sys.stderr.write(f"  {error}\n")


def _read_line(question: str) -> str:
    sys.stderr.write(question)
    sys.stderr.flush()
    line = sys.stdin.readline()
    if not line:
        raise EOFError
    return line.strip()
