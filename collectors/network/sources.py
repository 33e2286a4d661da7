"""The sources of a network report. Tests replace single sources.

The modules for mDNS, printers and queries are imported where they are first used. Their libraries
take longest to load, and the scan already runs meanwhile.
"""

from collections.abc import Callable, Collection, Sequence

from collectors.contract import ConfiguredPrinter, Interface, NetworkJob, Run
from collectors.network.discoveries import Discoveries
from collectors.network.observations import (
    DeviceAnswers,
    Enrichment,
    Evidence,
    KnownPrinter,
    KnownPrinters,
    MdnsResult,
    PrinterIdentifiers,
    SnmpTarget,
)
from collectors.network.scan.scan import scan
from collectors.shared.host.interfaces import read_local_network
from collectors.shared.host.neighbours import read_neighbour_table
from collectors.shared.host.operating_system import read_os_version


class Sources:
    """The real sources.

    Except for `check_addresses`, each method calls the function of the same name, which documents
    it.
    """

    retry_delays_s: tuple[float, ...] = (2.0, 4.0, 6.0)
    """The times, in seconds after the scan, at which a print port that refused or did not answer is
    tried again. A printer may be busy with the receipt of another till, but is usually free by the
    last try."""

    read_local_network = staticmethod(read_local_network)
    read_neighbour_table = staticmethod(read_neighbour_table)
    read_os_version = staticmethod(read_os_version)
    scan = staticmethod(scan)

    def browse(
        self,
        interfaces: Sequence[Interface],
        job: NetworkJob,
        deadline_s: float,
        run: Run,
        identifiers: Callable[[], PrinterIdentifiers],
    ) -> MdnsResult:
        from collectors.network.mdns.browse import browse

        return browse(interfaces, job, deadline_s, run, identifiers=identifiers)

    def read_known_printers(
        self, configured: Sequence[ConfiguredPrinter], deadline_s: float
    ) -> KnownPrinters:
        from collectors.network.printers import read_known_printers

        return read_known_printers(configured, deadline_s)

    def resolve_hosts(
        self, printers: Sequence[KnownPrinter], deadline_s: float
    ) -> tuple[KnownPrinter, ...]:
        from collectors.network.printers.host_names import resolve_hosts

        return resolve_hosts(printers, deadline_s)

    def check_addresses(
        self, addresses: Collection[str], deadline_s: float, run: Run
    ) -> DeviceAnswers:
        """Return which of the addresses answered ARP requests, and which did not."""
        from collectors.shared.arp.resolver import resolve_addresses

        resolver = resolve_addresses(addresses, deadline_s, run)
        return DeviceAnswers(resolver.answers, frozenset(resolver.silent))

    def enrich(
        self, discoveries: Discoveries, interfaces: Sequence[Interface], deadline_s: float, run: Run
    ) -> Enrichment:
        from collectors.network.questions.questions import enrich

        return enrich(discoveries, interfaces, deadline_s, run)

    def query_snmp(
        self, targets: Sequence[SnmpTarget], community: str, deadline_s: float, run: Run
    ) -> tuple[Evidence, ...]:
        from collectors.network.questions.snmp import query_snmp

        return query_snmp(targets, community, deadline_s, run)
