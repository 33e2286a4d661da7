"""Browse DNS-SD services on every interface until the neighbours have nothing new to say."""

import ipaddress
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from collectors.contract import Interface, NetworkJob, Run, SourceState
from collectors.network.host.neighbours import read_neighbour_table
from collectors.network.mdns.announcers import SOURCES_MAX, LinkRecords
from collectors.network.mdns.direct import HOSTS_MAX, ask_directly
from collectors.network.mdns.records import Quota, service_type_of
from collectors.network.mdns.session import End, QuerySchedule, ReadNeighbours, Session, Watch
from collectors.network.mdns.sockets import LinkSockets, open_link
from collectors.network.observations import NOTHING_WANTED, MdnsFindings, MdnsService, Wanted
from collectors.shared.addresses import parse_networks

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
_ASKED_IN_SILENCE = 16

OpenLink = Callable[[Interface], LinkSockets | None]


def browse(
    interfaces: Sequence[Interface],
    job: NetworkJob,
    deadline_s: float,
    run: Run,
    *,
    wanted: Callable[[], Wanted] = lambda: NOTHING_WANTED,
    open_link: OpenLink = open_link,
    read_neighbours: ReadNeighbours = read_neighbour_table,
    schedule: QuerySchedule | None = None,
) -> MdnsFindings:
    """Return the services announced on ``interfaces``; blocks until quiet or ``deadline_s``.

    ``deadline_s`` is a moment of ``time.monotonic()``. ``wanted`` identifies the announcements
    that are kept if there are too many. Never raises for errors of the network or machine: the
    returned state has them.
    """
    own_types = (_plain_type(each) for each in job.mdns_service_types)
    types = tuple(dict.fromkeys((*SERVICE_TYPES, *(each for each in own_types if each))))
    quota = Quota(job.max_services, wanted)
    links = [link for link in (open_link(each) for each in interfaces) if link is not None]
    own = frozenset(address.address for each in interfaces for address in each.addresses)
    watches = [
        Watch(link, LinkRecords(link.name, quota, link.networks), own=own)
        for link in links[:INTERFACES_MAX]
    ]
    try:
        asking = [watch for watch in watches if watch.link.sockets]
        end = Session(asking, types, schedule or QuerySchedule(), read_neighbours).listen(
            deadline_s, run
        )
        hosts = _Hosts(read_neighbours, wanted, job.exclude)
        told = [
            _ask_hosts(watch, end, hosts, types, deadline_s=deadline_s, run=run) for watch in asking
        ]
        unicast_only = [
            watch.link.name
            for watch in asking
            if _answer_alone(watch, end, hosts, types, deadline_s=deadline_s, run=run)
        ]
    finally:
        for link in links:
            link.close()
    findings = _findings(
        watches, quota, end, [text for text in told if text], left_out=len(links) - len(watches)
    )
    return replace(findings, unicast_only=tuple(unicast_only))


class _Hosts:
    """The hosts of a link that may be asked one by one: those known to be there."""

    def __init__(
        self,
        read_neighbours: ReadNeighbours,
        wanted: Callable[[], Wanted],
        exclude: Sequence[str],
    ) -> None:
        self._read_neighbours = read_neighbours
        self._wanted = wanted
        self._excluded = parse_networks(exclude)

    @property
    def is_called(self) -> bool:
        """Whether this machine prints to anything by a name of mDNS."""
        return self._wanted().is_called

    def of(self, link: LinkSockets) -> list[str]:
        """Return IPv4 addresses, those of known printers first."""
        try:
            table = self._read_neighbours()
        except OSError:
            return []
        there = {e.address: e for e in table if e.mac_address and ":" not in e.address}
        wanted = self._wanted().addresses
        found = [a for a in there if link.is_neighbour((a, 0)) and not self._is_excluded(a)]
        return sorted(found, key=lambda each: each not in wanted)[:HOSTS_MAX]

    def _is_excluded(self, address: str) -> bool:
        return any(ipaddress.ip_address(address) in network for network in self._excluded)


def _ask_hosts(
    watch: Watch, end: End, hosts: _Hosts, types: Sequence[str], *, deadline_s: float, run: Run
) -> str | None:
    """Ask the hosts of a link themselves where too much was told; say in words that it was so."""
    if not (watch.records.is_tight or (end == "crowded" and watch.is_crowded)) or run.cancelled:
        return None
    there = hosts.of(watch.link)
    if not there:
        return None
    answered = ask_directly(watch.records, there, types, deadline_s=deadline_s, run=run)
    return (
        f"mDNS: more was announced on {watch.link.name} than could be heard, so"
        f" {len(there):,} hosts were asked one by one: {answered:,} answered"
    )


def _answer_alone(
    watch: Watch, end: End, hosts: _Hosts, types: Sequence[str], *, deadline_s: float, run: Run
) -> bool:
    """Where nobody was heard and a printer is called by its name, ask some hosts themselves; tell
    whether any answers. Then multicast does not pass, and what they say is all there is."""
    if end != "quiet" or watch.has_heard or run.cancelled or not hosts.is_called:
        return False
    there = hosts.of(watch.link)[:_ASKED_IN_SILENCE]
    return ask_directly(watch.records, there, types, deadline_s=deadline_s, run=run) > 0


def _plain_type(given: str) -> str | None:
    """Return ``_ipp._tcp`` for any usual way to write it; None for what is no service type."""
    name = given.strip().lower().rstrip(".").removesuffix(".local")
    return service_type_of(name + ".local")


def _findings(
    watches: Sequence[Watch],
    quota: Quota,
    end: End,
    told: Sequence[str],
    *,
    left_out: int,
) -> MdnsFindings:
    services: list[MdnsService] = [each for watch in watches for each in watch.records.services()]
    limitations = list(dict.fromkeys(p for watch in watches for p in watch.link.complaints()))
    if quota.dropped:
        limitations.append(
            f"mDNS: {len(quota.dropped):,} services over the limit were left out:"
            f" {_by_announcer(quota.dropped_of, watches)}"
        )
    if left_out_of := quota.records_dropped_of:
        limitations.append(
            f"mDNS: {sum(left_out_of.values()):,} records were left out for want of room:"
            f" {_by_announcer(left_out_of, watches)}"
        )
    limitations += (text for watch in watches for text in _unheard(watch))
    limitations += told
    if end == "deadline":
        limitations.append("mDNS: the time was up before the neighbours had fallen silent")
    if left_out:
        limitations.append(f"mDNS: {left_out} interfaces beyond {INTERFACES_MAX} were not browsed")
    return MdnsFindings(
        services=tuple(services),
        state=_state(watches),
        truncated=_is_cut(watches, quota) or end in ("deadline", "cancelled"),
        limitations=tuple(limitations),
    )


def _is_cut(watches: Sequence[Watch], quota: Quota) -> bool:
    return quota.is_tight or any(watch.records.is_tight for watch in watches)


def _by_announcer(counts: Mapping[str, int], watches: Sequence[Watch]) -> str:
    """Say of whom how many, the most first."""
    ranked = sorted(counts.items(), key=lambda each: -each[1])
    named = [
        f"{count:,} of {_named(announcer, watches)}"
        for announcer, count in ranked[:ANNOUNCERS_NAMED_MAX]
    ]
    if rest := ranked[ANNOUNCERS_NAMED_MAX:]:
        named.append(f"{sum(count for _, count in rest):,} of {len(rest):,} others")
    return ", ".join(named)


def _named(announcer: str, watches: Sequence[Watch]) -> str:
    names = (watch.records.named(announcer) for watch in watches)
    return next((name for name in names if name != announcer), announcer)


def _unheard(watch: Watch) -> Iterator[str]:
    records, name = watch.records, watch.link.name
    if records.unread_of:
        total = sum(records.unread_of.values())
        yield (
            f"mDNS: {total:,} packets on {name} were left unread because their senders sent too"
            f" many: {_by_announcer(records.unread_of, (watch,))}"
        )
    if records.unheard:
        yield (
            f"mDNS: more than {SOURCES_MAX:,} addresses announced something on {name}:"
            f" {records.unheard:,} times one of them was not heard"
        )


def _state(watches: Sequence[Watch]) -> SourceState:
    if not watches:
        return SourceState("unsupported", "no interface with an address to browse on")
    if any(watch.link.has_sent for watch in watches):
        return SourceState("succeeded")
    problems = "; ".join(p for watch in watches for p in watch.link.complaints())
    return SourceState("failed", problems or "stopped before the first question")
