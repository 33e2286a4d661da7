"""``venue-control users``: users and memberships, changed directly in the database.

A password is read from a prompt or a file, and is never an argument: other users of the machine can
see the arguments of a process.
"""

import argparse
import getpass
import sys
from pathlib import Path
from typing import Final

from sqlalchemy.orm import Session

from controlplane.accounts import sign_in_policy, users
from controlplane.accounts.passwords import hash_password, require_valid_length
from controlplane.accounts.second_factor import codes
from controlplane.accounts.users import find_user
from controlplane.cli.chosen_database import add_audit_entry, in_database
from controlplane.cli.keys import (
    report_new_locations,
    require_location_ids,
    unknown_locations,
)
from controlplane.cli.screen.output import print_records
from controlplane.client.errors import CommandError, UsageError
from controlplane.clock import system_clock
from controlplane.operation.audit_entries import Operation, Subject, describe_role, user_subject
from controlplane.operation.storable_text import NAME_MAX
from controlplane.settings import Settings
from controlplane.storage.account_tables import Membership, User

PASSWORD_FILE_MAX: Final = 4096
"""Maximum number of characters that are read from a password file."""


def add(options: argparse.Namespace) -> None:
    """Add a user to the organization. With ``--known``, an existing user keeps the password."""
    email = require_email(options.email)
    require_location_ids(options.location)
    name = options.name.strip() or email
    if len(name) > NAME_MAX or not name.isprintable():
        raise UsageError(f"a name has at most {NAME_MAX} printable characters")
    if options.known and options.password_file is not None:
        raise UsageError(
            "--known keeps the password of the account, so --password-file cannot be used",
            "Set a new password with `venue-control users password`.",
        )
    # Raise errors before the operator is prompted for a password.
    in_database(options, lambda session: _known_user(session, options), may_create=True)
    password_hash = "" if options.known else read_password_hash(options)

    def work(session: Session) -> list[str]:
        new_locations = unknown_locations(session, options, options.location)
        user = _known_user(session, options) or users.add_user(
            session, email=email, name=name, password_hash=password_hash, now=system_clock()
        )
        _set_membership(session, options, user, options.location)
        _add_entry(
            session, options, "member.add", user, describe_role(options.role, options.location)
        )
        return new_locations

    new_locations = in_database(options, work)
    _print_role(options, options.location)
    report_new_locations(new_locations)
    if options.known:
        sys.stderr.write("The user exists already and keeps the password.\n")


def change_role(options: argparse.Namespace) -> None:
    require_location_ids(options.location)

    def work(session: Session) -> tuple[list[str], list[str]]:
        membership = _membership(session, options)
        new_locations = unknown_locations(
            session, options, set(options.location).difference(membership.locations)
        )
        # An empty list means all locations.
        locations = options.location or ([] if options.every_location else membership.locations)
        before = describe_role(membership.role, membership.locations)
        user = session.get_one(User, membership.user_id)
        _set_membership(session, options, user, locations)
        after = describe_role(options.role, locations)
        _add_entry(session, options, "member.change", user, f"{before} → {after}")
        return list(locations), new_locations

    locations, new_locations = in_database(options, work)
    _print_role(options, locations)
    report_new_locations(new_locations)


def remove(options: argparse.Namespace) -> None:
    def work(session: Session) -> None:
        user = session.get_one(User, _membership(session, options).user_id)
        _add_entry(session, options, "member.remove", user)
        users.remove_membership(session, user.id, options.organization, system_clock())

    in_database(options, work)
    print(f"{require_email(options.email)}: no longer a member of {options.organization}")


def change_password(options: argparse.Namespace) -> None:
    # Raise errors before the operator is prompted for a password.
    in_database(options, lambda session: _user(session, options))
    password_hash = read_password_hash(options)

    def work(session: Session) -> None:
        user = _user(session, options)
        users.set_password(session, user, password_hash)
        _note_sign_out(session, "password.change", user)

    in_database(options, work)
    print(f"{require_email(options.email)}: the password is changed and all sessions have ended")


def reset_second_factor(options: argparse.Namespace) -> None:
    def work(session: Session) -> bool:
        user = _user(session, options)
        if not codes.remove(session, user.id):
            return False
        users.end_sessions(session, user.id)
        _note_sign_out(session, "second_factor.remove", user)
        return True

    is_removed = in_database(options, work)
    email = require_email(options.email)
    if not is_removed:
        raise CommandError(f"{email} has no second factor")
    print(f"{email}: the second factor is removed and all sessions have ended")


def policy(options: argparse.Namespace) -> None:
    """Print the sign-in policy of an organization. With options, change the policy first."""

    def work(session: Session) -> str:
        organization_id = options.organization
        row = sign_in_policy.policy_of(session, organization_id)
        if options.passwords is None and options.second_factor is None:
            return sign_in_policy.describe_policy(row)
        if options.passwords is not None:
            row.accepts_passwords = options.passwords == "accepted"
        if options.second_factor is not None:
            row.requires_second_factor = options.second_factor == "required"
        sign_in_policy.set_policy(session, row)
        text = sign_in_policy.describe_policy(row)
        subject = Subject("organization", organization_id)
        add_audit_entry(
            session, "sign_in_policy.change", subject, text, organization_id=organization_id
        )
        return text

    print(f"{options.organization}: {in_database(options, work)}")


def list_all(options: argparse.Namespace) -> None:
    print_records(
        in_database(options, lambda session: users.members(session, options.organization)),
        {
            "address": lambda member: member.user.email,
            "name": lambda member: member.user.name,
            "role": lambda member: member.membership.role,
            "locations": lambda member: ", ".join(member.membership.locations) or "all",
        },
        "There are no members. Add one: venue-control users add EMAIL --role owner",
    )


def _set_membership(
    session: Session, options: argparse.Namespace, user: User, locations: list[str]
) -> None:
    users.set_membership(
        session,
        user.id,
        options.organization,
        role=options.role,
        locations=locations,
        now=system_clock(),
    )


def _add_entry(
    session: Session,
    options: argparse.Namespace,
    operation: Operation,
    user: User,
    detail: str = "",
) -> None:
    subject, organization_id = user_subject(user), options.organization
    add_audit_entry(session, operation, subject, detail, organization_id=organization_id)


def _note_sign_out(session: Session, operation: Operation, user: User) -> None:
    """Note in the audit log of each organization of the user that the user was signed out."""
    for membership in users.memberships(session, user.id):
        add_audit_entry(
            session, operation, user_subject(user), "signed out everywhere",
            organization_id=membership.organization_id,
        )  # fmt: skip


def _print_role(options: argparse.Namespace, locations: list[str]) -> None:
    scope = ", ".join(locations) or "all locations"
    print(f"{require_email(options.email)}: {options.role} of {options.organization}, {scope}")


def require_email(text: str) -> str:
    """Return the trimmed address. Raises UsageError."""
    try:
        return users.require_email(text)
    except ValueError as error:
        raise UsageError(str(error)) from error


def _known_user(session: Session, options: argparse.Namespace) -> User | None:
    """Return the existing user to add, or None if a new user must be created. Raises UsageError.

    E-mail addresses are not verified. The owner of any organization can invite any address, and the
    user who opens the link of the invitation sets the password of the new account. So the account
    with an address may belong to a user who does not own this address. Therefore the operator must
    confirm with ``--known`` that the account belongs to the new member.
    """
    user = find_user(session, options.email)
    if user is None:
        if options.known:
            raise UsageError(
                f"there is no user with the address {options.email}",
                "Leave out --known to create one.",
            )
        return None
    organizations = [
        membership.organization_id for membership in users.memberships(session, user.id)
    ]
    if options.organization in organizations:
        raise UsageError(
            f"{user.email} is a member of {options.organization} already",
            "`venue-control users role` changes the role of a member.",
        )
    if not options.known:
        raise UsageError(
            f"{user.email} has an account already, as a member of {', '.join(organizations)}",
            "If the account belongs to the member whom you want to add, repeat with --known. If"
            " not, or if you are not sure, set a new password before you repeat with --known:"
            f" venue-control users password {user.email}",
        )
    return user


def _user(session: Session, options: argparse.Namespace) -> User:
    user = find_user(session, options.email)
    if user is None:
        raise CommandError(
            f"there is no user with the address {options.email}",
            "`venue-control users list` lists the members of an organization.",
        )
    return user


def _membership(session: Session, options: argparse.Namespace) -> Membership:
    membership = session.get(Membership, (_user(session, options).id, options.organization))
    if membership is None:
        raise CommandError(
            f"{options.email} is not a member of {options.organization}",
            "`venue-control users list` lists the members.",
        )
    return membership


def read_password_hash(options: argparse.Namespace) -> str:
    """Return the hash of the password from the prompt or the file. Raises UsageError."""
    text = _prompt() if options.password_file is None else _read_line(options.password_file)
    try:
        require_valid_length(text)
    except ValueError as error:
        raise UsageError(str(error)) from error
    settings = Settings()
    return hash_password(text, settings.argon2_memory_kib, settings.argon2_passes)


def _prompt() -> str:
    if not sys.stdin.isatty():
        raise UsageError("there is no terminal for a password prompt", "Use --password-file FILE.")
    first = getpass.getpass("Password: ")
    if getpass.getpass("Again: ") != first:
        raise UsageError("the two passwords differ: enter the same password twice")
    return first


def _read_line(file: str) -> str:
    """Return the first line of a file, or of standard input if ``file`` is ``-``."""
    try:
        if file == "-":
            text = sys.stdin.readline(PASSWORD_FILE_MAX)
        else:
            with Path(file).open(encoding="utf-8") as stream:
                text = stream.readline(PASSWORD_FILE_MAX)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise UsageError(f"cannot read a password from {file}: {reason}") from error
    return text.rstrip("\r\n")
