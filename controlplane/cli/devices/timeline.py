"""The liveness of a device over thirty days, as a line of characters with a legend."""

from uuid import UUID

from agent.wire.base import Tolerant
from agent.wire.operator_operations import DeviceDetailRequest
from controlplane.client.errors import CommandError
from controlplane.client.operations import OperationsClient
from controlplane.devices.timeline.timeline import Timeline

PATH = "/console/api/device"
LEGEND = "█ online  ▄ partly  _ offline  · closed"


class TimelineReply(Tolerant):
    """The part of the console's reply that this module reads."""

    timeline: Timeline


def timeline_lines(client: OperationsClient, instance_id: UUID) -> tuple[str, ...]:
    """Return the lines to print.

    There are no lines if the call fails, for example because the service has no console API.
    """
    try:
        body = DeviceDetailRequest(instance_id=instance_id)
        timeline = client.post(PATH, body, TimelineReply).timeline
    except CommandError:
        return ()
    first, last = timeline.days[0].date, timeline.days[-1].date
    return (f"{first[5:]}  {timeline.line}  {last[5:]}", f"{'':5}  {LEGEND}")
