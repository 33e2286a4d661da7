"""Employees and points of sale of an organization."""

from sqlalchemy import select

from controlplane.operation.context import RequestContext
from controlplane.operation.records import record_of
from controlplane.retail import models as wire
from controlplane.retail.listing import page_of
from controlplane.storage.merchant.merchant_tables import Employee, Location, PointOfSale


def employees(context: RequestContext, parameters: wire.PageQuery) -> wire.EmployeePage:
    """Return a page of the employees of the organization."""
    rows, cursor = page_of(context, Employee, parameters.cursor)
    items = (record_of(wire.Employee, row) for row in rows)
    return wire.EmployeePage(cursor=cursor, items=tuple(items))


def points_of_sale(context: RequestContext, parameters: wire.PageQuery) -> wire.PointOfSalePage:
    """Return a page of the points of sale of the organization."""
    rows, cursor = page_of(context, PointOfSale, parameters.cursor)
    query = select(Location).where(Location.position.in_({row.location for row in rows}))
    locations = {row.position: row for row in context.session.scalars(query)}
    items = (
        wire.PointOfSale(
            id=row.id,
            name=row.name,
            location_id=locations[row.location].id,
            location_name=locations[row.location].name or locations[row.location].id,
        )
        for row in rows
    )
    return wire.PointOfSalePage(cursor=cursor, items=tuple(items))
