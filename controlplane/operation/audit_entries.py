"""Entries of the audit log. They are added in the transaction of the change that they describe.

They contain no secrets: an API key is recorded by its hint, which is the end of the key, and a
session by its id.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal
from uuid import UUID

from sqlalchemy.orm import Session

from controlplane.operation.caller import Caller
from controlplane.storage.account_tables import Role, User
from controlplane.storage.audit_tables import ActorKind, AuditEntry, AuditOutcome, CredentialKind
from controlplane.storage.tables import ApiKey, Device

TEXT_MAX: Final = 300
"""Maximum length of a text in an entry. Longer texts are cut off."""
Operation = Literal[
    "request.create",
    "pending_request.create",
    "pending_request.cancel",
    "device.revoke",
    "key.create",
    "key.revoke",
    "retail_key.create",
    "retail_key.revoke",
    "retail_key.rotate",
    "member.add",
    "member.invite",
    "member.join",
    "member.change",
    "member.remove",
    "invitation.revoke",
    "password.change",
    "session.sign_in",
    "session.sign_out",
    "session.end",
    "session.choose_organization",
    "second_factor.set_up",
    "second_factor.remove",
    "second_factor.recovery_codes",
    "sign_in_policy.change",
    "location.hours",
    "location.name",
    "organization.name",
    "maintenance.add",
    "maintenance.end",
    "alert.acknowledge",
    "alert_route.remove",
    "alert_route.set",
    "alert_route.test",
    "alert_rule.remove",
    "alert_rule.set",
    "alert_webhook.set",
    "alert_webhook.remove",
    "silence.add",
    "silence.end",
    "grant.create",
    "grant.end",
    "support.confirm",
    "support.disconnect",
]


@dataclass(frozen=True, slots=True)
class Subject:
    """The changed object. ``id`` is unique among the objects of a kind. Users see ``name``."""

    kind: str
    id: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class Event:
    """A change, or an attempt that was refused. ``detail`` is further text for users."""

    operation: Operation
    subject: Subject
    detail: str = ""
    outcome: AuditOutcome = "done"


@dataclass(frozen=True, slots=True)
class Credential:
    """The credential of an actor.

    ``id`` identifies the API key, session, OAuth grant, invitation or pending request. ``hint`` is
    the end of an API key.
    """

    kind: CredentialKind
    id: UUID | None = None
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Actor:
    """The user, API key or command line that made a change, and the credential that was used.

    ``address`` is the IP address of the caller. It is empty if there is none to record, for example
    for the command line or a dispatched pending request.
    """

    kind: ActorKind
    id: UUID | None
    name: str
    credential: Credential = Credential("none")
    address: str = ""


COMMAND_LINE: Final = Actor("command_line", None, "command line", Credential("command_line"))
"""The actor of changes on the command line: a user with access to the database."""


def note(
    session: Session, actor: Actor, event: Event, *, organization_id: str | None, now: datetime
) -> AuditEntry:
    """Add an entry to the log, and return it."""
    entry = AuditEntry(
        at=now,
        organization_id=organization_id,
        actor_kind=actor.kind,
        actor_id=actor.id,
        actor_name=_shortened(actor.name),
        credential_kind=actor.credential.kind,
        credential_id=actor.credential.id,
        credential_hint=actor.credential.hint,
        operation=event.operation,
        subject_kind=event.subject.kind,
        subject_id=_shortened(event.subject.id),
        subject_name=_shortened(event.subject.name),
        detail=_shortened(event.detail),
        outcome=event.outcome,
        address=actor.address,
    )
    session.add(entry)
    return entry


def note_call(
    session: Session,
    caller: Caller,
    event: Event,
    *,
    address: str,
    now: datetime,
    organization_id: str | None = None,
) -> None:
    """Add an entry for a change by a caller.

    ``organization_id`` is by default the current organization of the caller.
    """
    actor = actor_of(session, caller, address)
    organization_id = organization_id or caller.organization_id
    note(session, actor, event, organization_id=organization_id, now=now)


def user_actor(user: User, credential: Credential | None = None, address: str = "") -> Actor:
    return Actor("user", user.id, user.email, credential or Credential("none"), address)


def actor_of(session: Session, caller: Caller, address: str = "") -> Actor:
    """Return the actor of a caller: its user, or its API key if it has no user."""
    key = session.get(ApiKey, caller.key_id) if caller.kind == "api_key" else None
    hint = "" if key is None else key.hint
    credential = Credential(caller.kind, caller.key_id, hint)
    if caller.owner_id is None:
        return Actor("key", caller.key_id, "" if key is None else key.name, credential, address)
    user = session.get(User, caller.owner_id)
    return Actor("user", caller.owner_id, "" if user is None else user.email, credential, address)


def device_subject(device: Device) -> Subject:
    return Subject("device", str(device.instance_id), device.legacy_install_id)


def key_subject(key: ApiKey) -> Subject:
    return Subject("key", str(key.id), f"{key.name} (…{key.hint})")


def describe_grant(key: ApiKey) -> str:
    return (
        f"{'reads and writes' if key.can_write else 'reads'}, at {format_locations(key.locations)}"
    )


def format_locations(locations: Sequence[str]) -> str:
    return ", ".join(locations) or "every location"


def describe_role(role: Role, locations: Sequence[str]) -> str:
    return f"{role} at {format_locations(locations)}"


def user_subject(user: User) -> Subject:
    return Subject("member", str(user.id), user.email)


def _shortened(value: str) -> str:
    return value if len(value) <= TEXT_MAX else f"{value[: TEXT_MAX - 1]}…"
