"""What support needs, in one zip file: every text goes through the scrubber, no key is read in.

Only members that are named here are taken: of the quarantine, the bodies of reports, never
whatever else lies there (a set-aside identity key, for one).
"""

import contextlib
import io
import json
import sqlite3
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from agent.adapters.database import connect_to_read
from agent.adapters.history import read_history
from agent.adapters.identity import KEY_MAX_BYTES, KEY_NAME
from agent.adapters.privileges import replace_file
from agent.adapters.safe_file import read_start_safely
from agent.adapters.state import StateDirectory
from agent.adapters.status_file import StatusFile
from agent.config import default_config_path
from agent.doctor.evidence import Evidence
from agent.doctor.logs import read_logs
from agent.doctor.scrub import Scrubber
from agent.errors import AgentError, StateError
from agent.regular_file import read_regular
from agent.wire.reading import plain_values

REPORTS_MAX: Final = 5
REPORT_MAX_BYTES: Final = 2_000_000
CONFIG_MAX_BYTES: Final = 1_000_000
REPORT_FILES: Final = ("*-rejected-*.json", "*-refused-*.json")

Member = tuple[str, str]


def write_bundle(
    path: Path,
    evidence: Evidence,
    doctor: dict[str, Any],
    write: Callable[[bytes], None] | None = None,
) -> tuple[str, ...]:
    """Write the file, readable by its owner only; return its members. Raises AgentError.

    ``write`` puts the content in its place, where this process has not the rights to.
    """
    scrubber = Scrubber(_secrets(evidence))
    content, names = io.BytesIO(), []
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in _members(evidence, doctor):
            archive.writestr(name, scrubber.clean(text))
            names.append(name)
    try:
        if write is None:
            replace_file(path, content.getvalue())
        else:
            write(content.getvalue())
    except OSError as error:
        raise AgentError(f"{path} cannot be written: {error.strerror}") from None
    return tuple(names)


def _members(evidence: Evidence, doctor: dict[str, Any]) -> Iterator[Member]:
    yield "doctor.json", _json(doctor)
    yield "config.toml", evidence.config_text or read_config(evidence.config_path)
    if (state := evidence.state) is not None:
        yield "status.json", _status(state)
        yield "history.json", _history(state)
        yield from _reports_kept(state)
        yield from _reports_waiting(state)
    yield "log.txt", evidence.log_text or read_logs()


def _status(state: StateDirectory) -> str:
    try:
        status = StatusFile(state).read()
    except StateError as error:
        return _json({"error": str(error)})
    return _json(None if status is None else plain_values(status))


def _history(state: StateDirectory) -> str:
    try:
        return _json([asdict(row) for row in read_history(state)])
    except StateError as error:
        return _json({"error": str(error)})


def read_config(named: Path | None) -> str:
    """Return the configuration's text, or why it cannot be had."""
    path = named or default_config_path()
    try:
        return read_regular(path, CONFIG_MAX_BYTES).decode("utf-8", "replace")
    except OSError as error:
        return f"# {path} cannot be read: {error.strerror}\n"


def _reports_kept(state: StateDirectory) -> Iterator[Member]:
    """Yield the newest bodies that the service rejected."""
    try:
        state.require_quarantine()
        found = [path for pattern in REPORT_FILES for path in state.quarantine_path.glob(pattern)]
    except (OSError, StateError):
        return
    for path in sorted(found, reverse=True)[:REPORTS_MAX]:
        with contextlib.suppress(OSError, StateError):
            text = read_start_safely(path, REPORT_MAX_BYTES).decode("utf-8", "replace")
            yield f"quarantine/{path.name}", text


def _reports_waiting(state: StateDirectory) -> Iterator[Member]:
    """Yield the newest bodies that wait to be sent."""
    query = "SELECT report_id, substr(body, 1, ?) FROM outbox ORDER BY created_at DESC LIMIT ?"
    try:
        with contextlib.closing(connect_to_read(state, timeout_s=1)) as database:
            rows = database.execute(query, (REPORT_MAX_BYTES, REPORTS_MAX)).fetchall()
    except (sqlite3.Error, OSError, StateError):
        return
    for report_id, body in rows:
        yield f"outbox/{report_id}.json", bytes(body).decode("utf-8", "replace")


def _secrets(evidence: Evidence) -> Iterator[str]:
    """Yield what must not leave this machine: the API key, proxy passwords, the identity key."""
    if evidence.api_key:
        yield evidence.api_key
    yield from (v for k, v in evidence.environment.items() if k == "VENUE_AGENT_API_KEY")
    urls = [v for k, v in evidence.environment.items() if k.lower().endswith("_proxy")]
    if evidence.config is not None:
        urls.append(evidence.config.service.proxy)
    for url in urls:
        with contextlib.suppress(ValueError):
            if password := urlsplit(url).password:
                yield from (password, unquote(password))
    if evidence.state is not None:
        yield from _key_lines(evidence.state)


def _key_lines(state: StateDirectory) -> Iterator[str]:
    with contextlib.suppress(OSError, StateError):
        lines = state.read(KEY_NAME, KEY_MAX_BYTES).decode("ascii", "replace").splitlines()
        yield from (line for line in lines if line and not line.startswith("-----"))


def _json(document: Any) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"
