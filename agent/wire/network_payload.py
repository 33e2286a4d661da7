"""The network report (contract: Version-2 payload)."""

from typing import Annotated, Literal

from pydantic import Field

from agent.wire import limits
from agent.wire.base import Count, Exact, Number, Port, absent
from agent.wire.payload import Payload
from agent.wire.text import PayloadId, PayloadText
from agent.wire.vocabulary import (
    AddressFamily,
    DiscoverySource,
    EndpointStatus,
    HostSource,
    MapState,
    PrinterStatus,
    PrinterTransport,
    Reachability,
    ServiceSource,
)


class SourceRunning(Exact):
    state: Literal["running"] = "running"


class SourceSucceeded(Exact):
    state: Literal["succeeded"] = "succeeded"


class SourceFailed(Exact):
    state: Literal["failed"] = "failed"
    reason: PayloadText


class SourceUnsupported(Exact):
    state: Literal["unsupported"] = "unsupported"
    reason: PayloadText


DiscoveryState = Annotated[
    SourceRunning | SourceSucceeded | SourceFailed, Field(discriminator="state")
]
MapSourceState = Annotated[
    SourceRunning | SourceSucceeded | SourceFailed | SourceUnsupported,
    Field(discriminator="state"),
]


class Discovery(Exact):
    mdns: DiscoveryState
    scan: DiscoveryState


class Endpoint(Exact):
    """One address and port where something answers or is announced."""

    address: PayloadText
    host: PayloadText
    port: Port
    label: PayloadText
    model: PayloadText | None
    discovered_by: Annotated[
        tuple[DiscoverySource, ...], Field(max_length=limits.DISCOVERED_BY_MAX)
    ]
    status: EndpointStatus
    mac_address: PayloadText | None
    matched_printer_ids: Annotated[
        tuple[PayloadId, ...], Field(max_length=limits.MATCHED_PRINTER_IDS_MAX)
    ]


class Printer(Exact):
    """One printer the machine knows of. ``matched_endpoint`` is ``address:port`` of an endpoint."""

    id: PayloadId
    name: PayloadText
    transport: PrinterTransport
    address: PayloadText | None
    status: PrinterStatus
    reason: PayloadText | None
    matched_endpoint: PayloadText | None


class MapOs(Exact):
    platform: PayloadText
    version: PayloadText | None


class MapAddress(Exact):
    address: PayloadText
    family: AddressFamily
    prefix_length: Number


class MapInterface(Exact):
    name: PayloadText
    addresses: tuple[MapAddress, ...]
    gateways: tuple[PayloadText, ...]
    mac_address: PayloadText | None = absent()


class MapService(Exact):
    name: PayloadText | None = absent()
    type: PayloadText | None = absent()
    port: Number
    source: ServiceSource
    reachable: bool | None = absent()


class MapHost(Exact):
    address: PayloadText
    interface_name: PayloadText | None = absent()
    hostname: PayloadText | None = absent()
    mac_address: PayloadText | None = absent()
    services: tuple[MapService, ...]
    reachability: Reachability
    latency_ms: Number | None = absent()
    sources: tuple[HostSource, ...]


class MapSources(Exact):
    interfaces: MapSourceState
    mdns: MapSourceState
    scan: MapSourceState


class MapBounds(Exact):
    max_hosts: Number
    max_services: Number
    max_duration_ms: Number
    ports: tuple[Number, ...]


class NetworkMap(Exact):
    state: MapState
    os: MapOs
    interfaces: tuple[MapInterface, ...]
    hosts: tuple[MapHost, ...]
    sources: MapSources
    limitations: tuple[PayloadText, ...]
    bounds: MapBounds
    truncated: bool


class Unavailable(Exact):
    """What could not be read on this machine, and why; a key is absent where it could."""

    mac_address: PayloadText | None = absent()
    interfaces: PayloadText | None = absent()
    gateway: PayloadText | None = absent()
    os_version: PayloadText | None = absent()


class NetworkPayload(Payload):
    version: Literal[2] = 2
    scope: PayloadText
    discovery: Discovery | None
    endpoints: Annotated[tuple[Endpoint, ...], Field(max_length=limits.ENDPOINTS_MAX)]
    endpoints_omitted: Count
    printers: Annotated[tuple[Printer, ...], Field(max_length=limits.PRINTERS_MAX)] | None
    network_map: NetworkMap | None
    unavailable: Unavailable
