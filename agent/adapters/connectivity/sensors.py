"""Reads the link of this machine, and probes its path to the service."""

import asyncio
import logging
import sys
from collections.abc import Callable
from functools import partial

from agent.adapters.connectivity.gateway import GatewayProbe
from agent.adapters.connectivity.link import LinkReading
from agent.adapters.connectivity.link_events import LinkEvents
from agent.adapters.connectivity.link_linux import find_neighbour, read_link
from agent.adapters.connectivity.name_servers import (
    NameServerReplies,
    configured_servers,
    is_on_link,
    query_servers,
)
from agent.adapters.connectivity.service_connection import (
    TIMEOUT_S,
    connect,
    resolve,
    target_of,
)
from agent.config.model import Service
from agent.rules.connectivity.cause import LinkState, NameServer, Sample, ServiceAnswer
from collectors.shared.addresses import Network

ReadServers = Callable[[], tuple[str, ...]]

log = logging.getLogger(__name__)


class SystemSensors:
    """The sensors of this machine (see ``agent.rules.connectivity.sensors.Sensors``)."""

    def __init__(self, service: Service, *, read_servers: ReadServers = configured_servers) -> None:
        """Raises ValueError if the URL of the proxy is invalid."""
        self._target = target_of(service)
        self._read_servers = read_servers
        self._read_link = _link_reader()
        self._gateway = GatewayProbe()
        self._service_addresses: tuple[str, ...] = self._target.known_addresses
        self._last_interface: str | None = None
        self._events: LinkEvents | None = None
        self._resolving: asyncio.Task[None] | None = None

    def open(self, on_change: Callable[[], None]) -> None:
        """Call ``on_change`` in the event loop when a link, an address or a route has changed.

        Also starts to resolve the service's address, unless it is known. Call inside the event
        loop.
        """
        try:
            self._events = LinkEvents(on_change)
        except OSError as error:
            log.info("no notifications of changed links: %s", error)
        if not self._service_addresses:
            self._begin_to_resolve()

    def close(self) -> None:
        """Stop the notifications and a running resolution of the service's address."""
        if self._events is not None:
            self._events.close()
            self._events = None
        if self._resolving is not None:
            self._resolving.cancel()

    def read_link(self) -> LinkState:
        """Return this machine's side of the path. Sends nothing, and takes milliseconds."""
        return self._read().state

    def networks(self) -> tuple[Network, ...]:
        """Return the networks of this machine. Without a link, there are none."""
        reading = self._read()
        return () if reading.state.has_link is False else reading.networks

    async def probe(self, link: LinkState) -> Sample:
        """Try each part of the path, in parallel, for at most about two seconds.

        If the service's address is not known yet, it is resolved first. The probe then takes up to
        five seconds.
        """
        reading = self._read()
        async with asyncio.TaskGroup() as tasks:
            gateway = tasks.create_task(self._probe_gateway(link, reading))
            queries = tasks.create_task(self._query(reading, is_interrupted=True))
            service = tasks.create_task(self._connect(queries))
        servers, answer = queries.result().servers, service.result()
        return Sample(
            link=link,
            conflicting_address=reading.conflict,
            gateway_answers=_gateway_answers(gateway.result(), link.gateway, servers),
            name_servers=servers,
            service=answer,
            is_service_local=self._is_service_local(reading),
        )

    async def query_name_servers(self) -> tuple[NameServer, ...]:
        """Send one query for the service's name to each configured name server.

        Returns no answers if the service's address needs no query.
        """
        return (await self._query(self._read(), is_interrupted=False)).servers

    def _read(self) -> LinkReading:
        try:
            reading = self._read_link(self._last_interface, needs_ipv4=self._needs_ipv4)
        except OSError:
            return LinkReading()
        if reading.state.has_route:
            self._last_interface = reading.state.interface
        return reading

    @property
    def _needs_ipv4(self) -> bool:
        """Whether the preferred address of the service is an IPv4 address."""
        return bool(self._service_addresses) and ":" not in self._service_addresses[0]

    def _is_service_local(self, reading: LinkReading) -> bool:
        """Return whether the service is in a network of this machine, so it needs no gateway."""
        return any(is_on_link(each, reading.networks) for each in self._service_addresses)

    async def _probe_gateway(self, link: LinkState, reading: LinkReading) -> bool | None:
        if link.gateway is None or self._is_service_local(reading):
            return None
        find = partial(find_neighbour, link.gateway, reading.index)
        return await self._gateway.answers(link.gateway, reading.index, find)

    async def _query(self, reading: LinkReading, *, is_interrupted: bool) -> NameServerReplies:
        if not self._target.needs_query:
            return NameServerReplies()
        replies = await query_servers(
            self._target.host,
            self._read_servers(),
            reading.networks,
            is_interrupted=is_interrupted,
        )
        if resolved := replies.addresses:
            # Name servers are queried for IPv4 addresses only. The system's resolver may have
            # returned IPv6 addresses as well. The first of them is placed third at the latest,
            # because `connect` tries only three addresses.
            ipv6 = (each for each in self._service_addresses if ":" in each)
            self._service_addresses = (*resolved[:2], *ipv6, *resolved[2:])
        return replies

    async def _connect(self, queries: "asyncio.Task[NameServerReplies]") -> ServiceAnswer | None:
        if not self._service_addresses or self._target.is_mdns:
            resolving = self._begin_to_resolve()
            await asyncio.wait({queries})
            if not self._service_addresses:
                await asyncio.wait({resolving}, timeout=TIMEOUT_S)
        return await connect(self._service_addresses, self._target.port)

    def _begin_to_resolve(self) -> "asyncio.Task[None]":
        """Start to resolve the service's address with the system, which can take half a minute."""
        if self._resolving is None or self._resolving.done():
            self._resolving = asyncio.get_running_loop().create_task(self._resolve())
        return self._resolving

    async def _resolve(self) -> None:
        self._service_addresses = await resolve(self._target) or self._service_addresses


def _link_reader(platform: str = sys.platform) -> Callable[..., LinkReading]:
    """Return the function that reads the link on this platform."""
    if platform == "linux":
        return read_link
    from agent.adapters.connectivity import link_portable  # its libraries need memory

    return link_portable.read_link


def _gateway_answers(
    answers: bool | None, gateway: str | None, servers: tuple[NameServer, ...]
) -> bool | None:
    """Return whether the gateway answers. A reply that it sent as a name server counts as well."""
    has_answered = any(each.address == gateway and each.answer != "silent" for each in servers)
    return True if has_answered else answers
