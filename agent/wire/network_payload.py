"""The network report (contract: Version-2 payload)."""

from typing import Annotated, ClassVar

from msgspec import Meta

from agent.wire import limits
from agent.wire.base import Count, Exact, Number, Port
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


class SourceRunning(Exact, tag_field="state", tag="running"):
    state: ClassVar = "running"


class SourceSucceeded(Exact, tag_field="state", tag="succeeded"):
    state: ClassVar = "succeeded"


class SourceFailed(Exact, tag_field="state", tag="failed"):
    state: ClassVar = "failed"
    reason: PayloadText


class SourceUnsupported(Exact, tag_field="state", tag="unsupported"):
    state: ClassVar = "unsupported"
    reason: PayloadText


DiscoveryState = SourceRunning | SourceSucceeded | SourceFailed
MapSourceState = SourceRunning | SourceSucceeded | SourceFailed | SourceUnsupported


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
    discovered_by: Annotated[tuple[DiscoverySource, ...], Meta(max_length=limits.DISCOVERED_BY_MAX)]
    status: EndpointStatus
    mac_address: PayloadText | None
    matched_printer_ids: Annotated[
        tuple[PayloadId, ...], Meta(max_length=limits.MATCHED_PRINTER_IDS_MAX)
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
    mac_address: PayloadText | None = None


class MapService(Exact):
    name: PayloadText | None = None
    type: PayloadText | None = None
    port: Number
    source: ServiceSource
    reachable: bool | None = None


class MapHost(Exact):
    address: PayloadText
    interface_name: PayloadText | None = None
    hostname: PayloadText | None = None
    mac_address: PayloadText | None = None
    services: tuple[MapService, ...]
    reachability: Reachability
    latency_ms: Number | None = None
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

    mac_address: PayloadText | None = None
    interfaces: PayloadText | None = None
    gateway: PayloadText | None = None
    os_version: PayloadText | None = None


class NetworkPayload(Payload, tag_field="version", tag=2):
    version: ClassVar = 2
    scope: PayloadText
    discovery: Discovery | None
    endpoints: Annotated[tuple[Endpoint, ...], Meta(max_length=limits.ENDPOINTS_MAX)]
    endpoints_omitted: Count
    printers: Annotated[tuple[Printer, ...], Meta(max_length=limits.PRINTERS_MAX)] | None
    network_map: NetworkMap | None
    unavailable: Unavailable
