"""The network report (contract: Version-2 payload)."""

from typing import Annotated, Literal

from pydantic import Field

from agent.wire import limits
from agent.wire.base import Absent, Array, Count, Exact, MaxItems, Number, Port
from agent.wire.payloads.common import Payload
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
    """One address and port that accepts connections, or that was announced by mDNS."""

    address: PayloadText
    host: PayloadText  # the host name, or the address if the name is not known
    port: Port
    label: PayloadText  # the name of the service, or the usual service of the port
    model: PayloadText | None
    discovered_by: Annotated[tuple[DiscoverySource, ...], MaxItems(limits.DISCOVERED_BY_MAX)]
    status: EndpointStatus
    mac_address: PayloadText | None
    matched_printer_ids: Annotated[tuple[PayloadId, ...], MaxItems(limits.MATCHED_PRINTER_IDS_MAX)]


class Printer(Exact):
    """One printer of this machine.

    ``matched_endpoint`` is ``address:port`` of the endpoint that was recognised as this printer.
    """

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
    addresses: Array[MapAddress]
    gateways: Array[PayloadText]
    mac_address: Absent[PayloadText] = None


class MapService(Exact):
    name: Absent[PayloadText] = None
    type: Absent[PayloadText] = None
    port: Number
    source: ServiceSource
    reachable: Absent[bool] = None


class MapHost(Exact):
    address: PayloadText
    interface_name: Absent[PayloadText] = None
    hostname: Absent[PayloadText] = None
    mac_address: Absent[PayloadText] = None
    services: Array[MapService]
    reachability: Reachability
    latency_ms: Absent[Number] = None
    sources: Array[HostSource]


class MapSources(Exact):
    interfaces: MapSourceState
    mdns: MapSourceState
    scan: MapSourceState


class MapBounds(Exact):
    max_hosts: Number
    max_services: Number
    max_duration_ms: Number
    ports: Array[Number]


class NetworkMap(Exact):
    state: MapState
    os: MapOs
    interfaces: Array[MapInterface]
    hosts: Array[MapHost]
    sources: MapSources
    limitations: Array[PayloadText]
    bounds: MapBounds
    truncated: bool


class Unavailable(Exact):
    """The reason for each value that could not be read on this machine."""

    mac_address: Absent[PayloadText] = None
    interfaces: Absent[PayloadText] = None
    gateway: Absent[PayloadText] = None
    os_version: Absent[PayloadText] = None


class NetworkPayload(Payload):
    version: Literal[2]
    scope: PayloadText  # "local-network", or "device" if no address of the network was scanned
    discovery: Discovery | None
    endpoints: Annotated[tuple[Endpoint, ...], MaxItems(limits.ENDPOINTS_MAX)]
    endpoints_omitted: Count
    printers: Annotated[tuple[Printer, ...], MaxItems(limits.PRINTERS_MAX)] | None
    network_map: NetworkMap | None
    unavailable: Unavailable
