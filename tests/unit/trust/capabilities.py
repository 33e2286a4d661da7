"""Generates docs/capabilities.md: `make capabilities`.

The document lists everything that a service can cause on a device. The accepted values, the
statuses and the limits come from the code of the agent. The effects are texts here and in
`replies.py`: a new field, class of statuses or header needs a new text.
"""

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import Final

from agent.adapters import http_client, read_rate_limit, service_client
from agent.adapters.storage import journal, sent, state
from agent.config.model import LocalConfig
from agent.errors import ServiceError, ServiceUnavailable
from agent.rules import command_frames, replies, retry
from agent.tasks import acknowledge, receive
from collectors.contract import ApplicationJob, NetworkJob
from tests.paths import ROOT
from tests.unit.trust.replies import REPLIES, ReplyRow, accepted_by, fields_of

PATH: Final = ROOT / "docs" / "capabilities.md"
TEMPLATE: Final = ROOT / "tests" / "unit" / "trust" / "capabilities.md"
HEADERS: Final = {
    "content-encoding": "any value except `identity`: the reply is refused, not decompressed",
    "content-type": (
        "`text/event-stream` and NDJSON: a stream of commands. `text/html`: the reply is from a"
        " captive portal or a proxy"
    ),
    "date": (
        "its difference to the clock of this machine decides whether a request has expired. The"
        " agent does not change the clock"
    ),
    "location": "text in an error message. Redirects are not followed",
    "retry-after": "with 429 and 503: how long this operation waits (limits below)",
}
"""The effect of each header of a reply that the agent reads."""
EVENTS: Final = {
    "data": "an entry, like those in a reply of `onCommands` (above)",
    "event": "`error` and `done`: 200 characters of the data are logged. Other names: no effect",
    "retry": "the time over which reconnections are spread (limits below)",
    "id": "ignored",
}
"""The effect of each field of a server-sent event."""
EFFECTS_BY_STATUS_CLASS: Final = {
    "success": "the reply is read (above)",
    "redirect": "the operation is tried again later",
    "credential-refused": "the API key is read again, and the operation is tried again later",
    "throttled": "the operation waits as `Retry-After` requires, and is tried again",
    "server-error": "the operation is tried again later",
    "timeout": "the operation is tried again later",
    "proxy": "the operation is tried again later",
    "Refused": (
        "a report is dropped, and a copy is kept in the quarantine; a request is not run; an"
        " enrollment is tried again later. `current` is called: if the binding is gone, the device"
        " stops sending and checks again, with growing pauses. With"
        ' `enrollment.on_revoked = "reenroll"` it enrolls again'
    ),
    "BodyTooLarge": "a smaller version of a report is sent. Other calls: same effect as 400",
    "BodyRejected": (
        "a report is put into the quarantine, and a failed report is sent instead; a request is not"
        " run. Other calls: `venue-agent status` shows the refusal"
    ),
}
"""The effect of each class of statuses (`class_of`)."""


def statuses_by_class() -> dict[str, list[int]]:
    """Return the statuses from 200 to 599 by the class of their error."""
    classes: dict[str, list[int]] = {}
    for status in range(200, 600):
        classes.setdefault(
            class_of(replies.error_of(status, {}, b"", datetime.now(UTC))), []
        ).append(status)
    return classes


def class_of(error: ServiceError | None) -> str:
    if error is None:
        return "success"
    if isinstance(error, ServiceUnavailable):
        return error.cause
    return "credential-refused" if "Credential" in type(error).__name__ else type(error).__name__


def _ranges(numbers: Sequence[int]) -> str:
    """Format numbers, for example as ``200 to 204, 206``."""
    groups = groupby(enumerate(numbers), lambda pair: pair[1] - pair[0])
    runs = [[number for _, number in group] for _, group in groups]
    return ", ".join(str(r[0]) if len(r) == 1 else f"{r[0]} to {r[-1]}" for r in runs)


def limits() -> Iterator[tuple[str, str]]:
    """Yield the name and the value of each limit."""
    config = LocalConfig()
    yield "size of a reply", _bytes(http_client.REPLY_MAX_BYTES)
    yield (
        "size of a reply to `enroll` or `current`, which the device stores",
        _bytes(service_client.RECORD_MAX_BYTES),
    )
    yield "size of a frame of a command stream", _bytes(command_frames.FRAME_MAX_BYTES)
    yield "entries in a frame", f"{command_frames.COMMANDS_MAX}"
    yield "unreadable entries, after which a reply is closed", f"{receive.UNREADABLE_MAX}"
    burst, rate = read_rate_limit.BURST_BYTES, read_rate_limit.RATE_BYTES_S
    yield "bytes that are read from streams", f"{_bytes(burst)}, then {_bytes(rate)} a second"
    yield "unfinished requests", f"{receive.UNFINISHED_MAX:,}"
    yield (
        "finished requests in the journal",
        (f"{journal.TOMBSTONES_MAX:,}, for {journal.TOMBSTONE_AGE.days} days"),
    )
    yield "pause after a refused acknowledgement", f"{acknowledge.REFUSED_PAUSE_S:g} s"
    interval = f"{config.limits.min_collection_interval_seconds:g} s"
    yield "pause between two collections of a kind", f"{interval} (`limits`)"
    seconds = f"{config.network.max_duration_seconds:g} s"
    yield "duration of a collection of the network", f"{seconds} (`network`)"
    yield "hosts that a collection contacts", f"{config.network.max_hosts:,} (`network`)"
    yield (
        "reports that wait to be sent",
        (
            f"{_bytes(config.limits.outbox_max_bytes)},"
            f" {config.limits.outbox_max_age_days:g} days (`limits`)"
        ),
    )
    yield "copies of sent reports", f"{sent.KEPT_MAX}, {_bytes(sent.KEPT_MAX_BYTES)}"
    yield (
        "rejected reports in the quarantine",
        (f"{state.QUARANTINE_MAX_FILES} files, {_bytes(state.QUARANTINE_MAX_BYTES)}"),
    )
    yield "text of an error that is stored, logged and shown", f"{replies.DETAIL_MAX} characters"
    yield (
        "wait that `Retry-After` can cause",
        (f"{retry.RETRY_AFTER_MIN_S:g} s to {retry.RETRY_AFTER_MAX_S:g} s, and up to a tenth more"),
    )
    yield "time over which `retry` spreads reconnections", f"{retry.RECONNECT_SPREAD_MAX_S:g} s"
    yield "wait after 401", f"at most {retry.CREDENTIAL.cap_s:g} s"
    yield "wait while the binding is revoked", f"at most {retry.REVOKED.cap_s:g} s"
    yield "wait after a call without a usable reply", f"at most {retry.UNAVAILABLE.cap_s:g} s"
    timeout = f"{http_client.STREAM_READ_TIMEOUT_S:g} s"
    yield "time without data, after which a stream is closed", timeout


def _bytes(number: int) -> str:
    for unit, size in (("MiB", 2**20), ("KiB", 2**10)):
        if number % size == 0:
            return f"{number // size} {unit}"
    return f"{number:,} bytes"


def document() -> str:
    """Return the text of docs/capabilities.md."""
    config = LocalConfig()
    return TEMPLATE.read_text(encoding="utf-8").format(
        interval=f"{config.limits.min_collection_interval_seconds:g} seconds",
        detail=f"{replies.DETAIL_MAX} characters",
        fields="\n\n".join(map(_fields, REPLIES)),
        statuses=_table(
            ("status", "effect"),
            (
                (_ranges(numbers), EFFECTS_BY_STATUS_CLASS[name])
                for name, numbers in statuses_by_class().items()
            ),
        ),
        headers=_table(("header", "effect"), ((f"`{k}`", v) for k, v in HEADERS.items())),
        events=_table(("server-sent event", "effect"), ((f"`{k}`", v) for k, v in EVENTS.items())),
        limits=_table(("limited", "limit"), limits()),
        jobs="\n".join(map(_job, (NetworkJob, ApplicationJob))),
    )


def _job(job: type[NetworkJob | ApplicationJob]) -> str:
    names = ", ".join(f"`{name}`" for name in job.__dataclass_fields__)
    text = f"`{job.__name__}`: {names}"
    return textwrap.fill(text, 118, initial_indent="- ", subsequent_indent="  ")


def _fields(row: ReplyRow) -> str:
    heading = f"### `{row.operation.replace(', ', '`, `')}`\n\nCalled: {row.when}."
    return (
        f"{heading}\n\n{_table(('field', 'accepted', 'files', 'calls', 'effect'), _rows_of(row))}"
    )


def _rows_of(row: ReplyRow) -> Iterator[tuple[str, ...]]:
    for name, schema in fields_of(row.model).items():
        effect = row.effects[name]
        names = map(_names, (effect.files, effect.calls))
        yield (f"`{name}`", accepted_by(schema), *names, effect.text)


def _table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = (header, ("---",) * len(header), *rows)
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _names(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "–"


if __name__ == "__main__":
    PATH.write_text(document(), encoding="utf-8")
