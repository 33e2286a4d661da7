"""Messages of the console's operation for the audit log."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from agent.wire.base import Absent, Array, Exact, Tolerant, Uuid
from agent.wire.text import Cursor
from controlplane.operation.storable_text import STORABLE
from controlplane.storage.audit_tables import ActorKind, AuditOutcome, CredentialKind

PAGE_DEFAULT = 50
PAGE_MAX = 200
Area = Literal[
    "request",
    "pending_request",
    "device",
    "key",
    "retail_key",
    "member",
    "invitation",
    "password",
    "session",
    "second_factor",
    "sign_in_policy",
    "location",
    "organization",
    "maintenance",
    "alert",
    "alert_route",
    "alert_rule",
    "alert_webhook",
    "silence",
    "grant",
    "support",
]


class AuditRequest(Exact):
    """The filters and page of a listing.

    ``by`` is a part of the name of a user or key, or the end of an API key. ``area`` is the first
    part of the name of the operation.
    """

    by: Absent[Annotated[str, Field(min_length=1, max_length=128), *STORABLE]] = None
    area: Absent[Area] = None
    cursor: Absent[Cursor] = None
    size: Absent[Annotated[int, Field(ge=1, le=PAGE_MAX)]] = None


class AuditRecord(Tolerant):
    """An entry, with the names that were valid when it was written.

    The subject is what was changed. ``subject_id`` is empty if the operation has no subject.
    ``credential_hint`` is the end of the API key. ``address`` is the caller's network address.
    """

    at: datetime
    actor_kind: ActorKind
    actor_id: Uuid | None
    actor_name: str
    credential_kind: CredentialKind
    credential_id: Uuid | None
    credential_hint: str
    operation: str
    subject_kind: str
    subject_id: str
    subject_name: str
    detail: str
    outcome: AuditOutcome
    address: str


class AuditReply(Tolerant):
    """A page of entries, newest first."""

    entries: Array[AuditRecord]
    next_cursor: str | None
