"""What this machine, scan, mDNS and questions tell, joined once by host and by port. Pure.

Printer matching, the list of endpoints and the list of hosts all read this one table.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from collectors.contract import HostSource
from collectors.network.host.local_network import LocalNetwork
from collectors.network.matching.identity import normal_uuid
from collectors.network.observations import (
    Evidence,
    HostName,
    HostObservation,
    MdnsService,
    Observations,
    PortObservation,
)
from collectors.network.scan.scan import ScannedHost
from collectors.shared.addresses import is_loopback

PRINT_SERVICES = frozenset(
    {"_ipp._tcp", "_ipps._tcp", "_printer._tcp", "_pdl-datastream._tcp", "_privet._tcp"}
)
_NO_MODELS = frozenset({"", "printer", "(printer)", "unknown"})
_THIS_MACHINE_UNKNOWN = LocalNetwork()


def correlate(
    *,
    local: LocalNetwork = _THIS_MACHINE_UNKNOWN,
    scanned: Sequence[ScannedHost] = (),
    services: Sequence[MdnsService] = (),
    evidence: Sequence[Evidence] = (),
    hostnames: Sequence[HostName] = (),
    macs: Mapping[str, str] = MappingProxyType({}),
    announcers: Mapping[str, str] = MappingProxyType({}),
    scanned_networks: Sequence[str] = (),
) -> Observations:
    """Join what the sources saw. ``macs`` is the neighbour table, for hosts the scan did not try;
    ``announcers`` tells who announced an address. The first to be given is the first in the table.
    """
    convincing = _without_borrowed_uuids(services, evidence, local.own_addresses)
    return Observations(
        hosts=_hosts(local, scanned, services, hostnames, macs),
        ports=_ports(scanned, convincing, evidence, hostnames),
        announcers=announcers,
        scanned_networks=tuple(scanned_networks),
    )


def announced_addresses(service: MdnsService) -> tuple[str, ...]:
    """Return the addresses under which a service is listed: IPv4, else the best IPv6 one."""
    if ipv4 := tuple(address for address in service.addresses if ":" not in address):
        return ipv4
    ranked = sorted(service.addresses, key=lambda address: address.startswith("fe80:"))
    return tuple(ranked[:1])


def txt_model(service: MdnsService) -> str | None:
    """Return the model a TXT record names, None without one (Bonjour Printing Specification)."""
    txt = dict(service.txt)
    maker, model = txt.get("usb_mfg", ""), txt.get("usb_mdl", "")
    candidates = (
        txt.get("ty", ""),
        f"{maker} {model}".strip() if model else "",
        txt.get("product", "").strip("()"),
        txt.get("md", "") if service.type in _MODEL_IN_MD else "",
        txt.get("model", "") if service.type in _MODEL_IN_MODEL else "",
    )
    return next((each for each in candidates if each.lower() not in _NO_MODELS), None)


_MODEL_IN_MD = frozenset({"_googlecast._tcp", "_hap._tcp"})
_MODEL_IN_MODEL = frozenset({"_airplay._tcp", "_device-info._tcp", "_raop._tcp"})


def _without_borrowed_uuids(
    services: Sequence[MdnsService], evidence: Sequence[Evidence], own: frozenset[str]
) -> tuple[MdnsService, ...]:
    """Leave out what others announce of an address where the UUID in it is that of a device that
    gives it itself: no evidence of what is there."""
    given = {each.uuid for each in evidence if each.address not in own}
    given |= {_uuid(s) for s in services if not s.is_hearsay and not own.issuperset(s.addresses)}
    given.discard(None)
    return tuple(s for s in services if not (s.is_hearsay and _uuid(s) in given))


def _uuid(service: MdnsService) -> str | None:
    return normal_uuid(dict(service.txt).get("uuid"))


# ---------------------------------------------------------------------------- ports


def _ports(
    scanned: Sequence[ScannedHost],
    services: Sequence[MdnsService],
    evidence: Sequence[Evidence],
    hostnames: Sequence[HostName],
) -> dict[tuple[str, int], PortObservation]:
    hosts = {host.address: host for host in scanned}
    announced: defaultdict[tuple[str, int], list[MdnsService]] = defaultdict(list)
    answers: defaultdict[tuple[str, int], list[Evidence]] = defaultdict(list)
    names: defaultdict[str, list[str]] = defaultdict(list)
    for service in services:
        for address in service.addresses:
            names[address].append(service.hostname)
            if service.port:
                announced[address, service.port].append(service)
    for each in evidence:
        answers[each.address, each.port].append(each)
    for name in hostnames:
        names[name.address].append(name.hostname)
    opened = ((host.address, port) for host in scanned for port in host.open_ports)
    return {
        (address, port): _port(
            (address, port),
            hosts.get(address),
            announced.get((address, port), ()),
            answers.get((address, port), ()),
            names.get(address, ()),
        )
        for address, port in dict.fromkeys((*opened, *announced, *answers))
    }


def _port(
    key: tuple[str, int],
    host: ScannedHost | None,
    services: Sequence[MdnsService],
    answers: Sequence[Evidence],
    hostnames: Sequence[str],
) -> PortObservation:
    address, port = key
    txts = [dict(service.txt) for service in services]
    instances = [service.instance for service in services]
    uuids = _distinct((*map(_uuid, services), *(each.uuid for each in answers)))
    states = [each for each in answers if each.state is not None or each.state_reasons]
    if len(uuids) > 1:
        states = []  # several printers behind one port
    return PortObservation(
        address=address,
        port=port,
        contact=host.contact(port) if host else None,
        hostnames=_distinct(hostnames),
        instances=_distinct(instances),
        labels=_distinct((*instances, *(text for e in answers for text in (e.name, e.title)))),
        queues=_distinct(
            txt.get("rp", "").strip("/")
            for txt, service in zip(txts, services, strict=True)
            if service.type in PRINT_SERVICES
        ),
        uuids=uuids,
        answered_uuids=_distinct(each.uuid for each in answers),
        serials=_distinct(
            (*(t.get("serial") or t.get("usb_ser") for t in txts), *(e.serial for e in answers))
        ),
        models=_distinct((*(each.make_model for each in answers), *map(txt_model, services))),
        is_announced=bool(services),
        state=states[-1].state if states else None,
        state_reasons=states[-1].state_reasons if states else (),
    )


def _distinct(texts: Iterable[str | None]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text for text in texts if text))


# ---------------------------------------------------------------------------- hosts


def _hosts(
    local: LocalNetwork,
    scanned: Sequence[ScannedHost],
    services: Sequence[MdnsService],
    hostnames: Sequence[HostName],
    macs: Mapping[str, str],
) -> dict[str, HostObservation]:
    found = {host.address: host for host in scanned}
    announced: defaultdict[str, list[MdnsService]] = defaultdict(list)
    for service in services:
        for address in announced_addresses(service):
            announced[address].append(service)
    asked = {name.address: name.hostname for name in reversed(hostnames)}
    seen = {*found, *announced, *local.gateways}
    own = {a: each for each in local.in_use for a in each.addresses if ":" not in a or a in seen}
    routes = {a: each for each in reversed(local.in_use) for a in each.interface.gateways}

    def observe(address: str) -> HostObservation:
        host, heard = found.get(address), announced.get(address, [])
        names = [s.hostname for s in heard if not s.is_hearsay]
        names += [asked.get(address, ""), *(s.hostname for s in heard)]
        machine, route = own.get(address), routes.get(address)
        interfaces = [machine.interface.name if machine else None]
        interfaces += [host.interface_name if host else None, *(s.interface_name for s in heard)]
        interfaces += [route.interface.name if route else None]
        if machine is not None:
            mac_address = machine.interface.mac_address
        else:
            mac_address = host.mac_address if host else None
        return HostObservation(
            address=address,
            sources=tuple(sources(address)),
            services=tuple(heard),
            scanned=host,
            interface_name=next(iter(_distinct(interfaces)), None),
            hostname=next(iter(_distinct(names)), None),
            mac_address=mac_address or (None if host else macs.get(address)),
        )

    def sources(address: str) -> Iterator[HostSource]:
        if address in own or is_loopback(address):
            yield "local"
        if address in routes:
            yield "gateway"
        if address in announced:
            yield "mdns"
        if address in found:
            yield "tcp"

    return {each: observe(each) for each in dict.fromkeys((*found, *announced, *own, *routes))}
