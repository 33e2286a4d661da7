"""A report on a terminal: what `rich` prints, readable from 50 columns on, dark or light.

Only the sixteen colours of the terminal's own theme are used, and every coloured word says in
itself what its colour says. Strings go into ``Text`` objects, never through rich's markup.
"""

from rich.console import Group, RenderableType

from agent.presentation.terminal.application import application_view
from agent.presentation.terminal.network import network_view
from agent.wire.payloads.application import ApplicationPayload
from agent.wire.payloads.network import NetworkPayload


def report_view(payload: NetworkPayload | ApplicationPayload) -> RenderableType:
    """Return a report of either kind as something a ``rich.console.Console`` can print."""
    if isinstance(payload, NetworkPayload):
        return Group(*network_view(payload))
    return Group(*application_view(payload))
