"""Tests the verdicts in generated venues against what CUPS would do there."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace

import pytest

from collectors.contract import LearnedPrinter, Printer
from collectors.network.matching.match import match
from collectors.network.observations import PrinterMatches
from tests import sizes
from tests.unit.collectors.network.matching.venues import SHARED_UUID, Device, Queue, Truth, Venue

pytestmark = pytest.mark.medium

VENUES = sizes.amount(small=20, medium=100, large=5000, variable="VENUES")
REPORTS = 3
_MOVED = re.compile(
    r"oved to (?:\[([0-9a-f:]+)\]:\d+|([\d.]+)(?::\d+)?|([0-9a-f:]+)) \(same"
    r"|is at ([0-9a-f.:]+) \(same"
)
_TAKEN = re.compile(r"the printer (q\d+) \(same [^)]*\) has this address now")
_HINT = re.compile(r"seen at ([0-9a-f.:]+)(?:: it may be|\Z)")


@dataclass
class Judged:
    """The verdict about one queue in one report, and the truth."""

    seed: int
    report: int
    venue: Venue
    queue: Queue
    truth: Truth
    result: Printer
    is_recognisable: bool

    @property
    def prints(self) -> bool:
        return self.truth.device is self.queue.device

    def mistakes(self) -> Iterator[str]:
        """Yield each wrong statement in the verdict."""
        reason, status = self.result.reason or "", self.result.status
        if status == "reachable" and not self.prints:
            if self.truth.device is None:
                yield "reachable, but CUPS cannot connect"
            elif self.is_recognisable:
                yield "reachable, but it is another device"
        if self.prints and status == "unreachable":
            yield "unreachable, but it prints"
        if self.prints and status == "unknown":
            yield "unknown, but it prints"
        for groups in _MOVED.findall(reason):
            device = self.venue.at(next(filter(None, groups)))
            if device is not self.queue.device or self.prints:
                yield "moved, but it is another device or prints"
        for name in _TAKEN.findall(reason):
            (other,) = (each for each in self.venue.queues if each.name == name)
            at = [self.venue.at(address) for address in self.truth.addresses]
            if other.device not in at or self.queue.device in at:
                yield "its address is not that of the other printer"
        for address in _HINT.findall(reason):
            device = self.venue.at(address)
            if any(
                other.device is device and self.venue.truth(other).device is device
                for other in self.venue.queues
                if other is not self.queue and device is not self.queue.device
                if device is not None and (len(device.links) == 1 or device.has_mdns)
            ):
                yield "the hint names the printer of another queue"

    def __str__(self) -> str:
        at = [address for link in self.queue.device.links for address in [link.ipv4]]
        return (
            f"venue {self.seed}, report {self.report}: {self.queue.uri} of the device at {at} is"
            f" {self.result.status}: {self.result.reason} (truth: {self.truth})"
        )


def judge(seed: int) -> Iterator[tuple[list[Judged], PrinterMatches]]:
    """Yield the verdicts of three reports of a venue. Each report remembers the ones before."""
    venue, memory = Venue(seed), dict[str, LearnedPrinter]()
    macs: dict[str, str | None] = {}
    for report in range(REPORTS):
        if report:
            venue.change()
        known = venue.known(memory)
        matches = match(known, venue.observed(known))
        judged = []
        for queue, result in zip(venue.queues, matches.printers, strict=True):
            truth = venue.truth(queue)
            mac = _certain_mac(venue, truth.device)
            before = macs.get(queue.name)
            is_recognisable = None not in (mac, before) and mac != before
            judged.append(Judged(seed, report, venue, queue, truth, result, is_recognisable))
            if truth.device is queue.device and result.status == "reachable" and mac:
                macs[queue.name] = mac
        yield judged, matches
        memory = {each.id: _merged(memory.get(each.id), each) for each in matches.learned} | {
            id_: each for id_, each in memory.items() if id_ not in {e.id for e in matches.learned}
        }


def _certain_mac(venue: Venue, device: Device | None) -> str | None:
    """Return the MAC by which a device with one interface is certainly recognised."""
    if device is None or device.is_hidden or device.is_in_vlan or len(device.links) > 1:
        return None
    return device.links[0].mac


def _merged(before: LearnedPrinter | None, now: LearnedPrinter) -> LearnedPrinter:
    if before is None:
        return now
    missing = {f.name: getattr(before, f.name) for f in fields(now) if not getattr(now, f.name)}
    return replace(now, **missing)


UNKNOWN_MAX = 0.003
"""The share of verdicts about printers that print that may be "unknown"."""


def test_no_verdict_contradicts_what_cups_would_do():
    mistakes: Counter[str] = Counter()
    examples: dict[str, Judged] = {}
    printing = 0
    for seed in range(VENUES):
        for judged, _ in judge(seed):
            for each in judged:
                printing += each.prints
                for mistake in each.mistakes():
                    mistakes[mistake] += 1
                    examples.setdefault(mistake, each)
    unknown = mistakes.pop("unknown, but it prints", 0)
    assert not mistakes, [f"{n} × {m}, {examples[m]}" for m, n in mistakes.items()]
    assert unknown <= max(1, UNKNOWN_MAX * printing), examples["unknown, but it prints"]
