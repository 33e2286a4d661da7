"""An operation of the retail API: from a call to what it asks, and to the reply."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from typing import Any, Generic, Literal, TypeVar

from sqlalchemy.orm import Session

from agent.wire import codec
from agent.wire.base import Model
from agent.wire.validation import ValidationError
from controlplane.operation.bodies import refusal_of
from controlplane.operation.errors import Refusal, validation_error
from controlplane.operation.schemas import markdown
from controlplane.retail.cursors import Cursors

Asked = TypeVar("Asked", bound=Model)


@dataclass(frozen=True, slots=True)
class RetailContext:
    """``organization_id`` is the company, which the caller's token names and no parameter does."""

    session: Session
    organization_id: str
    now: datetime
    cursors: Cursors


@dataclass(frozen=True, slots=True)
class RetailOperation(Generic[Asked]):
    """``asked`` is the model of the body of a POST, of path and query of a GET; ``answered``
    that of the reply."""

    method: Literal["GET", "POST"]
    path: str
    asked: type[Asked]
    answered: type[Model]
    run: Callable[[RetailContext, Asked], Model]
    status: HTTPStatus = HTTPStatus.OK

    @property
    def name(self) -> str:
        """What the OpenAPI document calls it."""
        return self.run.__name__

    @property
    def description(self) -> str:
        return markdown(" ".join((inspect.getdoc(self.run) or "").split()))

    @property
    def writes(self) -> bool:
        return self.method == "POST"

    def read_parameters(self, path: Mapping[str, Any], query: Iterable[tuple[str, str]]) -> Asked:
        """Return the parameters as ``asked``. One that is named twice is a mistake."""
        values = dict(path)
        for name, value in query:
            if name in values:
                raise validation_error({name[:128]: ("must be given once",)}, _WRONG)
            values[name] = value
        try:
            return codec.validate(values, self.asked)
        except ValidationError as error:
            refusal = refusal_of(error.issues)
            raise validation_error(refusal.errors or {}, _WRONG) from None


_WRONG = "a parameter does not fit the contract"


def not_found() -> Refusal:
    return Refusal(HTTPStatus.NOT_FOUND, "not_found", "there is no such thing")


def existing_external_id(external_id: str) -> Refusal:
    return Refusal(
        HTTPStatus.CONFLICT,
        "existing_entity_conflict",
        f"another category, good or variation has the external_data.id {external_id}",
        reason="duplicate_external_data_id",
    )
