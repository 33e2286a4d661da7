"""The thirty days of a device on a line of a terminal."""

from uuid import UUID

from agent.wire.operator_operations import DeviceDetailRequest
from controlplane.cli.errors import CommandError
from controlplane.client.operations import OperationsClient
from controlplane.remote_control.overview.records import DeviceReply

PATH = "/console/api/device"
LEGEND = "█ heard  ▄ in part  _ offline  · closed"


def strip_lines(client: OperationsClient, instance_id: UUID) -> tuple[str, ...]:
    """Return the lines to show: none where the service is another than ours."""
    try:
        body = DeviceDetailRequest(instance_id=instance_id)
        presence = client.ask_own(PATH, body, DeviceReply).presence
    except CommandError:
        return ()
    first, last = presence.days[0].date, presence.days[-1].date
    return (f"{first}  {presence.line}  {last}", f"{'':10}  {LEGEND}")
