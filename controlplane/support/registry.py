"""The four operations of support, each a row."""

from typing import Final

from controlplane.operation.operation import Area, procedure
from controlplane.support import operations, routes
from controlplane.support.messages import ConfirmRequest, Contact, Inspection, Link, TokenRequest

_ENDING: Final = frozenset({"manager_required", "token_not_found", "token_expired"})

SUPPORT: Final = Area(
    "support",
    "How support is reached, and what of its channels is linked with an organization.",
    (
        procedure(routes.CONTACT, None, Contact, operations.contact),
        procedure(
            routes.INSPECT,
            TokenRequest,
            Inspection,
            operations.inspect,
            refusals={"token_not_found"},
        ),
        procedure(
            routes.CONFIRM,
            ConfirmRequest,
            Link,
            operations.confirm,
            writes=True,
            judges_role=True,
            refusals=_ENDING | {"token_used"},
        ),
        procedure(
            routes.DISCONNECT,
            TokenRequest,
            Link,
            operations.disconnect,
            writes=True,
            judges_role=True,
            refusals=_ENDING,
        ),
    ),
)
