"""The application snapshot (contract: Version-1 payload)."""

from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from agent.wire import limits
from agent.wire.base import Exact, Integer, Number
from agent.wire.payload import Payload
from agent.wire.text import PayloadText, at_most
from agent.wire.vocabulary import BrowserFieldKey, FieldStatus, PeripheralKind

FieldValue = PayloadText | bool | Integer | float | tuple[PayloadText, ...]


class SnapshotField(Exact):
    """One fact, or why it is missing. ``source`` names where it was read."""

    key: PayloadText
    source: PayloadText
    status: FieldStatus
    value: FieldValue | None = None
    reason: PayloadText | None = None


class SnapshotInterface(Exact):
    id: PayloadText
    fields: tuple[SnapshotField, ...]


class Peripheral(Exact):
    id: PayloadText
    fields: tuple[SnapshotField, ...]
    kind: PeripheralKind


class Snapshot(Exact, tag_field="version", tag=1):
    version: ClassVar = 1
    collected_at: PayloadText
    duration_ms: Number
    fields: tuple[SnapshotField, ...]
    interfaces: tuple[SnapshotInterface, ...]
    peripherals: tuple[Peripheral, ...]
    limitations: tuple[PayloadText, ...]
    truncated: bool


BrowserSource = Annotated[
    str,
    Meta(min_length=1, max_length=limits.BROWSER_SOURCE_MAX),
    at_most(limits.BROWSER_SOURCE_MAX),
]
BrowserText = Annotated[
    str, Meta(max_length=limits.BROWSER_STRING_MAX), at_most(limits.BROWSER_STRING_MAX)
]
BrowserReason = Annotated[
    str,
    Meta(min_length=1, max_length=limits.BROWSER_REASON_MAX),
    at_most(limits.BROWSER_REASON_MAX),
]
BrowserValue = (
    BrowserText
    | bool
    | Integer
    | float
    | Annotated[tuple[BrowserText, ...], Meta(max_length=limits.BROWSER_ARRAY_MAX)]
)


class BrowserField(Exact):
    """A fact of the browser: with a value where its status is available, else with a reason."""

    key: BrowserFieldKey
    source: BrowserSource
    status: FieldStatus
    value: BrowserValue | None = None
    reason: BrowserReason | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        has, lacks = ("value", "reason") if self.status == "available" else ("reason", "value")
        if getattr(self, has) is None:
            raise ValueError(f"`{has}` is required where the status is {self.status}")
        if getattr(self, lacks) is not None:
            raise ValueError(f"`{lacks}` is not known where the status is {self.status}")


class ApplicationPayload(Payload, tag_field="version", tag=1):
    version: ClassVar = 1
    report_type: Literal["application"]
    snapshot: Snapshot
    browser_fields: Annotated[tuple[BrowserField, ...], Meta(max_length=limits.BROWSER_FIELDS_MAX)]
