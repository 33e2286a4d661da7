"""The twelve operations of the contract's `remoteControl`.

`heartbeat` and `onCommands` have their own endpoints in ``controlplane.web``: several heartbeats
share a transaction, and `onCommands` can reply with a stream.
"""

from typing import Final

from agent.wire import device_operations as device
from agent.wire import routes
from controlplane.devices import reading
from controlplane.devices.requests import requests
from controlplane.operation.operation import Area, Operation, procedure
from controlplane.remote_control import enrollment, submission

_BINDING: Final = frozenset({"binding_not_found", "binding_revoked", "foreign_location"})
"""Codes of the refusals of operations that use a binding."""
_DEVICE: Final = frozenset({"device_not_found", "foreign_location"})
"""Codes of the refusals of operations that name a device."""

HEARTBEAT: Final = Operation(
    name="heartbeat",
    path=routes.HEARTBEAT,
    body=device.HeartbeatRequest,
    reply=device.HeartbeatReply,
    writes=True,
    description="Mark the device as online. A heartbeat with another API key moves the device to"
    " that key if the current key of the device is no longer valid or the device was offline. In"
    " all other cases, a heartbeat with another API key changes nothing.",
    refusals=_BINDING,
)
ON_COMMANDS: Final = Operation(
    name="onCommands",
    path=routes.ON_COMMANDS,
    body=device.EmptyRequest,
    reply=device.CommandList,
    writes=True,
    description="Return the requests that the devices of the calling API key have not started."
    " Callers that prefer `text/event-stream` get a stream that sends each new request at once.",
    events="`retry` and a comment at the start, a comment every 20 seconds, and for each request an"
    " event `command`. The id of the event is the id of the request, its data is a `Command` as"
    " JSON.",
)

REMOTE_CONTROL: Final = Area(
    "remoteControl",
    "Devices enroll, send heartbeats, receive requests and submit reports. Operators list devices,"
    " request reports and read them.",
    (
        procedure(
            routes.CHALLENGE, enrollment.challenge, writes=True, refusals={"foreign_location"}
        ),
        procedure(
            routes.ENROLL,
            enrollment.enroll,
            writes=True,
            refusals=_BINDING
            | {
                "challenge_not_found",
                "challenge_used",
                "challenge_expired",
                "device_key_mismatch",
                "invalid_signature",
            },
        ),
        procedure(routes.CURRENT, enrollment.current),
        HEARTBEAT,
        procedure(
            routes.ACKNOWLEDGE,
            requests.acknowledge,
            writes=True,
            refusals=_BINDING | {"request_not_found", "request_finished", "request_expired"},
        ),
        procedure(
            routes.SUBMIT_RESULT,
            submission.submit_result,
            writes=True,
            refusals=_BINDING
            | {"request_not_found", "request_finished", "report_not_found", "report_conflict"},
            body=device.SubmitResultRequest,
            parse=submission.parse_submission,
            body_schema=submission.submission_schema,
        ),
        ON_COMMANDS,
        procedure(
            routes.CREATE_REQUEST,
            requests.create_request,
            writes=True,
            refusals=_DEVICE | {"device_revoked", "kind_unsupported", "too_many_open_requests"},
        ),
        procedure(routes.LIST_DEVICES, reading.list_devices),
        procedure(routes.DEVICE_DETAIL, reading.device_detail, refusals=_DEVICE),
        procedure(
            routes.REPORT_DETAIL,
            reading.read_report,
            refusals={"report_not_found", "foreign_location"},
        ),
        procedure(routes.REVOKE, enrollment.revoke, writes=True, refusals=_DEVICE),
    ),
)
