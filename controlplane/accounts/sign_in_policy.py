"""How members of an organization sign in, and which organizations a session may use."""

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session

from controlplane.accounts.users import increment_permissions_version, memberships
from controlplane.operation.caller import Caller
from controlplane.storage.account_tables import Membership, SignInPolicy, SignInSession


def policy_of(session: Session, organization_id: str) -> SignInPolicy:
    """Return the stored policy, or the default policy, which is not stored."""
    row = session.get(SignInPolicy, organization_id)
    return row or SignInPolicy(
        organization_id=organization_id, accepts_passwords=True, requires_second_factor=False
    )


def set_policy(session: Session, row: SignInPolicy) -> None:
    """Store a new or changed policy, and end the sessions that do not satisfy it."""
    session.add(row)
    session.flush()
    password_sessions = select(SignInSession).where(
        SignInSession.organization_id == row.organization_id, SignInSession.provider.is_(None)
    )
    for each in session.scalars(password_sessions).all():
        is_missing_factor = row.requires_second_factor and not each.has_second_factor
        if not row.accepts_passwords or is_missing_factor:
            session.delete(each)
            increment_permissions_version(session, each.user_id)


def describe_policy(row: SignInPolicy) -> str:
    passwords = "passwords accepted" if row.accepts_passwords else "passwords not accepted"
    factor = "required" if row.requires_second_factor else "optional"
    return f"{passwords}, second factor {factor}"


def requires_second_factor(session: Session, user_id: UUID) -> bool:
    """Return whether an organization of the user requires a second factor with a password."""
    query = select(SignInPolicy).join(
        Membership, Membership.organization_id == SignInPolicy.organization_id
    )
    required = query.where(
        Membership.user_id == user_id,
        Membership.managed_by.is_(None),
        SignInPolicy.accepts_passwords.is_(True),
        SignInPolicy.requires_second_factor.is_(True),
    )
    return session.scalars(required.limit(1)).first() is not None


def usable_memberships(
    session: Session, user_id: UUID, provider: str | None, *, has_second_factor: bool
) -> Sequence[Membership]:
    """Return the memberships that a session of the user may use, oldest first.

    ``provider`` is the identity provider of the session, or None for a password.
    """
    matching = [each for each in memberships(session, user_id) if each.managed_by == provider]
    if provider is not None:
        return matching
    policies = {each.organization_id: policy_of(session, each.organization_id) for each in matching}
    return [
        each
        for each in matching
        if policies[each.organization_id].accepts_passwords
        and (has_second_factor or not policies[each.organization_id].requires_second_factor)
    ]


def memberships_of_caller(session: Session, caller: Caller) -> Sequence[Membership]:
    """Return the memberships that a signed-in caller may use, oldest first."""
    row = session.get(SignInSession, caller.key_id)
    if row is None:
        return ()
    return usable_memberships(
        session, row.user_id, row.provider, has_second_factor=row.has_second_factor
    )
