"""Tests of signing in and out, including attacks."""

import asyncio
from typing import Any

import pytest
from sqlalchemy import func, select

from controlplane.accounts import sessions, throttle
from controlplane.accounts.passwords import WAITING_MAX, Passwords, hasher
from controlplane.accounts.throttle import FAILURES_MAX, WINDOW
from controlplane.operation.errors import Refusal
from controlplane.operation.permissions import hash_secret
from controlplane.settings import Settings
from controlplane.storage.account_tables import SignInFailure, SignInSession, User
from controlplane.storage.database import Database
from controlplane.web.accounts import cookies
from controlplane.web.core import SIGN_INS_BURST
from tests.unit.controlplane.accounts.people import (
    COOKIE,
    OVERVIEW,
    PASSWORD,
    SIGN_IN,
    SIGN_OUT,
    Browser,
    end_membership,
    make_user,
)
from tests.unit.controlplane.running_service import RunningService, running_service

DAY_S = 86_400


def count(service: RunningService, table: Any) -> int:
    query = select(func.count()).select_from(table)
    return service.database.read(lambda session: session.scalars(query).one())


async def test_sign_in_returns_a_session_cookie(service: RunningService) -> None:
    user = make_user(service)
    browser = Browser(service)
    reply = await browser.sign_in(" ADA@Example.com ")
    assert reply.status_code == 200
    body = reply.json()
    assert body["user"] == {"id": str(user.id), "email": user.email, "name": "Ada"}
    assert body["organizationId"] == "org-0001"
    assert body["organizations"] == [
        {"id": "org-0001", "name": None, "role": "owner", "locations": []}
    ]
    cookie = reply.headers["set-cookie"]
    assert cookie == (f"{COOKIE}={browser.token}; Max-Age=2592000; Path=/; HttpOnly; SameSite=Lax")
    assert (await browser.post(OVERVIEW)).status_code == 200
    assert (await Browser(service).post(OVERVIEW)).status_code == 401


async def test_a_session_is_stored_with_only_the_hash_of_its_token(service: RunningService) -> None:
    make_user(service)
    browser = Browser(service)
    await browser.sign_in()
    row = service.database.read(lambda session: session.scalars(select(SignInSession)).one())
    assert browser.token not in {str(each) for each in vars(row).values()}
    assert row.token_hash == hash_secret(browser.token)


async def test_over_tls_only_the_secure_cookie_is_accepted(database: Database) -> None:
    settings = Settings(origin="https://venue.example", argon2_memory_kib=8, argon2_passes=1)
    async with running_service(database, settings) as service:
        make_user(service)
        browser = Browser(service)
        assert (await browser.sign_in(origin="http://service")).status_code == 403
        reply = await browser.sign_in(origin="https://venue.example")
        cookie = reply.headers["set-cookie"]
        assert cookie.startswith(f"__Secure-{COOKIE}={browser.token}; ")
        assert cookie.endswith("; HttpOnly; SameSite=Lax; Secure")
        assert (await browser.post(OVERVIEW, origin=settings.origin)).status_code == 401
        secure_cookie = {"cookie": f"__Secure-{COOKIE}={browser.token}"}
        assert (
            await browser.post(OVERVIEW, origin=settings.origin, **secure_cookie)
        ).status_code == 200


async def test_a_session_lasts_thirty_days_after_its_last_use(service: RunningService) -> None:
    make_user(service)
    browser = Browser(service)
    await browser.sign_in()
    assert "set-cookie" not in (await browser.post(OVERVIEW)).headers
    service.clock.advance(29 * DAY_S)
    renewed = await browser.post(OVERVIEW)
    assert renewed.status_code == 200
    assert renewed.headers["set-cookie"].startswith(f"{COOKIE}={browser.token}; Max-Age=2592000")
    service.clock.advance(29 * DAY_S)
    assert (await browser.post(OVERVIEW)).status_code == 200
    service.clock.advance(30 * DAY_S)
    assert (await browser.post(OVERVIEW)).status_code == 401


async def test_signing_out_ends_the_session_and_deletes_the_cookie(
    service: RunningService,
) -> None:
    make_user(service)
    browser = Browser(service)
    await browser.sign_in()
    for _ in range(2):
        reply = await browser.post(SIGN_OUT)
        assert reply.json() == {"signedOut": True}
        assert reply.headers["set-cookie"].startswith(f"{COOKIE}=; Max-Age=0; Path=/")
    assert (await browser.post(OVERVIEW)).status_code == 401
    assert count(service, SignInSession) == 0


async def test_each_sign_in_creates_a_new_session(
    service: RunningService,
) -> None:
    """The service does not use a session token that an attacker set in the user's browser. This
    prevents session fixation.
    """
    make_user(service)
    browser = Browser(service)
    browser.token = planted = "A" * 43
    await browser.sign_in()
    assert browser.token != planted
    first = browser.token
    await browser.sign_in()
    assert browser.token != first
    assert count(service, SignInSession) == 1
    for invalid_token in (planted, first):
        other = Browser(service)
        other.token = invalid_token
        assert (await other.post(OVERVIEW)).status_code == 401


async def test_an_unknown_email_address_and_a_wrong_password_get_the_same_reply(
    service: RunningService,
) -> None:
    make_user(service)
    wrong = await Browser(service).sign_in(password="not this one, no")
    unknown = await Browser(service).sign_in("bob@example.com")
    assert wrong.status_code == unknown.status_code == 401
    varying = {"trace_id"}
    assert {k: v for k, v in wrong.json().items() if k not in varying} == {
        k: v for k, v in unknown.json().items() if k not in varying
    }
    assert {k: v for k, v in wrong.headers.items() if k != "trace-id"} == {
        k: v for k, v in unknown.headers.items() if k != "trace-id"
    }


async def test_a_password_is_also_verified_for_an_unknown_email_address(
    service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_user(service)
    verified: list[str] = []
    verify = service.core.passwords.verify

    async def record_call(password_hash: str | None, *arguments: Any, **options: Any) -> bool:
        verified.append(password_hash or "")
        return await verify(password_hash, *arguments, **options)

    monkeypatch.setattr(service.core.passwords, "verify", record_call)
    await Browser(service).sign_in(password="not this one, no")
    await Browser(service).sign_in("bob@example.com")
    assert len(verified) == 2


def test_the_hash_for_unknown_accounts_costs_as_much_as_any_other_hash() -> None:
    """The dummy hash and a real hash have the same algorithm, parameters and length. Therefore a
    check of a password takes the same time for an unknown account as for a known one.
    """
    passwords = Passwords(memory_kib=8, passes=1)
    try:
        dummy = passwords._dummy_hash
        real = hasher(8, 1).hash(PASSWORD)
        assert dummy.split("$")[:4] == real.split("$")[:4]
        assert [len(part) for part in dummy.split("$")] == [len(part) for part in real.split("$")]
        assert not passwords._is_right(dummy, PASSWORD)
        assert not passwords.is_outdated(dummy)
    finally:
        passwords.close()


async def test_the_default_hash_is_argon2id_with_19_mib_of_the_normalized_password() -> None:
    settings = Settings()
    passwords = Passwords(settings.argon2_memory_kib, settings.argon2_passes)
    try:
        caller = {"network": "192.0.2.1", "is_known": False}
        password_hash = await passwords.hash("e\u0301tude in c minor", **caller)
        assert password_hash.startswith("$argon2id$v=19$m=19456,t=2,p=1$")
        assert await passwords.verify(password_hash, "\u00e9tude in c minor", **caller)
        assert not await passwords.verify(password_hash, "etude in c minor", **caller)
        assert not await passwords.verify(None, "etude in c minor", **caller)
    finally:
        passwords.close()


async def test_an_old_password_hash_is_replaced_at_sign_in(
    service: RunningService,
) -> None:
    user = make_user(service)
    old_hash = hasher(16, 2).hash(PASSWORD)

    def hash_of(session: Any) -> str:
        return str(session.get_one(User, user.id).password_hash)

    def set_old_hash(session: Any) -> None:
        session.get_one(User, user.id).password_hash = old_hash

    service.database.write(set_old_hash)
    await Browser(service).sign_in(password="not this one, no")
    assert service.database.read(hash_of) == old_hash
    assert (await Browser(service).sign_in()).status_code == 200
    assert service.database.read(hash_of).startswith("$argon2id$v=19$m=8,t=1,p=1$")


async def test_the_number_of_waiting_password_checks_is_limited() -> None:
    passwords = Passwords(memory_kib=8, passes=1)
    try:
        calls = [
            passwords.verify(None, "x", f"192.0.2.{at}", is_known=False)
            for at in range(1 + WAITING_MAX + 3)  # the first runs and does not wait
        ]
        answers = await asyncio.gather(*calls, return_exceptions=True)
        refused = [each for each in answers if isinstance(each, Refusal)]
        assert len(refused) == 3
        assert {each.status for each in refused} == {503}
        assert await passwords.verify(None, "x", "192.0.2.1", is_known=False) is False
    finally:
        passwords.close()


async def test_an_account_is_limited_to_ten_failed_sign_ins_in_ten_minutes(
    service: RunningService,
) -> None:
    make_user(service)
    for at in range(FAILURES_MAX):
        reply = await Browser(service).sign_in(password=f"not this one, {at}")
        assert reply.status_code == 401
        service.clock.advance(1)
    # The correct password is refused, too.
    refused = await Browser(service).sign_in()
    assert refused.status_code == 429
    assert refused.json()["code"] == "too_many_sign_ins"
    wait_s = int(refused.headers["retry-after"])
    assert wait_s == WINDOW.total_seconds() - FAILURES_MAX
    service.clock.advance(wait_s - 1)
    assert (await Browser(service).sign_in()).status_code == 429
    service.clock.advance(1)
    assert (await Browser(service).sign_in()).status_code == 200


async def test_failed_sign_ins_to_an_unknown_account_are_limited_as_well(
    service: RunningService,
) -> None:
    for _ in range(FAILURES_MAX):
        assert (await Browser(service).sign_in("bob@example.com")).status_code == 401
    assert (await Browser(service).sign_in("bob@example.com")).status_code == 429


async def test_failed_sign_ins_are_limited_per_network_address_across_accounts(
    service: RunningService,
) -> None:
    make_user(service)
    for at in range(FAILURES_MAX):
        assert (await Browser(service).sign_in(f"bob{at}@example.com")).status_code == 401
    assert (await Browser(service).sign_in()).status_code == 429


async def test_concurrent_sign_ins_have_the_same_limit_as_sequential_ones(
    service: RunningService,
) -> None:
    make_user(service)
    tries = [Browser(service).sign_in(password="not this one, no") for _ in range(FAILURES_MAX + 5)]
    statuses = sorted(each.status_code for each in await asyncio.gather(*tries))
    assert statuses == [401] * FAILURES_MAX + [429] * 5


async def test_a_successful_sign_in_does_not_reset_the_limit_of_the_client_address(
    service: RunningService,
) -> None:
    make_user(service)
    make_user(service, "eve@example.com")
    for _ in range(FAILURES_MAX - 1):
        await Browser(service).sign_in(password="not this one, no")
    assert (await Browser(service).sign_in("eve@example.com")).status_code == 200
    assert (await Browser(service).sign_in(password="not this one, no")).status_code == 401
    # The wrong password was failure number FAILURES_MAX from the address that Eve uses as well.
    assert (await Browser(service).sign_in("eve@example.com")).status_code == 429


async def test_records_of_failed_sign_ins_expire_and_do_not_contain_the_typed_text(
    service: RunningService,
) -> None:
    await Browser(service).sign_in("my password, typed here@once")
    rows = service.database.read(lambda session: session.scalars(select(SignInFailure)).all())
    assert len(rows) == 2  # one for the account and one for the client address
    assert all(len(row.subject) == 64 for row in rows)
    service.clock.advance(WINDOW.total_seconds())
    await Browser(service).sign_in("bob@example.com")
    assert count(service, SignInFailure) == 2


async def test_sign_ins_take_from_the_token_bucket_of_the_address(service: RunningService) -> None:
    statuses = {(await Browser(service).sign_in("x@example.com")).status_code for _ in range(40)}
    assert statuses == {401, 429}
    # The limit of failures also causes 429. Therefore, the test checks the bucket directly: `take`
    # returns the seconds to wait.
    assert service.core.sign_ins.take("127.0.0.1") > 0


@pytest.mark.parametrize(
    "settings", [Settings(trusted_proxies=frozenset({"127.0.0.1"}), refusal_delay_s=0)]
)
async def test_invitation_queries_from_an_ipv6_network_share_a_limit(
    service: RunningService,
) -> None:
    """An internet provider assigns a /64 to each customer, so a caller can use many addresses."""
    body = {"code": "x"}
    replies = [
        await Browser(service).post(
            "/api/auth/invitation", body, x_forwarded_for=f"2001:db8::{at:x}"
        )
        for at in range(SIGN_INS_BURST + 1)
    ]
    assert [each.status_code for each in replies] == [404] * SIGN_INS_BURST + [429]


@pytest.mark.parametrize(
    ("address", "other", "is_same"),
    [
        ("192.0.2.1", "192.0.2.2", False),
        ("192.0.2.1", "::ffff:192.0.2.1", True),
        ("2001:db8::1", "2001:db8::ffff", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
    ],
)
def test_network_of_returns_the_same_network_for_the_addresses_of_one_client(
    address: str, other: str, is_same: bool
) -> None:
    assert (throttle.network_of(address) == throttle.network_of(other)) is is_same


FOREIGN_HEADERS = [
    {"origin": "https://evil.example"},
    {"origin": "null"},
    {"origin": "https://service"},
    {"origin": "http://service:81"},
    {"origin": "http://service.evil.example"},
    {"sec_fetch_site": "cross-site"},
    {"sec_fetch_site": "same-site"},
    {"sec_fetch_site": "none"},
]


@pytest.mark.parametrize("headers", FOREIGN_HEADERS)
@pytest.mark.parametrize("path", [SIGN_IN, SIGN_OUT, OVERVIEW, "/console/api/pending-requests"])
async def test_another_site_cannot_use_the_cookie(
    service: RunningService, path: str, headers: dict[str, str]
) -> None:
    make_user(service)
    browser = Browser(service)
    await browser.sign_in()
    refused = await browser.post(path, {}, **headers)
    assert refused.status_code == 403
    assert refused.json()["code"] == "foreign_origin"
    assert "set-cookie" not in refused.headers


@pytest.mark.parametrize("path", [SIGN_OUT, "/console/api/pending-requests"])
async def test_requests_that_change_state_require_an_origin(
    service: RunningService, path: str
) -> None:
    make_user(service)
    browser = Browser(service)
    await browser.sign_in()
    assert (await browser.post(path, {}, origin=None)).status_code == 403
    assert (await browser.post(OVERVIEW, {}, origin=None)).status_code == 200
    assert (await browser.post(path, {}, sec_fetch_site="same-origin")).status_code != 403


async def test_a_sign_in_with_another_media_type_is_refused(service: RunningService) -> None:
    reply = await Browser(service).sign_in(content_type="text/plain")
    assert reply.status_code == 415


@pytest.mark.parametrize(
    "body",
    [
        {"email": "ada@example.com"},
        {"email": "ada@example.com", "password": PASSWORD, "remember": True},
        {"email": "ada@example.com", "password": "x" * 1000},
        {"email": ["ada@example.com"], "password": PASSWORD},
        {"email": "", "password": ""},
    ],
)
async def test_sign_in_accepts_only_an_email_address_and_a_password(
    service: RunningService, body: dict[str, object]
) -> None:
    make_user(service)
    assert (await Browser(service).post(SIGN_IN, body)).status_code == 400


async def test_a_large_body_is_refused(service: RunningService) -> None:
    reply = await Browser(service).post(SIGN_IN, {"email": "x" * 5000, "password": "x"})
    assert reply.status_code == 413


async def test_a_user_without_memberships_gets_no_session(service: RunningService) -> None:
    user = make_user(service)
    browser = Browser(service)
    await browser.sign_in()
    end_membership(service, user, "org-0001")
    assert (await browser.post(OVERVIEW)).status_code == 401
    assert (await Browser(service).sign_in()).status_code == 401


@pytest.mark.parametrize("value", ["", "short", "A" * 44, "A" * 42 + "!", "A" * 43])
async def test_an_invalid_cookie_is_refused(service: RunningService, value: str) -> None:
    browser = Browser(service)
    browser.token = value
    assert (await browser.post(OVERVIEW)).status_code == 401


async def test_an_api_key_takes_precedence_over_a_session_cookie(service: RunningService) -> None:
    make_user(service)
    browser = Browser(service)
    await browser.sign_in()
    bad = await browser.post(OVERVIEW, authorization="Bearer vck_" + "A" * 43)
    assert bad.status_code == 401
    good = await browser.post(OVERVIEW, authorization=f"Bearer {service.write_key}")
    assert good.status_code == 200


async def test_the_agent_protocol_refuses_session_cookies(service: RunningService) -> None:
    make_user(service)
    browser = Browser(service)
    await browser.sign_in()
    assert (await browser.post("/api/mcp/v1", {}, origin=None)).status_code == 401


@pytest.mark.parametrize("is_trusted", [True, False])
async def test_the_client_address_is_the_one_that_a_trusted_proxy_appended(
    database: Database, is_trusted: bool
) -> None:
    settings = Settings(
        trusted_proxies=frozenset({"127.0.0.1" if is_trusted else "192.0.2.1"}),
        argon2_memory_kib=8,
        argon2_passes=1,
        refusal_delay_s=0,
    )
    async with running_service(database, settings) as service:
        make_user(service)
        for at in range(FAILURES_MAX + 1):
            # The caller sent the first address. The proxy appended the second one.
            addresses = f"10.0.0.{at}, 198.51.100.7"
            reply = await Browser(service).sign_in(
                f"bob{at}@example.com", x_forwarded_for=addresses
            )
        assert reply.status_code == 429
        elsewhere = await Browser(service).sign_in(x_forwarded_for="198.51.100.8")
        assert elsewhere.status_code == (200 if is_trusted else 429)


async def test_sign_ins_from_an_ipv6_network_share_a_limit(database: Database) -> None:
    settings = Settings(trusted_proxies=frozenset({"127.0.0.1"}), refusal_delay_s=0)
    async with running_service(database, settings) as service:
        browser = Browser(service)
        statuses = [
            (await browser.post(SIGN_IN, {}, x_forwarded_for=f"2001:db8::{at:x}")).status_code
            for at in range(SIGN_INS_BURST + 1)
        ]
        assert statuses == [400] * SIGN_INS_BURST + [429]
        elsewhere = await browser.post(SIGN_IN, {}, x_forwarded_for="2001:db8:0:1::1")
        assert elsewhere.status_code == 400


async def test_the_session_stores_the_client_address_and_the_user_agent(
    service: RunningService,
) -> None:
    make_user(service)
    await Browser(service).sign_in(user_agent="Firefox\x7f" + "x" * 1000)
    row = service.database.read(lambda session: session.scalars(select(SignInSession)).one())
    assert row.address == "127.0.0.1"
    assert row.user_agent.startswith("Firefox?x")
    assert len(row.user_agent) == sessions.USER_AGENT_MAX


async def test_the_number_of_sessions_of_a_user_is_limited(service: RunningService) -> None:
    make_user(service)
    browsers = [Browser(service) for _ in range(sessions.SESSIONS_MAX + 1)]
    for browser in browsers:
        await browser.sign_in()
        service.clock.advance(1)
    assert count(service, SignInSession) == sessions.SESSIONS_MAX
    assert (await browsers[0].post(OVERVIEW)).status_code == 401
    assert (await browsers[1].post(OVERVIEW)).status_code == 200


def test_the_names_of_the_cookie_are_those_of_the_contract() -> None:
    assert cookies.NAME == "venue.session_token"
    assert cookies.SECURE_PREFIX + cookies.NAME == "__Secure-venue.session_token"
