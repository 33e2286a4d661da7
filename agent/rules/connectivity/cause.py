"""Finds the cause of an interruption from one sample of the path to the service.

If calls were refused, or failed although a connection was possible, this is the cause. If the
service accepted or refused a connection, only the refusal or silent name servers can be the cause.
Otherwise the path is checked from this machine outwards, and the first part that fails is the
cause. Parts that were not measured are skipped.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from agent.errors import CredentialRefused, Refused, ServiceError, ServiceUnavailable
from agent.wire.payloads.history import Cause

NameServerAnswer = Literal["answer", "failure", "silent"]
"""``answer``: the server returned an address, or replied that the name does not exist. ``failure``:
the server replied that it cannot resolve the name (SERVFAIL, REFUSED). ``silent``: no reply."""
ServiceAnswer = Literal["reply", "connected", "refused", "unreachable", "silent"]
"""``reply``: a call succeeded. ``connected``: only a TCP connection was made. ``refused``: the
connection was refused. ``unreachable``: the network reported that there is no route. ``silent``:
no answer in time, or any other error."""


@dataclass(frozen=True, slots=True)
class NameServer:
    """The answer of one name server to a query for the service's name.

    ``is_local``: the server is in a network of this machine. ``can_forward``: the server answered a
    query for a random name, for which it needs other name servers. None if this is unknown.
    """

    address: str
    answer: NameServerAnswer
    is_local: bool
    can_forward: bool | None = None


@dataclass(frozen=True, slots=True)
class LinkState:
    """This machine's side of the path.

    None means that a value is not known on this platform, or that the part itself is missing, such
    as the gateway.

    Args:
        interface: the interface of the default route, or of the last known default route.
        has_link: ``interface`` has a carrier. If ``interface`` is None: any hardware interface has
            a carrier.
        addresses: the addresses that are valid beyond their link. None: not known.
        has_route: there is a default route.
        gateway: the address of the default gateway. Point-to-point links have none.
        gateway_mac: the MAC of the gateway, as ``aa:bb:cc:dd:ee:ff``.
        access_point: the MAC of the Wi-Fi access point.
        signal_dbm: the signal of the Wi-Fi connection.
        link_errors: how many packets ``interface`` could not receive or send since it was created.
    """

    interface: str | None = None
    has_link: bool | None = None
    addresses: tuple[str, ...] | None = None
    has_route: bool | None = None
    gateway: str | None = None
    gateway_mac: str | None = None
    access_point: str | None = None
    signal_dbm: int | None = None
    link_errors: int | None = None

    @property
    def path(self) -> tuple[object, ...]:
        """The parts of the state on which the path to the service depends."""
        return self.interface, self.has_link, bool(self.addresses), self.has_route, self.gateway


@dataclass(frozen=True, slots=True)
class Sample:
    """The state of the path to the service. None means: not measured.

    Args:
        link: this machine's side of the path.
        conflicting_address: the address of this machine or of its gateway, if another machine also
            uses it.
        gateway_answers: the gateway sent any reply, such as one to ARP, a ping or a DNS query.
        name_servers: the answers to a query for the service's name. Empty if the service's address
            needs no query.
        service: how the service, or the configured proxy, answered a TCP connection or a call.
        refusal: the diagnosis of calls that the service refused, or that failed although a
            connection was possible.
        is_service_local: the service is in a network of this machine, so no gateway is needed.
    """

    link: LinkState = LinkState()
    conflicting_address: str | None = None
    gateway_answers: bool | None = None
    name_servers: tuple[NameServer, ...] = ()
    service: ServiceAnswer | None = None
    refusal: "Diagnosis | None" = None
    is_service_local: bool = False


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The cause of an interruption, and its evidence: a sentence without a full stop."""

    cause: Cause
    evidence: str


def diagnose(sample: Sample) -> Diagnosis | None:
    """Return the cause of an interruption. Returns None if the sample shows no interruption."""
    if sample.refusal is not None:
        return sample.refusal
    if sample.service in ("reply", "connected", "refused"):
        return _name_servers_silent(sample) or _refused(sample)
    return _on_this_machine(sample) or _at_the_gateway(sample) or _beyond_the_gateway(sample)


def _name_servers_silent(sample: Sample) -> Diagnosis | None:
    """Return a diagnosis if no name server answers, although the service was reached."""
    servers = sample.name_servers
    if not servers or any(server.answer == "answer" for server in servers):
        return None
    evidence = f"{_failures(servers)}, but the network works"
    return Diagnosis("name-servers-silent", evidence)


def _refused(sample: Sample) -> Diagnosis | None:
    if sample.service != "refused":
        return None
    return Diagnosis("service-down", "the service's address refuses connections")


def _on_this_machine(sample: Sample) -> Diagnosis | None:
    interface = sample.link.interface or "the network"
    if sample.link.has_link is False:
        return Diagnosis("link-down", f"{interface} has no link")
    if sample.link.addresses == ():
        return Diagnosis("no-address", f"{interface} has a link but no address")
    if sample.conflicting_address is not None:
        return Diagnosis(
            "address-conflict", f"another machine also uses {sample.conflicting_address}"
        )
    return None


def _at_the_gateway(sample: Sample) -> Diagnosis | None:
    if sample.is_service_local:
        return None
    if sample.link.has_route is False:
        return Diagnosis("gateway-silent", "there is no default gateway")
    if sample.gateway_answers is False:
        return Diagnosis("gateway-silent", f"the gateway {sample.link.gateway} does not answer")
    return None


def _beyond_the_gateway(sample: Sample) -> Diagnosis | None:
    """Return the cause if this machine and the gateway have no fault."""
    if sample.service is None:
        return None
    if sample.is_service_local:
        return Diagnosis("service-down", "the service in this network does not answer")
    gateway = f"the gateway {sample.link.gateway} answers, " if sample.gateway_answers else ""
    if _anything_beyond_gateway_answers(sample):
        names = _names(s for s in sample.name_servers if s.answer == "answer" or s.can_forward)
        verb = "answers" if len(names) == 1 else "answer"
        evidence = f"{gateway}{' and '.join(names)} {verb}, the service does not"
        return Diagnosis("service-down", evidence)
    if any(server.answer != "answer" for server in sample.name_servers):
        evidence = f"{gateway}{_failures(sample.name_servers, 'the service')}"
        return Diagnosis("provider-down", evidence)
    if sample.service == "unreachable" or _cannot_forward(sample):
        return Diagnosis("provider-down", f"{gateway}nothing beyond this network answers")
    return Diagnosis("unreachable", f"{gateway}the service does not answer")


def _failures(servers: Sequence[NameServer], *silent_others: str) -> str:
    """Return ``an error from name server A and no answer from name server B and the service``."""
    failing = _names(server for server in servers if server.answer == "failure")
    silent = [*_names(s for s in servers if s.answer == "silent"), *silent_others]
    parts = (("an error from", failing), ("no answer from", silent))
    return " and ".join(f"{start} {' and '.join(names)}" for start, names in parts if names)


def _names(servers: Iterable[NameServer]) -> list[str]:
    return [f"name server {server.address}" for server in servers]


def _anything_beyond_gateway_answers(sample: Sample) -> bool:
    """Return whether something beyond the gateway, other than the service, answered."""
    return any(
        server.can_forward or (server.answer == "answer" and not server.is_local)
        for server in sample.name_servers
    )


def _cannot_forward(sample: Sample) -> bool:
    """Return whether a name server answers only names that it has stored."""
    return any(server.can_forward is False for server in sample.name_servers)


def diagnose_reply(error: ServiceError) -> Diagnosis | None:
    """Return the diagnosis of a failed heartbeat. Returns None if there was no reply at all.

    An API key that cannot be read counts as one that the service refuses. Also returns None for a
    reply that rejects only the body (`BodyRejected`, `BodyTooLarge`) or only limits the rate of
    calls (`Throttled`): it is not an interruption.
    """
    if isinstance(error, CredentialRefused | Refused):
        return Diagnosis("service-refuses", str(error))
    if not isinstance(error, ServiceUnavailable):
        return None
    if error.cause in ("captive-portal", "redirect", "proxy"):
        return Diagnosis("unreachable", str(error))
    if error.cause in ("server-error", "bad-reply"):
        return Diagnosis("service-down", str(error))
    return None
