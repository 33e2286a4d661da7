"""Resolves the host names of printers within a time limit."""

import socket
import time
from collections.abc import Callable, Sequence
from concurrent.futures import wait
from contextlib import suppress
from dataclasses import dataclass, replace

from collectors.network.observations import SLOW_LOOKUP_S, KnownPrinter
from collectors.shared.addresses import is_mdns_name, plain_address
from collectors.shared.background import in_background

NAMES_MAX = 512
LOOKUPS_AT_ONCE = 8
ADDRESSES_MAX = 8

Resolve = Callable[[str], tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Lookup:
    """The addresses of a host name, and the time in seconds until the resolver returned them."""

    addresses: tuple[str, ...]
    took_s: float


def with_literal_addresses(printers: Sequence[KnownPrinter]) -> tuple[KnownPrinter, ...]:
    """Set ``addresses`` of the printers whose host is an IP address."""
    return tuple(
        replace(printer, addresses=(literal,)) if (literal := _literal(printer.host)) else printer
        for printer in printers
    )


def resolve_hosts(
    printers: Sequence[KnownPrinter],
    deadline_s: float,
    resolve: Resolve | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> tuple[KnownPrinter, ...]:
    """Set ``addresses`` and ``lookup_s`` of the printers whose host is a name.

    This function uses the system's resolver, as print systems do. So the order of name servers, the
    search domains and the time limits are the same as for a print job. Names below ``.local`` are
    not resolved here, because mDNS resolves them. A name without an answer by ``deadline_s``
    (``time.monotonic()``) gets no addresses, and its lookup counts as slow. This function sends
    queries to the name server, so do not call it for a run that must not use the network.
    """
    started_s = clock()
    names = tuple(
        dict.fromkeys(
            e.host for e in printers if e.host and not e.addresses and not is_mdns_name(e.host)
        )
    )[:NAMES_MAX]
    resolved = _look_up(names, deadline_s, resolve or _system_resolve, clock)
    unfinished = Lookup((), max(SLOW_LOOKUP_S, clock() - started_s))
    lookups = {name: resolved.get(name, unfinished) for name in names}
    return tuple(
        replace(printer, addresses=lookup.addresses, lookup_s=lookup.took_s)
        if not printer.addresses and (lookup := lookups.get(printer.host or ""))
        else printer
        for printer in printers
    )


def _look_up(
    names: Sequence[str], deadline_s: float, resolve: Resolve, clock: Callable[[], float]
) -> dict[str, Lookup]:
    """Resolve names in daemon threads. The threads are abandoned at the deadline, because the
    system's resolver accepts no deadline."""
    resolved: dict[str, Lookup] = {}
    pending = iter(names)  # each thread takes the next name

    def work() -> None:
        for name in pending:
            started_s = clock()
            addresses: tuple[str, ...] = ()
            with suppress(OSError, UnicodeError):
                addresses = resolve(name)[:ADDRESSES_MAX]
            resolved[name] = Lookup(addresses, clock() - started_s)

    workers = [in_background(work) for _ in range(min(LOOKUPS_AT_ONCE, len(names)))]
    wait(workers, timeout=max(0.0, deadline_s - clock()))
    return dict(resolved)


def _system_resolve(name: str) -> tuple[str, ...]:
    entries = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(entry[4][0]).partition("%")[0] for entry in entries))


def _literal(host: str | None) -> str | None:
    is_own = host == "localhost"
    return "127.0.0.1" if is_own else plain_address((host or "").partition("%")[0])
