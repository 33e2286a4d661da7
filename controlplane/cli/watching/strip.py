"""The thirty days of a device on a line of a terminal."""

from uuid import UUID

from agent.wire.base import Tolerant
from agent.wire.operator_operations import DeviceDetailRequest
from controlplane.client.errors import CommandError
from controlplane.client.operations import OperationsClient
from controlplane.devices.timeline.timeline import Timeline

PATH = "/console/api/device"
LEGEND = "█ heard  ▄ in part  _ offline  · closed"


class Shown(Tolerant):
    """What is read of the console's reply."""

    timeline: Timeline


def strip_lines(client: OperationsClient, instance_id: UUID) -> tuple[str, ...]:
    """Return the lines to show: none where the service is another than ours."""
    try:
        body = DeviceDetailRequest(instance_id=instance_id)
        timeline = client.ask_own(PATH, body, Shown).timeline
    except CommandError:
        return ()
    first, last = timeline.days[0].date, timeline.days[-1].date
    return (f"{first[5:]}  {timeline.line}  {last[5:]}", f"{'':5}  {LEGEND}")
