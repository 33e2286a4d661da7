"""The parts of `doctor --bundle` for human readers: texts, fresh reports, and a case id."""

import asyncio
import io
import secrets
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from agent.adapters.storage.state import StateDirectory
from agent.adapters.storage.status_file import StatusFile
from agent.cli.collect import collect_report
from agent.cli.resolve_state import ResolvedState
from agent.cli.status import show_status
from agent.cli.terminal.doctor_view import show
from agent.cli.terminal.screen import Screen
from agent.config.model import LocalConfig
from agent.doctor.bundle import FreshReport, write_bundle
from agent.doctor.check import CheckResult
from agent.doctor.context import Context
from agent.errors import AgentError
from agent.rules.reports.jobs import is_enabled, job_of
from agent.rules.reports.payload import SWITCHED_OFF
from agent.wire.vocabulary import Kind

WIDTH: Final = 80
KINDS: Final[tuple[Kind, ...]] = ("network", "application")
_ID_CHARACTERS: Final = "23456789ABCDEFGHJKMNPQRSTVWXYZ"  # without those that are easily confused
DAEMON_WAIT_MAX_S: Final = 60.0
POLL_S: Final = 0.2


def new_case_id() -> str:
    """Return an id that is easy to read out on the phone, such as `7KQM-3WXR`."""
    characters = "".join(secrets.choice(_ID_CHARACTERS) for _ in range(8))
    return f"{characters[:4]}-{characters[4:]}"


def make_bundle(
    path: Path,
    context: Context,
    results: Sequence[CheckResult],
    document: dict[str, Any],
    write: Callable[[bytes], None],
    *,
    with_reports: bool,
) -> None:
    """Write the bundle, and print on stderr what it contains and what to do with it.

    Raises AgentError.
    """
    reports = tuple(_fresh_reports(context)) if with_reports else ()
    texts = {"doctor.txt": _doctor_text(results, document), "status.txt": _status_text(context)}
    members = write_bundle(path, context, document, write, texts=texts, reports=reports)
    screen = Screen(sys.stderr)
    screen.blank()
    screen.paragraph(f"{path}: {', '.join(members)}")
    screen.paragraph(f"case {document['caseId']}", "strong")
    screen.paragraph(
        "→ give the file and the case id to your support. The file contains no secrets. It names"
        " the venue's machines and devices, so give it to nobody else. Nothing was sent."
    )


def _doctor_text(results: Sequence[CheckResult], document: dict[str, Any]) -> str:
    text = io.StringIO()
    screen = Screen(text, WIDTH)
    screen.line((f"case {document['caseId']}", "strong"))
    screen.line(f"venue-agent {document['agent']}, {document['madeAt']}")
    screen.blank()
    show(results, document["durationSeconds"], screen, with_skipped=True)
    return text.getvalue()


def _status_text(context: Context) -> str:
    if context.state is None:
        return "the state directory is unknown\n"
    text = io.StringIO()
    try:
        show_status(Screen(text, WIDTH), ResolvedState(context.state), context.config_path)
    except AgentError as error:
        return f"{text.getvalue()}{error}\n"
    return text.getvalue()


def _fresh_reports(context: Context) -> Iterator[FreshReport]:
    """Collect a report of each kind now, one after the other.

    If a kind gets no report, yield the reason instead.
    """
    local, state = context.local, context.state
    for kind in KINDS:
        if local is None or state is None:
            yield FreshReport(kind, None, "no configuration could be read")
        elif not is_enabled(local, kind):
            yield FreshReport(kind, None, SWITCHED_OFF)
        else:
            yield _collect(local, state, kind)


def _collect(local: LocalConfig, state: StateDirectory, kind: Kind) -> FreshReport:
    try:
        if not _wait_for_the_daemon(state):
            return FreshReport(kind, None, "the daemon was collecting a report at the same time")
        return FreshReport(kind, asyncio.run(collect_report(local, state, job_of(local, kind))))
    except AgentError as error:
        return FreshReport(kind, None, str(error))
    except asyncio.CancelledError:  # the user pressed Ctrl-C twice
        return FreshReport(kind, None, "the collection was interrupted")


def _wait_for_the_daemon(state: StateDirectory) -> bool:
    """Wait until no daemon collects a report. After DAEMON_WAIT_MAX_S seconds, return False.

    Receipt printers accept one connection at a time, so two collections at once would disturb each
    other.
    """
    deadline = time.monotonic() + DAEMON_WAIT_MAX_S
    while state.holder() is not None:
        status = StatusFile(state).read()
        if status is None or not status.activity.startswith("collecting"):
            return True
        if time.monotonic() >= deadline:
            return False
        time.sleep(POLL_S)
    return True
