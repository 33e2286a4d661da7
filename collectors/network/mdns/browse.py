"""Browses DNS-SD services on every interface until no new answers arrive."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice

from collectors.contract import Interface, NetworkJob, Run, SourceState
from collectors.network.mdns.announcers import SOURCES_MAX, LinkRecords
from collectors.network.mdns.direct import HOSTS_MAX, query_directly
from collectors.network.mdns.records import Quota, service_type_of
from collectors.network.mdns.services import select_services
from collectors.network.mdns.session import End, QuerySchedule, ReadNeighbours, Session, Watch
from collectors.network.mdns.sockets import LinkSockets, open_link
from collectors.network.observations import NO_IDENTIFIERS, MdnsResult, PrinterIdentifiers
from collectors.shared.addresses import Network, is_in_networks, parse_networks
from collectors.shared.host.neighbours import read_neighbour_table
from collectors.shared.watched_devices import PaymentTerminals, expectations, terminals_of

SERVICE_TYPES = (
    "_ipp._tcp",
    "_ipps._tcp",
    "_printer._tcp",
    "_pdl-datastream._tcp",
    "_http._tcp",
    "_https._tcp",
    "_scanner._tcp",
    "_uscan._tcp",
    "_uscans._tcp",
    "_workstation._tcp",
    "_smb._tcp",
    "_afpovertcp._tcp",
    "_ssh._tcp",
    "_sftp-ssh._tcp",
    "_rfb._tcp",
    "_rtsp._tcp",
    "_axis-video._tcp",
    "_airplay._tcp",
    "_raop._tcp",
    "_googlecast._tcp",
    "_spotify-connect._tcp",
    "_sonos._tcp",
    "_device-info._tcp",
    "_mqtt._tcp",
    "_hap._tcp",
    "_hue._tcp",
    "_companion-link._tcp",
    "_privet._tcp",
    "_ptp._tcp",
)

INTERFACES_MAX = 16
ANNOUNCERS_NAMED_MAX = 4
"""Maximum number of announcers that the text of one limitation names."""
_UNICAST_HOSTS_MAX = 16

OpenLink = Callable[[Interface], LinkSockets | None]


def browse(
    interfaces: Sequence[Interface],
    job: NetworkJob,
    deadline_s: float,
    run: Run,
    *,
    identifiers: Callable[[], PrinterIdentifiers] = lambda: NO_IDENTIFIERS,
    open_link: OpenLink = open_link,
    read_neighbours: ReadNeighbours = read_neighbour_table,
    schedule: QuerySchedule | None = None,
) -> MdnsResult:
    """Return the services announced on ``interfaces``.

    Blocks until no more answers arrive, at most until ``deadline_s`` of ``time.monotonic()``.
    ``identifiers`` returns the identifiers of this machine's printers. If too much is announced,
    the announcements of these printers are kept. Errors of the network or machine are not raised:
    the returned state describes them.
    """
    configured_types = filter(None, map(_plain_type, job.mdns_service_types))
    types = tuple(dict.fromkeys((*SERVICE_TYPES, *configured_types)))
    quota = Quota(job.max_services, identifiers)
    links = [link for link in map(open_link, interfaces) if link is not None]
    own = frozenset(address.address for interface in interfaces for address in interface.addresses)
    watches = [
        Watch(link, LinkRecords(link.name, quota, link.networks), own=own)
        for link in links[:INTERFACES_MAX]
    ]
    try:
        open_watches = [watch for watch in watches if watch.link.sockets]
        session = Session(open_watches, types, schedule or QuerySchedule(), read_neighbours)
        end = session.listen(deadline_s, run)
        query = partial(query_directly, types=types, deadline_s=deadline_s, run=run)
        terminals = terminals_of(expectations(job.devices, job.learned))
        excluded = parse_networks(job.exclude)
        direct = _DirectQueries(read_neighbours, identifiers, excluded, query, terminals)
        limitations: list[str] = []
        for watch in open_watches:
            if text := direct.query_if_crowded(watch, end):
                limitations.append(text)
            else:
                direct.confirm_names(watch, end)
        unicast_only = tuple(w.link.name for w in open_watches if direct.is_unicast_only(w, end))
    finally:
        for link in links:
            link.close()
    if end == "deadline":
        limitations.append("mDNS: the time was up before all hosts had answered")
    if len(links) > len(watches):
        count = len(links) - len(watches)
        limitations.append(
            f"mDNS: {count} interfaces were not browsed: the limit is {INTERFACES_MAX} interfaces"
        )
    records = [watch.records for watch in watches]
    services, cut = select_services(records, quota)
    return MdnsResult(
        services=tuple(services),
        state=_state(watches),
        truncated=bool(cut)
        or any(record.is_overloaded for record in records)
        or end in ("deadline", "cancelled"),
        limitations=(*_limitations(watches, cut), *limitations),
        unicast_only=unicast_only,
    )


@dataclass(frozen=True, slots=True)
class _DirectQueries:
    """Sends unicast questions to the hosts of a link that are in the neighbour table."""

    read_neighbours: ReadNeighbours
    identifiers: Callable[[], PrinterIdentifiers]
    excluded: Sequence[Network]
    query: Callable[..., int]
    terminals: PaymentTerminals

    def query_if_crowded(self, watch: Watch, end: End) -> str | None:
        """Query each host of a link if packets were lost there, or too much was announced.

        Returns a limitation for the report, or None if no host was queried.
        """
        is_crowded = watch.records.is_overloaded or (end == "crowded" and watch.is_crowded)
        hosts = self._hosts(watch.link) if is_crowded and end != "cancelled" else []
        if not hosts:
            return None
        answered = self.query(watch.records, hosts)
        return (
            f"mDNS: packets on {watch.link.name} were lost, or too much was announced, so the"
            f" hosts were queried one by one: {answered:,} of {len(hosts):,} answered"
        )

    def is_unicast_only(self, watch: Watch, end: End) -> bool:
        """Return whether hosts of a link answer unicast questions but no multicast questions.

        Unicast questions are sent to at most `_UNICAST_HOSTS_MAX` hosts, and only if no packet was
        received and a printer of this machine is set up by an mDNS name.
        """
        if end != "settled" or watch.has_received or not self.identifiers().has_mdns_name:
            return False
        return self.query(watch.records, self._hosts(watch.link)[:_UNICAST_HOSTS_MAX]) > 0

    def confirm_names(self, watch: Watch, end: End) -> None:
        """Query each host whose address announced itself under several host names."""
        addresses = watch.records.addresses_with_several_names()
        if addresses and end != "cancelled":
            hosts = [host for host in self._hosts(watch.link) if host in addresses]
            self.query(watch.records, hosts, confirms=True)

    def _hosts(self, link: LinkSockets) -> list[str]:
        """Return the link's IPv4 addresses from the neighbour table, those of printers first."""
        try:
            table = self.read_neighbours()
        except OSError:
            return []
        entries = (e for e in table if (e.address, e.mac_address) not in self.terminals)
        present = {e.address: e for e in entries if e.mac_address and ":" not in e.address}
        neighbours = [a for a in present if link.is_neighbour((a, 0))]
        printer_addresses = self.identifiers().addresses
        neighbours.sort(key=lambda neighbour: neighbour not in printer_addresses)
        allowed = (a for a in neighbours if not is_in_networks(a, self.excluded))
        return list(islice(allowed, HOSTS_MAX))


def _plain_type(text: str) -> str | None:
    """Return a service type in the form ``_ipp._tcp``, or None if ``text`` is not a type.

    Upper case, a final dot and ``.local`` are accepted.
    """
    name = text.strip().lower().rstrip(".").removesuffix(".local")
    return service_type_of(name + ".local")


def _limitations(watches: Sequence[Watch], cut: Mapping[str, int]) -> Iterator[str]:
    yield from dict.fromkeys(p for watch in watches for p in watch.link.all_problems())
    if cut:
        yield (
            f"mDNS: {sum(cut.values()):,} services over the limit were left out:"
            f" {_by_announcer(cut, watches)}"
        )
    if refuted := sum(len(book.refuted()) for watch in watches for book in watch.records.books):
        yield (
            f"mDNS: services left out because the device at their address did not confirm them:"
            f" {refuted:,}"
        )
    dropped_records: Counter[str] = Counter()
    for watch in watches:
        dropped_records += watch.records.left_out(lambda book: book.dropped_records)
    if dropped_records:
        yield (
            f"mDNS: {dropped_records.total():,} records were left out because too much was"
            f" announced: {_by_announcer(dropped_records, watches)}"
        )
    for watch in watches:
        records, name = watch.records, watch.link.name
        if dropped_packets := records.dropped_packets:
            yield (
                f"mDNS: {dropped_packets.total():,} packets on {name} were not read because their"
                f" senders sent too many: {_by_announcer(dropped_packets, (watch,))}"
            )
        if records.rejected:
            yield (
                f"mDNS: more than {SOURCES_MAX:,} addresses announced something on {name}:"
                f" packets or records were discarded {records.rejected:,} times"
            )


def _by_announcer(counts: Mapping[str, int], watches: Sequence[Watch]) -> str:
    """Return ``20 from 192.168.1.66, 3 from 2 others``, the largest counts first."""
    ranked = Counter(counts).most_common()
    texts = [
        f"{count:,} from {_describe(announcer, watches)}"
        for announcer, count in ranked[:ANNOUNCERS_NAMED_MAX]
    ]
    if others := ranked[ANNOUNCERS_NAMED_MAX:]:
        texts.append(f"{sum(count for _, count in others):,} from {len(others):,} others")
    return ", ".join(texts)


def _describe(announcer: str, watches: Sequence[Watch]) -> str:
    names = (watch.records.describe(announcer) for watch in watches)
    return next((name for name in names if name != announcer), announcer)


def _state(watches: Sequence[Watch]) -> SourceState:
    if not watches:
        return SourceState("unsupported", "no interface has an address that mDNS can use")
    if any(watch.link.sent for watch in watches):
        return SourceState("succeeded")
    problems = "; ".join(p for watch in watches for p in watch.link.all_problems())
    return SourceState("failed", problems or "stopped before the first question")
