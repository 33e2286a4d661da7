"""Limits failed sign-ins to ten in ten minutes, for each account and for each network.

An attempt counts as failed from its start, so that concurrent attempts are limited too. Attempts
for unknown accounts are also counted.
"""

import hashlib
import ipaddress
import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Final

from sqlalchemy import delete, select, text
from sqlalchemy.orm import Session

from controlplane.accounts.users import email_key
from controlplane.storage.account_tables import SignInFailure

FAILURES_MAX: Final = 10
WINDOW: Final = timedelta(minutes=10)
_LOCK: Final = 0x7369676E
"""Key of the advisory lock that serializes attempts on PostgreSQL: "sign" as ASCII bytes. SQLite
needs no lock, because it has only one writer at a time.
"""


@dataclass(frozen=True, slots=True)
class Attempt:
    """A sign-in attempt. If ``wait_s`` is above 0, the attempt is refused and not counted.

    ``wait_s`` is the time in seconds until a new attempt is permitted. ``account`` and ``network``
    are the hashes under which failures are stored. ``positions`` are the keys of the stored rows.
    """

    account: str
    network: str
    positions: tuple[int, ...] = ()
    wait_s: int = 0


def begin(session: Session, email: str, address: str, now: datetime) -> Attempt:
    """Count an attempt as failed, or refuse the attempt if too many have failed."""
    account = _subject("account", email_key(email))
    network = _subject("address", network_of(address))
    if session.get_bind().dialect.name == "postgresql":
        session.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
    session.execute(delete(SignInFailure).where(SignInFailure.failed_at <= now - WINDOW))
    wait_s = max(_wait_s(session, each, now) for each in (account, network))
    if wait_s:
        return Attempt(account, network, wait_s=wait_s)
    rows = [SignInFailure(subject=each, failed_at=now) for each in (account, network)]
    session.add_all(rows)
    session.flush()
    return Attempt(account, network, tuple(row.position for row in rows))


def succeed(session: Session, attempt: Attempt) -> None:
    """Delete the attempt, and all failures of the account.

    Failures of the network are kept. Otherwise an attacker could sign in with their own
    account to get further attempts at other accounts.
    """
    _delete(session, attempt.positions)
    session.execute(delete(SignInFailure).where(SignInFailure.subject == attempt.account))


def take_back(session: Session, attempt: Attempt) -> None:
    """Delete the attempt, and keep all earlier failures.

    This is for a correct password that must be followed by a one-time password. The earlier
    failures can be wrong one-time passwords, which would otherwise have no limit.
    """
    _delete(session, attempt.positions)


def _wait_s(session: Session, subject: str, now: datetime) -> int:
    query = (
        select(SignInFailure.failed_at)
        .where(SignInFailure.subject == subject, SignInFailure.failed_at > now - WINDOW)
        .order_by(SignInFailure.failed_at.desc())
        .limit(FAILURES_MAX)
    )
    failures = session.scalars(query).all()
    if len(failures) < FAILURES_MAX:
        return 0
    return max(1, math.ceil((failures[-1] + WINDOW - now).total_seconds()))


def _delete(session: Session, positions: Sequence[int]) -> None:
    session.execute(delete(SignInFailure).where(SignInFailure.position.in_(positions)))


def _subject(kind: str, value: str) -> str:
    return hashlib.sha256(f"{kind}:{value}".encode("utf-8", "surrogatepass")).hexdigest()


@lru_cache(maxsize=4096)
def network_of(address: str) -> str:
    """Return the IPv4 address of a client, or the /64 network of its IPv6 address."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return address
    if ip.version == 4:
        return str(ip)
    if ip.ipv4_mapped is not None:
        return str(ip.ipv4_mapped)
    return str(ipaddress.ip_network((ip, 64), strict=False))
