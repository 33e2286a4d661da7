"""business_context: the organization, the credential, the locations, and the period with sales."""

from collections.abc import Collection
from typing import Any, Final, Literal

from pydantic import Field
from sqlalchemy import Row, bindparam, func, select

from agent.wire.base import Array, Exact, Timestamp, Tolerant
from controlplane.agent_protocol.tools.tool import ToolContext, tool
from controlplane.analytics.query import visible_locations
from controlplane.figures.local_time import date_of
from controlplane.operation.records import record_of
from controlplane.storage.merchant.merchant_tables import Location, Organization
from controlplane.storage.merchant.rollup_tables import DayRollup


class BusinessContextArguments(Exact):
    """There are no arguments."""


class OrganizationContext(Tolerant):
    organization_id: str
    name: str | None


class Credential(Tolerant):
    kind: Literal["apiKey", "oauthToken"]
    read_only: bool
    all_locations: bool = Field(description="false: the credential is restricted to some locations")


class LocationContext(Tolerant):
    location_id: str
    name: str
    currency: str
    time_zone: str
    fell_back_to_utc: bool = Field(
        description="true: the location has no valid time zone, so days are in UTC"
    )
    local_time: str = Field(description="current local time")


class DataSpan(Tolerant):
    from_date: str
    to_date: str


class BusinessContext(Tolerant):
    organization: OrganizationContext
    role: str | None = Field(description="null: the credential is an API key that has no owner")
    credential: Credential
    locations: Array[LocationContext]
    now: Timestamp
    data_span: DataSpan | None = Field(description="first and last local day with sales or refunds")


def business_context(
    context: ToolContext, _arguments: BusinessContextArguments
) -> tuple[str, BusinessContext]:
    caller = context.caller
    locations = visible_locations(context)
    positions = [location.position for location in locations]
    rows = context.session.execute(_NAMES_AND_DAYS, {"positions": positions}).all()
    names = {row.position: row.name for row in rows}
    span = _span(rows)
    result = BusinessContext(
        organization=organization_of(context),
        role=caller.role,
        credential=Credential(
            kind="oauthToken" if caller.kind == "oauth" else "apiKey",
            read_only=not caller.can_write,
            all_locations=not caller.locations,
        ),
        locations=tuple(
            record_of(
                LocationContext,
                location,
                name=names[location.position],
                time_zone=location.clock.name,
                fell_back_to_utc=location.clock.fell_back,
                local_time=context.now.astimezone(location.clock.zone).isoformat(
                    timespec="minutes"
                ),
            )
            for location in locations
        ),
        now=context.now,
        data_span=span,
    )
    days = f"Sales from {span.from_date} to {span.to_date}" if span else "No sales yet"
    organization_name = result.organization.name or caller.organization_id
    return f"{organization_name}. Locations: {len(locations)}. {days}.", result


def organization_of(context: ToolContext) -> OrganizationContext:
    organization_id = context.caller.organization_id
    name = context.session.scalar(_ORGANIZATION_NAME, {"organization_id": organization_id})
    return OrganizationContext(organization_id=organization_id, name=name)


def _span(rows: Collection[Row[*tuple[Any, ...]]]) -> DataSpan | None:
    """Return the span of all locations. A location without sales has no days."""
    with_sales = [row for row in rows if row.first is not None]
    if not with_sales:
        return None
    first, last = min(row.first for row in with_sales), max(row.last for row in with_sales)
    return DataSpan(from_date=date_of(first).isoformat(), to_date=date_of(last).isoformat())


# Each statement is built once, because building it takes longer than executing it. It selects
# columns of tables, not of classes, because the ORM would take longer than the database.
_organizations: Final = Organization.__table__.c
_locations: Final = Location.__table__.c
_days: Final = DayRollup.__table__.c
_ORGANIZATION_NAME: Final = select(_organizations.name).where(
    _organizations.id == bindparam("organization_id")
)
_is_of_location: Final = _days.location == _locations.position
# Each location has its own two subqueries. For each subquery, the database reads one entry of the
# primary key's index. With GROUP BY over the locations, it would read all rows of each location.
_NAMES_AND_DAYS: Final = select(
    _locations.position,
    _locations.name,
    select(func.min(_days.day)).where(_is_of_location).scalar_subquery().label("first"),
    select(func.max(_days.day)).where(_is_of_location).scalar_subquery().label("last"),
).where(_locations.position.in_(bindparam("positions", expanding=True)))


BUSINESS_CONTEXT = tool(
    business_context,
    "Business context",
    "Your organization and credential, the locations that you have access to with their time zones"
    " and currencies, the current time, and the first and last day with sales. Call this tool"
    " first.",
)
