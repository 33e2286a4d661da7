"""What can be wrong with a running agent, declared: a code, how bad it is, and what to do.

A condition names those it depends on: while one of these holds, it is noise and is not shown
(without a name there is no connection, without a connection no binding).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

Severity = Literal["warning", "error"]


@dataclass(frozen=True, slots=True)
class Condition:
    code: str
    severity: Severity
    title: str
    fix: str
    depends_on: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Problem:
    """A condition that holds now, with what was seen. ``since`` is ISO 8601 in UTC."""

    condition: Condition
    detail: str
    since: str


_UNAVAILABLE: Final = (
    Condition(
        "name-resolution",
        "error",
        "the service's name cannot be resolved",
        "check this machine's DNS servers and network cable, and service.base_url",
    ),
    Condition(
        "connection-refused",
        "error",
        "the service's address refuses connections",
        "check service.base_url and that no firewall rejects the connection",
    ),
    Condition(
        "connection-lost",
        "error",
        "the connection to the service breaks",
        "check the network; if it persists, a firewall or proxy may cut it",
    ),
    Condition(
        "timeout",
        "error",
        "the service does not answer in time",
        "check the network; raise service.request_timeout_seconds on slow links",
    ),
    Condition(
        "tls",
        "error",
        "no trusted TLS connection to the service",
        "check this machine's clock and, where TLS is inspected, set service.ca_file",
    ),
    Condition(
        "proxy",
        "error",
        "the proxy refuses the way to the service",
        "check service.proxy and the HTTPS_PROXY and NO_PROXY variables",
    ),
    Condition(
        "redirect",
        "error",
        "something redirects calls to the service",
        "check service.base_url; a sign-in page of the network may be in the way",
    ),
    Condition(
        "captive-portal",
        "error",
        "a web page answers instead of the service",
        "sign in to the venue's network, or correct service.base_url",
    ),
    Condition(
        "server-error",
        "warning",
        "the service reports an error of its own",
        "nothing to do here: the agent keeps trying",
    ),
    Condition(
        "bad-reply",
        "warning",
        "the service's answers do not follow the contract",
        "check service.base_url; update the agent if the service is newer",
    ),
    Condition(
        "throttled",
        "warning",
        "the service asks for fewer calls",
        "nothing to do here: the agent waits as told",
    ),
)

CONDITIONS: Final[Mapping[str, Condition]] = MappingProxyType(
    {
        condition.code: condition
        for condition in (
            *_UNAVAILABLE,
            Condition(
                "credential-refused",
                "error",
                "the service does not accept the API key",
                "put a valid key with a write grant for this location into the key file;"
                " it is read again by itself",
                tuple(c.code for c in _UNAVAILABLE),
            ),
            Condition(
                "not-enrolled",
                "error",
                "this device is not enrolled",
                "the agent keeps trying; see the reason beside this",
                (*(c.code for c in _UNAVAILABLE), "credential-refused"),
            ),
            Condition(
                "revoked",
                "error",
                "the service has revoked this device",
                "to bring it back: stop the service, run `venue-agent enroll --force`, start it",
            ),
            Condition(
                "identity-too-long",
                "warning",
                "the service names this device's organization at greater length than reports may",
                "tell the service's operator: reports carry the name's beginning",
            ),
            Condition(
                "commands-unreadable",
                "warning",
                "entries of unknown form arrive among the commands",
                "update the agent if the service is newer; the others are taken",
            ),
            Condition(
                "partly-failing",
                "warning",
                "the service answers some calls and fails at others",
                "tell the service's operator; the agent keeps trying",
            ),
            Condition(
                "heartbeat-rejected",
                "warning",
                "the service does not take this device's heartbeats",
                "tell the service's operator; update the agent if the service is newer",
                ("revoked",),
            ),
            Condition(
                "commands-rejected",
                "warning",
                "the service does not let this device ask for commands",
                "tell the service's operator; update the agent if the service is newer",
                ("revoked",),
            ),
            Condition(
                "stream-broken",
                "warning",
                "the command stream breaks again and again",
                'a proxy may cut it: set commands.delivery = "poll" if it persists',
                tuple(c.code for c in _UNAVAILABLE),
            ),
            Condition(
                "requests-flooding",
                "warning",
                "more requests wait than this device takes",
                "tell the service's operator; those left out are taken when there is room",
            ),
            Condition(
                "disk-scarce",
                "warning",
                "there is little room on the disk",
                "free disk space: until then no scheduled report is made",
            ),
            Condition(
                "place-changed",
                "warning",
                "this device was enrolled at another service before",
                "the reports that were not sent there are kept in the quarantine folder",
            ),
            Condition(
                "clock-skew",
                "warning",
                "this machine's clock differs from the service's",
                "set the clock or enable time synchronisation",
            ),
            Condition(
                "reports-waiting",
                "warning",
                "reports wait to be sent",
                "nothing to do once the service is reachable",
                (*(c.code for c in _UNAVAILABLE), "credential-refused"),
            ),
            Condition(
                "reports-dropped",
                "warning",
                "reports were given up for lack of room, by age or because they were refused",
                "see `venue-agent history` and the quarantine folder in the state directory",
            ),
            Condition(
                "state-quarantined",
                "warning",
                "unreadable state was set aside",
                "check the disk; the files lie in the quarantine folder of the state directory",
            ),
            Condition(
                "device-cloned",
                "warning",
                "this disk was copied from another machine",
                "nothing to do: a new identity was made; the other machine keeps the old one",
            ),
            Condition(
                "state-failing",
                "error",
                "the state directory cannot be written",
                "free disk space or correct the directory's owner; the agent keeps trying",
            ),
            Condition(
                "internal-error",
                "error",
                "a part of the agent broke and was started again",
                "send the log to support; the agent goes on",
            ),
            Condition(
                "collector-failed",
                "warning",
                "the last collection broke",
                "run `venue-agent collect` here to see why",
            ),
        )
    }
)


def to_show(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Return the problems worth showing: those that no other present one explains."""
    present = {p.condition.code: p for p in problems}
    return tuple(
        problem
        for problem in present.values()
        if not any(cause in present for cause in problem.condition.depends_on)
    )
