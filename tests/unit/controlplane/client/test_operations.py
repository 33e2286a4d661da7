"""Tests of the typed client of the facade: the operations of devices."""

import json
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from agent.wire import device_operations as devices
from agent.wire import routes
from agent.wire.codec import decode, to_plain, validate
from controlplane.client.operations import OperationsClient
from controlplane.client.waiting import RetryPolicy
from tests.contract import golden

DEVICE_OPERATIONS = {
    "challenge": (routes.CHALLENGE, devices.ChallengeRequest, "challenge/request"),
    "enroll": (routes.ENROLL, devices.EnrollRequest, "enroll/request"),
    "heartbeat": (routes.HEARTBEAT, devices.HeartbeatRequest, "heartbeat/request"),
    "acknowledge": (routes.ACKNOWLEDGE, devices.AcknowledgeRequest, "acknowledge/request-running"),
    "submit_result": (
        routes.SUBMIT_RESULT, devices.SubmitResultRequest, "submitResult/request-network"
    ),
}  # fmt: skip
COMMANDS = {"commands": [golden.document_of("onCommands/command")]}


class Service:
    """A service that returns the reply that is set for each path.

    The replies to the first calls have the ``statuses``, in this order, and no body.
    """

    def __init__(self) -> None:
        self.replies: dict[str, Any] = {}
        self.bodies: dict[str, list[bytes]] = {}
        self.statuses: list[int] = []

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.bodies.setdefault(request.url.path, []).append(request.content)
        if self.statuses:
            return httpx2.Response(self.statuses.pop(0))
        # json=None would send no body.
        content = json.dumps(self.replies.get(request.url.path, {}))
        return httpx2.Response(200, content=content)


@pytest.fixture
def service() -> Service:
    return Service()


@pytest.fixture
def client(service: Service) -> Iterator[OperationsClient]:
    transport = httpx2.MockTransport(service)
    with httpx2.Client(base_url="http://127.0.0.1:8470/", transport=transport) as http:
        yield OperationsClient(http, RetryPolicy(sleep=lambda _: None))


@pytest.mark.parametrize("name", DEVICE_OPERATIONS)
def test_a_device_operation_sends_its_body_and_reads_its_reply(
    client: OperationsClient, service: Service, name: str
) -> None:
    path, model, request = DEVICE_OPERATIONS[name]
    folder = request.partition("/")[0]
    reply = f"{folder}/reply-running" if name == "acknowledge" else f"{folder}/reply"
    service.replies[path] = golden.document_of(reply)
    request_body = golden.document_of(request)
    answer = getattr(client, name)(validate(request_body, model))
    assert json.loads(service.bodies[path][0]) == request_body
    assert to_plain(answer) == to_plain(decode(golden.text_of(reply), type(answer)))


def test_current_returns_the_record_or_none(client: OperationsClient, service: Service) -> None:
    service.replies[routes.CURRENT] = golden.document_of("current/reply")
    record = client.current()
    assert record is not None
    assert to_plain(record) == golden.document_of("current/reply")
    service.replies[routes.CURRENT] = None
    assert client.current() is None
    assert service.bodies[routes.CURRENT] == [b"{}", b"{}"]


def test_on_commands_returns_the_waiting_commands(
    client: OperationsClient, service: Service
) -> None:
    service.replies[routes.ON_COMMANDS] = COMMANDS
    (command,) = client.on_commands(devices.EmptyRequest()).commands
    assert str(command.request_id) == COMMANDS["commands"][0]["requestId"]


@pytest.mark.parametrize(("name", "times"), [("enroll", 1), ("heartbeat", 2)])
def test_only_a_repeatable_operation_is_repeated_after_503(
    client: OperationsClient, service: Service, name: str, times: int
) -> None:
    path, model, request = DEVICE_OPERATIONS[name]
    service.replies[path] = golden.document_of(f"{name}/reply")
    service.statuses = [503]
    body = validate(golden.document_of(request), model)
    if times == 1:
        with pytest.raises(Exception, match="503"):
            getattr(client, name)(body)
    else:
        getattr(client, name)(body)
    assert len(service.bodies[path]) == times
