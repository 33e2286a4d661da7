"""Tests of the states, the visibility and the deletion of support tokens and links."""

import logging
from datetime import timedelta
from uuid import UUID

import pytest
from sqlalchemy import select

from controlplane.storage.audit_tables import AuditEntry
from controlplane.storage.support_tables import SupportLink
from controlplane.support import routes
from controlplane.support.channels import CHANNELS_MAX, set_channel
from controlplane.support.links import RETENTION, TOKEN_LIFE, end_link
from tests.unit.controlplane.running_service import RunningService
from tests.unit.controlplane.support.support_client import (
    DAY_S,
    ORGANIZATION,
    OTHER_ORGANIZATION,
    UNKNOWN_TOKEN,
    SupportClient,
    refusal_of,
    without_trace_id,
)

TOKEN_ROUTES = (routes.INSPECT, routes.CONFIRM, routes.DISCONNECT)


async def test_a_token_is_inspected_confirmed_and_disconnected(
    service: RunningService, support_client: SupportClient
) -> None:
    token = support_client.create_token()
    inspection = (await support_client.call(routes.INSPECT, token=token)).json()
    assert inspection["state"] == "waiting"
    assert (inspection["channel"], inspection["requestedBy"]) == ("telegram @venue", "Ada")
    assert (inspection["requestedAt"], inspection["expiresAt"]) == (
        "2026-11-20T12:00:00Z",
        "2026-11-21T12:00:00Z",
    )
    assert inspection["organizations"] == [{"id": ORGANIZATION, "name": None}]
    service.clock.advance(60)
    confirmed = await support_client.confirm(token)
    assert confirmed.status_code == 200
    assert confirmed.json()["organizationId"] == ORGANIZATION
    assert confirmed.json()["confirmedAt"] == "2026-11-20T12:01:00Z"
    assert confirmed.json()["confirmedById"] == str(service.caller(service.write_key).key_id)
    assert await support_client.linked_channels() == ["telegram @venue"]
    inspection = (await support_client.call(routes.INSPECT, token=token)).json()
    assert inspection == confirmed.json() | {"organizations": []}
    service.clock.advance(60)
    ended = await support_client.call(routes.DISCONNECT, token=token)
    assert ended.json() == confirmed.json() | {
        "state": "disconnected",
        "disconnectedAt": "2026-11-20T12:02:00Z",
    }
    assert await support_client.linked_channels() == []
    inspection = (await support_client.call(routes.INSPECT, token=token)).json()
    assert inspection == ended.json() | {"organizations": []}


async def test_repeated_confirmations_and_disconnections_get_the_same_reply(
    service: RunningService, support_client: SupportClient
) -> None:
    token = support_client.create_token()
    other_key = service.make_key()
    confirmed = await support_client.confirm(token)
    # Creating a token deletes links that ended over a month ago. This link has not ended.
    service.clock.advance(40 * DAY_S)
    support_client.create_token()
    for caller in (None, other_key):
        assert (await support_client.confirm(token, caller=caller)).content == confirmed.content
    ended = await support_client.call(routes.DISCONNECT, token=token)
    service.clock.advance(DAY_S)
    for caller in (None, other_key):
        again = await support_client.call(routes.DISCONNECT, caller, token=token)
        assert (again.status_code, again.content) == (200, ended.content)
    assert refusal_of(await support_client.confirm(token)) == (409, "token_used")


async def test_an_unconfirmed_token_expires_after_a_day(
    service: RunningService, support_client: SupportClient
) -> None:
    token, confirmed_in_time = support_client.create_token(), support_client.create_token("chat")
    service.clock.advance(TOKEN_LIFE.total_seconds() - 1)
    assert (await support_client.call(routes.INSPECT, token=token)).json()["state"] == "waiting"
    assert (await support_client.confirm(confirmed_in_time)).status_code == 200
    service.clock.advance(1)
    inspection = (await support_client.call(routes.INSPECT, token=token)).json()
    assert (inspection["state"], inspection["organizations"]) == ("expired", [])
    assert refusal_of(await support_client.confirm(token)) == (409, "token_expired")
    assert refusal_of(await support_client.call(routes.DISCONNECT, token=token)) == (
        409,
        "token_expired",
    )
    assert await support_client.linked_channels() == ["chat"]


async def test_an_unconfirmed_token_can_be_declined(
    service: RunningService, support_client: SupportClient
) -> None:
    token = support_client.create_token()
    declined = await support_client.call(routes.DISCONNECT, token=token)
    assert declined.json()["state"] == "disconnected"
    assert declined.json()["organizationId"] is None
    assert refusal_of(await support_client.confirm(token)) == (409, "token_used")
    service.clock.advance(2 * DAY_S)  # an unused token would have expired
    assert (await support_client.call(routes.DISCONNECT, token=token)).content == declined.content


async def test_the_refusal_of_a_used_token_does_not_name_the_organization_that_used_it(
    service: RunningService, support_client: SupportClient
) -> None:
    token = support_client.create_token()
    other = service.make_key(organization_id=OTHER_ORGANIZATION)
    confirmed = await support_client.confirm(token)
    reply = await support_client.confirm(token, OTHER_ORGANIZATION, other)
    assert refusal_of(reply) == (409, "token_used")
    assert ORGANIZATION not in reply.text
    assert (await support_client.confirm(token)).content == confirmed.content
    assert await support_client.linked_channels(other) == []


async def test_links_of_other_organizations_are_treated_as_unknown_tokens(
    service: RunningService, support_client: SupportClient
) -> None:
    other = service.make_key(organization_id=OTHER_ORGANIZATION)
    confirmed, ended = support_client.create_token(), support_client.create_token()
    for token in (confirmed, ended):
        assert (await support_client.confirm(token)).status_code == 200
    assert (await support_client.call(routes.DISCONNECT, token=ended)).status_code == 200
    before = support_client.stored_rows()
    for path in (routes.INSPECT, routes.DISCONNECT):
        unknown = await support_client.call(path, other, token=UNKNOWN_TOKEN)
        assert refusal_of(unknown) == (404, "token_not_found")
        for token in (confirmed, ended):
            reply = await support_client.call(path, other, token=token)
            assert without_trace_id(reply) == without_trace_id(unknown)
    assert support_client.stored_rows() == before


async def test_an_unknown_token_returns_404(support_client: SupportClient) -> None:
    assert refusal_of(await support_client.call(routes.INSPECT, token=UNKNOWN_TOKEN)) == (
        404,
        "token_not_found",
    )
    assert refusal_of(await support_client.call(routes.DISCONNECT, token=UNKNOWN_TOKEN)) == (
        404,
        "token_not_found",
    )
    assert refusal_of(await support_client.confirm(UNKNOWN_TOKEN)) == (404, "token_not_found")


async def test_callers_without_permission_cannot_distinguish_tokens(
    support_client: SupportClient,
) -> None:
    token = support_client.create_token()
    replies = [
        await support_client.confirm(each, organization)
        for each in (token, UNKNOWN_TOKEN)
        for organization in (OTHER_ORGANIZATION, "org-none", "x" * 300, "\x00")
    ]
    assert {refusal_of(reply) for reply in replies} == {(403, "manager_required")}
    assert all(without_trace_id(reply) == without_trace_id(replies[0]) for reply in replies)


async def test_the_refusal_of_an_invalid_token_does_not_contain_the_token(
    support_client: SupportClient,
) -> None:
    for token in ("", "A" * 42, "A" * 44, "A" * 42 + "+", "A" * 43 + "\n", "é" * 43):
        for path in TOKEN_ROUTES:
            body = {"organizationId": ORGANIZATION} if path == routes.CONFIRM else {}
            reply = await support_client.call(path, token=token, **body)
            assert refusal_of(reply) == (400, "validation_error")
            assert list(reply.json()["errors"]) == ["token"]
            assert not token or token not in reply.text


async def test_a_confirmation_requires_an_organization(support_client: SupportClient) -> None:
    token = support_client.create_token()
    for body in ({}, {"organizationId": ""}, {"organizationId": None}, {"organizationId": 1}):
        reply = await support_client.call(routes.CONFIRM, token=token, **body)
        assert refusal_of(reply) == (400, "validation_error")
        assert list(reply.json()["errors"]) == ["organizationId"]


async def test_contact_can_be_called_without_a_body_or_with_an_empty_object(
    service: RunningService,
) -> None:
    key = {"authorization": f"Bearer {service.write_key}"}
    types = ({}, {"content-type": "application/json"}, {"content-type": "text/plain"})
    for content in (b"", b"{}", b" {} "):
        for media_type in types:
            headers = key | media_type
            reply = await service.http.post(routes.CONTACT, content=content, headers=headers)
            assert reply.json() == {"channels": [], "links": []}


async def test_contact_refuses_any_body_but_an_empty_object(service: RunningService) -> None:
    for content in (b"[]", b"null", b"{", b'{"token":"x"}', b" "):
        reply = await service.post(routes.CONTACT, content)
        assert refusal_of(reply) == (400, "invalid_request")


async def test_contact_lists_the_channels_of_support(
    service: RunningService, support_client: SupportClient
) -> None:
    support_client.store_channel("phone", "+971 4 123 4567", "Mon-Fri 9-18")
    support_client.store_channel("email", "support@example.com")
    support_client.store_channel("phone", "+971 4 123 4567", "always")
    reader = service.make_key(
        can_write=False, organization_id=OTHER_ORGANIZATION, locations=["loc-1"]
    )
    reply = await support_client.call(routes.CONTACT, reader)
    assert reply.json()["channels"] == [
        {"kind": "phone", "address": "+971 4 123 4567", "hours": "always"},
        {"kind": "email", "address": "support@example.com", "hours": None},
    ]


async def test_the_number_of_support_channels_is_limited(
    service: RunningService, support_client: SupportClient
) -> None:
    for number in range(CHANNELS_MAX):
        support_client.store_channel("phone", str(number))
    support_client.store_channel("phone", "0", "always")  # changes an existing channel
    assert not service.database.write(
        lambda session: set_channel(session, kind="phone", address="x", hours=None)
    )
    assert len((await support_client.call(routes.CONTACT)).json()["channels"]) == CHANNELS_MAX


async def test_links_are_listed_newest_first(
    service: RunningService, support_client: SupportClient
) -> None:
    for channel in ("first", "second", "third"):
        assert (
            await support_client.confirm(support_client.create_token(channel))
        ).status_code == 200
        service.clock.advance(1)
    assert await support_client.linked_channels() == ["third", "second", "first"]


async def test_inspect_changes_nothing(
    service: RunningService, support_client: SupportClient
) -> None:
    tokens = [support_client.create_token() for _ in range(2)]
    assert (await support_client.confirm(tokens[1])).status_code == 200
    support_client.store_channel("email", "support@example.com")
    before = support_client.stored_rows()
    for _ in range(2):
        for token in tokens:
            assert (await support_client.call(routes.INSPECT, token=token)).status_code == 200
        assert (await support_client.call(routes.CONTACT)).status_code == 200
        service.clock.advance(2 * DAY_S)
    assert support_client.stored_rows() == before


async def test_tokens_are_neither_stored_nor_logged(
    service: RunningService, support_client: SupportClient, caplog: pytest.LogCaptureFixture
) -> None:
    token = support_client.create_token()
    invalid_token = token[:-1] + "!"
    with caplog.at_level(logging.DEBUG):
        for text in (token, invalid_token):
            for path in (routes.INSPECT, routes.DISCONNECT):
                await support_client.call(path, token=text)
            await support_client.confirm(text)
        await service.post(routes.INSPECT, f'{{"token": "{token}"')
    assert "POST /api/public/v1/support/inspect 200" in caplog.text
    assert token not in caplog.text
    assert token[:-1] not in caplog.text
    assert token not in repr(support_client.stored_rows())
    assert all(token != value for row in support_client.stored_rows() for value in row)


async def test_expired_and_ended_links_are_deleted_after_a_month(
    service: RunningService, support_client: SupportClient
) -> None:
    expired, ended, confirmed = (
        support_client.create_token("a"),
        support_client.create_token("b"),
        support_client.create_token("c"),
    )
    for token in (ended, confirmed):
        assert (await support_client.confirm(token)).status_code == 200
    assert (await support_client.call(routes.DISCONNECT, token=ended)).status_code == 200
    service.clock.advance(RETENTION.total_seconds())
    support_client.create_token("d")  # this deletes old links
    assert (await support_client.call(routes.INSPECT, token=ended)).json()[
        "state"
    ] == "disconnected"
    service.clock.advance(1)
    support_client.create_token("e")
    assert refusal_of(await support_client.call(routes.INSPECT, token=ended)) == (
        404,
        "token_not_found",
    )
    assert (await support_client.call(routes.INSPECT, token=expired)).json()["state"] == "expired"
    service.clock.advance(TOKEN_LIFE.total_seconds())
    support_client.create_token("f")
    assert refusal_of(await support_client.call(routes.INSPECT, token=expired)) == (
        404,
        "token_not_found",
    )
    assert (await support_client.call(routes.INSPECT, token=confirmed)).json()[
        "state"
    ] == "confirmed"


async def test_support_ends_a_link(service: RunningService, support_client: SupportClient) -> None:
    token = support_client.create_token()
    confirmed = (await support_client.confirm(token)).json()
    later = service.clock() + timedelta(hours=1)

    def end(link_id: UUID) -> bool:
        return service.database.write(lambda session: end_link(session, link_id, later))

    assert end(UUID(confirmed["id"]))
    assert not end(UUID(confirmed["id"]))
    assert not end(UUID(int=0))
    assert (await support_client.call(routes.INSPECT, token=token)).json()[
        "state"
    ] == "disconnected"
    row = service.database.read(lambda session: session.get(SupportLink, UUID(confirmed["id"])))
    assert row is not None
    assert row.disconnected_at == later


async def test_confirming_and_ending_a_link_is_in_the_audit_log_once(
    service: RunningService, support_client: SupportClient
) -> None:
    token = support_client.create_token()
    for _ in range(2):
        assert (await support_client.confirm(token)).status_code == 200
    for _ in range(2):
        assert (await support_client.call(routes.DISCONNECT, token=token)).status_code == 200
    entries = service.database.read(
        lambda session: list(session.scalars(select(AuditEntry).order_by(AuditEntry.position)))
    )
    assert [(entry.operation, entry.subject_name, entry.organization_id) for entry in entries] == [
        ("support.confirm", "telegram @venue", ORGANIZATION),
        ("support.disconnect", "telegram @venue", ORGANIZATION),
    ]
    assert {entry.actor_name for entry in entries} == {"test"}
