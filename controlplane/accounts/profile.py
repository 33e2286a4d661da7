"""Operations for the account of a signed-in user: sessions, API keys, OAuth grants, organization.

They require the session cookie, so that an API key cannot create API keys.
"""

from datetime import timedelta
from functools import partial
from typing import Final
from uuid import UUID

from sqlalchemy import select

from agent.wire.device_operations import EmptyRequest
from controlplane.accounts import messages, sessions
from controlplane.accounts.keys import key_store
from controlplane.accounts.names import organization_records, require_known
from controlplane.accounts.oauth import grants
from controlplane.accounts.oauth.redirects import host_of
from controlplane.accounts.sign_in_policy import memberships_of_caller
from controlplane.accounts.users import increment_permissions_version
from controlplane.operation.audit_entries import (
    Event,
    Subject,
    actor_of,
    describe_grant,
    key_subject,
    note,
)
from controlplane.operation.context import RequestContext
from controlplane.operation.errors import conflict, foreign_location, not_found, read_only_key
from controlplane.operation.operation import Procedure, procedure
from controlplane.operation.records import record_of
from controlplane.storage.account_tables import SignInSession, User
from controlplane.storage.oauth_tables import OAuthClient, OAuthGrant
from controlplane.storage.tables import ApiKey, Device

PREFIX: Final = "/console/api/profile"
KEYS_MAX: Final = 100
"""Maximum number of valid keys of an owner or a manager in an organization. It is high, so that
each venue can have its own key."""
VIEWER_KEYS_MAX: Final = 10
"""Maximum number of valid keys of a viewer in an organization. Such keys can only read,
so no device can use them."""
UNUSED_LIFETIME: Final = timedelta(hours=1)
"""A key with ``expires_unused`` is revoked if it was not used within this time."""
DEVICES_MAX: Final = 20
"""Maximum number of devices in a reply of `key_devices`."""
UNREGISTERED: Final = "A client that is no longer registered"
_writing_procedure = partial(procedure, writes=True, requires_session=True)


def profile_operations() -> tuple[Procedure, ...]:
    return (
        procedure(PREFIX, profile, requires_session=True),
        _writing_procedure(f"{PREFIX}/end-session", end_session),
        _writing_procedure(f"{PREFIX}/create-key", create_key),
        _writing_procedure(f"{PREFIX}/revoke-key", revoke_key),
        procedure(f"{PREFIX}/key-devices", key_devices, requires_session=True),
        _writing_procedure(f"{PREFIX}/choose-organization", choose_organization),
        procedure(f"{PREFIX}/grants", list_grants, requires_session=True),
        _writing_procedure(f"{PREFIX}/end-grant", end_grant),
    )


def profile(context: RequestContext, _body: EmptyRequest) -> messages.ProfileReply:
    """Return the user, their sessions, and their API keys in the organization of this session."""
    session, user = context.session, _user(context)
    return messages.ProfileReply(
        user=record_of(messages.UserRecord, user),
        organization_id=context.caller.organization_id,
        organizations=organization_records(session, memberships_of_caller(session, context.caller)),
        sessions=tuple(
            record_of(messages.SessionRecord, row, is_this=row.id == context.caller.key_id)
            for row in sessions.unexpired_sessions(session, user.id, context.now)
        ),
        keys=tuple(record_of(messages.KeyRecord, row) for row in _valid_keys(context, user.id)),
    )


def end_session(context: RequestContext, body: messages.SessionEndRequest) -> messages.EndReply:
    """End a session of the user. The session of this call can be ended too."""
    if not sessions.end(context.session, body.session_id, _user(context).id):
        raise not_found("session")
    context.note(Event("session.end", Subject("session", str(body.session_id))))
    return messages.EndReply(ended=True)


def create_key(context: RequestContext, body: messages.KeyCreateRequest) -> messages.KeyCreateReply:
    """Create an API key that acts as the user, at the given locations only."""
    user, caller = _user(context, lock=True), context.caller
    if body.can_write and not caller.can_write:
        raise read_only_key()
    if not all(caller.has_access_to(each) for each in body.locations):
        raise foreign_location()
    require_known(context, body.locations)
    keys_max = KEYS_MAX if caller.can_write else VIEWER_KEYS_MAX
    if len(_valid_keys(context, user.id)) >= keys_max:
        detail = f"your role's limit of keys is {keys_max}: revoke one first"
        raise conflict("too_many_keys", detail)
    key = key_store.new_key(name=body.name, locations=body.locations)
    key_store.add_keys(
        context.session,
        [key],
        can_write=body.can_write,
        organization_id=caller.organization_id,
        now=context.now,
        owner_id=user.id,
        unused_until=context.now + UNUSED_LIFETIME if body.expires_unused else None,
    )
    context.session.flush()
    row = context.session.get_one(ApiKey, key.id)
    context.note(Event("key.create", key_subject(row), describe_grant(row)))
    return messages.KeyCreateReply(key=record_of(messages.KeyRecord, row), secret=key.secret)


def revoke_key(context: RequestContext, body: messages.KeyRevokeRequest) -> messages.RevokeReply:
    """Revoke an API key of the user. Revoking it again changes nothing."""
    row = context.session.get(ApiKey, body.key_id)
    if row is None or row.owner_id != _user(context).id:
        raise not_found("key")
    if row.revoked_at is None:
        context.note(Event("key.revoke", key_subject(row)), row.organization_id)
        row.revoked_at = context.now
        increment_permissions_version(context.session, row.owner_id)
    return messages.RevokeReply(revoked=True)


def key_devices(
    context: RequestContext, body: messages.KeyDevicesRequest
) -> messages.KeyDevicesReply:
    """Return the devices that enrolled with an API key of the user, newest first.

    Returns at most `DEVICES_MAX` devices. Revoked devices are left out.
    """
    row = context.session.get(ApiKey, body.key_id)
    if row is None or row.owner_id != _user(context).id:
        raise not_found("key")
    query = select(Device).where(
        context.visible(Device), Device.key_id == row.id, Device.revoked_at.is_(None)
    )
    newest = query.order_by(Device.position.desc()).limit(DEVICES_MAX)
    return messages.KeyDevicesReply(
        is_revoked=row.revoked_at is not None,
        devices=tuple(
            record_of(messages.KeyDeviceRecord, each, name=each.legacy_install_id)
            for each in context.session.scalars(newest)
        ),
    )


def choose_organization(
    context: RequestContext, body: messages.ChooseOrganizationRequest
) -> messages.ChooseOrganizationReply:
    """Switch the session to another organization of the user."""
    user = _user(context)
    memberships = memberships_of_caller(context.session, context.caller)
    if body.organization_id not in {each.organization_id for each in memberships}:
        raise not_found("organization")
    row = context.session.get_one(SignInSession, context.caller.key_id)
    row.organization_id = body.organization_id
    event = Event("session.choose_organization", Subject("session", str(row.id)))
    actor = actor_of(context.session, context.caller, context.address)
    note(context.session, actor, event, organization_id=row.organization_id, now=context.now)
    increment_permissions_version(context.session, user.id)
    return messages.ChooseOrganizationReply(organization_id=body.organization_id)


def list_grants(context: RequestContext, _body: EmptyRequest) -> messages.GrantsReply:
    """Return the OAuth grants of the user, in all organizations."""
    result = grants.of_user(context.session, context.caller.session_user_id, context.now)
    return messages.GrantsReply(grants=tuple(_grant_record(*each) for each in result))


def end_grant(context: RequestContext, body: messages.GrantEndRequest) -> messages.EndReply:
    """End an OAuth grant of the user, together with its tokens."""
    grant = grants.end_by_id(context.session, body.grant_id, context.caller.session_user_id)
    if grant is None:
        raise not_found("grant")
    client = context.session.get(OAuthClient, grant.client_id)
    name = UNREGISTERED if client is None else client.name
    subject = Subject("grant", str(body.grant_id), name)
    context.note(Event("grant.end", subject), grant.organization_id)
    return messages.EndReply(ended=True)


def _grant_record(grant: OAuthGrant, client: OAuthClient | None) -> messages.GrantRecord:
    hosts = {host_of(each) for each in client.redirect_uris} if client is not None else set()
    return record_of(
        messages.GrantRecord,
        grant,
        client_name=UNREGISTERED if client is None else client.name,
        client_hosts=tuple(sorted(each for each in hosts if each is not None)),
    )


def _user(context: RequestContext, *, lock: bool = False) -> User:
    user_id = context.caller.session_user_id
    return context.session.get_one(User, user_id, with_for_update=lock or None)


def _valid_keys(context: RequestContext, user_id: UUID) -> list[ApiKey]:
    query = select(ApiKey).where(
        ApiKey.owner_id == user_id,
        ApiKey.organization_id == context.caller.organization_id,
        ApiKey.revoked_at.is_(None),
    )
    return list(context.session.scalars(query.order_by(ApiKey.created_at, ApiKey.id)))
