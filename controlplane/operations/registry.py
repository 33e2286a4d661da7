"""Which procedure answers which path, what body it takes, and whether it writes.

``onCommands`` is not here: its reply is a stream (see ``controlplane.http.commands``).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from pydantic import BaseModel

from agent.wire import device_operations as device
from agent.wire import operator_operations as operators
from agent.wire import routes
from controlplane.operations import delivery, enrollment, operator, submission
from controlplane.operations.desk import Desk


@dataclass(frozen=True, slots=True)
class Operation:
    """``writes`` tells that the API key needs a write grant. ``run`` may return None (null)."""

    body: type[BaseModel]
    run: Callable[[Desk, Any], BaseModel | None]
    writes: bool


OPERATIONS: Final[Mapping[str, Operation]] = MappingProxyType(
    {
        routes.CHALLENGE: Operation(device.ChallengeRequest, enrollment.challenge, True),
        routes.ENROLL: Operation(device.EnrollRequest, enrollment.enroll, True),
        routes.CURRENT: Operation(device.EmptyRequest, enrollment.current, False),
        routes.HEARTBEAT: Operation(device.HeartbeatRequest, enrollment.heartbeat, True),
        routes.ACKNOWLEDGE: Operation(device.AcknowledgeRequest, delivery.acknowledge, True),
        routes.SUBMIT_RESULT: Operation(device.SubmitResultRequest, submission.submit_result, True),
        routes.CREATE_REQUEST: Operation(
            operators.CreateRequestRequest, operator.create_request, True
        ),
        routes.LIST_DEVICES: Operation(operators.ListDevicesRequest, operator.list_devices, False),
        routes.DEVICE_DETAIL: Operation(
            operators.DeviceDetailRequest, operator.device_detail, False
        ),
        routes.REPORT_DETAIL: Operation(operators.ReportDetailRequest, operator.read_report, False),
        routes.REVOKE: Operation(operators.RevokeRequest, operator.revoke, True),
    }
)
