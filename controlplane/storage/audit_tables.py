"""What was asked and changed, by whom: rows are added and, after a time, deleted, never changed."""

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
    """One line of the audit log. Names are as they were then: who or what it was may be gone.

    ``organization_id`` None: nobody knows whose it is, as a sign-in of an unknown address.
    ``credential_hint`` is the end of an API key. ``subject_kind`` and ``subject_id`` say what was
    changed, ``detail`` how, in words. ``address`` is the caller's, empty for the command line.
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
