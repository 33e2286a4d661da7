"""A report as one self-contained web page: no script, no external resource, all text escaped.

The page works as a file and in a sandboxed frame. Its own Content Security Policy allows only its
style sheet, by hash.
"""

import base64
import hashlib
from functools import lru_cache
from importlib.resources import files
from typing import Any, Final

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from agent.presentation import application_rows, network_rows
from agent.presentation.changes.change import Changes
from agent.presentation.connectivity.view import connection_view, hour_tooltip
from agent.presentation.headline import headline_of
from agent.presentation.hosts.rows import by_interest, host_rows, makers_note
from agent.presentation.humanize import format_timestamp
from agent.presentation.network_rows import PrinterRow
from agent.presentation.page.network_diagram import network_diagram
from agent.presentation.plain_text import plain
from agent.presentation.watched_devices import watched_rows
from agent.wire.payloads.application import ApplicationPayload
from agent.wire.payloads.network import NetworkPayload

_PRINTERS_FIRST: Final = 12
"""Number of printers that are visible at first. All others are in a list that can be opened.
Printers that need attention are always visible."""

_TEMPLATES: Final = files("agent.presentation.page") / "templates"


def report_page(
    payload: NetworkPayload | ApplicationPayload, changes: Changes | None = None
) -> str:
    """Return a report of either kind as a complete HTML document.

    ``changes`` are the differences from the previous report, if there is one.
    """
    if isinstance(payload, NetworkPayload):
        name, values = "network.html", _network(payload)
    else:
        name, values = "application.html", _application(payload)
    since = format_timestamp(changes.since) if changes else ""
    return _environment().get_template(name).render(values, changes=changes, since=since)


def style_hash() -> str:
    """Return the CSP source of the page's style sheet, for pages that show a report in a frame."""
    digest = hashlib.sha256(_style_sheet().encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def _network(payload: NetworkPayload) -> dict[str, Any]:
    hosts = host_rows(payload)
    return {
        "headline": headline_of(payload),
        "watched": watched_rows(payload),
        "printers": _visible_and_collapsed(network_rows.printer_rows(payload)),
        "diagram": network_diagram(payload),
        "hosts": by_interest(hosts),
        "makers_note": makers_note(hosts),
        "interfaces": network_rows.interface_rows(payload),
        "sources": network_rows.source_rows(payload),
        "limitations": network_rows.limitation_lines(payload),
        "failures": payload.failures,
    }


def _visible_and_collapsed(rows: tuple[PrinterRow, ...]) -> tuple[tuple[PrinterRow, ...], ...]:
    """Return the printers that are visible at first, and the printers in a collapsed list."""
    attention_count = sum(row.status != "reachable" for row in rows)
    first = max(attention_count, _PRINTERS_FIRST)
    return rows[:first], rows[first:]


def _application(payload: ApplicationPayload) -> dict[str, Any]:
    return {
        "headline": headline_of(payload),
        "connection": connection_view(payload),
        "tooltip": hour_tooltip,
        "groups": application_rows.snapshot_groups(payload),
        "parts": application_rows.interface_and_peripheral_groups(payload),
        "absences": application_rows.absence_rows(payload),
        "inapplicable_note": application_rows.inapplicable_note,
        "limitations": application_rows.snapshot_limitation_lines(payload),
        "failures": payload.failures,
    }


@lru_cache(maxsize=1)
def _environment() -> Environment:
    environment = Environment(
        autoescape=True,
        loader=FunctionLoader(_source),
        undefined=StrictUndefined,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["style_sheet"] = Markup(_style_sheet())  # noqa: S704 - our own file
    environment.globals["style_hash"] = style_hash()
    return environment


def _finalize(value: object) -> object:
    """Return the value that a template inserts. A string becomes plain text (`plain`).

    Markup, such as the style sheet, and values of other types are not changed.
    """
    return plain(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _source(name: str) -> str:
    return (_TEMPLATES / name).read_text(encoding="utf-8")


@lru_cache(maxsize=1)
def _style_sheet() -> str:
    return _source("report.css")
