"""The operations of the retail API, except those that issue tokens."""

from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Final

from agent.wire.base import Model
from controlplane.operation.context import RequestContext
from controlplane.operation.operation import Procedure, procedure
from controlplane.retail import catalog, models, routes, sales, structure


def _read(
    path: str,
    parameters: type[Model],
    reply: type[Model],
    run: Callable[[RequestContext, Any], Model],
) -> Procedure:
    return procedure(path, parameters, reply, run, method="GET", name=run.__name__)


OPERATIONS: Final[tuple[Procedure, ...]] = (
    _read(routes.GOODS, models.PageQuery, models.GoodPage, catalog.goods),
    procedure(
        routes.GOODS,
        models.GivenGood,
        models.Good,
        catalog.create_good,
        name=catalog.create_good.__name__,
        status=HTTPStatus.CREATED,
        writes=True,
    ),
    _read(routes.GOOD, models.GoodQuery, models.Good, catalog.good),
    _read(routes.CATEGORIES, models.PageQuery, models.CategoryPage, catalog.categories),
    _read(routes.UOMS, models.PageQuery, models.UomPage, catalog.uoms),
    _read(routes.FEES, models.PageQuery, models.FeePage, catalog.fees),
    _read(routes.SALES, models.SalesQuery, models.SalePage, sales.sales),
    _read(routes.SALE, models.SaleQuery, models.Sale, sales.sale),
    _read(routes.EMPLOYEES, models.PageQuery, models.EmployeePage, structure.employees),
    _read(
        routes.POINTS_OF_SALE, models.PageQuery, models.PointOfSalePage, structure.points_of_sale
    ),
)
