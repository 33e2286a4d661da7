"""The bundle for support: one zip file of redacted texts, without keys.

The bundle contains only files that this module or its caller names. From the quarantine directory,
it contains bodies of reports, and never other files, such as an old identity key.
"""

import contextlib
import io
import json
import sqlite3
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import Any, Final

from agent.adapters.identity import KEY_MAX_BYTES, KEY_NAME
from agent.adapters.storage.database import connect_to_read
from agent.adapters.storage.history import read_history
from agent.adapters.storage.record import read_record
from agent.adapters.storage.safe_file import read_start_safely
from agent.adapters.storage.state import StateDirectory
from agent.adapters.storage.status_file import StatusFile
from agent.config.model import default_config_path
from agent.doctor.context import Context
from agent.doctor.logs import read_logs
from agent.errors import AgentError, StateError
from agent.redaction.configuration import redact_configuration
from agent.redaction.known import known_secrets
from agent.redaction.redactor import Redactor
from agent.redaction.secret_sources import find_secrets
from agent.redaction.userinfo import userinfo_of
from agent.regular_file import read_regular
from agent.rules.connectivity.document import record_document
from agent.wire.codec import to_plain, validate
from agent.wire.payloads.by_kind import PAYLOADS, ReportPayload
from agent.wire.validation import ValidationError
from agent.wire.vocabulary import Kind

RECORD_PERIOD: Final = timedelta(days=90)
REPORTS_MAX: Final = 5
REPORT_MAX_BYTES: Final = 2_000_000
CONFIG_MAX_BYTES: Final = 1_000_000
REPORT_FILES: Final = ("*-rejected-*.json", "*-refused-*.json")
"""Patterns of the names that bodies of reports have in the quarantine directory."""

Member = tuple[str, str]
"""The name and the text of a file in the bundle."""


@dataclass(frozen=True, slots=True)
class FreshReport:
    """A report that was collected for the bundle.

    ``payload`` is None if the report could not be collected. Then ``reason`` states why.
    """

    kind: Kind
    payload: ReportPayload | None
    reason: str = ""


def write_bundle(
    path: Path,
    context: Context,
    doctor: dict[str, Any],
    write: Callable[[bytes], None],
    *,
    texts: Mapping[str, str],
    reports: Sequence[FreshReport],
) -> tuple[str, ...]:
    """Write the bundle, and return the names of the files in it.

    Args:
        path: The path of the bundle, for messages.
        doctor: The results of doctor as a document.
        write: A function that writes the content. This process may have no rights to write.
        texts: The contents of further files, by file name.

    Raises:
        AgentError: The bundle cannot be written.
    """
    redactor = Redactor(_secrets(context))
    members = chain(
        ((name, redactor.redact(text)) for name, text in texts.items()),
        _members(context, doctor, redactor),
        *(_fresh_members(report, redactor) for report in reports),
    )
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in members:
            archive.writestr(name, text)
    try:
        write(content.getvalue())
    except OSError as error:
        raise AgentError(f"{path} cannot be written: {error.strerror}") from None
    return tuple(archive.namelist())


def _members(context: Context, doctor: dict[str, Any], redactor: Redactor) -> Iterator[Member]:
    yield "doctor.json", _json(redactor.redact_value("", doctor))
    config = context.config_text or read_config(context.config_path)
    yield "config.toml", redact_configuration(config, redactor)
    if (state := context.state) is not None:
        files = (
            ("status.json", _status_document),
            ("history.json", _history_document),
            ("timeline.json", _timeline_document),
        )
        for name, read_content in files:
            yield name, _json(redactor.redact_value("", _read_or_error(read_content, state)))
        for name, body in (*_rejected_reports(state), *_waiting_reports(state)):
            yield name, _without_secrets(body, redactor)
    yield "log.txt", redactor.redact(context.log_text or read_logs())


def _fresh_members(report: FreshReport, redactor: Redactor) -> Iterator[Member]:
    """Yield a report as JSON and as a page, or the reason why there is none."""
    name = f"reports/{report.kind}"
    if report.payload is None:
        yield f"{name}.txt", redactor.redact(f"left out: {report.reason}\n")
        return
    from agent.presentation.page.html import report_page  # slow to import, and rarely used

    document = redactor.redact_value("", to_plain(report.payload))
    yield f"{name}.json", _json(document)
    # If an id looked like a secret and was redacted, the payload is invalid. Then there is no page.
    with contextlib.suppress(ValidationError):
        yield f"{name}.html", report_page(validate(document, PAYLOADS[report.kind]))


def _read_or_error(read_content: Callable[[StateDirectory], Any], state: StateDirectory) -> Any:
    """Return what ``read_content`` returns, or a document with its error."""
    try:
        return read_content(state)
    except StateError as error:
        return {"error": str(error)}


def _status_document(state: StateDirectory) -> dict[str, Any] | None:
    status = StatusFile(state).read()
    return None if status is None else to_plain(status)


def _history_document(state: StateDirectory) -> list[dict[str, Any]]:
    return [asdict(row) for row in read_history(state)]


def _timeline_document(state: StateDirectory) -> dict[str, Any]:
    now = datetime.now(UTC)
    record = read_record(state, now - RECORD_PERIOD, now)
    return record_document(record, now, is_enabled=None)


def _without_secrets(body: str, redactor: Redactor) -> str:
    """Redact the body of a report. A body that is not JSON is redacted as text."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return redactor.redact(body)
    return _json(redactor.redact_value("", document))


def read_config(config_path: Path | None) -> str:
    """Return the configuration's text, or why it cannot be read."""
    path = config_path or default_config_path()
    try:
        return read_regular(path, CONFIG_MAX_BYTES).decode("utf-8", "replace")
    except OSError as error:
        return f"# {path} cannot be read: {error.strerror}\n"


def _rejected_reports(state: StateDirectory) -> Iterator[Member]:
    """Yield the newest bodies that the service rejected."""
    try:
        state.require_quarantine()
        paths = [path for pattern in REPORT_FILES for path in state.quarantine_path.glob(pattern)]
    except (OSError, StateError):
        return
    for path in sorted(paths, reverse=True)[:REPORTS_MAX]:  # the names begin with the time
        with contextlib.suppress(OSError, StateError):
            text = read_start_safely(path, REPORT_MAX_BYTES).decode("utf-8", "replace")
            yield f"quarantine/{path.name}", text


def _waiting_reports(state: StateDirectory) -> Iterator[Member]:
    """Yield the newest bodies that wait to be sent."""
    query = "SELECT report_id, substr(body, 1, ?) FROM outbox ORDER BY created_at DESC LIMIT ?"
    try:
        with contextlib.closing(connect_to_read(state, timeout_s=1)) as database:
            rows = database.execute(query, (REPORT_MAX_BYTES, REPORTS_MAX)).fetchall()
    except (sqlite3.Error, OSError, StateError):
        return
    for report_id, body in rows:
        yield f"outbox/{report_id}.json", bytes(body).decode("utf-8", "replace")


def _secrets(context: Context) -> Iterator[str]:
    """Yield the secrets that the bundle must not contain.

    Among them are the API key, passwords of proxies, and the lines of the identity key.
    """
    yield from known_secrets()
    yield from find_secrets(context.config_path or default_config_path(), context.environment)
    if context.api_key:
        yield context.api_key
    if context.config is not None:
        yield from userinfo_of(context.config.service.proxy)
    if context.state is not None:
        yield from _key_lines(context.state)


def _key_lines(state: StateDirectory) -> Iterator[str]:
    with contextlib.suppress(OSError, StateError):
        lines = state.read(KEY_NAME, KEY_MAX_BYTES).decode("ascii", "replace").splitlines()
        yield from (line for line in lines if line and not line.startswith("-----"))


def _json(document: Any) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"
