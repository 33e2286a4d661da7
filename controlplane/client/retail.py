"""A typed client of the retail API (contract: retail public API).

It exchanges the API key for an access token, gets a new one before that runs out, and waits and
asks again where the service says so: for reads, as creating a good twice would create two.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from types import TracebackType
from typing import Any, Final, Self, TypeVar
from urllib.parse import quote
from uuid import UUID

import httpx2

from agent.presentation.plain_text import plain
from agent.wire.addresses import is_loopback_url
from agent.wire.base import Model
from agent.wire.codec import decode, encode
from agent.wire.validation import ValidationError
from controlplane.client.connection import RETAIL_KEY, address, read_key
from controlplane.client.errors import CommandError
from controlplane.client.refusals import (
    UnauthenticatedError,
    UnexpectedReplyError,
    UnreachableError,
    refusal,
)
from controlplane.client.waiting import Patience
from controlplane.retail import routes
from controlplane.retail.models import (
    Category,
    CategoryPage,
    Employee,
    EmployeePage,
    FeeItem,
    FeePage,
    GivenGood,
    Good,
    GoodPage,
    PointOfSale,
    PointOfSalePage,
    RefreshRequest,
    Sale,
    SaleOrder,
    SalePage,
    TokenRequest,
    Tokens,
    Uom,
    UomPage,
)

TIMEOUT_S: Final = 20
RENEWED_BEFORE_S: Final = 60
"""A token is renewed so long before it runs out, so that none does on its way."""

Reply = TypeVar("Reply", bound=Model)
Page = TypeVar(
    "Page", SalePage, GoodPage, CategoryPage, EmployeePage, PointOfSalePage, UomPage, FeePage
)


def connect(
    base_url: str | None = None,
    key_file: str | None = None,
    environment: Mapping[str, str] = os.environ,
    patience: Patience | None = None,
) -> "RetailClient":
    """Return a client of the service and with the key that are given, else that are set.

    By ``VENUE_CONTROL_URL`` and ``VENUE_CONTROL_RETAIL_KEY``. Raises UsageError where there is no
    key, or where it would travel in the clear.
    """
    url = address(base_url, environment)
    return RetailClient(url, read_key(key_file, environment, RETAIL_KEY), patience=patience)


class RetailClient:
    """Not for several threads at once. ``base_url`` may end in ``/api/v1``.

    Calls raise `CommandError`, by kind of refusal one of `controlplane.client.refusals`.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str,
        *,
        patience: Patience | None = None,
        monotonic: Callable[[], float] = time.monotonic,
        transport: httpx2.BaseTransport | None = None,
    ) -> None:
        self._api_key = api_key
        self._patience = patience or Patience()
        self._monotonic = monotonic
        self._tokens: Tokens | None = None
        self._renew_at_s = 0.0
        self._http = httpx2.Client(
            base_url=base_url.rstrip("/").removesuffix(routes.BASE),
            timeout=TIMEOUT_S,
            trust_env=not is_loopback_url(base_url),
            transport=transport,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    # ------------------------------------------------------------------ catalog

    def good(self, good_id: UUID) -> Good:
        return self._get(routes.GOOD.format(good_id=good_id), Good)

    def create_good(self, good: GivenGood) -> Good:
        """Create a good. Not tried again: whether it was created is not known then."""
        return self._send("POST", routes.GOODS, Good, content=encode(good))

    def goods(self) -> Iterator[Good]:
        return (good for page in self._pages(routes.GOODS, GoodPage) for good in page.items)

    def categories(self) -> Iterator[Category]:
        return (
            each for page in self._pages(routes.CATEGORIES, CategoryPage) for each in page.items
        )

    def uoms(self) -> Iterator[Uom]:
        return (each for page in self._pages(routes.UOMS, UomPage) for each in page.items)

    def fees(self) -> Iterator[FeeItem]:
        return (each for page in self._pages(routes.FEES, FeePage) for each in page.fee_items)

    # ------------------------------------------------------------------ sales

    def sales(
        self,
        *,
        sort: SaleOrder = "initiated_at_desc",
        initiated_from: datetime | None = None,
        initiated_to: datetime | None = None,
    ) -> Iterator[Sale]:
        """Yield completed sales, a page at a time. Both bounds are inclusive."""
        given = {"initiated_at_from": initiated_from, "initiated_at_to": initiated_to}
        bounds = {name: each.isoformat() for name, each in given.items() if each is not None}
        parameters = {"status": "completed", "sort": sort, **bounds}
        return (
            sale for page in self._pages(routes.SALES, SalePage, parameters) for sale in page.items
        )

    def sale(self, sale_id: str) -> Sale:
        return self._get(routes.SALE.format(sale_id=quote(sale_id, safe="")), Sale)

    # ------------------------------------------------------------------ structure

    def points_of_sale(self) -> Iterator[PointOfSale]:
        pages = self._pages(routes.POINTS_OF_SALE, PointOfSalePage)
        return (each for page in pages for each in page.items)

    def employees(self) -> Iterator[Employee]:
        return (each for page in self._pages(routes.EMPLOYEES, EmployeePage) for each in page.items)

    # ------------------------------------------------------------------ the way there

    def _pages(
        self, path: str, kind: type[Page], parameters: dict[str, str] | None = None
    ) -> Iterator[Page]:
        given = dict(parameters or {})
        while True:
            page = self._get(path, kind, given)
            yield page
            if page.cursor is None:
                return
            given["cursor"] = page.cursor

    def _get(self, path: str, kind: type[Reply], parameters: dict[str, str] | None = None) -> Reply:
        return self._send("GET", path, kind, parameters=parameters)

    def _send(
        self,
        method: str,
        path: str,
        kind: type[Reply],
        *,
        parameters: dict[str, str] | None = None,
        content: bytes | None = None,
    ) -> Reply:
        try:
            return self._call(
                method,
                path,
                kind,
                access_token=self._access(),
                parameters=parameters,
                content=content,
            )
        except UnauthenticatedError:
            # Refused before anything was done: a new token may do.
            self._renew_at_s = 0.0
            return self._call(
                method,
                path,
                kind,
                access_token=self._access(),
                parameters=parameters,
                content=content,
            )

    def _access(self) -> str:
        """Return an access token that is good for a while."""
        if self._tokens is not None and self._monotonic() < self._renew_at_s:
            return self._tokens.access_token
        asked_at_s = self._monotonic()
        self._tokens = self._renewed() or self._exchanged()
        self._renew_at_s = asked_at_s + self._tokens.expires_in - RENEWED_BEFORE_S
        return self._tokens.access_token

    def _renewed(self) -> Tokens | None:
        if self._tokens is None:
            return None
        body = encode(RefreshRequest(refresh_token=self._tokens.refresh_token))
        # Used or not, it is not sent again: a second use would end its whole family.
        self._tokens = None
        try:
            return self._call("POST", routes.REFRESH, Tokens, content=body)
        except CommandError:
            return None

    def _exchanged(self) -> Tokens:
        body = encode(TokenRequest(api_key=self._api_key))
        return self._call("POST", routes.TOKENS, Tokens, content=body)

    def _call(
        self,
        method: str,
        path: str,
        kind: type[Reply],
        *,
        access_token: str | None = None,
        parameters: dict[str, str] | None = None,
        content: bytes | None = None,
    ) -> Reply:
        headers = {"Accept": "application/json", "User-Agent": "venue-control"}
        if access_token is not None:
            headers["Authorization"] = f"Bearer {access_token}"
        if content is not None:
            headers["Content-Type"] = "application/json"
        waits = self._patience.waits(is_repeatable=method == "GET")
        while True:
            reply = self._answer(method, path, params=parameters, content=content, headers=headers)
            if reply.is_success:
                break
            if not waits.wait(reply.status_code, reply.headers.get("Retry-After")):
                raise refusal(reply.status_code, reply.content, "retail keys list")
        try:
            return decode(reply.content, kind)
        except ValidationError as error:
            where = self._http.base_url
            raise UnexpectedReplyError(
                f"the service's reply does not fit the contract: {error}",
                f"Is {where} the address of the service itself?",
            ) from error

    def _answer(self, method: str, path: str, **keywords: Any) -> httpx2.Response:
        try:
            return self._http.request(method, path, **keywords)
        except httpx2.HTTPError as error:
            said = plain(str(error)) or type(error).__name__
            raise UnreachableError(
                f"cannot reach {self._http.base_url}: {said}",
                "Is the service running? --base-url or $VENUE_CONTROL_URL says where it is.",
            ) from error
