"""Calls of the four operations of support: contact, inspect, confirm and disconnect.

Unknown, used and expired tokens are refused.
"""

from typing import Final

from controlplane.support import routes
from controlplane.support.channels import set_channel
from controlplane.support.links import TOKEN_LIFE, make_link
from tests.contract.service.calls.recorder import OTHER_ORGANIZATION, Json, Recorder

ORGANIZATION: Final = "org-0001"
UNKNOWN: Final[Json] = {"token": "A" * 43}


async def record(recorder: Recorder) -> None:
    for kind, address, hours in (
        ("telegram", "@venue", None),
        ("phone", "+971 4 123 4567", "Mon-Fri 9-18"),
    ):
        _add_channel(recorder, kind, address, hours)
    body = {"token": _token(recorder)}
    confirmed = body | {"organizationId": ORGANIZATION}
    await recorder.call("POST", routes.INSPECT, body=body)
    await recorder.call("POST", routes.CONFIRM, body=confirmed)
    await recorder.call("POST", routes.CONTACT)
    recorder.service.clock.advance(60)
    await recorder.call("POST", routes.DISCONNECT, body=body)
    foreign = body | {"organizationId": OTHER_ORGANIZATION}
    await recorder.call("POST", routes.CONFIRM, body=foreign, title="403 manager_required")
    await recorder.call("POST", routes.INSPECT, body=UNKNOWN, title="404 token_not_found")
    await recorder.call("POST", routes.CONFIRM, body=confirmed, title="409 token_used")
    expired = {"token": _token(recorder), "organizationId": ORGANIZATION}
    recorder.service.clock.advance(TOKEN_LIFE.total_seconds())
    await recorder.call("POST", routes.CONFIRM, body=expired, title="409 token_expired")


def _add_channel(recorder: Recorder, kind: str, address: str, hours: str | None) -> None:
    assert recorder.service.database.write(
        lambda session: set_channel(session, kind=kind, address=address, hours=hours)
    )


def _token(recorder: Recorder) -> str:
    now = recorder.service.clock()
    return recorder.service.database.write(
        lambda session: make_link(session, channel="telegram @venue", requested_by="Ada", now=now)
    ).token
