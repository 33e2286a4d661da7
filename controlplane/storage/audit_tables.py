"""The table of the audit log. Rows are never changed. They are deleted after the retention time."""

from datetime import datetime
from typing import Literal
from uuid import UUID

from sqlalchemy import Index, Text
from sqlalchemy.orm import Mapped, mapped_column

from controlplane.storage.tables import Base, Position

ActorKind = Literal["user", "key", "command_line", "unknown"]
CredentialKind = Literal[
    "api_key", "session", "oauth", "invitation", "pending_request", "command_line", "none"
]
AuditOutcome = Literal["done", "refused"]


class AuditEntry(Base):
    """One entry of the audit log. An entry has the names that were valid when it was written.

    ``organization_id`` is None if the entry belongs to no organization, for example a sign-in with
    an unknown e-mail address.

    If the service itself dispatched a pending request, ``credential_kind`` is pending_request,
    ``credential_id`` is the id of the pending request, and the actor is its creator.

    ``credential_hint`` is the end of an API key. ``subject_kind`` and ``subject_id`` identify what
    was changed, and ``detail`` describes the change. ``address`` is the network address of the
    caller. It is empty if it is not recorded, for example for the command line or a dispatched
    pending request.
    """

    __tablename__ = "audit_entries"
    __table_args__ = (Index("audit_entries_by_organization", "organization_id", "position"),)
    position: Mapped[int] = mapped_column(Position, primary_key=True, autoincrement=True)
    at: Mapped[datetime] = mapped_column(index=True)
    organization_id: Mapped[str | None]
    actor_kind: Mapped[ActorKind] = mapped_column(Text)
    actor_id: Mapped[UUID | None]
    actor_name: Mapped[str]
    credential_kind: Mapped[CredentialKind] = mapped_column(Text)
    credential_id: Mapped[UUID | None]
    credential_hint: Mapped[str]
    operation: Mapped[str]
    subject_kind: Mapped[str]
    subject_id: Mapped[str]
    subject_name: Mapped[str]
    detail: Mapped[str]
    outcome: Mapped[AuditOutcome] = mapped_column(Text)
    address: Mapped[str]
