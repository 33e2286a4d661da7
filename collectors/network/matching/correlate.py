"""What scan, mDNS and enrichment saw, put together per address and port."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from collectors.network.matching.identity import normal_uuid
from collectors.network.observations import (
    Evidence,
    HostName,
    Identification,
    MdnsService,
    Observations,
    PortContact,
    PrinterObservation,
    SeenHost,
)

PRINT_SERVICES = frozenset(
    {"_ipp._tcp", "_ipps._tcp", "_printer._tcp", "_pdl-datastream._tcp", "_privet._tcp"}
)
_UNSPOKEN_MODELS = frozenset({"", "printer", "(printer)", "unknown"})


def correlate(
    *,
    hosts: Sequence[SeenHost] = (),
    contacts: Sequence[PortContact] = (),
    services: Sequence[MdnsService] = (),
    evidence: Sequence[Evidence] = (),
    hostnames: Sequence[HostName] = (),
    scanned_networks: Sequence[str] = (),
) -> Observations:
    """Join what the sources saw. A port that was tried, not open and never announced is no
    sighting of its own: it is only among the contacts. What others announce of an address is no
    evidence where the UUID in it is that of a device that gives it itself."""
    services = _without_borrowed_uuids(services, evidence)
    gathered: dict[tuple[str, int], _Gathered] = {}
    outcomes = {(each.address, each.port): each.outcome for each in contacts}
    for key, outcome in outcomes.items():
        if outcome == "open":
            gathered.setdefault(key, _Gathered())
    for service in services:
        for address in service.addresses if service.port else ():
            gathered.setdefault((address, service.port), _Gathered()).add_service(service)
    for each in evidence:
        gathered.setdefault((each.address, each.port), _Gathered()).add_evidence(each)
    seen = {host.address: host for host in hosts}
    names = _names_by_address(hosts, services, hostnames)
    observations = (
        PrinterObservation(
            address=address,
            port=port,
            contact=outcomes.get((address, port)),
            mac_address=seen[address].mac_address if address in seen else None,
            hostnames=names.get(address, ()),
            instances=tuple(found.instances),
            queues=tuple(found.queues),
            uuids=tuple(found.uuids),
            answered_uuids=tuple(found.answered_uuids),
            serials=tuple(found.serials),
            models=tuple(found.models),
            is_announced=found.is_announced,
            state=found.state,
            state_reasons=found.state_reasons,
        )
        for (address, port), found in gathered.items()
    )
    return Observations(tuple(observations), tuple(hosts), tuple(contacts), tuple(scanned_networks))


def _without_borrowed_uuids(
    services: Sequence[MdnsService], evidence: Sequence[Evidence]
) -> tuple[MdnsService, ...]:
    own = {each.uuid for each in evidence} | {_uuid(s) for s in services if not s.is_hearsay}
    own.discard(None)
    return tuple(s for s in services if not (s.is_hearsay and _uuid(s) in own))


def _uuid(service: MdnsService) -> str | None:
    return normal_uuid(dict(service.txt).get("uuid"))


def identify(
    services: Sequence[MdnsService], evidence: Sequence[Evidence]
) -> tuple[Identification, ...]:
    """Return the label and the model of each address and port about which anything is known.

    Labels: the DNS-SD instance, then the printer's own name, then its page's title. Models: IPP,
    then TXT (``ty``, ``usb_MFG`` with ``usb_MDL``, ``product``, ``md`` and their like).
    """
    labels: dict[tuple[str, int], list[str]] = {}
    models: dict[tuple[str, int], list[str]] = {}
    for each in evidence:
        models.setdefault((each.address, each.port), []).append(each.make_model or "")
    for service in services:
        for address in service.addresses if service.port else ():
            key = (address, service.port)
            labels.setdefault(key, []).append(service.instance)
            models.setdefault(key, []).append(txt_model(service) or "")
    for each in evidence:
        labels.setdefault((each.address, each.port), []).extend((each.name or "", each.title or ""))
    return tuple(
        Identification(*key, label=_first(labels.get(key, ())), model=_first(models.get(key, ())))
        for key in dict.fromkeys((*labels, *models))
    )


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
    return next((each for each in candidates if each.lower() not in _UNSPOKEN_MODELS), None)


_MODEL_IN_MD = frozenset({"_googlecast._tcp", "_hap._tcp"})
_MODEL_IN_MODEL = frozenset({"_airplay._tcp", "_device-info._tcp", "_raop._tcp"})


@dataclass(slots=True)
class _Gathered:
    """The evidence of one address and port; dicts serve as ordered sets."""

    instances: dict[str, None] = field(default_factory=dict)
    queues: dict[str, None] = field(default_factory=dict)
    uuids: dict[str, None] = field(default_factory=dict)
    answered_uuids: dict[str, None] = field(default_factory=dict)
    serials: dict[str, None] = field(default_factory=dict)
    models: dict[str, None] = field(default_factory=dict)
    is_announced: bool = False
    state: Literal["idle", "processing", "stopped"] | None = None
    state_reasons: tuple[str, ...] = ()

    def add_service(self, service: MdnsService) -> None:
        txt = dict(service.txt)
        self.is_announced = True
        if service.instance:
            self.instances[service.instance] = None
        if service.type in PRINT_SERVICES and txt.get("rp"):
            self.queues[txt["rp"].strip("/")] = None
        _keep(self.uuids, normal_uuid(txt.get("uuid")))
        _keep(self.serials, txt.get("serial") or txt.get("usb_ser"))
        _keep(self.models, txt_model(service))

    def add_evidence(self, evidence: Evidence) -> None:
        _keep(self.uuids, evidence.uuid)
        _keep(self.answered_uuids, evidence.uuid)
        _keep(self.serials, evidence.serial)
        _keep(self.models, evidence.make_model)
        if len(self.uuids) > 1:
            self.state, self.state_reasons = None, ()  # several printers behind one port
        elif evidence.state is not None or evidence.state_reasons:
            self.state, self.state_reasons = evidence.state, evidence.state_reasons


def _keep(values: dict[str, None], value: str | None) -> None:
    if value:
        values[value] = None


def _first(candidates: Iterable[str]) -> str | None:
    return next((each for each in candidates if each), None)


def _names_by_address(
    hosts: Sequence[SeenHost], services: Sequence[MdnsService], hostnames: Sequence[HostName]
) -> dict[str, tuple[str, ...]]:
    names: dict[str, dict[str, None]] = {}
    for host in hosts:
        _keep(names.setdefault(host.address, {}), host.hostname)
    for service in services:
        for address in service.addresses:
            _keep(names.setdefault(address, {}), service.hostname)
    for each in hostnames:
        _keep(names.setdefault(each.address, {}), each.hostname)
    return {address: tuple(found) for address, found in names.items()}
