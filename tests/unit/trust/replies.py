"""What each field of the service's replies can cause on a device.

`capabilities.py` writes the rows of this module to tables of docs/capabilities.md. The accepted
values in these tables come from the models of the agent. `tests/scenario/trust` runs a daemon, and
checks the columns *files* and *calls*.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic import TypeAdapter

from agent.wire import device_operations as wire
from agent.wire.base import Tolerant

DEVICE, STATUS, DATABASE, LOG = "device.json", "status.json", "agent.db", "log"
ENROLL, HEARTBEAT, ACKNOWLEDGE, SUBMIT = "enroll", "heartbeat", "acknowledge", "submitResult"


@dataclass(frozen=True, slots=True)
class Effect:
    """What a field can cause.

    ``files`` are those to which the value of the field can be written. ``calls`` are the later
    calls that contain the value.
    """

    text: str
    files: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ReplyRow:
    """The replies of one operation, or of several with the same replies.

    Attributes:
        operation: the names of the operations, separated by commas.
        when: when the device calls them.
        effects: by the JSON names of the fields.
    """

    operation: str
    when: str
    model: type[Tolerant]
    effects: Mapping[str, Effect]


NOTHING: Final = Effect("none")
_REPORT_FILES: Final = (DATABASE, DEVICE, STATUS)

REPLIES: Final = (
    ReplyRow(
        "challenge",
        "when the device enrolls",
        wire.ChallengeReply,
        {
            "challengeId": Effect("returned unchanged, once", (), (ENROLL,)),
            "nonce": Effect(
                "signed with the device's key, which signs nothing else; only the signature is sent"
            ),
        },
    ),
    ReplyRow(
        "enroll, current",
        "`enroll` when the device enrolls; `current` when the daemon starts, and after a refusal",
        wire.EnrollmentRecord,
        {
            "instanceId": Effect("must be the device's own id, or the reply is not used"),
            "locationId": Effect(
                "shown in `venue-agent status` and in reports", _REPORT_FILES, (SUBMIT,)
            ),
            "legacyInstallId": Effect("stored only", (DEVICE,)),
            "appVersion": Effect(
                "if it is not the agent's version: one more enrollment at each start", (DEVICE,)
            ),
            "capabilities": Effect("stored only", (DEVICE,)),
            "bindingId": Effect(
                "only requests with this id are accepted",
                (DATABASE, DEVICE, LOG, STATUS),
                (ACKNOWLEDGE, HEARTBEAT, SUBMIT),
            ),
            "organizationId": Effect(
                "shown in `venue-agent status` and in reports", _REPORT_FILES, (SUBMIT,)
            ),
        },
    ),
    ReplyRow(
        "heartbeat",
        "every `heartbeat.interval_seconds`",
        wire.HeartbeatReply,
        {
            "lastSeenAt": Effect(
                "shown in `venue-agent status` and in application snapshots",
                (DATABASE, STATUS),
                (SUBMIT,),
            )
        },
    ),
    ReplyRow(
        "acknowledge",
        "when a request has arrived, and when its collection begins",
        wire.AcknowledgeReply,
        {"accepted": Effect("the request may run"), "status": NOTHING},
    ),
    ReplyRow(
        "submitResult",
        "when a report is finished",
        wire.SubmitResultReply,
        {
            "reportId": Effect("must be the id of the sent report, which then leaves the outbox"),
            "requestId": NOTHING,
            "outcome": Effect("one of three words in the log"),
            "trackerStatus": NOTHING,
        },
    ),
    ReplyRow(
        "onCommands",
        "always, as a stream; or every `commands.poll_interval_seconds`",
        wire.Command,
        {
            "version": NOTHING,
            "requestId": Effect(
                "identifies the request and its report", (DATABASE, LOG), (ACKNOWLEDGE, SUBMIT)
            ),
            "bindingId": Effect("must be the device's own binding, or the command is ignored"),
            "kind": Effect("which of the two reports is collected"),
            "expiresAt": Effect("the time after which the request does not start", (DATABASE,)),
            "status": Effect("whether an acknowledgement is sent again, at most once a minute"),
        },
    ),
)


def fields_of(model: type[Tolerant]) -> dict[str, dict[str, Any]]:
    """Return the JSON Schema of each field, by its JSON name."""
    schema = TypeAdapter(model).json_schema(by_alias=True)
    properties: dict[str, dict[str, Any]] = schema["properties"]
    return properties


def accepted_by(schema: Mapping[str, Any]) -> str:
    """Describe the values that a field of the agent's models accepts."""
    match schema:
        case {"anyOf": choices}:
            return " or ".join(map(accepted_by, choices))
        case {"enum": words}:
            text = ", ".join(f"`{word}`" for word in words)
        case {"const": constant}:
            text = f"`{str(constant).lower()}`"
        case {"type": "array"}:
            text = f"at most {schema['maxItems']} entries, each {accepted_by(schema['items'])}"
        case {"format": form}:
            text = {"uuid": "a UUID", "date-time": "a date and time"}[form]
        case {"type": "string", "maxLength": most}:
            text = f"text of {schema['minLength']} to {most} characters"
        case {"type": "string"}:
            text = "text"
        case _:
            text = str(schema["type"])
    return text
