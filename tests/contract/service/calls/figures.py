"""The ten operations on figures, called for a merchant that is generated from a seed."""

from typing import Final

from controlplane.analytics import routes
from tests.contract.service.calls.recorder import NOT_LISTED, OTHER_ORGANIZATION, Json, Recorder

LOCATION: Final[Json] = {"locationId": "loc-0001"}
DAY: Final[Json] = LOCATION | {"period": "yesterday"}
WEEK: Final[Json] = LOCATION | {"period": "last7"}
DATES: Final[Json] = LOCATION | {"period": "custom", "from": "2026-11-02", "to": "2026-11-08"}
BACKWARDS: Final[Json] = DATES | {"to": "2026-11-01"}
REQUESTS: Final[tuple[tuple[str, Json], ...]] = (
    (routes.DASHBOARD, WEEK),
    (routes.FINANCIAL_SUMMARY, WEEK | {"locationMode": "all"}),
    (routes.VENUE_FINANCIAL_PULSE, LOCATION),
    (routes.CHART, DAY),
    (routes.SALES, DAY | {"paymentTypes": ["cash", "card"]}),
    (routes.ITEMS, DAY),
    (routes.RECONCILIATION, DAY),
    (routes.TREND, DATES),
    (routes.VENUES, DAY | {"locationMode": "all"}),
    (routes.VENUE_PULSE, LOCATION),
)
EMPTY: Final[Json] = LOCATION | {"period": "custom", "from": "1999-01-01", "to": "1999-01-02"}
LOCATIONS: Final = ("loc-0001", "loc-0002", "loc-0003")


async def record(recorder: Recorder) -> None:
    for path, request in REQUESTS:
        await recorder.call("POST", path, body=request)
    await recorder.call("POST", routes.DASHBOARD, body=BACKWARDS, title="400 for an invalid period")
    nowhere = {"locationId": "loc-none"}
    await recorder.call("POST", routes.DASHBOARD, body=nowhere, title="404 location_not_found")
    await _record_other_cases(recorder)


async def _record_other_cases(recorder: Recorder) -> None:
    """Make calls that the document does not show.

    They query every location of two organizations, one of which began its sales recently, and a
    period without sales.
    """
    key = recorder.service.make_key(organization_id=OTHER_ORGANIZATION)
    for secret in (None, key):
        for location in LOCATIONS:
            for path in (routes.FINANCIAL_SUMMARY, routes.VENUE_FINANCIAL_PULSE):
                body = {"locationId": location}
                await recorder.call("POST", path, body=body, secret=secret, title=NOT_LISTED)
    await recorder.call("POST", routes.FINANCIAL_SUMMARY, body=EMPTY, title=NOT_LISTED)
