"""Every operation of the retail API but for the two of tokens, which need none."""

from http import HTTPStatus
from typing import Any, Final

from controlplane.retail import catalog, models, routes, sales, structure
from controlplane.retail.operation import RetailOperation

OPERATIONS: Final[tuple[RetailOperation[Any], ...]] = (
    RetailOperation("GET", routes.GOODS, models.PageQuery, models.GoodPage, catalog.goods),
    RetailOperation(
        "POST",
        routes.GOODS,
        models.GivenGood,
        models.Good,
        catalog.create_good,
        HTTPStatus.CREATED,
    ),
    RetailOperation("GET", routes.GOOD, models.GoodQuery, models.Good, catalog.good),
    RetailOperation(
        "GET", routes.CATEGORIES, models.PageQuery, models.CategoryPage, catalog.categories
    ),
    RetailOperation("GET", routes.UOMS, models.PageQuery, models.UomPage, catalog.uoms),
    RetailOperation("GET", routes.FEES, models.PageQuery, models.FeePage, catalog.fees),
    RetailOperation("GET", routes.SALES, models.SalesQuery, models.SalePage, sales.sales),
    RetailOperation("GET", routes.SALE, models.SaleQuery, models.Sale, sales.sale),
    RetailOperation(
        "GET", routes.EMPLOYEES, models.PageQuery, models.EmployeePage, structure.employees
    ),
    RetailOperation(
        "GET",
        routes.POINTS_OF_SALE,
        models.PageQuery,
        models.PointOfSalePage,
        structure.points_of_sale,
    ),
)
