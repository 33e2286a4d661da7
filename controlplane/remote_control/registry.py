"""Which procedure answers which path, what body it takes, and whether it writes.

Not here: ``onCommands``, whose reply is a stream (``controlplane.http.commands``), and
``heartbeat``, which many share a transaction for (``controlplane.http.heartbeat``).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, Final

from agent.wire import device_operations as device
from agent.wire import operator_operations as operators
from agent.wire import routes
from agent.wire.base import Message
from controlplane.http.bodies import parse_body
from controlplane.remote_control import enrollment, operator, submission
from controlplane.remote_control.context import RequestContext
from controlplane.remote_control.requests import delivery


@dataclass(frozen=True, slots=True)
class Operation:
    """``parse`` makes a model of the body or refuses it; it needs no database and is done first.

    ``run`` may return None, which is null on the wire. ``writes`` tells that the API key needs
    a write grant. ``successor`` is the path of what replaced a deprecated operation.
    """

    parse: Callable[[bytes], Any]
    run: Callable[[RequestContext, Any], Message | None]
    writes: bool
    successor: str | None = None


def read(
    body: type[Message],
    run: Callable[[RequestContext, Any], Message | None],
    *,
    successor: str | None = None,
) -> Operation:
    return Operation(partial(parse_body, body), run, writes=False, successor=successor)


def _write(body: type[Message], run: Callable[[RequestContext, Any], Message | None]) -> Operation:
    return Operation(partial(parse_body, body), run, writes=True)


OPERATIONS: Final[Mapping[str, Operation]] = MappingProxyType(
    {
        routes.CHALLENGE: _write(device.ChallengeRequest, enrollment.challenge),
        routes.ENROLL: _write(device.EnrollRequest, enrollment.enroll),
        routes.CURRENT: read(device.EmptyRequest, enrollment.current),
        routes.ACKNOWLEDGE: _write(device.AcknowledgeRequest, delivery.acknowledge),
        routes.SUBMIT_RESULT: Operation(
            submission.parse_submission, submission.submit_result, writes=True
        ),
        routes.CREATE_REQUEST: _write(operators.CreateRequestRequest, operator.create_request),
        routes.LIST_DEVICES: read(operators.ListDevicesRequest, operator.list_devices),
        routes.DEVICE_DETAIL: read(operators.DeviceDetailRequest, operator.device_detail),
        routes.REPORT_DETAIL: read(operators.ReportDetailRequest, operator.read_report),
        routes.REVOKE: _write(operators.RevokeRequest, operator.revoke),
    }
)
