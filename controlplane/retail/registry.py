"""The operations of the retail API."""

from functools import partial
from http import HTTPStatus
from typing import Final

from controlplane.operation.operation import Area, Operation, procedure
from controlplane.retail import catalog, routes, sales, structure
from controlplane.retail.models import RefreshRequest, TokenRequest, Tokens

_get = partial(procedure, method="GET")
_issuing = partial(Operation, reply=Tokens, writes=False, is_public=True)

TOKENS_CREATE: Final = _issuing(
    name="tokens.create",
    path=routes.TOKENS,
    body=TokenRequest,
    description="Return an access token for an API key.",
)
TOKENS_REFRESH: Final = _issuing(
    name="tokens.refresh",
    path=routes.REFRESH,
    body=RefreshRequest,
    description="Return new tokens for a refresh token. A refresh token can be used once.",
)
OPERATIONS: Final = (
    _get(routes.GOODS, catalog.goods, name="goods"),
    procedure(
        routes.GOODS,
        catalog.create_good,
        name="create_good",
        status=HTTPStatus.CREATED,
        writes=True,
        refusals={"not_found", "existing_entity_conflict"},
    ),
    _get(routes.GOOD, catalog.good, name="good", refusals={"not_found"}),
    _get(routes.CATEGORIES, catalog.categories),
    _get(routes.UOMS, catalog.uoms),
    _get(routes.FEES, catalog.fees),
    _get(routes.SALES, sales.sales),
    _get(routes.SALE, sales.sale, name="sale", refusals={"not_found"}),
    _get(routes.EMPLOYEES, structure.employees),
    _get(routes.POINTS_OF_SALE, structure.points_of_sale, name="points_of_sale"),
)
"""All operations except the two operations that issue tokens."""
RETAIL: Final = Area("", "", (TOKENS_CREATE, TOKENS_REFRESH, *OPERATIONS))
