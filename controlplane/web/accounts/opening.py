"""Opens the session of a user whose credentials are verified, and logs refused sign-ins.

Each sign-in creates a session and ends the previous session of the browser. This prevents session
fixation.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID, uuid4

from sqlalchemy import delete
from sqlalchemy.orm import Session
from starlette.requests import Request

from controlplane.accounts import sessions
from controlplane.accounts.messages import SignInReply, UserRecord
from controlplane.accounts.names import organization_records
from controlplane.accounts.sessions import ProviderSignIn
from controlplane.accounts.sign_in_policy import usable_memberships
from controlplane.accounts.users import memberships
from controlplane.operation import audit_entries as audit
from controlplane.operation.errors import Refusal, forbidden
from controlplane.storage.account_tables import Membership, SignInSession, User
from controlplane.storage.audit_tables import AuditEntry
from controlplane.web.accounts import cookies
from controlplane.web.admission import address_of
from controlplane.web.core import Core


@dataclass(frozen=True, slots=True)
class Browser:
    """The browser that signs in. ``old_token`` is the token of its previous session."""

    user_agent: str
    address: str
    old_token: str | None

    @classmethod
    def of(cls, core: Core, request: Request) -> "Browser":
        user_agent = request.headers.get("user-agent", "")
        return cls(user_agent, address_of(core, request), cookies.SESSION.token(core, request))


def open_session(
    session: Session,
    user: User,
    browser: Browser,
    now: datetime,
    *,
    has_second_factor: bool = False,
    sign_in: ProviderSignIn | None = None,
    detail: str = "",
) -> tuple[str, SignInReply]:
    """Return the token of a new session, and the reply.

    Args:
        sign_in: the sign-in with an identity provider, or None for a password.
        detail: how the user signed in, for the audit log.

    Raises:
        Refusal: the user is a member of no organization, or none of the user's organizations
            accepts this kind of sign-in.
    """
    provider = None if sign_in is None else sign_in.provider
    usable = usable_memberships(session, user.id, provider, has_second_factor=has_second_factor)
    if not usable:
        raise _no_membership(session, user)
    if browser.old_token is not None:
        sessions.end_by_token(session, browser.old_token)
    organization_id = usable[0].organization_id
    row = SignInSession(
        user_id=user.id,
        organization_id=organization_id,
        user_agent=browser.user_agent,
        address=browser.address,
        has_second_factor=has_second_factor,
    )
    session_id, token = sessions.create(session, row, now, sign_in)
    actor = audit.user_actor(user, audit.Credential("session", session_id), browser.address)
    event = audit.Event("session.sign_in", audit.Subject("session", str(session_id)), detail)
    audit.note(session, actor, event, organization_id=organization_id, now=now)
    return token, _reply(session, user, usable, session_id)


async def note_refused(core: Core, user: User | None, address: str, reason: str) -> None:
    """Add a refused attempt to the audit log, unless there were too many (`RefusedSignIns`).

    All attempts run the same statements, so that a caller cannot find out from the duration whether
    the account exists. Therefore an entry that must not remain is added and deleted again. Entries
    do not contain unknown e-mail addresses, because users sometimes type their password into the
    wrong field.
    """
    now = core.clock()
    detail = core.refused_sign_ins.count_and_describe(None if user is None else user.id, reason)

    def work(session: Session) -> None:
        unknown = audit.Actor("unknown", None, "", address=address)
        actor = unknown if user is None else audit.user_actor(user, address=address)
        user_memberships = memberships(session, uuid4() if user is None else user.id)
        event = audit.Event(
            "session.sign_in", audit.Subject("session", ""), detail or reason, "refused"
        )
        organization_id = user_memberships[0].organization_id if user_memberships else None
        entry = audit.note(session, actor, event, organization_id=organization_id, now=now)
        session.flush()
        # No entry has the position 0, so nothing is deleted if the attempt gets an entry.
        audit_position = entry.position if detail is None else 0
        session.execute(delete(AuditEntry).where(AuditEntry.position == audit_position))

    await core.write(work)


def _no_membership(session: Session, user: User) -> Refusal:
    if memberships(session, user.id):
        return forbidden(
            "password_not_accepted",
            "your organization does not accept passwords: sign in with its identity provider",
        )
    return forbidden("no_membership", "the account is a member of no organization")


def _reply(
    session: Session, user: User, usable: Sequence[Membership], session_id: UUID
) -> SignInReply:
    return SignInReply(
        session_id=session_id,
        user=UserRecord(id=user.id, email=user.email, name=user.name),
        organization_id=usable[0].organization_id,
        organizations=organization_records(session, usable),
    )
