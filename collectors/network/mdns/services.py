"""Returns the services in the records of an interface, and the questions for missing records.

No I/O. A service has the records that its own announcer sent. Addresses and TXT records that this
announcer did not send are taken from other announcers. Services that are probably forged
(`RecordBook.refuted`) are left out.
"""

import ipaddress
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

from collectors.network.fair_share import in_turns
from collectors.network.mdns.announcers import LinkRecords
from collectors.network.mdns.records import (
    ADDRESSES_PER_HOST_MAX,
    NAME_MAX,
    PRINTERS_PER_ANNOUNCER_MAX,
    Quota,
    RecordBook,
    parse_txt,
)
from collectors.network.mdns.wire import Question
from collectors.network.observations import MdnsService
from collectors.shared.text import clean_text

QUESTIONS_PER_HOST_MAX = 128


class _Lookup:
    """Looks up addresses and TXT records: first in a given book, then in all books."""

    def __init__(self, books: Iterable[RecordBook]) -> None:
        self._hosts: dict[str, dict[str, None]] = {}
        self._texts: dict[str, bytes] = {}
        for book in books:
            for host, addresses in book.hosts.items():
                self._hosts.setdefault(host, {}).update(addresses)
            for key, text in book.texts.items():
                self._texts.setdefault(key, text)

    def addresses(self, host: str, book: RecordBook) -> tuple[str, ...]:
        own = book.hosts.get(host.lower())
        others = islice(self._hosts.get(host.lower(), ()), ADDRESSES_PER_HOST_MAX)
        return tuple(own or others)

    def text(self, key: str, book: RecordBook) -> bytes | None:
        own = book.texts.get(key)
        return self._texts.get(key) if own is None else own

    def open_questions(self, key: str, book: RecordBook) -> Iterator[Question]:
        """Yield the questions for the records that an instance lacks."""
        labels = book.instances[key].labels
        if "\ufffd" in labels[0]:
            return  # the bytes of the name were not valid UTF-8 and are lost: no host would answer
        record = book.servers.get(key)
        if record is None:
            yield Question(labels, "SRV")
        elif not self.addresses(record.host, book):
            host = tuple(record.host.lower().split("."))
            yield Question(host, "A")
            yield Question(host, "AAAA")
        if self.text(key, book) is None:
            yield Question(labels, "TXT")


def known_instances(link: LinkRecords) -> dict[str, list[tuple[str, ...]]]:
    """Return the known instances of each type (``_ipp._tcp``). Each name is a tuple of labels."""
    instances: dict[str, list[tuple[str, ...]]] = {}
    for key, book in _best_books(link).items():
        instance = book.instances[key]
        instances.setdefault(instance.type, []).append(instance.labels)
    return instances


def open_questions(link: LinkRecords) -> dict[Question, str]:
    """Return the questions for missing records, each with the announcer of the service.

    Announcers take turns.
    """
    lookup = _Lookup(link.books)
    questions = [
        (book.announcer, (question, book.announcer))
        for key, book in _best_books(link).items()
        for question in lookup.open_questions(key, book)
    ]
    return dict(in_turns(questions))


def open_questions_of_host(link: LinkRecords, source: str) -> list[Question]:
    """Return the questions about one host's services that the host itself has not answered yet."""
    book = link.book_of(source)
    if book is None:
        return []
    lookup = _Lookup((book,))
    questions = (q for key in book.instances for q in lookup.open_questions(key, book))
    return list(islice(questions, QUESTIONS_PER_HOST_MAX))


def select_services(
    links: Sequence[LinkRecords], quota: Quota
) -> tuple[list[MdnsService], Counter[str]]:
    """Return at most ``quota.services`` services, and how many of each announcer were left out.

    Services that their host confirmed and services with priority (`RecordBook.has_priority`) come
    first, at most ``PRINTERS_PER_ANNOUNCER_MAX`` of each announcer. All other services follow, and
    their announcers take turns.
    """
    ranked: list[tuple[bool, int, str, MdnsService]] = []
    counts: Counter[str] = Counter()
    for link in links:
        for has_priority, service in sorted(_services(link), key=lambda entry: not entry[0]):
            announcer = link.announcer(service.announcer)
            is_first = has_priority and counts[announcer] < PRINTERS_PER_ANNOUNCER_MAX
            ranked.append((not is_first, counts[announcer], announcer, service))
            counts[announcer] += 1
    ranked.sort(key=lambda entry: entry[:2])
    cut = Counter(announcer for _, _, announcer, _ in ranked[quota.services :])
    for link in links:
        cut += link.left_out(lambda book: len(book.dropped))
    return [service for *_, service in ranked[: quota.services]], cut


def _services(link: LinkRecords) -> Iterator[tuple[bool, MdnsService]]:
    """Yield (whether the service has priority, the service): once for each announcer that sent the
    service's SRV record, or once if no announcer sent it.
    """
    lookup = _Lookup(link.books)
    books: dict[str, list[RecordBook]] = {}
    for book in link.books:
        refuted = book.refuted()
        for key in book.instances:
            if key not in refuted:
                books.setdefault(key, []).append(book)
    for key, books_with_it in books.items():
        books_with_port = [book for book in books_with_it if key in book.servers]
        chosen_books = books_with_port or books_with_it[:1]
        priority_sources = {
            book.source
            for book in chosen_books
            if key in book.confirmed or book.has_priority(book.instances[key].label)
        }
        services = [_service(key, book, lookup, link.interface_name) for book in chosen_books]
        yield from ((service.announcer in priority_sources, service) for service in _join(services))


def _best_books(link: LinkRecords) -> dict[str, RecordBook]:
    """Return for each instance a book that has it, preferably a book with its SRV record."""
    best: dict[str, RecordBook] = {}
    for book in link.books:
        for key in book.instances:
            if key not in best or (key in book.servers and key not in best[key].servers):
                best[key] = book
    return best


def _service(key: str, book: RecordBook, lookup: _Lookup, interface_name: str) -> MdnsService:
    label, service_type = book.instances[key]
    record = book.servers.get(key)
    host = record.host if record else ""
    return MdnsService(
        instance=clean_text(label, NAME_MAX),
        type=clean_text(service_type, NAME_MAX),
        hostname=clean_text(host, NAME_MAX),
        addresses=_in_order(lookup.addresses(host, book)),
        port=record.port if record else 0,
        txt=parse_txt(lookup.text(key, book) or b""),
        interface_name=interface_name,
        announcer=book.source,
    )


def _join(services: Sequence[MdnsService]) -> list[MdnsService]:
    """Join the services that one device announces both over IPv4 and over IPv6.

    The two announcements have different source addresses. They belong together if they have the
    same host name and port. In addition, the IPv4 announcement must list the source address of the
    IPv6 announcement, or be the only IPv4 announcement with this host name and port. It must also
    list all IPv4 addresses of the IPv6 announcement.
    """
    ipv4_services = [service for service in services if ":" not in service.announcer]
    unmatched: list[MdnsService] = []
    for ipv6_service in [service for service in services if ":" in service.announcer]:
        target = ipv6_service.hostname.lower(), ipv6_service.port
        candidates = [
            service
            for service in ipv4_services
            if (service.hostname.lower(), service.port) == target
        ]
        listing = [service for service in candidates if ipv6_service.announcer in service.addresses]
        ipv4_service = next(iter(listing or (candidates if len(candidates) == 1 else ())), None)
        extra = [
            a
            for a in ipv6_service.addresses
            if ":" in a or (ipv4_service and a in ipv4_service.addresses)
        ]
        if ipv4_service is None or len(extra) < len(ipv6_service.addresses):
            unmatched.append(ipv6_service)
            continue
        addresses = dict.fromkeys((*ipv4_service.addresses, *extra))
        joined = replace(
            ipv4_service, addresses=_in_order(islice(addresses, ADDRESSES_PER_HOST_MAX))
        )
        ipv4_services[ipv4_services.index(ipv4_service)] = joined
    return [*ipv4_services, *unmatched]


def _in_order(addresses: Iterable[str]) -> tuple[str, ...]:
    """Sort addresses: IPv4 first, then IPv6, and link-local addresses last in each family."""
    parsed = map(ipaddress.ip_address, addresses)
    return tuple(
        map(str, sorted(parsed, key=lambda address: (address.version, address.is_link_local)))
    )
