"""The interface through which the recorder reads the operating system."""

from collections.abc import Callable
from typing import Protocol

from agent.rules.connectivity.cause import LinkState, NameServer, Sample


class Sensors(Protocol):
    """Reads the state of the path to the service. ``agent.adapters.connectivity`` implements it."""

    def open(self, on_change: Callable[[], None]) -> None:
        """Start to call ``on_change`` for each change of a link, an address or a route.

        ``on_change`` is called in the event loop, and `open` must be called there as well. On
        platforms that do not report these changes, ``on_change`` is never called.
        """

    def close(self) -> None:
        """Stop the notifications."""

    def read_link(self) -> LinkState:
        """Return this machine's side of the path. Sends nothing, and takes milliseconds."""

    async def probe(self, link: LinkState) -> Sample:
        """Try each part of the path, in parallel.

        This takes at most about two seconds, or five if the service's address is not known yet.
        """

    async def query_name_servers(self) -> tuple[NameServer, ...]:
        """Send one query for the service's name to each configured name server.

        Returns an empty tuple if the service's address needs no query.
        """
