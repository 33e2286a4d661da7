"""What a run has gathered so far."""

from dataclasses import dataclass, field

from collectors.contract import Failure, SourceState
from collectors.network.host.local_network import LocalNetwork
from collectors.network.observations import Enrichment, KnownPrinter, MdnsFindings
from collectors.network.scan.scan import ScanFindings
from collectors.network.scan.targets import TargetSelection

NO_NETWORK = "no network interface is up"


@dataclass(slots=True)
class Gathered:
    """The findings of each source as they come in; ``known`` is None until printers were read."""

    started_at: str
    os_platform: str
    os_version: str | None = None
    local: LocalNetwork = field(default_factory=LocalNetwork)
    interfaces_state: SourceState = field(default_factory=SourceState)
    selection: TargetSelection = field(default_factory=TargetSelection)
    scan: ScanFindings = field(default_factory=lambda: ScanFindings(state=SourceState()))
    mdns: MdnsFindings = field(default_factory=MdnsFindings)
    known: tuple[KnownPrinter, ...] | None = None
    enrichment: Enrichment = field(default_factory=Enrichment)
    macs: dict[str, str] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    limitations: list[str] = field(default_factory=list)
    is_cut: bool = False
