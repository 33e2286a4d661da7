"""Messages of the list of incidents."""

from typing import Annotated

from pydantic import Field

from agent.wire.base import Absent, Array, Exact, Timestamp, Tolerant, Uuid
from agent.wire.payloads.history import Cause
from agent.wire.text import Cursor, NonEmptyText, PayloadText
from controlplane.operation.storable_text import STORABLE

DAYS_MAX = 30
DAYS_DEFAULT = 7
PAGE_MAX = 500
PAGE_DEFAULT = 50


class IncidentsRequest(Exact):
    """Selects incidents that began in the last ``days``.

    ``shared`` selects only incidents that several devices shared. ``size`` is the maximum number of
    entries in a page. For each page, the service reads up to ``size`` incidents of single devices.
    A page can have fewer entries, even if further pages follow, because the incidents that form a
    shared incident are one entry.
    """

    location: Absent[Annotated[PayloadText, *STORABLE]] = None
    days: Absent[Annotated[int, Field(ge=1, le=DAYS_MAX)]] = None
    shared: Absent[bool] = None
    cursor: Absent[Cursor] = None
    size: Absent[Annotated[int, Field(ge=1, le=PAGE_MAX)]] = None


class DeviceIncidentRecord(Tolerant):
    """An incident of one device.

    The fields from ``cause`` to ``evidence`` are from the agent's record. ``count`` is the number
    of interruptions that the incident joins. ``downtime_seconds`` is the sum of their durations.
    ``clock_correction_seconds`` was added to the times. It is 0 if no correction was necessary.
    """

    instance_id: Uuid
    name: NonEmptyText
    cause: Cause
    began_at: Timestamp
    ended_at: Timestamp | None
    downtime_seconds: int
    count: int
    evidence: str
    clock_correction_seconds: int


class IncidentRecord(Tolerant):
    """Incidents at one location that began within a minute.

    Attributes:
        began_at: when the first of them began.
        ended_at: when the last of them ended; null while one of them lasts.
        cause: the cause that most devices name.
        title: the cause, as a sentence without a full stop.
        device_count: number of devices that took part. With one device, the incident is not shared.
        observer_count: number of devices whose reports cover this time. It includes those that took
            part.
        loss: what happened to the devices, as the predicate of a sentence, such as "lost their
            link"; null if one device took part.
        suspect: what is to blame, without a full stop; null if one device took part.
    """

    location_id: NonEmptyText
    location_name: str | None
    began_at: Timestamp
    ended_at: Timestamp | None
    cause: Cause
    title: str
    device_count: int
    observer_count: int
    loss: str | None
    suspect: str | None
    incidents: Array[DeviceIncidentRecord]


class IncidentsReply(Tolerant):
    incidents: Array[IncidentRecord]
    next_cursor: str | None
