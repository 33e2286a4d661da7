"""Converts rows of the database to records of the wire."""

from typing import Any, TypeVar

from agent.wire.base import Model

Record = TypeVar("Record", bound=Model)


def record_of(model: type[Record], row: object, **values: Any) -> Record:
    """Return a record whose fields are the attributes of the same name of a row.

    Args:
        values: fields that the row lacks, or whose values differ from those of the row.
    """
    names = model.model_fields.keys() - values.keys()
    return model(**{name: getattr(row, name) for name in names}, **values)
