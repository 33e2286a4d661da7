"""Messages of the operations for the second factor, and for the sign-in policy."""

from typing import Annotated

from pydantic import StringConstraints

from agent.wire.base import Array, Exact, Tolerant
from controlplane.accounts.second_factor.codes import CODE_MAX
from controlplane.operation.storable_text import STORABLE

Code = Annotated[str, StringConstraints(min_length=1, max_length=CODE_MAX), *STORABLE]


class SecondFactorReply(Tolerant):
    """``is_required`` is whether an organization of the user requires a second factor."""

    is_set_up: bool
    is_required: bool
    recovery_codes_left: int


class SecondFactorBeginReply(Tolerant):
    """A new secret. ``qr_code`` is a data URL with the QR code of ``uri`` as SVG."""

    secret: str
    uri: str
    qr_code: str


class SecondFactorCodeRequest(Exact):
    """``code`` is a one-time password. To remove the factor, a recovery code is accepted too."""

    code: Code


class RecoveryCodesReply(Tolerant):
    """The codes are not stored and not shown again."""

    recovery_codes: Array[str]


class SecondFactorRemoveReply(Tolerant):
    removed: bool


class SignInPolicyRequest(Exact):
    accepts_passwords: bool
    requires_second_factor: bool


class SignInPolicyReply(Tolerant):
    accepts_passwords: bool
    requires_second_factor: bool
