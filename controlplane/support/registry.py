"""The four operations of support, each a row."""

from typing import Final

from controlplane.operation.operation import Area, procedure
from controlplane.support import operations, routes

_ENDING: Final = frozenset({"manager_needed", "token_not_found", "token_expired"})

SUPPORT: Final = Area(
    "support",
    "How support is reached, and what of its channels is linked with an organization.",
    (
        procedure(routes.CONTACT, operations.contact),
        procedure(routes.INSPECT, operations.inspect, refusals={"token_not_found"}),
        procedure(
            routes.CONFIRM,
            operations.confirm,
            writes=True,
            judges_role=True,
            refusals=_ENDING | {"token_used"},
        ),
        procedure(
            routes.DISCONNECT,
            operations.disconnect,
            writes=True,
            judges_role=True,
            refusals=_ENDING,
        ),
    ),
)
