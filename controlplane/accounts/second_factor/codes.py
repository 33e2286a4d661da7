"""One-time passwords (TOTP, RFC 6238) and recovery codes.

A one-time password is accepted once: in its time step of 30 s, in the step before, or in the step
after. A recovery code replaces a one-time password once. Only the hash of a recovery code is
stored.
"""

import re
import secrets
from base64 import b32encode
from datetime import datetime
from typing import Final
from uuid import UUID

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from controlplane.operation.permissions import hash_secret
from controlplane.storage.account_tables import RecoveryCode, SecondFactor, User
from controlplane.storage.statements import change_rows

STEP_S: Final = 30
STEPS_AROUND: Final = 1
"""A code is also accepted this many steps before and after its own step, because clocks differ
(RFC 6238, 5.2).
"""
DIGITS: Final = 6
ISSUER: Final = "Venue control"
RECOVERY_CODES: Final = 10
RECOVERY_BYTES: Final = 10
"""80 random bits. They cannot be guessed, so a hash without salt is enough."""
CODE_MAX: Final = 64
"""Maximum length of the text that a user enters as a code."""
_SEPARATORS: Final = re.compile(r"[\s-]")


def begin(session: Session, user_id: UUID, now: datetime) -> SecondFactor:
    """Store a new secret that is not confirmed yet. A factor in use must be removed first."""
    import pyotp

    row = session.get(SecondFactor, user_id, with_for_update=True)
    if row is None:
        row = SecondFactor(user_id=user_id, is_confirmed=False)
        session.add(row)
    assert not row.is_confirmed  # noqa: S101 - checked by the callers
    row.secret, row.last_step, row.created_at = pyotp.random_base32(), 0, now
    session.flush()
    return row


def has_factor(session: Session, user_id: UUID) -> bool:
    row = session.get(SecondFactor, user_id)
    return row is not None and row.is_confirmed


def confirm(session: Session, user_id: UUID, code: str, now: datetime) -> tuple[str, ...] | None:
    """Confirm a new secret with its first code. Return recovery codes, or None for a wrong code."""
    row = session.get(SecondFactor, user_id, with_for_update=True, populate_existing=True)
    if row is None or row.is_confirmed or not _accept_one_time_password(row, code, now):
        return None
    row.is_confirmed = True
    return new_recovery_codes(session, user_id)


def verify(session: Session, user_id: UUID, code: str, now: datetime) -> str | None:
    """Use up a one-time password or a recovery code.

    Returns the kind of the code, or None if the code is wrong or was used before.
    """
    row = session.get(SecondFactor, user_id, with_for_update=True, populate_existing=True)
    if row is None or not row.is_confirmed:
        return None
    if _accept_one_time_password(row, code, now):
        return "one-time password"
    statement = delete(RecoveryCode).where(
        RecoveryCode.user_id == user_id, RecoveryCode.code_hash == _hash(user_id, code)
    )
    return "recovery code" if change_rows(session, statement) else None


def new_recovery_codes(session: Session, user_id: UUID) -> tuple[str, ...]:
    """Replace the recovery codes of the user. Only their hashes are stored."""
    session.execute(delete(RecoveryCode).where(RecoveryCode.user_id == user_id))
    codes = tuple(_recovery_code() for _ in range(RECOVERY_CODES))
    session.add_all(RecoveryCode(code_hash=_hash(user_id, each), user_id=user_id) for each in codes)
    return codes


def count_recovery_codes(session: Session, user_id: UUID) -> int:
    query = select(func.count()).select_from(RecoveryCode).where(RecoveryCode.user_id == user_id)
    return session.scalars(query).one()


def remove(session: Session, user_id: UUID) -> bool:
    """Remove the factor and its recovery codes. Returns False if the user has none."""
    session.execute(delete(RecoveryCode).where(RecoveryCode.user_id == user_id))
    statement = delete(SecondFactor).where(SecondFactor.user_id == user_id)
    return bool(change_rows(session, statement))


def uri_of(row: SecondFactor, user: User) -> str:
    """Return the ``otpauth`` URI, with which an authenticator program is set up."""
    import pyotp

    return str(pyotp.TOTP(row.secret).provisioning_uri(name=user.email, issuer_name=ISSUER))


def qr_code(uri: str) -> str:
    """Return a data URL with the QR code as SVG, dark on white in every color scheme."""
    import segno

    return str(segno.make(uri, error="m").svg_data_uri(scale=4, border=4, light="#fff"))


def readable_secret(secret: str) -> str:
    """Return the secret in groups of four characters, for typing."""
    return " ".join(_in_fours(secret))


def _accept_one_time_password(row: SecondFactor, code: str, now: datetime) -> bool:
    """Accept a one-time password whose step is later than that of the last accepted password.

    Returns whether the password was accepted. The step of an accepted password is stored.
    """
    import pyotp

    digits = _SEPARATORS.sub("", code)
    if len(digits) != DIGITS or not digits.isascii() or not digits.isdecimal():
        return False
    totp, current_step = pyotp.TOTP(row.secret), int(now.timestamp()) // STEP_S
    for step in range(current_step - STEPS_AROUND, current_step + STEPS_AROUND + 1):
        if secrets.compare_digest(totp.generate_otp(step), digits) and step > row.last_step:
            row.last_step = step
            return True
    return False


def _recovery_code() -> str:
    text = b32encode(secrets.token_bytes(RECOVERY_BYTES)).decode().lower()
    return "-".join(_in_fours(text))


def _in_fours(text: str) -> list[str]:
    return [text[first : first + 4] for first in range(0, len(text), 4)]


def _hash(user_id: UUID, code: str) -> str:
    return hash_secret(f"{user_id}:{_SEPARATORS.sub('', code).lower()}")
