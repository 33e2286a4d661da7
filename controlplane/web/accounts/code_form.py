"""The second step of a sign-in with a password: the second factor.

Also removes a second factor, and replaces recovery codes. A wrong code counts as a failed sign-in,
so wrong codes and wrong passwords share one limit (`controlplane.accounts.throttle`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Final

from sqlalchemy.orm import Session
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from agent.wire.base import Message
from agent.wire.codec import encode
from controlplane.accounts import throttle
from controlplane.accounts.oauth.metadata import AUTHORIZE
from controlplane.accounts.second_factor import codes, messages, pending
from controlplane.accounts.second_factor.operations import PREFIX, describe_factor, wrong_code
from controlplane.accounts.sign_in_policy import requires_second_factor
from controlplane.operation.audit_entries import Event, note, note_call, user_actor, user_subject
from controlplane.operation.errors import Refusal, conflict
from controlplane.storage.account_tables import SecondFactor, User
from controlplane.web.accounts import cookies, forms
from controlplane.web.accounts.opening import Browser, note_refused, open_session
from controlplane.web.accounts.plain_pages import render
from controlplane.web.accounts.sign_in import begin_attempt, count_attempt
from controlplane.web.admission import FORM, Handler, address_of, admit, read_small
from controlplane.web.core import Core
from controlplane.web.oauth.requests import fields_of, read_form

Change = Callable[[Session, User], tuple[Event, Message]]
"""Changes the second factor of a user, and returns the audit entry and the reply."""
REMOVE: Final = f"{PREFIX}/remove"
RECOVERY_CODES: Final = f"{PREFIX}/recovery-codes"


@dataclass(frozen=True, slots=True)
class Step:
    """A sign-in that needs a code.

    ``new_factor`` describes the second factor that the user must set up first, or is None.
    """

    user: User
    new_factor: messages.SecondFactorBeginReply | None


@dataclass(frozen=True, slots=True)
class NewSession:
    """A new session.

    ``location`` is the page that follows. ``recovery_codes`` is empty unless the second factor was
    set up in this sign-in.
    """

    token: str
    location: str
    recovery_codes: tuple[str, ...]


def code_routes(core: Core) -> list[Route]:
    return [
        Route(forms.CODE_PAGE, Handler(core, enter_code, FORM)),
        Route(REMOVE, Handler(core, partial(_change, _remove))),
        Route(RECOVERY_CODES, Handler(core, partial(_change, _replace_codes))),
    ]


async def enter_code(core: Core, request: Request) -> Response:
    """Show the form for ``GET``. Verify a code and open a session for ``POST``."""
    token, now = cookies.PENDING.token(core, request), core.clock()
    step = await core.read(lambda session: _find_step(session, token, now))
    if step is None:
        return forms.redirect(forms.SIGN_IN_PAGE, cookies.PENDING.header(core, request, ""))
    if request.method != "POST":
        return _page(step)
    cookies.require_own_origin(core, request, requires_header=True)
    try:
        new_session = await _open(core, request, step, token)
    except Refusal as refusal:
        return _page(step, refusal)
    cookie_deletion = cookies.PENDING.header(core, request, "")
    if new_session is None:
        return forms.redirect(forms.SIGN_IN_PAGE, cookie_deletion)
    set_cookies = (cookies.SESSION.header(core, request, new_session.token), cookie_deletion)
    if not new_session.recovery_codes:
        return forms.redirect(new_session.location, *set_cookies)
    page = render(
        "recovery_codes.html", codes=new_session.recovery_codes, next_url=new_session.location
    )
    return forms.with_cookies(page, *set_cookies)


async def _open(core: Core, request: Request, step: Step, token: str | None) -> NewSession | None:
    """Open a session. Returns None if the pending sign-in has ended. Raises a refusal."""
    address, now = count_attempt(core, request), core.clock()
    code = fields_of(await read_form(core, request)).get("code", "")[: codes.CODE_MAX]
    attempt = await begin_attempt(core, step.user.email, address)
    browser = Browser.of(core, request)

    def work(session: Session) -> NewSession | None:
        match = pending.find(session, token, now, lock=True)
        if match is None:
            return None
        row, user = match
        detail, recovery_codes = _verify(session, user, code, address=address, now=now)
        throttle.succeed(session, attempt)
        location = f"{AUTHORIZE}?{row.return_query}" if row.return_query else forms.CONSOLE
        pending.end(session, row)
        session_token, _ = open_session(
            session, user, browser, now, has_second_factor=True, detail=f"with a {detail}"
        )
        return NewSession(session_token, location, recovery_codes)

    try:
        return await core.write(work)
    except Refusal as refusal:
        await note_refused(core, step.user, address, refusal.detail)
        raise


def _verify(
    session: Session, user: User, code: str, *, address: str, now: datetime
) -> tuple[str, tuple[str, ...]]:
    """Return the kind of a valid code, and the recovery codes of a new factor."""
    if codes.has_factor(session, user.id):
        detail = codes.verify(session, user.id, code, now)
        if detail is None:
            raise wrong_code()
        return detail, ()
    recovery_codes = codes.confirm(session, user.id, code, now)
    if recovery_codes is None:
        raise wrong_code()
    event = Event("second_factor.set_up", user_subject(user))
    organization_id = pending.organization_of(session, user.id)
    note(
        session, user_actor(user, address=address), event, organization_id=organization_id, now=now
    )
    return "new second factor", recovery_codes


def _find_step(session: Session, token: str | None, now: datetime) -> Step | None:
    match = pending.find(session, token, now)
    if match is None:
        return None
    user = match[1]
    row = session.get(SecondFactor, user.id)
    if row is None or row.is_confirmed:
        return Step(user, None)
    return Step(user, describe_factor(row, user))


def _page(step: Step, refusal: Refusal | None = None) -> Response:
    return render(
        "sign_in_code.html",
        refusal=refusal,
        action=forms.CODE_PAGE,
        new_factor=step.new_factor,
        problem=forms.problem_text(refusal),
    )


async def _change(change: Change, core: Core, request: Request) -> Response:
    """Change the second factor of the signed-in user, who must enter a code."""
    caller = await admit(core, request, writes=True, requires_session=True)
    body = await read_small(core, request, messages.SecondFactorCodeRequest)
    user = await core.read(lambda session: session.get_one(User, caller.session_user_id))
    address, now = address_of(core, request), core.clock()
    attempt = await begin_attempt(core, user.email, address)

    def work(session: Session) -> Message:
        if codes.verify(session, user.id, body.code, now) is None:
            raise wrong_code()
        throttle.succeed(session, attempt)
        event, reply = change(session, user)
        note_call(session, caller, event, address=address, now=now)
        return reply

    return Response(encode(await core.write(work)), media_type="application/json")


def _remove(session: Session, user: User) -> tuple[Event, Message]:
    if requires_second_factor(session, user.id):
        raise conflict("second_factor_needed", "your organization requires a second factor")
    codes.remove(session, user.id)
    event = Event("second_factor.remove", user_subject(user))
    return event, messages.SecondFactorRemoveReply(removed=True)


def _replace_codes(session: Session, user: User) -> tuple[Event, Message]:
    recovery_codes = codes.new_recovery_codes(session, user.id)
    event = Event("second_factor.recovery_codes", user_subject(user))
    return event, messages.RecoveryCodesReply(recovery_codes=recovery_codes)
