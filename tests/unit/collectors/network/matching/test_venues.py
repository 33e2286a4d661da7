"""Tests the verdicts in generated venues against what CUPS would do there."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace

import pytest

from collectors.contract import LearnedPrinter, Printer
from collectors.network.matching.match import match
from collectors.network.observations import PrinterMatches
from collectors.shared.addresses import split_host_port
from tests import sizes
from tests.unit.collectors.network.matching.venues import Device, Queue, Truth, Venue

pytestmark = pytest.mark.medium

VENUES = sizes.amount(medium=100, large=1000, variable="VENUES")
REPORTS = 3
_MOVED = re.compile(
    r"oved to (?:\[([0-9a-f:]+)\]:\d+|([\d.]+)(?::\d+)?|([0-9a-f:]+)) \(same"
    r"|is at ([0-9a-f.:]+) \(same"
)
_TAKEN = re.compile(r"the printer (q\d+) \(same [^)]*\) has this address now")
_HINT = re.compile(r"seen at ([0-9a-f.:]+)(?:: it may be|\Z)")


@dataclass
class QueueVerdict:
    """The verdict about one queue in one report, and the truth.

    ``printers`` maps the name of each queue to the devices that have been its printer. The first is
    the device for which the queue was set up. Each later device has replaced the device before it,
    and no report could recognise the replacement. The last device is the queue's printer now.
    ``has_other_mac``: the device that accepts the queue's jobs has a different MAC from the device
    before it, so a report can recognise the replacement.
    """

    seed: int
    report: int
    venue: Venue
    queue: Queue
    truth: Truth
    result: Printer
    printers: dict[str, list[Device]]
    has_other_mac: bool

    @property
    def own_printers(self) -> list[Device]:
        return self.printers[self.queue.name]

    @property
    def is_printing(self) -> bool:
        """Return whether the queue's current printer accepts the job."""
        return self.truth.device is self.own_printers[-1]

    def mistakes(self) -> Iterator[str]:
        """Yield each wrong statement in the verdict."""
        reason, status = self.result.reason or "", self.result.status
        named_addresses = [next(filter(None, groups)) for groups in _MOVED.findall(reason)]
        named_devices = [self.venue.device_at(address) for address in named_addresses]
        # Whether the verdict names a device that was the queue's printer earlier.
        is_back = bool(named_devices) and named_devices[0] in self.own_printers[:-1]
        if status == "reachable" and self.truth.device is None:
            yield "reachable, but CUPS cannot connect"
        elif status == "reachable" and not self.is_printing and self.has_other_mac:
            yield "reachable, but it is another device"
        if self.is_printing and status != "reachable" and not is_back:
            yield f"{status}, but it prints"
        if any(device not in self.own_printers for device in named_devices) or (
            named_devices and self.is_printing and not is_back
        ):
            yield (
                "moved, but to a device that never was the queue's printer, or although the printer"
                " at the old address prints"
            )
        for name in _TAKEN.findall(reason):
            devices = [self.venue.device_at(address) for address in self.truth.addresses]
            if (
                not any(device in devices for device in self.printers[name])
                or self.own_printers[0] in devices
            ):
                yield "the reason names the wrong printer at the queue's address"
        if any(self._is_of_another_queue(address) for address in _HINT.findall(reason)):
            yield "the hint names the printer of another queue"

    def _is_of_another_queue(self, address: str) -> bool:
        """Return whether observations show that an address belongs to another queue's printer."""
        device = self.venue.device_at(address)
        if device is None or device in self.own_printers:
            return False
        is_visible = device.has_mdns and bool(device.services)
        return (len(device.addresses) == 1 or is_visible) and any(
            other.device is device
            and ":" not in other.target
            and self.venue.truth(other).device is device
            for other in self.venue.queues
        )

    def __str__(self) -> str:
        addresses = [link.ipv4 for link in self.own_printers[-1].links]
        return (
            f"venue {self.seed}, report {self.report}: {self.queue.uri} of the device at"
            f" {addresses} is {self.result.status}: {self.result.reason} (truth: {self.truth})"
        )


def verdicts_of(seed: int) -> Iterator[tuple[list[QueueVerdict], PrinterMatches]]:
    """Yield the verdicts and the matches of each of three reports of a venue.

    Each report uses what the earlier reports learned.
    """
    venue, memory = Venue(seed), dict[str, LearnedPrinter]()
    macs: dict[str, str | None] = {}
    printers: dict[str, list[Device]] = {}
    for report in range(REPORTS):
        if report:
            venue.change()
        known = venue.known_printers(memory)
        matches = match(known, venue.observe(known))
        verdicts = []
        for queue, result in zip(venue.queues, matches.printers, strict=True):
            truth, devices = venue.truth(queue), printers.setdefault(queue.name, [queue.device])
            mac, before = _certain_mac(venue, truth.device), macs.get(queue.name)
            has_other_mac = None not in (mac, before) and mac != before
            if result.status == "reachable" and truth.device and not has_other_mac:
                macs[queue.name] = mac or before
                if truth.device is not devices[-1]:
                    printers[queue.name] = [*devices, truth.device]
            verdicts.append(
                QueueVerdict(seed, report, venue, queue, truth, result, printers, has_other_mac)
            )
        yield verdicts, matches
        memory |= {
            printer.id: _merge(memory.get(printer.id), printer) for printer in matches.learned
        }


def _certain_mac(venue: Venue, device: Device | None) -> str | None:
    """Return the MAC by which a device is recognised with certainty, None if there is none."""
    if device is None or device.is_hidden or device.is_in_vlan or len(device.links) > 1:
        return None
    return device.links[0].mac


def _merge(before: LearnedPrinter | None, now: LearnedPrinter) -> LearnedPrinter:
    """Merge two learned printers as `agent.rules.learned_printers` does."""
    if before is None:
        return now
    missing = {f.name: getattr(before, f.name) for f in fields(now) if not getattr(now, f.name)}
    return replace(now, **missing)


UNKNOWN_MAX = 0.003
"""At most this share of the verdicts about printers that print may be "unknown"."""


def test_no_verdict_contradicts_what_cups_would_do():
    mistakes: Counter[str] = Counter()
    examples: dict[str, QueueVerdict] = {}
    statuses: Counter[tuple[bool, str]] = Counter()
    for seed in range(VENUES):
        for verdicts, matches in verdicts_of(seed):
            for verdict in verdicts:
                statuses[verdict.is_printing, verdict.result.status] += 1
                for mistake in verdict.mistakes():
                    mistakes[mistake] += 1
                    examples.setdefault(mistake, verdict)
            _check_strangers(verdicts, matches)
    print(f"{VENUES} venues: {dict(statuses)}")
    printing = sum(count for (prints, _), count in statuses.items() if prints)
    unknown = mistakes.pop("unknown, but it prints", 0)
    assert not mistakes, [f"{n} × {m}, {examples[m]}" for m, n in mistakes.items()]
    assert unknown <= UNKNOWN_MAX * printing, examples["unknown, but it prints"]


def _check_strangers(verdicts: list[QueueVerdict], matches: PrinterMatches) -> None:
    """Check which queues are matched with strangers.

    A stranger is a device that answers at the address of a queue's printer instead of the printer;
    its ``id`` is that of the queue. Another queue may be matched with it only if both queues print
    to the same addresses.
    """
    targets = {f"cups:{verdict.queue.name}": verdict.truth.addresses for verdict in verdicts}
    for stranger in matches.strangers:
        for printer in matches.printers:
            if split_host_port(printer.matched_endpoint or "")[0] == stranger.address:
                assert targets[printer.id] == targets[stranger.id], (printer.reason, stranger)


@pytest.mark.parametrize("seed", range(sizes.amount(medium=20, large=200)))
def test_a_learned_printer_is_recognised_by_its_mac_at_a_new_address(seed: int):
    venue = Venue(seed)
    for device in venue.devices:
        device.is_hidden = False
    known = venue.known_printers({})
    first = match(known, venue.observe(known))
    learned = {printer.id: printer for printer in first.learned if printer.mac_address}
    for queue, result in zip(venue.queues, first.printers, strict=True):
        if venue.truth(queue).device is not None:
            assert result.status == "reachable", (queue, result)
    for device in {id(queue.device): queue.device for queue in venue.queues}.values():
        venue.move(device)
    known = venue.known_printers(learned)
    for queue, result in zip(
        venue.queues, match(known, venue.observe(known)).printers, strict=True
    ):
        if queue.target.startswith("192.168.") and len(queue.device.links) == 1:
            assert f"cups:{queue.name}" in learned, queue
            address = queue.device.links[0].ipv4
            assert (result.reason or "").startswith(f"Moved to {address}:"), (queue, result)
