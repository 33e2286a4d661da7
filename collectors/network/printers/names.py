"""Resolves the host names of printers within a time limit."""

import ipaddress
import socket
import time
from collections.abc import Callable, Sequence
from concurrent.futures import wait
from dataclasses import replace

from collectors.network.observations import KnownPrinter
from collectors.shared.addresses import is_mdns_name
from collectors.shared.background import in_background

NAMES_MAX = 512
LOOKUPS_AT_ONCE = 8
ADDRESSES_MAX = 8

Resolve = Callable[[str], tuple[str, ...]]


def with_literal_addresses(printers: Sequence[KnownPrinter]) -> tuple[KnownPrinter, ...]:
    """Set ``addresses`` of the printers whose host is an IP address."""
    return tuple(
        replace(each, addresses=(literal,)) if (literal := _literal(each.host)) else each
        for each in printers
    )


def resolve_hosts(
    printers: Sequence[KnownPrinter], deadline_s: float, resolve: Resolve | None = None
) -> tuple[KnownPrinter, ...]:
    """Set ``addresses`` of the printers whose host is a name, with the system's resolver.

    Names below ``.local`` are not resolved here, because mDNS resolves them. A name without an
    answer by ``deadline_s`` (``time.monotonic()``) gets no addresses. This function sends queries
    to the name server, so do not call it for a run that must not use the network.
    """
    names = tuple(
        dict.fromkeys(
            e.host for e in printers if e.host and not e.addresses and not is_mdns_name(e.host)
        )
    )[:NAMES_MAX]
    resolved = _look_up(names, deadline_s, resolve or _system_resolve)
    return tuple(
        replace(each, addresses=resolved.get(each.host or "", each.addresses)) for each in printers
    )


def _look_up(
    names: Sequence[str], deadline_s: float, resolve: Resolve
) -> dict[str, tuple[str, ...]]:
    """Resolve names in daemon threads. The threads are abandoned at the deadline, because the
    system's resolver has no timeout."""
    resolved: dict[str, tuple[str, ...]] = {}
    pending = iter(names)  # each thread takes the next name

    def work() -> None:
        for name in pending:
            try:
                resolved[name] = resolve(name)[:ADDRESSES_MAX]
            except (OSError, UnicodeError):
                resolved[name] = ()

    workers = [in_background(work) for _ in range(min(LOOKUPS_AT_ONCE, len(names)))]
    wait(workers, timeout=max(0.0, deadline_s - time.monotonic()))
    return dict(resolved)


def _system_resolve(name: str) -> tuple[str, ...]:
    entries = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(entry[4][0]).partition("%")[0] for entry in entries))


def _literal(host: str | None) -> str | None:
    if host == "localhost":
        return "127.0.0.1"
    try:
        return str(ipaddress.ip_address((host or "").partition("%")[0]))
    except ValueError:
        return None
