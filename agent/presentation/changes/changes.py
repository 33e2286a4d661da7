"""The differences between two reports, of either kind."""

from agent.presentation.changes.application import application_changes
from agent.presentation.changes.change import Changes
from agent.presentation.changes.network import network_changes
from agent.wire.payloads.application import ApplicationPayload
from agent.wire.payloads.network import NetworkPayload


def changes_between(
    before: NetworkPayload | ApplicationPayload, after: NetworkPayload | ApplicationPayload
) -> Changes:
    """Compare two reports of one device.

    Raises:
        ValueError: The reports are of different kinds.
    """
    if isinstance(before, NetworkPayload) and isinstance(after, NetworkPayload):
        return network_changes(before, after)
    if isinstance(before, ApplicationPayload) and isinstance(after, ApplicationPayload):
        return application_changes(before, after)
    raise ValueError("a network report and an application report cannot be compared")
