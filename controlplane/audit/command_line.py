"""Audit entries for the command line, which works on the database directly."""

from datetime import datetime
from uuid import UUID

from sqlalchemy.orm import Session

from controlplane.operation.audit_entries import (
    COMMAND_LINE,
    Event,
    Subject,
    describe_grant,
    key_subject,
    note,
)
from controlplane.storage.merchant.retail_tables import RetailKey
from controlplane.storage.tables import ApiKey


def note_new_key(session: Session, key_id: UUID, now: datetime) -> None:
    """Add the audit entry of an API key that this transaction creates."""
    session.flush()
    key = session.get_one(ApiKey, key_id)
    event = Event("key.create", key_subject(key), describe_grant(key))
    note(session, COMMAND_LINE, event, organization_id=key.organization_id, now=now)


def note_new_retail_key(session: Session, key_id: UUID, environment: str, now: datetime) -> None:
    """Add the audit entry of an API key of the retail API that this transaction creates."""
    session.flush()
    key = session.get_one(RetailKey, key_id)
    event = Event("retail_key.create", retail_key_subject(key), environment)
    note(session, COMMAND_LINE, event, organization_id=key.organization_id, now=now)


def retail_key_subject(key: RetailKey) -> Subject:
    return Subject("retail_key", str(key.id), f"{key.name} (…{key.hint})")
