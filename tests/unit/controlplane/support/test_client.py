"""Tests of the typed client of the support operations: what it returns, and what it raises."""

import asyncio

import httpx2
import pytest

from controlplane.client.errors import CommandError
from controlplane.client.operations import OperationsClient
from controlplane.support.messages import ConfirmRequest, TokenRequest
from tests.unit.controlplane.running_service import RunningService
from tests.unit.controlplane.support.support_client import (
    ORGANIZATION,
    OTHER_ORGANIZATION,
    SupportClient,
)


async def test_a_client_inspects_confirms_and_disconnects_a_token(
    service: RunningService, support_client: SupportClient
) -> None:
    loop = asyncio.get_running_loop()
    headers = {
        "authorization": f"Bearer {service.write_key}",
        "content-type": "application/json",
    }

    def answer(request: httpx2.Request) -> httpx2.Response:
        """Call the service in the event loop of the test, from the thread of the client."""
        coroutine = service.http.post(request.url.path, content=request.read(), headers=headers)
        reply = asyncio.run_coroutine_threadsafe(coroutine, loop).result()
        return httpx2.Response(reply.status_code, headers=reply.headers, content=reply.content)

    def call() -> None:
        transport = httpx2.MockTransport(answer)
        with httpx2.Client(transport=transport, base_url="http://service/") as http:
            check_each_call(OperationsClient(http), token)

    token = support_client.create_token("chat")
    support_client.store_channel("phone", "+971 4")
    await asyncio.to_thread(call)


def check_each_call(client: OperationsClient, token: str) -> None:
    body = TokenRequest(token=token)
    confirmation = ConfirmRequest(token=token, organization_id=ORGANIZATION)
    assert client.support_contact().links == ()
    inspection = client.support_inspect(body)
    assert (inspection.state, inspection.channel, inspection.requested_by) == (
        "waiting",
        "chat",
        "Ada",
    )
    assert [organization.id for organization in inspection.organizations] == [ORGANIZATION]
    link = client.support_confirm(confirmation)
    assert client.support_confirm(confirmation) == link
    contact = client.support_contact()
    assert contact.links == (link,)
    (channel,) = contact.channels
    assert (channel.kind, channel.address, channel.hours) == ("phone", "+971 4", None)
    with pytest.raises(CommandError, match="owner or manager"):
        client.support_confirm(ConfirmRequest(token=token, organization_id=OTHER_ORGANIZATION))
    ended = client.support_disconnect(body)
    assert client.support_disconnect(body) == ended
    assert client.support_contact().links == ()
    with pytest.raises(CommandError, match="ask support for a new one"):
        client.support_confirm(confirmation)
