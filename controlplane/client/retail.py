"""A typed client of the retail API (contract: retail public API).

The client exchanges the API key for an access token, and renews the token before it expires. After
a 503, it repeats only reads: a repeated creation of a good could create two goods.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final, Self, TypeVar
from urllib.parse import quote
from uuid import UUID

import httpx2

from agent.wire.base import Model
from agent.wire.codec import encode
from controlplane.client.calls import HEADERS, Reply, ServiceCalls
from controlplane.client.connection import RETAIL_KEY, http_client, read_key, service_url
from controlplane.client.errors import CommandError
from controlplane.client.refusals import UnauthenticatedError
from controlplane.client.waiting import RetryPolicy
from controlplane.retail import models, routes

RENEWED_BEFORE_S: Final = 60
"""A token is renewed this many seconds before its expiry, so that it does not expire during a call.
"""

Entry = TypeVar("Entry", bound=Model)


def connect(
    base_url: str | None = None,
    key_file: str | None = None,
    environment: Mapping[str, str] = os.environ,
    retry_policy: RetryPolicy | None = None,
) -> "RetailClient":
    """Return a client of a service.

    The address and the key default to ``VENUE_CONTROL_URL`` and ``VENUE_CONTROL_RETAIL_KEY``.

    Raises:
        UsageError: there is no key, the key or the address is not valid, or the key would be sent
            unencrypted.
    """
    url = service_url(base_url, environment)
    return RetailClient(url, read_key(key_file, environment, RETAIL_KEY), retry_policy=retry_policy)


class RetailClient(ServiceCalls):
    """A client of the retail API. Several threads must not use it at once.

    ``base_url`` may end in ``/api/v1``. Refused calls raise the errors of
    `controlplane.client.refusals`.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str,
        *,
        retry_policy: RetryPolicy | None = None,
        monotonic: Callable[[], float] = time.monotonic,
        transport: httpx2.BaseTransport | None = None,
    ) -> None:
        url = base_url.rstrip("/").removesuffix(routes.BASE)
        http = http_client(url, HEADERS, transport)
        super().__init__(http, retry_policy, list_command="retail keys list")
        self._api_key = api_key
        self._monotonic = monotonic
        self._tokens: models.Tokens | None = None
        self._renew_at_s = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._http.close()

    # ------------------------------------------------------------------ catalog

    def good(self, good_id: UUID) -> models.Good:
        return self._get(routes.GOOD.format(good_id=good_id), models.Good)

    def create_good(self, good: models.GivenGood) -> models.Good:
        """Create a good.

        The call is repeated only after 401 and 429. After other failures, the good may exist.
        """
        return self._call_with_token("POST", routes.GOODS, models.Good, content=encode(good))

    def goods(self) -> Iterator[models.Good]:
        return self._entries(routes.GOODS, models.GoodPage)

    def categories(self) -> Iterator[models.Category]:
        return self._entries(routes.CATEGORIES, models.CategoryPage)

    def uoms(self) -> Iterator[models.Uom]:
        return self._entries(routes.UOMS, models.UomPage)

    def fees(self) -> Iterator[models.FeeItem]:
        return self._entries(routes.FEES, models.FeePage)

    # ------------------------------------------------------------------ sales

    def sales(
        self,
        *,
        sort: models.SaleOrder = "initiated_at_desc",
        initiated_from: datetime | None = None,
        initiated_to: datetime | None = None,
    ) -> Iterator[models.Sale]:
        """Yield the completed sales. A page is fetched when needed. Both bounds are inclusive."""
        limits = {"initiated_at_from": initiated_from, "initiated_at_to": initiated_to}
        bounds = {name: bound.isoformat() for name, bound in limits.items() if bound is not None}
        parameters = {"status": "completed", "sort": sort, **bounds}
        return self._entries(routes.SALES, models.SalePage, parameters)

    def sale(self, sale_id: str) -> models.Sale:
        return self._get(routes.SALE.format(sale_id=quote(sale_id, safe="")), models.Sale)

    # ------------------------------------------------------------------ structure

    def points_of_sale(self) -> Iterator[models.PointOfSale]:
        return self._entries(routes.POINTS_OF_SALE, models.PointOfSalePage)

    def employees(self) -> Iterator[models.Employee]:
        return self._entries(routes.EMPLOYEES, models.EmployeePage)

    # ------------------------------------------------------------------ calls

    def _entries(
        self, path: str, kind: type[models.Page[Entry]], parameters: Mapping[str, str] | None = None
    ) -> Iterator[Entry]:
        """Yield the entries of all pages."""
        query = dict(parameters or {})
        while True:
            page = self._get(path, kind, query)
            yield from page.items
            if page.cursor is None:
                return
            query["cursor"] = page.cursor

    def _get(
        self, path: str, kind: type[Reply], parameters: Mapping[str, str] | None = None
    ) -> Reply:
        return self._call_with_token("GET", path, kind, params=parameters)

    def _call_with_token(self, method: str, path: str, kind: type[Reply], **request: Any) -> Reply:
        """Return the reply of a call with an access token."""

        def call() -> Reply:
            headers = {"Authorization": f"Bearer {self._access_token()}"}
            is_repeatable = method == "GET"
            return self.call(
                method, path, kind, is_repeatable=is_repeatable, headers=headers, **request
            )

        try:
            return call()
        except UnauthenticatedError:
            # The service refused the call before it did anything. Repeat it with a new token.
            self._renew_at_s = 0.0
            return call()

    def _access_token(self) -> str:
        """Return an access token that is valid for at least `RENEWED_BEFORE_S`."""
        if self._tokens is not None and self._monotonic() < self._renew_at_s:
            return self._tokens.access_token
        requested_at_s = self._monotonic()
        exchange = models.TokenRequest(api_key=self._api_key)
        self._tokens = self._renew_tokens() or self._issue(routes.TOKENS, exchange)
        self._renew_at_s = requested_at_s + self._tokens.expires_in - RENEWED_BEFORE_S
        return self._tokens.access_token

    def _renew_tokens(self) -> models.Tokens | None:
        if self._tokens is None:
            return None
        body = models.RefreshRequest(refresh_token=self._tokens.refresh_token)
        # Never send a refresh token twice, even if the reply is lost: the service treats a second
        # use as theft and revokes all tokens of its family.
        self._tokens = None
        try:
            return self._issue(routes.REFRESH, body)
        except CommandError:
            return None

    def _issue(self, path: str, body: Model) -> models.Tokens:
        return self.call("POST", path, models.Tokens, is_repeatable=False, content=encode(body))
