"""Tests of one-time passwords and recovery codes, and of the sign-in forms that need no scripts."""

import re
from typing import Any

import pyotp
import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from controlplane.accounts import sign_in_policy
from controlplane.accounts.second_factor import codes, pending
from controlplane.accounts.throttle import FAILURES_MAX, WINDOW
from controlplane.accounts.users import find_user, set_password
from controlplane.storage.account_tables import PendingSignIn, RecoveryCode, SecondFactor
from tests.unit.controlplane.accounts.oidc.visitor import Visitor
from tests.unit.controlplane.accounts.people import OVERVIEW, PASSWORD, Browser, make_user
from tests.unit.controlplane.running_service import RunningService

EMAIL = "ada@example.com"
FACTOR = "/console/api/profile/second-factor"
CODE_PAGE = "/sign-in/code"
STEP_S = 30


def code_at(service: RunningService, secret: str, steps: int = 0) -> str:
    """Return the code of the time step that is ``steps`` later than now (negative: earlier)."""
    step = int(service.clock().timestamp()) // STEP_S + steps
    return pyotp.TOTP(secret).generate_otp(step)


def set_second_factor_requirement(service: RunningService, *, is_required: bool = True) -> None:
    def work(session: Session) -> None:
        row = sign_in_policy.policy_of(session, "org-0001")
        row.requires_second_factor = is_required
        sign_in_policy.set_policy(session, row)

    service.database.write(work)


async def set_up(service: RunningService) -> tuple[str, list[str]]:
    """Set up the second factor of Ada. Return its secret and the recovery codes."""
    make_user(service)
    browser = Browser(service)
    await browser.sign_in()
    new_factor = (await browser.post(f"{FACTOR}/begin")).json()
    secret = new_factor["secret"].replace(" ", "")
    assert f"secret={secret}" in new_factor["uri"]
    assert new_factor["qrCode"].startswith("data:image/svg+xml")
    reply = await browser.post(f"{FACTOR}/confirm", {"code": code_at(service, secret)})
    assert reply.status_code == 200, reply.text
    service.clock.advance(STEP_S)
    return secret, reply.json()["recoveryCodes"]


async def password_step(service: RunningService) -> Visitor:
    """Sign in with the password. Return the browser, which has no session until it sends a code."""
    visitor = Visitor(service)
    reply = await visitor.submit("/sign-in", email=EMAIL, password=PASSWORD)
    assert (reply.status_code, reply.headers["location"]) == (303, CODE_PAGE)
    assert list(visitor.cookies) == ["venue.pending_sign_in"]
    return visitor


async def code_step(service: RunningService, code: str) -> int:
    """Return the status of a sign-in with a correct password and this code."""
    visitor = await password_step(service)
    reply = await visitor.submit(CODE_PAGE, code=code)
    assert ("venue.session_token" in visitor.cookies) == (reply.status_code == 303)
    return reply.status_code


async def test_a_password_alone_opens_no_session(service: RunningService) -> None:
    secret, _ = await set_up(service)
    browser = Browser(service)
    reply = await browser.sign_in()
    assert (reply.status_code, reply.json()["code"]) == (403, "second_factor_required")
    browser.token = ""
    assert (await browser.post(OVERVIEW)).status_code == 401
    assert await code_step(service, code_at(service, secret)) == 303


@pytest.mark.parametrize("steps", [-1, 0, 1])
async def test_a_code_of_an_adjacent_time_step_is_accepted(
    service: RunningService, steps: int
) -> None:
    secret, _ = await set_up(service)
    service.clock.advance(10 * STEP_S)
    assert await code_step(service, code_at(service, secret, steps)) == 303


@pytest.mark.parametrize("steps", [-2, 2])
async def test_a_code_that_is_two_time_steps_off_is_refused(
    service: RunningService, steps: int
) -> None:
    secret, _ = await set_up(service)
    service.clock.advance(10 * STEP_S)
    assert await code_step(service, code_at(service, secret, steps)) == 403


async def test_a_code_is_accepted_once(service: RunningService) -> None:
    secret, _ = await set_up(service)
    service.clock.advance(10 * STEP_S)
    code, earlier = code_at(service, secret), code_at(service, secret, -1)
    assert await code_step(service, code) == 303
    assert await code_step(service, code) == 403
    # A code that is older than the last accepted code is refused even if it was never used, because
    # an attacker may have seen it.
    assert await code_step(service, earlier) == 403


async def test_the_code_of_the_set_up_is_not_accepted_again(service: RunningService) -> None:
    secret, _ = await set_up(service)
    assert await code_step(service, code_at(service, secret, -1)) == 403


async def test_a_recovery_code_is_accepted_once(service: RunningService) -> None:
    _, recovery_codes = await set_up(service)
    assert len(set(recovery_codes)) == 10
    assert await code_step(service, f" {recovery_codes[0].upper()} ") == 303
    assert await code_step(service, recovery_codes[0]) == 403
    assert await code_step(service, recovery_codes[1].replace("-", "")) == 303


async def test_recovery_codes_are_stored_as_hashes_and_belong_to_one_user(
    service: RunningService,
) -> None:
    _, recovery_codes = await set_up(service)
    query = select(RecoveryCode.code_hash)
    hashes = service.database.read(lambda session: set(session.scalars(query)))
    assert len(hashes) == 10
    assert all(re.fullmatch("[0-9a-f]{64}", each) for each in hashes)
    other = make_user(service, "eve@example.com")
    code = recovery_codes[0]
    assert (
        service.database.write(
            lambda session: codes.verify(session, other.id, code, service.clock())
        )
        is None
    )


@pytest.mark.parametrize("code", ["", "000", "abcdef", "１２３４５６", "0" * 64, "1' OR '1'='1"])
async def test_a_malformed_code_is_refused(service: RunningService, code: str) -> None:
    await set_up(service)
    assert await code_step(service, code) == 403


async def test_wrong_codes_are_limited_even_if_the_password_is_repeated(
    service: RunningService,
) -> None:
    secret, _ = await set_up(service)
    service.clock.advance(10 * STEP_S)
    visitor = await password_step(service)
    for count in range(FAILURES_MAX):
        assert (await visitor.submit(CODE_PAGE, code="000000")).status_code == 403
        if count < FAILURES_MAX - 1:  # a correct password does not clear the failures
            await password_step(service)
    refused = await visitor.submit(CODE_PAGE, code=code_at(service, secret))
    assert (refused.status_code, "Wait" in refused.text or "wait" in refused.text) == (429, True)
    assert (await Browser(service).sign_in()).status_code == 429
    service.clock.advance(WINDOW.total_seconds())
    assert await code_step(service, code_at(service, secret)) == 303


async def test_a_pending_sign_in_ends_after_ten_minutes_or_when_the_password_changes(
    service: RunningService,
) -> None:
    secret, _ = await set_up(service)
    visitor = await password_step(service)
    service.clock.advance(pending.LIFETIME.total_seconds())
    late = await visitor.submit(CODE_PAGE, code=code_at(service, secret))
    assert (late.status_code, late.headers["location"]) == (303, "/sign-in")
    assert visitor.cookies == {}
    visitor = await password_step(service)
    change_password(service)
    late = await visitor.submit(CODE_PAGE, code=code_at(service, secret))
    assert (late.headers["location"], visitor.cookies) == ("/sign-in", {})


def change_password(service: RunningService) -> None:
    def work(session: Any) -> None:
        user = find_user(session, EMAIL)
        assert user is not None
        set_password(session, user, "another hash")

    service.database.write(work)


async def test_a_user_has_a_bounded_number_of_pending_sign_ins(service: RunningService) -> None:
    await set_up(service)
    for _ in range(pending.PENDING_MAX + 2):
        await password_step(service)
    query = select(PendingSignIn)
    rows = service.database.read(lambda session: session.scalars(query).all())
    assert len(rows) == pending.PENDING_MAX


async def test_users_set_up_a_required_second_factor_at_sign_in(
    service: RunningService,
) -> None:
    make_user(service)
    browser = Browser(service)
    await browser.sign_in()
    set_second_factor_requirement(service)
    assert (await browser.post(OVERVIEW)).status_code == 401
    visitor = await password_step(service)
    page = await visitor.get(CODE_PAGE)
    secret = re.search(r'<code class="supplied">([A-Z2-7 ]+)</code>', page.text)
    assert secret is not None
    assert (await visitor.submit(CODE_PAGE, code="000000")).status_code == 403
    code = code_at(service, secret[1].replace(" ", ""))
    done = await visitor.submit(CODE_PAGE, code=code)
    assert (done.status_code, done.text.count("<li><code>")) == (200, 10)
    visitor.token = visitor.cookies["venue.session_token"]
    assert (await visitor.post(OVERVIEW)).status_code == 200
    assert (await visitor.post(FACTOR)).json() == {
        "isSetUp": True, "isRequired": True, "recoveryCodesLeft": 10,
    }  # fmt: skip


async def test_removing_a_factor_needs_a_code_and_is_refused_if_the_factor_is_required(
    service: RunningService,
) -> None:
    secret, recovery_codes = await set_up(service)
    visitor = await password_step(service)
    await visitor.submit(CODE_PAGE, code=code_at(service, secret))
    visitor.token = visitor.cookies["venue.session_token"]
    wrong = await visitor.post(f"{FACTOR}/remove", {"code": "000000"})
    assert (wrong.status_code, wrong.json()["code"]) == (403, "wrong_code")
    set_second_factor_requirement(service)
    refused = await visitor.post(f"{FACTOR}/remove", {"code": recovery_codes[0]})
    assert (refused.status_code, refused.json()["code"]) == (409, "second_factor_needed")
    set_second_factor_requirement(service, is_required=False)
    # The refused call has not used up the code.
    replaced = await visitor.post(f"{FACTOR}/recovery-codes", {"code": recovery_codes[0]})
    new = replaced.json()["recoveryCodes"]
    assert not set(new) & set(recovery_codes)
    assert (await visitor.post(f"{FACTOR}/remove", {"code": recovery_codes[1]})).status_code == 403
    assert (await visitor.post(f"{FACTOR}/remove", {"code": new[0]})).json() == {"removed": True}
    assert (await Browser(service).sign_in()).status_code == 200


async def test_a_second_factor_cannot_be_set_up_twice(service: RunningService) -> None:
    make_user(service)
    browser = Browser(service)
    await browser.sign_in()
    secret = (await browser.post(f"{FACTOR}/begin")).json()["secret"].replace(" ", "")
    assert (await browser.sign_in()).status_code == 200  # the factor is not confirmed yet
    wrong = await browser.post(f"{FACTOR}/confirm", {"code": "000000"})
    assert (wrong.status_code, wrong.json()["code"]) == (403, "wrong_code")
    code = code_at(service, secret)
    assert (await browser.post(f"{FACTOR}/confirm", {"code": code})).status_code == 200
    for path, body in (("begin", {}), ("confirm", {"code": code})):
        reply = await browser.post(f"{FACTOR}/{path}", body)
        assert (reply.status_code, reply.json()["code"]) == (409, "already_set_up")
    row = service.database.read(lambda session: session.scalars(select(SecondFactor)).one())
    assert row.secret == secret


# ---------------------------------------------------------------------------- forms


async def test_a_user_signs_in_and_out_with_forms(service: RunningService) -> None:
    make_user(service)
    visitor = Visitor(service)
    page = await visitor.get("/sign-in")
    assert 'action="/sign-in"' in page.text
    assert "script" not in page.text
    wrong = await visitor.submit("/sign-in", email=EMAIL, password="not this one, no")
    assert (wrong.status_code, 'value="ada@example.com"' in wrong.text) == (401, True)
    done = await visitor.submit("/sign-in", email=EMAIL, password=PASSWORD)
    assert (done.status_code, done.headers["location"]) == (303, "/")
    assert "You are signed in" in (await visitor.get("/sign-in")).text
    assert (await visitor.submit("/sign-in/end")).headers["location"] == "/sign-in"
    assert "You are signed in" not in (await visitor.get("/sign-in")).text


@pytest.mark.parametrize("path", ["/sign-in", "/sign-in/end"])
async def test_forms_of_other_sites_are_refused(service: RunningService, path: str) -> None:
    make_user(service)
    visitor = Visitor(service)
    for headers in ({"origin": "https://evil.example"}, {}):
        fields = {"email": EMAIL, "password": PASSWORD}
        reply = await visitor.call("POST", path, data=fields, headers=headers)
        assert (reply.status_code, visitor.cookies) == (403, {})
        assert reply.headers["content-type"].startswith("text/html")
    page = await visitor.get("/sign-in")
    assert "frame-ancestors 'none'" in page.headers["content-security-policy"]


async def test_a_code_that_another_site_sends_is_refused(service: RunningService) -> None:
    secret, _ = await set_up(service)
    visitor = await password_step(service)
    fields = {"code": code_at(service, secret)}
    headers = {"origin": "https://evil.example"}
    reply = await visitor.call("POST", CODE_PAGE, data=fields, headers=headers)
    assert (reply.status_code, list(visitor.cookies)) == (403, ["venue.pending_sign_in"])
