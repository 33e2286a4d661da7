"""The conditions that make an agent unhealthy: code, severity, title and fix.

A condition can depend on other conditions, which explain it. While one of these holds, the
condition is not shown. For example, ``not-enrolled`` is not shown while the service's name cannot
be resolved, because the device cannot enroll without the service.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal, get_args

from agent.errors import UnavailableCause
from agent.wire.base import Model

Severity = Literal["warning", "error"]


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition, and the codes of the conditions that explain it."""

    severity: Severity
    title: str
    fix: str
    depends_on: tuple[str, ...] = ()


class Problem(Model):
    """A condition that holds now. ``detail`` describes it, ``since`` is ISO 8601 in UTC."""

    code: str
    severity: Severity
    title: str
    detail: str
    fix: str
    since: str


_ERRORS: Final = {
    "name-resolution": (
        "the service's name cannot be resolved",
        "check this machine's DNS servers and network cable, and service.base_url",
    ),
    "connection-refused": (
        "the service's address refuses connections",
        "check service.base_url and that no firewall rejects the connection",
    ),
    "connection-lost": (
        "the connection to the service breaks",
        "check the network; if the problem persists, a firewall or proxy may cut the connection",
    ),
    "timeout": (
        "the service does not answer in time",
        "check the network; raise service.request_timeout_seconds on slow links",
    ),
    "tls": (
        "no trusted TLS connection to the service",
        "check this machine's clock and, where TLS is inspected, set service.ca_file",
    ),
    "proxy": (
        "the proxy refuses connections to the service",
        "check service.proxy and the HTTPS_PROXY and NO_PROXY variables",
    ),
    "redirect": (
        "something redirects calls to the service",
        "check service.base_url; a sign-in page of the network may be in the way",
    ),
    "captive-portal": (
        "a web page answers instead of the service",
        "sign in to the venue's network, or correct service.base_url",
    ),
    "credential-refused": (
        "the service does not accept the API key",
        "put a valid key with a write grant for this location into the key file",
    ),
    "not-enrolled": (
        "this device is not enrolled",
        "the detail has the reason; the agent keeps trying",
    ),
    "revoked": (
        "the service has revoked this device",
        "to enroll again: stop the agent, run `venue-agent enroll --force`, then start the agent",
    ),
    "state-failing": (
        "the state directory cannot be written",
        "free disk space or correct the directory's owner; the agent keeps trying",
    ),
    "internal-error": (
        "a part of the agent broke and was started again",
        "send the log to support; the agent continues",
    ),
}
"""Titles and fixes of the errors, by code."""

_WARNINGS: Final = {
    "server-error": (
        "the service reports an error of its own",
        "nothing to do: the agent keeps trying",
    ),
    "bad-reply": (
        "the service's answers do not follow the contract",
        "check service.base_url; update the agent if the service is newer",
    ),
    "throttled": (
        "the service limits the number of calls",
        "nothing to do: the agent waits",
    ),
    "identity-too-long": (
        "the organization's id is too long for reports",
        "tell the service's operator: reports contain only the start of the id",
    ),
    "commands-unreadable": (
        "the service sends commands that cannot be read",
        "update the agent if the service is newer; other commands are accepted",
    ),
    "partly-failing": (
        "the service answers some calls, but not others",
        "tell the service's operator; the agent keeps trying",
    ),
    "heartbeat-rejected": (
        "the service rejects this device's heartbeats",
        "tell the service's operator; update the agent if the service is newer",
    ),
    "commands-rejected": (
        "the service does not send this device its commands",
        "tell the service's operator; update the agent if the service is newer",
    ),
    "stream-broken": (
        "the command stream breaks again and again",
        'a proxy may cut the stream: if the problem persists, set commands.delivery = "poll"',
    ),
    "requests-flooding": (
        "more requests wait than this device accepts",
        "tell the service's operator; further requests are accepted when others have ended",
    ),
    "disk-scarce": (
        "there is little space on the disk",
        "free disk space: until then there are no scheduled reports",
    ),
    "place-changed": (
        "the unsent reports on this disk belong to another device or service",
        "these reports are kept in the quarantine folder of the state directory",
    ),
    "clock-skew": (
        "this machine's clock differs from the service's",
        "set the clock or enable time synchronisation",
    ),
    "reports-waiting": (
        "reports wait to be sent",
        "the agent sends them once the service is reachable",
    ),
    "reports-dropped": (
        "reports were dropped: no space, too old, or refused by the service",
        "see `venue-agent history` and the quarantine folder in the state directory",
    ),
    "state-quarantined": (
        "unreadable state was moved away",
        "check the disk; the files lie in the quarantine folder of the state directory",
    ),
    "device-cloned": (
        "this disk was copied from another machine",
        "nothing to do: this machine has a new identity; the other machine keeps the old one",
    ),
    "collector-failed": (
        "the last collection failed",
        "run `venue-agent collect` on this machine to see why",
    ),
}
"""Titles and fixes of the warnings, by code."""

_UNAVAILABLE: Final[tuple[str, ...]] = get_args(UnavailableCause)
"""Conditions under which the service gives no usable answer."""

_DEPENDS_ON: Final[Mapping[str, tuple[str, ...]]] = {
    "credential-refused": _UNAVAILABLE,
    "not-enrolled": (*_UNAVAILABLE, "credential-refused"),
    "heartbeat-rejected": ("revoked",),
    "commands-rejected": ("revoked",),
    "stream-broken": _UNAVAILABLE,
    "reports-waiting": (*_UNAVAILABLE, "credential-refused"),
}


def _conditions(
    severity: Severity, table: Mapping[str, tuple[str, str]]
) -> Iterator[tuple[str, Condition]]:
    for code, (title, fix) in table.items():
        yield code, Condition(severity, title, fix, _DEPENDS_ON.get(code, ()))


CONDITIONS: Final[Mapping[str, Condition]] = MappingProxyType(
    dict((*_conditions("error", _ERRORS), *_conditions("warning", _WARNINGS)))
)


def visible_problems(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Return the problems that no other present problem explains."""
    by_code = {problem.code: problem for problem in problems}
    return tuple(
        problem
        for code, problem in by_code.items()
        if not any(cause in by_code for cause in CONDITIONS[code].depends_on)
    )
