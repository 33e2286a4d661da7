"""Converts rows of the database to records of the wire."""

from typing import Any, TypeVar

from agent.wire.base import Model

Record = TypeVar("Record", bound=Model)


def record_of(model: type[Record], row: object, **values: Any) -> Record:
    """Return a record. Each field has the value of the row's attribute with the same name.

    Args:
        values: fields that the row lacks, or whose values differ from those of the row.
    """
    names = model.model_fields.keys() - values.keys()
    return model(**{name: getattr(row, name) for name in names}, **values)
