"""Messages of the operations for members, invitations and joining."""

from datetime import datetime
from typing import Annotated

from pydantic import Field, StringConstraints

from agent.wire.base import Array, Exact, Tolerant, Uuid
from controlplane.accounts.messages import Email, Locations, Password
from controlplane.operation.storable_text import NAME_MAX, STORABLE
from controlplane.storage.account_tables import Role

CODE_MAX = 64
"""Maximum length of the code of an invitation. A valid code has 43 characters."""


class MemberRecord(Tolerant):
    """``is_this`` is true for the caller. An empty ``locations`` means every location."""

    user_id: Uuid
    email: str
    name: str
    role: Role
    locations: Array[str]
    created_at: datetime
    is_this: bool


class InvitationRecord(Tolerant):
    id: Uuid
    email: str
    role: Role
    locations: Array[str]
    created_at: datetime
    expires_at: datetime


class MembersReply(Tolerant):
    members: Array[MemberRecord]
    invitations: Array[InvitationRecord]


class MemberChangeRequest(Exact):
    """An empty ``locations`` means every location."""

    user_id: Uuid
    role: Role
    locations: Locations


class MemberChangeReply(Tolerant):
    member: MemberRecord


class MemberRemoveRequest(Exact):
    user_id: Uuid


class MemberRemoveReply(Tolerant):
    removed: bool


class InviteRequest(Exact):
    """An empty ``locations`` means every location."""

    email: Annotated[Email, *STORABLE]
    role: Role
    locations: Locations


class InviteReply(Tolerant):
    """``path`` is the path of the invitation's link, with the code. No other reply contains it."""

    invitation: InvitationRecord
    path: str


class InvitationRevokeRequest(Exact):
    invitation_id: Uuid


class InvitationRequest(Exact):
    code: Annotated[str, StringConstraints(min_length=1, max_length=CODE_MAX)]


class InvitationReply(Tolerant):
    """``organization`` is the name of the organization, or its id if it has no name."""

    email: str
    organization: str
    role: Role


class JoinRequest(Exact):
    """``password`` is the account's password, or a new password if there is no account yet."""

    code: Annotated[str, StringConstraints(min_length=1, max_length=CODE_MAX)]
    name: Annotated[str, Field(max_length=NAME_MAX), *STORABLE]
    password: Password


class JoinReply(Tolerant):
    email: str
    organization_id: str


class PasswordChangeRequest(Exact):
    old_password: Password
    new_password: Password


class PasswordChangeReply(Tolerant):
    """``ended_sessions`` is the number of the user's other sessions, which were ended."""

    ended_sessions: int
