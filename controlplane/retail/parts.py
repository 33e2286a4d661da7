"""The refusal and the conversion that goods and sales share."""

from http import HTTPStatus

from controlplane.operation.errors import Refusal

MILLI = 1000


def not_found() -> Refusal:
    return Refusal(HTTPStatus.NOT_FOUND, "not_found", "there is no record with this id")


def percentage(milli: int | None) -> float | None:
    """Return a percentage from thousandths of a percent."""
    return None if milli is None else milli / MILLI
