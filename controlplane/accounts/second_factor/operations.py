"""Operations with which users set up their second factor, and owners set the sign-in policy."""

from functools import partial
from typing import Final

from agent.wire.device_operations import EmptyRequest
from controlplane.accounts.members.rules import require_owner
from controlplane.accounts.second_factor import codes, messages
from controlplane.accounts.sign_in_policy import (
    describe_policy,
    policy_of,
    requires_second_factor,
    set_policy,
)
from controlplane.operation.audit_entries import Event, Subject, user_subject
from controlplane.operation.context import RequestContext
from controlplane.operation.errors import Refusal, conflict, forbidden
from controlplane.operation.operation import Procedure, procedure
from controlplane.operation.records import record_of
from controlplane.storage.account_tables import SecondFactor, SignInPolicy, SignInSession, User

PREFIX: Final = "/console/api/profile/second-factor"
POLICY: Final = "/console/api/members/sign-in-policy"
_writing_procedure = partial(procedure, writes=True, requires_session=True)


def second_factor_operations() -> tuple[Procedure, ...]:
    return (
        procedure(PREFIX, second_factor, requires_session=True),
        _writing_procedure(f"{PREFIX}/begin", begin),
        _writing_procedure(f"{PREFIX}/confirm", confirm),
        procedure(POLICY, sign_in_policy, requires_session=True),
        _writing_procedure(f"{POLICY}/change", change_policy),
    )


def second_factor(context: RequestContext, _body: EmptyRequest) -> messages.SecondFactorReply:
    """Return whether the user has a second factor, and whether they need one."""
    user = _user(context)
    return messages.SecondFactorReply(
        is_set_up=codes.has_factor(context.session, user.id),
        is_required=requires_second_factor(context.session, user.id),
        recovery_codes_left=codes.count_recovery_codes(context.session, user.id),
    )


def begin(context: RequestContext, _body: EmptyRequest) -> messages.SecondFactorBeginReply:
    """Create a secret. Sign-ins do not require its codes until `confirm` has received one."""
    user = _user(context)
    if codes.has_factor(context.session, user.id):
        raise _already_set_up()
    return describe_factor(codes.begin(context.session, user.id, context.now), user)


def confirm(
    context: RequestContext, body: messages.SecondFactorCodeRequest
) -> messages.RecoveryCodesReply:
    """Require the second factor from now on. Return recovery codes."""
    user = _user(context)
    if codes.has_factor(context.session, user.id):
        raise _already_set_up()
    recovery_codes = codes.confirm(context.session, user.id, body.code, context.now)
    if recovery_codes is None:
        raise wrong_code()
    row = context.session.get_one(SignInSession, context.caller.key_id)
    # Only a session that began with a password needs a second factor.
    row.has_second_factor = row.provider is None
    context.note(Event("second_factor.set_up", user_subject(user)))
    return messages.RecoveryCodesReply(recovery_codes=recovery_codes)


def sign_in_policy(context: RequestContext, _body: EmptyRequest) -> messages.SignInPolicyReply:
    """Return how members of the organization sign in."""
    require_owner(context)
    return _policy_reply(policy_of(context.session, context.organization_id))


def change_policy(
    context: RequestContext, body: messages.SignInPolicyRequest
) -> messages.SignInPolicyReply:
    """Change how members sign in. This ends all sessions that do not satisfy the new policy.

    The session of this call must satisfy the policy, so that owners do not lock themselves out.
    """
    require_owner(context)
    current = context.session.get_one(SignInSession, context.caller.key_id)
    if current.provider is None and not body.accepts_passwords:
        raise conflict(
            "provider_required", "first sign in with an identity provider of the organization"
        )
    if current.provider is None and body.requires_second_factor and not current.has_second_factor:
        raise conflict("second_factor_missing", "first set up your own second factor")
    row = policy_of(context.session, context.organization_id)
    row.accepts_passwords = body.accepts_passwords
    row.requires_second_factor = body.requires_second_factor
    set_policy(context.session, row)
    subject = Subject("organization", context.organization_id)
    context.note(Event("sign_in_policy.change", subject, describe_policy(row)))
    return _policy_reply(row)


def describe_factor(row: SecondFactor, user: User) -> messages.SecondFactorBeginReply:
    """Return what the user's authenticator program needs."""
    uri = codes.uri_of(row, user)
    return messages.SecondFactorBeginReply(
        secret=codes.readable_secret(row.secret), uri=uri, qr_code=codes.qr_code(uri)
    )


def wrong_code() -> Refusal:
    return forbidden("wrong_code", "the code is wrong or was used before: enter the next one")


def _already_set_up() -> Refusal:
    return conflict("already_set_up", "you have a second factor: remove it first")


def _policy_reply(row: SignInPolicy) -> messages.SignInPolicyReply:
    return record_of(messages.SignInPolicyReply, row)


def _user(context: RequestContext) -> User:
    return context.session.get_one(User, context.caller.session_user_id)
