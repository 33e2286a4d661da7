"""The search for devices by their names, their locations and the text of their newest reports."""

from typing import Final, get_args
from uuid import UUID

from sqlalchemy import ColumnElement, or_, select

from agent.wire.vocabulary import Platform
from controlplane.devices.priority import HEALTHS, has_health
from controlplane.storage.merchant.merchant_tables import Location
from controlplane.storage.report_tables import ReportText
from controlplane.storage.tables import Device

WORDS_MAX: Final = 8
"""Further words of a search are ignored."""
ID_PREFIX_MIN: Final = 6
"""Shorter words are not compared with ids: a word such as ``cafe`` has only hexadecimal digits, but
is usually part of a name."""


def words_of(search: str | None) -> list[str]:
    return (search or "").split()[:WORDS_MAX]


def matches_device_or_reports(word: str, organization_id: str) -> ColumnElement[bool]:
    """Return the condition for devices that match this word, or whose newest reports contain it."""
    texts = select(ReportText.device).where(
        ReportText.organization_id == organization_id,
        ReportText.text.contains(word.lower(), autoescape=True),
    )
    return or_(matches_device(word, organization_id), Device.position.in_(texts))


def matches_device(word: str, organization_id: str) -> ColumnElement[bool]:
    """Return the condition for devices that match this word.

    The word can be part of the name, location, platform or version of the device, the start of its
    id, or its health.
    """
    platforms = [each for each in get_args(Platform) if word.lower() in each]
    columns = (Device.app_version, Device.location_id, Device.legacy_install_id)
    locations = select(Location.id).where(
        Location.organization_id == organization_id,
        Location.name.icontains(word, autoescape=True),
    )
    return or_(
        Device.platform.in_(platforms),
        *(each.icontains(word, autoescape=True) for each in columns),
        Device.location_id.in_(locations),
        *_id_conditions(word),
        *_health_conditions(word.lower()),
    )


def _health_conditions(word: str) -> list[ColumnElement[bool]]:
    """Return the condition for devices with the health ``word``, as a list of one element.

    The list is empty if the word is not the name of a health.
    """
    return [has_health(word)] if word in HEALTHS else []


def _id_conditions(word: str) -> list[ColumnElement[bool]]:
    """Return the condition for instance ids that start with the word, as a list of one element.

    The list is empty if no id can start with the word. Ids are compared as UUIDs, because databases
    store them in different formats.
    """
    digits = word.replace("-", "").lower()
    if not ID_PREFIX_MIN <= len(digits) <= 32 or set(digits) - set("0123456789abcdef"):
        return []
    return [Device.instance_id.between(UUID(digits.ljust(32, "0")), UUID(digits.ljust(32, "f")))]
