"""Refusals of the retail API."""

from http import HTTPStatus
from typing import Final

from controlplane.operation.errors import Refusal

DUPLICATE_EXTERNAL_ID: Final = "duplicate_external_data_id"


def not_found() -> Refusal:
    return Refusal(HTTPStatus.NOT_FOUND, "not_found", "there is no such thing")


def existing_external_id(external_id: str) -> Refusal:
    return Refusal(
        HTTPStatus.CONFLICT,
        "existing_entity_conflict",
        f"another category, good or variation has the external_data.id {external_id}",
        reason=DUPLICATE_EXTERNAL_ID,
    )
