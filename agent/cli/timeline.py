"""`venue-agent timeline`: shows the record of the connection: hours, incidents and events."""

import argparse
from datetime import UTC, datetime, timedelta
from typing import Final

from agent.adapters.storage.record import read_record
from agent.cli.resolve_state import resolve_state
from agent.cli.terminal.options import add_config_and_json_options, parse_count
from agent.cli.terminal.screen import Screen, print_json
from agent.cli.terminal.timeline_view import show_timeline
from agent.errors import ConfigMissing
from agent.presentation.connectivity.sentences import is_empty
from agent.redaction.known import redactor
from agent.rules.connectivity.document import record_document

DEFAULT_PERIOD: Final = timedelta(days=7)
DAYS_MAX: Final = 90  # the maximum of recorder.keep_days

RECORDER_OFF: Final = "The recorder is off: set `recorder.enabled` to true, and restart the daemon."
NO_RECORD: Final = "Nothing is recorded yet: no daemon has run here with the recorder enabled."
JUST_STARTED: Final = "Nothing is recorded yet: the daemon has just started."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_config_and_json_options(parser)
    period = parser.add_mutually_exclusive_group()
    default = f"default {DEFAULT_PERIOD.days}"
    period.add_argument("--days", type=_days, metavar="N", help=f"show the last N days ({default})")
    period.add_argument("--hours", type=_hours, metavar="N", help="show the last N hours")


def run(options: argparse.Namespace) -> int:
    resolved = resolve_state(options.config)
    resolved.require_visible()
    now = datetime.now(UTC)
    since = now - (options.hours or options.days or DEFAULT_PERIOD)
    history = read_record(resolved.state, since, now)
    has_record = not is_empty(history, now)
    if not has_record and isinstance(resolved.guessed_because, ConfigMissing):
        raise resolved.guessed_because
    is_enabled = None if resolved.config is None else resolved.config.recorder.enabled
    if options.json:
        document = record_document(history, now, is_enabled=is_enabled)
        document = redactor().redact_value("", document)
        print_json(document)
        return 0
    screen = Screen()
    is_running = resolved.state.holder() is not None
    if is_enabled is False:
        screen.paragraph(RECORDER_OFF, "warn")
    elif not has_record:
        screen.paragraph(JUST_STARTED if is_running else NO_RECORD)
    if has_record:
        show_timeline(screen, history, now, is_running=is_running)
    return 0


def _days(text: str) -> timedelta:
    return timedelta(days=parse_count(text, "days", DAYS_MAX))


def _hours(text: str) -> timedelta:
    return timedelta(hours=parse_count(text, "hours", DAYS_MAX * 24))
