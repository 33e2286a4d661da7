"""Shows a report on a terminal with `rich`.

It is readable on terminals of 50 columns or more, with a dark or a light background. It uses only
the sixteen colours of the terminal's theme. No information is expressed by a colour alone. Strings
become ``Text`` objects, because rich would interpret markup in plain strings.
"""

from rich.console import Group, RenderableType

from agent.presentation.terminal.application import application_view
from agent.presentation.terminal.blocks import EditAdvice
from agent.presentation.terminal.network import network_view
from agent.wire.payloads.application import ApplicationPayload
from agent.wire.payloads.network import NetworkPayload


def report_view(
    payload: NetworkPayload | ApplicationPayload, edit_advice: EditAdvice = str
) -> RenderableType:
    """Return a report of either kind in a form that a ``rich.console.Console`` can print.

    ``edit_advice`` is applied to the fix of each finding.
    """
    if isinstance(payload, NetworkPayload):
        return Group(*network_view(payload, edit_advice))
    return Group(*application_view(payload, edit_advice))
