"""Tests of the OAuth flow from registration to token."""

import json
from typing import Any

import pytest
from authlib.oauth2.rfc8414 import AuthorizationServerMetadata
from authlib.oauth2.rfc9207 import AuthorizationServerMetadata as IssuerMetadata
from sqlalchemy import select
from sqlalchemy.orm import Session

from controlplane.settings import Settings
from controlplane.storage.audit_tables import AuditEntry
from controlplane.storage.database import Database
from controlplane.storage.layout import Base
from tests.unit.controlplane.accounts.oauth.program import (
    BASE,
    ISSUER,
    REDIRECT,
    RESOURCE,
    Program,
    Visitor,
    caller_of_token,
    complete_flow,
    hidden_fields,
    parameters_of,
)
from tests.unit.controlplane.accounts.people import make_user
from tests.unit.controlplane.running_service import RunningService, running_service

SERVER_METADATA = "/.well-known/oauth-authorization-server"
RESOURCE_METADATA = "/.well-known/oauth-protected-resource"


async def test_a_client_reads_with_the_permissions_of_its_user(service: RunningService) -> None:
    user = make_user(service, role="manager", locations=["loc-1"])
    _, _, tokens = await complete_flow(service)
    assert (tokens["token_type"], tokens["expires_in"]) == ("Bearer", 3600)
    caller = await caller_of_token(service, tokens["access_token"])
    assert caller is not None
    assert (caller.kind, caller.owner_id, caller.can_write) == ("oauth", user.id, False)
    assert (caller.locations, caller.role) == (frozenset({"loc-1"}), "manager")


async def test_the_metadata_of_the_authorization_server_is_valid(service: RunningService) -> None:
    reply = await service.http.get(SERVER_METADATA)
    document = AuthorizationServerMetadata(reply.json())
    document.validate([IssuerMetadata])
    assert document["issuer"] == ISSUER
    assert document["authorization_endpoint"] == f"{ISSUER}{BASE}/authorize"
    assert document["token_endpoint"] == f"{ISSUER}{BASE}/token"
    assert document["code_challenge_methods_supported"] == ["S256"]
    assert document["authorization_response_iss_parameter_supported"] is True
    assert "scopes_supported" not in document


@pytest.mark.parametrize("path", [RESOURCE_METADATA, f"{RESOURCE_METADATA}/api/mcp/v1"])
async def test_the_metadata_of_the_resource_names_the_authorization_server(
    service: RunningService, path: str
) -> None:
    document = (await service.http.get(path)).json()
    assert document["resource"] == RESOURCE
    assert document["authorization_servers"] == [ISSUER]


async def test_a_user_without_a_session_signs_in_and_returns_to_the_consent_page(
    service: RunningService,
) -> None:
    make_user(service)
    program, visitor = Program(service), Visitor(service)
    await program.register()
    page = await visitor.get(f"{BASE}/authorize?{program.query()}")
    assert page.status_code == 200
    assert 'type="password"' in page.text
    assert "proof" not in hidden_fields(page)
    wrong = await visitor.sign_in(
        hidden_fields(page)["query"], "ada@example.com", "not this one, no"
    )
    assert wrong.status_code == 401
    assert "the password is wrong" in wrong.text
    assert hidden_fields(wrong) == hidden_fields(page)
    right = await visitor.sign_in(hidden_fields(wrong)["query"], "ada@example.com")
    assert right.status_code == 303
    assert "Secure; " in right.headers["set-cookie"] + "; "
    back = await visitor.get(right.headers["location"])
    assert "Agent" in back.text
    assert "agent.example" in back.text
    assert "ada@example.com" in back.text


async def test_a_denied_consent_redirects_with_access_denied(service: RunningService) -> None:
    make_user(service)
    program, visitor = Program(service), Visitor(service)
    await program.register()
    await visitor.sign_in(program.query(), "ada@example.com")
    reply = await visitor.decide(program.query(), "deny")
    assert reply.headers["location"].startswith(REDIRECT)
    parameters = parameters_of(reply)
    assert parameters["error"] == "access_denied"
    assert parameters["state"] == "s t&te"
    assert "code" not in parameters


async def test_switching_the_account_ends_the_session(service: RunningService) -> None:
    make_user(service)
    program, visitor = Program(service), Visitor(service)
    await program.register()
    await visitor.sign_in(program.query(), "ada@example.com")
    reply = await visitor.decide(program.query(), "switch")
    assert "Max-Age=0" in reply.headers["set-cookie"]
    assert 'type="password"' in (await visitor.get(reply.headers["location"])).text


async def test_a_user_of_two_organizations_chooses_the_organization_of_the_grant(
    service: RunningService,
) -> None:
    make_user(service)
    make_user(service, organization_id="org-2", role="viewer")
    program, visitor = Program(service), Visitor(service)
    await program.register()
    await visitor.sign_in(program.query(), "ada@example.com")
    code = parameters_of(await visitor.decide(program.query(), organization="org-2"))["code"]
    caller = await caller_of_token(service, (await program.exchange(code)).json()["access_token"])
    assert caller is not None
    assert caller.organization_id == "org-2"
    foreign = await visitor.decide(program.query(), organization="org-3")
    assert foreign.status_code == 400
    assert "location" not in foreign.headers


async def test_an_access_token_expires_after_an_hour_and_can_be_refreshed(
    service: RunningService,
) -> None:
    make_user(service)
    program, _, first = await complete_flow(service)
    service.clock.advance(3599)
    assert await caller_of_token(service, first["access_token"])
    service.clock.advance(1)
    assert await caller_of_token(service, first["access_token"]) is None
    second = (await program.refresh(first["refresh_token"], resource=RESOURCE)).json()
    assert await caller_of_token(service, second["access_token"])
    assert second["refresh_token"] != first["refresh_token"]
    service.clock.advance(30 * 86_400)
    assert (await program.refresh(second["refresh_token"])).json()["error"] == "invalid_grant"


async def test_the_database_contains_no_oauth_secrets(
    service: RunningService, database: Database
) -> None:
    make_user(service)
    program, visitor, tokens = await complete_flow(service)
    code = parameters_of(await visitor.decide(program.query()))["code"]
    stored_rows = repr(database.read(_oauth_rows))
    assert program.client_id in stored_rows
    for secret in (code, tokens["access_token"], tokens["refresh_token"]):
        assert secret not in stored_rows


async def test_registration_returns_the_metadata_that_was_accepted(service: RunningService) -> None:
    """If the service does not support a requested value, it registers another value or no value.
    The reply contains the registered values (RFC 7591, 3.2.1).
    """
    reply = await Program(service).register(
        client_name="A\u202egent\n\x00  two",
        token_endpoint_auth_method="client_secret_basic",
        grant_types=["authorization_code", "refresh_token", "client_credentials"],
        scope="all",
        jwks_uri="https://agent.example/keys",
    )
    assert reply.status_code == 201
    assert reply.headers["cache-control"] == "no-store"
    registered = reply.json()
    assert registered["client_name"] == "A gent two"
    assert registered["token_endpoint_auth_method"] == "none"
    assert registered["grant_types"] == ["authorization_code", "refresh_token"]
    assert not {"client_secret", "scope", "jwks_uri"} & registered.keys()


async def test_the_name_of_a_client_is_escaped_on_the_consent_page(service: RunningService) -> None:
    make_user(service)
    program, visitor = Program(service), Visitor(service)
    await program.register(client_name='<script>alert("x")</script>')
    await visitor.sign_in(program.query(), "ada@example.com")
    page = await visitor.get(f"{BASE}/authorize?{program.query()}")
    assert "<script" not in page.text
    assert "&lt;script&gt;" in page.text


async def test_a_user_lists_and_revokes_grants(service: RunningService) -> None:
    make_user(service)
    make_user(service, "bob@example.com")
    program, visitor, tokens = await complete_flow(service)
    _, other, _ = await complete_flow(service, "bob@example.com")
    [grant] = (await _profile(visitor, "grants")).json()["grants"]
    assert grant["clientName"] == "Agent"
    assert grant["clientHosts"] == ["agent.example"]
    assert grant["organizationId"] == "org-0001"
    refused = await _profile(other, "end-grant", grantId=grant["id"])
    assert refused.json()["code"] == "grant_not_found"
    ended = await _profile(visitor, "end-grant", grantId=grant["id"])
    assert ended.json() == {"ended": True}
    assert await caller_of_token(service, tokens["access_token"]) is None
    assert (await program.refresh(tokens["refresh_token"])).status_code == 400
    assert (await _profile(visitor, "grants")).json()["grants"] == []
    rows = service.database.read(_audit_entries)
    assert [row[1:] for row in rows if row[0] == "ada@example.com"] == [
        ("session", "session.sign_in", "", "127.0.0.1"),
        ("session", "grant.create", "Agent", "127.0.0.1"),
        ("session", "grant.end", "Agent", "127.0.0.1"),
    ]


def _audit_entries(session: Session) -> list[Any]:
    entry = AuditEntry
    columns = (
        entry.actor_name, entry.credential_kind, entry.operation, entry.subject_name, entry.address,
    )  # fmt: skip
    return list(map(tuple, session.execute(select(*columns).order_by(entry.position))))


@pytest.mark.parametrize("kind", ["access_token", "refresh_token"])
async def test_a_client_revokes_its_tokens(service: RunningService, kind: str) -> None:
    make_user(service)
    program, _, tokens = await complete_flow(service)
    assert (await program.revoke(tokens[kind], token_type_hint=kind)).status_code == 200
    assert await caller_of_token(service, tokens["access_token"]) is None
    assert (await program.refresh(tokens["refresh_token"])).json()["error"] == "invalid_grant"
    assert (await program.revoke("voa_" + "x" * 43)).status_code == 200


async def test_oauth_requires_https_except_on_loopback(database: Database) -> None:
    without_origin = Settings(refusal_delay_s=0)
    async with running_service(database, without_origin) as service:
        loopback_reply = await service.http.get(SERVER_METADATA, headers={"host": "127.0.0.1:8080"})
        assert loopback_reply.json()["issuer"] == "http://127.0.0.1:8080"
        for host in ("service", "192.0.2.1:8080", "127.0.0.1.example", "127.0.0.1:8080@evil"):
            refused = await service.http.get(SERVER_METADATA, headers={"host": host})
            assert refused.status_code == 400
            assert "https" in refused.json()["error_description"]


async def _profile(visitor: Visitor, operation: str, **body: Any) -> Any:
    """Return the reply to a request of the console about the user's profile."""
    headers = {
        "content-type": "application/json",
        "origin": ISSUER,
        "cookie": f"__Secure-venue.session_token={visitor.token}",
    }
    path = f"/console/api/profile/{operation}"
    return await visitor._http.post(path, content=json.dumps(body), headers=headers)


def _oauth_rows(session: Any) -> list[Any]:
    tables = [each for each in Base.metadata.sorted_tables if each.name.startswith("oauth_")]
    return [tuple(row) for table in tables for row in session.execute(select(table))]
