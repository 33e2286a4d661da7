"""Converts rows of the database to records, which are the parts of replies."""

from typing import Any, Final, TypeVar

from agent.wire.base import Model

PRICE_MAX: Final = 2**63 - 1
"""Maximum price in all interfaces: the largest int64, which the retail API permits."""
Record = TypeVar("Record", bound=Model)


def record_of(model: type[Record], row: object, **values: Any) -> Record:
    """Return a record. Each field has the value of the row's attribute with the same name.

    Args:
        values: fields that the row lacks, or whose values differ from those of the row.
    """
    names = model.model_fields.keys() - values.keys()
    return model(**{name: getattr(row, name) for name in names}, **values)
