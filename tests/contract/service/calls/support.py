"""Calls of the four operations of support: contact, inspect, confirm and disconnect.

Unknown, used and expired tokens are refused.
"""

from typing import Final

from controlplane.support import routes
from controlplane.support.channels import set_channel
from controlplane.support.links import TOKEN_LIFE, make_link
from tests.contract.service.calls.recorder import OTHER, Json, Recorder

HOME: Final = "org-0001"
UNKNOWN: Final[Json] = {"token": "A" * 43}


async def record(kept: Recorder) -> None:
    for kind, address, hours in (
        ("telegram", "@venue", None),
        ("phone", "+971 4 123 4567", "Mon-Fri 9-18"),
    ):
        _add_channel(kept, kind, address, hours)
    requests = {"token": _token(kept)}
    confirmed = requests | {"organizationId": HOME}
    await kept.call("POST", routes.INSPECT, sent=requests)
    await kept.call("POST", routes.CONFIRM, sent=confirmed)
    await kept.call("POST", routes.CONTACT)
    kept.service.clock.advance(60)
    await kept.call("POST", routes.DISCONNECT, sent=requests)
    foreign = requests | {"organizationId": OTHER}
    await kept.call("POST", routes.CONFIRM, sent=foreign, of="403 manager_required")
    await kept.call("POST", routes.INSPECT, sent=UNKNOWN, of="404 token_not_found")
    await kept.call("POST", routes.CONFIRM, sent=confirmed, of="409 token_used")
    late = {"token": _token(kept), "organizationId": HOME}
    kept.service.clock.advance(TOKEN_LIFE.total_seconds())
    await kept.call("POST", routes.CONFIRM, sent=late, of="409 token_expired")


def _add_channel(kept: Recorder, kind: str, address: str, hours: str | None) -> None:
    assert kept.service.database.write(
        lambda session: set_channel(session, kind=kind, address=address, hours=hours)
    )


def _token(kept: Recorder) -> str:
    now = kept.service.clock()
    return kept.service.database.write(
        lambda session: make_link(session, channel="telegram @venue", requested_by="Ada", now=now)
    ).token
