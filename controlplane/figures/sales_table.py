"""The table of sales that shopkeepers open in a spreadsheet: its rows and columns."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from controlplane.figures.money import format_amount


@dataclass(frozen=True, slots=True, kw_only=True)
class SaleRow:
    """A completed sale. Amounts are in minor units of ``currency``.

    ``number`` and ``ticket_number`` are on the receipt. Ticket numbers are short and repeat.
    ``initiated_at`` is in the local time of the location (console) or of this computer (command
    line). ``lines`` is the number of lines, or None if it is unknown what was sold. ``employee``
    and its id are None if no employee is recorded.
    """

    number: str
    ticket_number: str
    initiated_at: datetime
    location: str
    point_of_sale: str
    employee: str | None
    lines: int | None
    discount: int
    taxable_amount: int
    tax: int
    total: int
    currency: str
    comment: str | None
    id: str
    location_id: str
    point_of_sale_id: str
    employee_id: str | None

    def amount(self, minor_units: int) -> str:
        return format_amount(minor_units, self.currency)


SALE_COLUMNS: Final[Mapping[str, Callable[[SaleRow], str | int | None]]] = {
    "number": lambda row: row.number,
    "ticketNumber": lambda row: row.ticket_number,
    "initiatedAt": lambda row: row.initiated_at.isoformat(timespec="seconds"),
    "location": lambda row: row.location,
    "pointOfSale": lambda row: row.point_of_sale,
    "employee": lambda row: row.employee,
    "positions": lambda row: row.lines,
    "discount": lambda row: row.amount(row.discount),
    "taxableAmount": lambda row: row.amount(row.taxable_amount),
    "tax": lambda row: row.amount(row.tax),
    "total": lambda row: row.amount(row.total),
    "currency": lambda row: row.currency,
    "comment": lambda row: row.comment,
    "id": lambda row: row.id,
    "locationId": lambda row: row.location_id,
    "pointOfSaleId": lambda row: row.point_of_sale_id,
    "employeeId": lambda row: row.employee_id,
}
"""The columns by heading. Amounts have the decimals of their currency."""
