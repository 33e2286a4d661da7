"""Writes thousands of devices directly into the database, because enrollment is not measured."""

import uuid
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sqlalchemy import insert
from sqlalchemy.orm import Session

from controlplane.accounts.keys.key_store import DEFAULT_ORGANIZATION, create_key
from controlplane.storage.database import Database
from controlplane.storage.tables import Binding, Device

DEVICES_A_KEY = 10
"""A merchant creates one API key for each venue, and a venue has about ten devices."""


@dataclass(frozen=True, slots=True)
class Member:
    """A device of the fleet, and its API key."""

    instance_id: uuid.UUID
    binding_id: uuid.UUID
    api_key: str
    location_id: str


def populate(
    database: Database, devices: int, organization_id: str = DEFAULT_ORGANIZATION
) -> list[Member]:
    """Write ``devices`` devices: ten in each venue, which share one API key."""
    now = datetime.now(UTC)
    fleet: list[Member] = []

    def work(session: Session) -> None:
        rows = []
        for number in range(devices):
            if number % DEVICES_A_KEY == 0:
                location = f"loc-{number // DEVICES_A_KEY:05}"
                key_id, key = create_key(
                    session,
                    name=location,
                    can_write=True,
                    locations=(location,),
                    organization_id=organization_id,
                    now=now,
                )
            member = Member(uuid.uuid4(), uuid.uuid4(), key, location)
            fleet.append(member)
            rows.append(_row(member, number, key_id, organization_id, now))
        session.flush()
        session.execute(insert(Device), rows)
        session.execute(
            insert(Binding), [_binding(member, organization_id, now) for member in fleet]
        )

    database.write(work)
    return fleet


def _row(
    member: Member, number: int, key_id: uuid.UUID, organization_id: str, now: datetime
) -> dict[str, object]:
    return {
        "instance_id": member.instance_id,
        "binding_id": member.binding_id,
        "key_id": key_id,
        "organization_id": organization_id,
        "location_id": member.location_id,
        "legacy_install_id": f"till-{number:05}",
        "app_version": "0.1.0",
        "capabilities": ["network", "application", "commands.stream", "commands.poll"],
        "platform": ("linux", "windows", "macos")[number % 3],
        "public_key": "0" * 88,
        "user_id": str(key_id),
        "foreground": False,
        "created_at": now,
        "enrolled_at": now,
        "last_seen_at": now - timedelta(seconds=number % 60),
        "revoked_at": None,
    }


def _binding(member: Member, organization_id: str, now: datetime) -> dict[str, object]:
    return {
        "id": member.binding_id,
        "instance_id": member.instance_id,
        "organization_id": organization_id,
        "location_id": member.location_id,
        "created_at": now,
        "ended_at": None,
    }
