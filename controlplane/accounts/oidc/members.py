"""Users and memberships that an identity provider controls.

An account is linked with the provider's user when the user signs in for the first time. The
provider must be trusted for the domain of the verified e-mail address. A session of the provider
has access only to the memberships that the provider manages. A session that began with a password
has access only to the memberships that no provider manages (`Membership.managed_by`). So it does no
harm if someone else created an account with the address earlier.
"""

from collections.abc import Mapping
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from controlplane.accounts import users
from controlplane.accounts.oidc.claims import Claims
from controlplane.accounts.oidc.errors import ProviderRefusedError
from controlplane.accounts.oidc.providers import GroupRole, IdentityProvider
from controlplane.operation.audit_entries import (
    Event,
    describe_role,
    note,
    user_actor,
    user_subject,
)
from controlplane.storage.account_tables import Identity, Membership, User


def find_or_create_user(
    session: Session, provider: IdentityProvider, claims: Claims, now: datetime
) -> User | None:
    """Return the user of a sign-in, and set the memberships that the user's groups give.

    If no group of the user has a role, end the memberships that the provider manages, and return
    None.

    Raises:
        ProviderRefusedError: the provider may not sign in this user.
    """
    roles = provider.roles_of(claims.groups)
    identity = session.get(Identity, (provider.issuer, claims.subject), with_for_update=True)
    user = None if identity is None else session.get_one(User, identity.user_id)
    if not roles:
        if user is not None:
            apply_roles(session, provider, user, roles, now)
        return None
    if user is None:
        user = _link_account(session, provider, claims, now)
    apply_roles(session, provider, user, roles, now)
    return user


def apply_roles(
    session: Session,
    provider: IdentityProvider,
    user: User,
    roles: Mapping[str, GroupRole],
    now: datetime,
) -> None:
    """Set the user's memberships that the provider manages.

    ``roles`` are the roles that the user's groups give, by organization. A membership that the
    provider manages ends if ``roles`` has no role for its organization, even if no group of the
    provider has a role in this organization any more. If no membership is left, the user is
    deleted.
    """
    users.lock_user(session, user.id)
    managed = select(Membership.organization_id).where(
        Membership.user_id == user.id, Membership.managed_by == provider.id
    )
    actor = user_actor(user)
    # Memberships with a role come first. Otherwise the last old membership could end before a new
    # one is added, and the user would be deleted.
    for organization_id in sorted(
        {*roles, *session.scalars(managed)}, key=lambda each: (each not in roles, each)
    ):
        row = session.get(Membership, (user.id, organization_id), populate_existing=True)
        group_role = roles.get(organization_id)
        if group_role is None:
            event = Event("member.remove", user_subject(user), f"groups at {provider.label}")
            users.remove_membership(session, user.id, organization_id, now)
        elif _is_current(row, group_role, provider):
            continue
        else:
            role = describe_role(group_role.role, group_role.locations)
            detail = f"{role}, by groups at {provider.label}"
            event = Event("member.change" if row else "member.add", user_subject(user), detail)
            users.set_membership(
                session,
                user.id,
                organization_id,
                role=group_role.role,
                locations=group_role.locations,
                now=now,
                managed_by=provider.id,
            )
        note(session, actor, event, organization_id=organization_id, now=now)


def _is_current(row: Membership | None, group_role: GroupRole, provider: IdentityProvider) -> bool:
    return row is not None and (row.role, row.locations, row.managed_by) == (
        group_role.role,
        sorted(set(group_role.locations)),
        provider.id,
    )


def _link_account(
    session: Session, provider: IdentityProvider, claims: Claims, now: datetime
) -> User:
    """Link the account of the verified address with the provider's user, or create an account."""
    if claims.email is None:
        raise ProviderRefusedError(f"{provider.label} has not verified your e-mail address")
    if not provider.is_trusted_for(claims.email):
        raise ProviderRefusedError(
            f"{provider.label} may not sign in users with addresses of this domain"
        )
    user = users.find_user(session, claims.email)
    if user is None:
        name = claims.name or claims.email
        user = users.add_user(session, email=claims.email, name=name, password_hash="", now=now)
    elif _has_identity(session, provider, user):
        raise ProviderRefusedError(
            "the account of your e-mail address belongs to a different user of the provider: ask"
            " the operator to remove the account"
        )
    session.add(
        Identity(issuer=provider.issuer, subject=claims.subject, user_id=user.id, created_at=now)
    )
    session.flush()
    return user


def _has_identity(session: Session, provider: IdentityProvider, user: User) -> bool:
    """Return whether the account is already linked with a user of the provider.

    This user can differ from the one who signs in, because a provider may assign an address to a
    new user.
    """
    query = select(Identity).where(Identity.issuer == provider.issuer, Identity.user_id == user.id)
    return session.scalars(query.limit(1)).first() is not None
