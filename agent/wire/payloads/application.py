"""The application snapshot (contract: Version-1 payload)."""

from typing import Annotated, Any, Literal, Self, TypeVar, get_args

from pydantic import ConfigDict, Discriminator, Tag, ValidationError, model_validator
from pydantic_core import InitErrorDetails

from agent.wire import limits
from agent.wire.base import (
    Absent,
    Array,
    Exact,
    LiteralOne,
    MaxItems,
    Number,
    is_equal_but_other_type,
    value_kind,
)
from agent.wire.payloads.common import Payload
from agent.wire.text import PayloadText, Utf16Length
from agent.wire.vocabulary import BrowserFieldKey, FieldStatus, PeripheralKind

Text = TypeVar("Text")
Texts = TypeVar("Texts")

_TypeDiscriminator = Discriminator(
    value_kind,
    custom_error_type="value_type",
    custom_error_message="must be a text, a number, true or false, or a list of texts",
)

Value = Annotated[
    Annotated[Text, Tag("text")]
    | Annotated[bool, Tag("flag")]
    | Annotated[Number, Tag("number")]
    | Annotated[Texts, Tag("list")],
    _TypeDiscriminator,
]
"""The value of a fact. ``Text`` and ``Texts`` are the types of a text and of a list of texts, with
the limits of the field."""
FieldValue = Value[PayloadText, Array[PayloadText]]


class SnapshotField(Exact):
    """One fact, or the reason why it is missing. ``source`` names where the fact was read."""

    key: PayloadText
    source: PayloadText
    status: FieldStatus
    value: Absent[FieldValue] = None
    reason: Absent[PayloadText] = None


class SnapshotInterface(Exact):
    id: PayloadText
    fields: Array[SnapshotField]


class Peripheral(Exact):
    id: PayloadText
    fields: Array[SnapshotField]
    kind: PeripheralKind


class Snapshot(Exact):
    """The facts of an application report.

    ``truncated`` is True if a list was cut. ``limitations`` repeats those of `ApplicationPayload`.
    """

    version: LiteralOne
    collected_at: PayloadText
    duration_ms: Number
    fields: Array[SnapshotField]
    interfaces: Array[SnapshotInterface]
    peripherals: Array[Peripheral]
    limitations: Array[PayloadText]
    truncated: bool


BrowserSource = Annotated[str, Utf16Length(limits.BROWSER_SOURCE_MAX, 1)]
BrowserText = Annotated[str, Utf16Length(limits.BROWSER_STRING_MAX)]
BrowserReason = Annotated[str, Utf16Length(limits.BROWSER_REASON_MAX, 1)]
BrowserTexts = Annotated[tuple[BrowserText, ...], MaxItems(limits.BROWSER_ARRAY_MAX)]
BrowserValue = Value[BrowserText, BrowserTexts]


def _describe_alternatives(schema: dict[str, Any]) -> None:
    """Describe `BrowserField` in a JSON Schema as two alternatives: with a value or a reason."""
    fields = schema.pop("properties")
    required_names = [name for name in fields if name not in {"value", "reason"}]
    statuses = [status for status in get_args(FieldStatus) if status != "available"]
    shapes = (("value", {"const": "available"}), ("reason", {"enum": statuses}))
    closed_schema = {
        "type": schema.pop("type"),
        "additionalProperties": schema.pop("additionalProperties"),
    }
    del schema["required"]
    schema["oneOf"] = [
        {
            "properties": {name: fields[name] for name in (*required_names, key)}
            | {"status": status},
            "required": [*required_names, key],
            **closed_schema,
        }
        for key, status in shapes
    ]


class BrowserField(Exact):
    """A fact of a browser. It has a value if its status is ``available``, otherwise a reason."""

    model_config = ConfigDict(json_schema_extra=_describe_alternatives)

    key: BrowserFieldKey
    source: BrowserSource
    status: FieldStatus
    value: Absent[BrowserValue] = None
    reason: Absent[BrowserReason] = None

    @model_validator(mode="after")
    def _require_value_or_reason(self) -> Self:
        required, forbidden = (
            ("value", "reason") if self.status == "available" else ("reason", "value")
        )
        if getattr(self, required) is None:
            raise ValueError(f"`{required}` is required if the status is {self.status}")
        if getattr(self, forbidden) is not None:
            raise ValueError(f"`{forbidden}` is not allowed if the status is {self.status}")
        return self


class ApplicationPayload(Payload):
    version: Literal[1]
    report_type: Literal["application"]
    snapshot: Snapshot
    browser_fields: Annotated[tuple[BrowserField, ...], MaxItems(limits.BROWSER_FIELDS_MAX)]

    @model_validator(mode="before")
    @classmethod
    def _check_version(cls, value: Any) -> Any:
        # pydantic accepts true for ``Literal[1]``. This check is not a validator of the field
        # ``version``: pydantic permits no "before" validator on the discriminator of a union.
        if isinstance(value, dict) and is_equal_but_other_type(version := value.get("version"), 1):
            error = InitErrorDetails(
                type="literal_error", loc=("version",), input=version, ctx={"expected": "1"}
            )
            raise ValidationError.from_exception_data(cls.__name__, [error])
        return value
