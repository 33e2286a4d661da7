"""``venue-control users``: people and memberships, said directly in the database.

A password is asked for or read from a file: a command line is seen by all on the machine.
"""

import argparse
import getpass
import sys
from pathlib import Path
from typing import Final

from sqlalchemy.orm import Session

from controlplane.accounts import users
from controlplane.accounts.passwords import hashed, require_good
from controlplane.accounts.users import NAME_MAX, Member, find_user
from controlplane.cli.keys import in_database, require_database, require_locations
from controlplane.client.errors import CommandError, UsageError
from controlplane.clock import system_clock
from controlplane.operation.audit_entries import (
    COMMAND_LINE,
    Event,
    Operation,
    granted,
    note,
    user_subject,
)
from controlplane.settings import Settings
from controlplane.storage.account_tables import Membership, User

PASSWORD_FILE_MAX: Final = 4096


def add(options: argparse.Namespace) -> int:
    """Who is a member of another organization keeps their password."""
    email = _email(options)
    require_locations(options.location)
    name = options.name.strip() or email
    if len(name) > NAME_MAX or not name.isprintable():
        raise UsageError(f"a name has at most {NAME_MAX} printable characters")
    is_known = in_database(options.database, lambda session: _is_known(session, options))
    password_hash = "" if is_known else _new_password(options)

    def work(session: Session) -> None:
        now = system_clock()
        user = find_user(session, email)
        if user is None:
            user = users.add_user(
                session, email=email, name=name, password_hash=password_hash, now=now
            )
        users.set_membership(
            session,
            user.id,
            options.organization,
            role=options.role,
            locations=options.location,
            now=now,
        )
        _note(session, options, "member.add", user, granted(options.role, options.location))

    in_database(options.database, work)
    places = ", ".join(options.location) or "every location"
    sys.stdout.write(f"{email}: {options.role} of {options.organization}, at {places}\n")
    if is_known:
        sys.stderr.write("They were known already: their password is as it was.\n")
    return 0


def role(options: argparse.Namespace) -> int:
    require_database(options)
    require_locations(options.location)

    def work(session: Session) -> str:
        member = _member(session, options)
        places = options.location or ([] if options.every_location else member.locations)
        was = granted(member.role, member.locations)
        users.set_membership(
            session,
            member.user_id,
            options.organization,
            role=options.role,
            locations=places,
            now=system_clock(),
        )
        user = session.get_one(User, member.user_id)
        _note(session, options, "member.change", user, f"{was} → {granted(options.role, places)}")
        return ", ".join(places) or "every location"

    places = in_database(options.database, work)
    sys.stdout.write(f"{_email(options)}: {options.role} of {options.organization}, at {places}\n")
    return 0


def remove(options: argparse.Namespace) -> int:
    require_database(options)

    def work(session: Session) -> None:
        member = _member(session, options)
        _note(session, options, "member.remove", session.get_one(User, member.user_id))
        users.remove_membership(session, member.user_id, options.organization, system_clock())

    in_database(options.database, work)
    sys.stdout.write(f"{_email(options)}: no longer a member of {options.organization}\n")
    return 0


def password(options: argparse.Namespace) -> int:
    require_database(options)
    in_database(options.database, lambda session: _user(session, options))
    password_hash = _new_password(options)

    def work(session: Session) -> None:
        user = _user(session, options)
        users.set_password(session, user, password_hash)
        for each in users.memberships(session, user.id):
            event = Event("password.change", user_subject(user), "signed out everywhere")
            organization_id = each.organization_id
            note(session, COMMAND_LINE, event, organization_id=organization_id, now=system_clock())

    in_database(options.database, work)
    sys.stdout.write(f"{_email(options)}: the password is another one, and they are signed out\n")
    return 0


def list_all(options: argparse.Namespace) -> int:
    require_database(options)
    found = in_database(
        options.database, lambda session: users.members(session, options.organization)
    )
    from controlplane.cli.tables import print_rows, text_of  # rich only where shown

    rows = [_row(each) for each in found]
    print_rows(
        ("address", "name", "role", "locations"),
        [tuple(text_of(each) for each in row) for row in rows],
        "There is nobody. Add somebody: venue-control users add EMAIL --role owner",
    )
    return 0


def _note(
    session: Session,
    options: argparse.Namespace,
    operation: Operation,
    user: User,
    detail: str = "",
) -> None:
    event = Event(operation, user_subject(user), detail)
    organization_id = options.organization
    note(session, COMMAND_LINE, event, organization_id=organization_id, now=system_clock())


def _row(member: Member) -> tuple[str, ...]:
    user, membership = member.user, member.membership
    return user.email, user.name, membership.role, ", ".join(membership.locations) or "all"


def _email(options: argparse.Namespace) -> str:
    try:
        return users.require_email(options.email)
    except ValueError as error:
        raise UsageError(str(error)) from error


def _is_known(session: Session, options: argparse.Namespace) -> bool:
    user = find_user(session, options.email)
    if user is not None and session.get(Membership, (user.id, options.organization)) is not None:
        raise UsageError(
            f"{user.email} is a member of {options.organization} already",
            "`venue-control users role` changes what a member may do.",
        )
    return user is not None


def _user(session: Session, options: argparse.Namespace) -> User:
    user = find_user(session, options.email)
    if user is None:
        raise CommandError(f"there is nobody with the address {options.email}")
    return user


def _member(session: Session, options: argparse.Namespace) -> Membership:
    found = session.get(Membership, (_user(session, options).id, options.organization))
    if found is None:
        raise CommandError(f"{options.email} is no member of {options.organization}")
    return found


def _new_password(options: argparse.Namespace) -> str:
    """Return the hash of a password that was told. Raises UsageError."""
    told = _asked() if options.password_file is None else _read(options.password_file)
    try:
        require_good(told)
    except ValueError as error:
        raise UsageError(str(error)) from error
    settings = Settings()
    return hashed(told, settings.argon2_memory_kib, settings.argon2_passes)


def _asked() -> str:
    if not sys.stdin.isatty():
        raise UsageError("there is no terminal to ask for a password", "Use --password-file FILE.")
    told = getpass.getpass("Password: ")
    if getpass.getpass("Again: ") != told:
        raise UsageError("the two are not the same")
    return told


def _read(file: str) -> str:
    try:
        if file == "-":
            text = sys.stdin.readline(PASSWORD_FILE_MAX)
        else:
            with Path(file).open(encoding="utf-8") as opened:
                text = opened.readline(PASSWORD_FILE_MAX)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise UsageError(f"cannot read a password from {file}: {reason}") from error
    return text.rstrip("\r\n")
