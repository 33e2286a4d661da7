"""The application snapshot (contract: Version-1 payload)."""

from typing import Annotated, Literal

from pydantic import Field

from agent.wire import limits
from agent.wire.base import Exact, Integer, Number, absent
from agent.wire.payload import Payload
from agent.wire.text import PayloadText, Utf16Length
from agent.wire.vocabulary import AbsenceStatus, BrowserFieldKey, FieldStatus, PeripheralKind

FieldValue = PayloadText | bool | Integer | float | tuple[PayloadText, ...]


class SnapshotField(Exact):
    """One fact, or why it is missing. ``source`` names where it was read."""

    key: PayloadText
    source: PayloadText
    status: FieldStatus
    value: FieldValue | None = absent()
    reason: PayloadText | None = absent()


class SnapshotInterface(Exact):
    id: PayloadText
    fields: tuple[SnapshotField, ...]


class Peripheral(Exact):
    id: PayloadText
    fields: tuple[SnapshotField, ...]
    kind: PeripheralKind


class Snapshot(Exact):
    version: Literal[1] = 1
    collected_at: PayloadText
    duration_ms: Number
    fields: tuple[SnapshotField, ...]
    interfaces: tuple[SnapshotInterface, ...]
    peripherals: tuple[Peripheral, ...]
    limitations: tuple[PayloadText, ...]
    truncated: bool


BrowserSource = Annotated[str, Utf16Length(min=1, max=limits.BROWSER_SOURCE_MAX)]
BrowserText = Annotated[str, Utf16Length(limits.BROWSER_STRING_MAX)]
BrowserValue = (
    BrowserText
    | bool
    | Integer
    | float
    | Annotated[tuple[BrowserText, ...], Field(max_length=limits.BROWSER_ARRAY_MAX)]
)


class BrowserFieldAvailable(Exact):
    key: BrowserFieldKey
    source: BrowserSource
    status: Literal["available"] = "available"
    value: BrowserValue


class BrowserFieldAbsent(Exact):
    key: BrowserFieldKey
    source: BrowserSource
    status: AbsenceStatus
    reason: Annotated[str, Utf16Length(min=1, max=limits.BROWSER_REASON_MAX)]


BrowserField = BrowserFieldAvailable | BrowserFieldAbsent


class ApplicationPayload(Payload):
    version: Literal[1] = 1
    report_type: Literal["application"] = "application"
    snapshot: Snapshot
    browser_fields: Annotated[tuple[BrowserField, ...], Field(max_length=limits.BROWSER_FIELDS_MAX)]
