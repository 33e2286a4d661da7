"""Why a printer does not print: the table from what was seen to the cause and what to do. Pure.

Of each group the first row that fits is said, the groups in the order of ``GROUPS``. A row of the
group "machine" is about this machine or its network: the report tells it once, and again with each
printer that it explains. Nothing here promises more than was seen.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, get_args

from collectors.network.matching.symptoms import MachineSymptoms, Sees, Symptoms
from collectors.network.observations import is_called_by_mdns

Group = Literal["place", "instead", "device", "queue", "jobs", "port", "machine"]
GROUPS: tuple[Group, ...] = get_args(Group)


@dataclass(frozen=True, slots=True)
class Cause:
    """``sentence`` and ``remedy`` are filled in with the symptoms of the printer, ``s``, and of the
    machine, ``m``; ``told_by`` is for the manual, and so is a remedy that ``is_obvious``.

    ``fits`` tells whether it is the cause. One of the machine ``is_there`` or not, and ``fits``
    the printers that it explains."""

    code: str
    group: Group
    fits: Sees
    sentence: str
    told_by: str
    remedy: str
    is_obvious: bool = False
    is_there: Callable[[MachineSymptoms], bool] | None = None

    def is_cause(self, symptoms: Symptoms, machine: MachineSymptoms) -> bool:
        return (self.is_there is None or self.is_there(machine)) and self.fits(symptoms, machine)


def causes_of(symptoms: Symptoms, machine: MachineSymptoms) -> Iterator[Cause]:
    """Yield the causes of what is wrong with a printer, the first of each group."""
    for group in GROUPS:
        rows = (each for each in CAUSES if each.group == group)
        if found := next((each for each in rows if each.is_cause(symptoms, machine)), None):
            yield found


def explain(symptoms: Symptoms, machine: MachineSymptoms) -> tuple[str, ...]:
    """Say what was seen of a printer, what is wrong with it, and what to do about it."""
    causes = tuple(causes_of(symptoms, machine))
    has_place = any(each.group == "place" for each in causes)
    seen = () if has_place or not symptoms.seen else (symptoms.seen,)
    return (*seen, *(_said(each, symptoms, machine) for each in causes))


def machine_causes(machine: MachineSymptoms) -> tuple[str, ...]:
    """Say what is wrong with this machine's network, whatever printers it is the cause for."""
    rows = (each for each in CAUSES if each.is_there is not None)
    return tuple(
        _said(each, None, machine) for each in rows if each.is_there and each.is_there(machine)
    )


def _said(cause: Cause, symptoms: Symptoms | None, machine: MachineSymptoms) -> str:
    text = cause.sentence if cause.is_obvious else f"{cause.sentence}: {cause.remedy}"
    return text.format(s=symptoms, m=machine)


def _misses(symptoms: Symptoms, network: str) -> bool:
    """Tell whether a printer of a network was not reached."""
    return symptoms.is_out and bool(network) and symptoms.is_in(network)


_IS_IT_ON = "is it switched on and connected?"

CAUSES: tuple[Cause, ...] = (
    # ------------------------------------------------------------------ where it is
    Cause(
        "address-taken",
        "place",
        lambda s, _: bool(s.other),
        "{s.seen}, but {s.other}",
        "what answers has another MAC, serial number, UUID or model than the printer had",
        "give the printer a fixed address, or set it up anew if it was exchanged",
    ),
    Cause(
        "printer-without-dhcp",
        "place",
        lambda s, _: s.out_of_reach == "link-local",
        "{s.seen}; {s.address} is an address that a device gives itself when no DHCP server answers"
        " it",
        "the printer was found at 169.254.x.x",
        "see that it is connected to this network, and restart it or give it a fixed address",
    ),
    Cause(
        "wrong-mask",
        "place",
        lambda s, _: s.out_of_reach == "wrong mask",
        "{s.seen}; {s.address} is left out of this machine's network by its mask",
        "the printer was found on the cable or Wi-Fi, in a range that the usual mask would take in",
        "give this machine the mask that the others have",
    ),
    Cause(
        "other-subnet",
        "place",
        lambda s, _: s.out_of_reach == "other network",
        "{s.seen}; {s.address} is in another network than this machine",
        "the printer was found at an address in none of this machine's networks",
        "bring both into one network",
    ),
    Cause(
        "address-changed",
        "place",
        lambda s, _: bool(s.left),
        "{s.seen}; {s.left}",
        "MAC, UUID or serial number of the printer answer at another address",
        "set the printer up with the new address, or give it a fixed one",
    ),
    Cause(
        "queue-missing",
        "place",
        lambda s, _: s.is_queue_missing,
        "{s.seen}, but it has no queue {s.printer.queue}",
        "the print server was asked for the queue and has none",
        "was it renamed or removed there?",
    ),
    Cause(
        "name-unresolved",
        "place",
        lambda s, _: s.in_vain == "host name",
        "{s.seen}",
        "neither the name server nor mDNS has an address for the name it is set up with",
        "have the name put right in the router or name server, or set it up by its address",
    ),
    Cause(
        "off",
        "place",
        lambda s, _: bool(s.in_vain),
        "{s.seen}",
        "nothing answers at its address, not even to ARP; or nobody has its name, MAC or UUID",
        _IS_IT_ON,
    ),
    Cause(
        "asleep-or-off",
        "place",
        lambda s, _: s.contact == "no-answer" and not s.is_answering,
        "{s.seen}",
        "only its MAC is known; no port accepts or refuses",
        _IS_IT_ON,
    ),
    Cause(
        "port-held",
        "place",
        lambda s, _: s.contact in ("refused", "no-answer") and len(s.attempts) > 1,
        "{s.seen}, each of {s.attempts_count} times that it was tried",
        "the host answers; its print port refused or was silent each time in six seconds",
        "another till or program may hold it, or it hangs: let nothing else print to it, or switch"
        " it off and on",
    ),
    Cause(
        "port-held-for-a-while",
        "place",
        lambda s, _: s.contact == "open" and len(s.attempts) > 1,
        "{s.seen}; it took no connection at first",
        "the print port refused or was silent, and took a connection within six seconds",
        "another till or program may print to it at the same time",
    ),
    Cause(
        "port-closed",
        "place",
        lambda s, _: s.contact in ("refused", "no-answer"),
        "{s.seen}",
        "the host answers, its print port does not",
        "let it print on that port in its settings",
        is_obvious=True,
    ),
    # ------------------------------------------------------------------ at this machine
    Cause(
        "device-file-missing",
        "place",
        lambda s, _: s.printer.is_file_missing,
        "{s.printer.presence_reason}",
        "a USB printer is plugged in, but not as the device file that the queue prints to",
        "load the driver (`modprobe usblp`), or set the queue up anew as what `lpinfo -v` lists",
    ),
    Cause(
        "unplugged",
        "place",
        lambda s, _: s.printer.present is False,
        "{s.printer.presence_reason}",
        "no USB device or serial port is what the queue prints to",
        "see to its cable and power",
        is_obvious=True,
    ),
    Cause(
        "usb-suspended",
        "place",
        lambda s, _: bool(s.printer.suspended),
        "{s.printer.presence_reason}, but suspended to save power",
        "the kernel has suspended the device",
        "if it does not wake to print, `echo on > {s.printer.suspended}/power/control`",
    ),
    # ------------------------------------------------------------------ what there is instead
    Cause(
        "replaced-perhaps",
        "instead",
        lambda s, _: s.may_have_replaced,
        "if it has replaced the printer",
        "another device takes connections at the printer's address, and the printer is nowhere",
        "{s.forget}",
    ),
    Cause(
        "replaced",
        "instead",
        lambda s, _: bool(s.replaced_on),
        "since {s.replaced_on} it is another device than before",
        "what was there instead of the printer was taken for it in the end",
        "was the printer replaced?",
    ),
    Cause(
        "other-port-open",
        "instead",
        lambda s, _: bool(s.open_instead),
        "printing is open on port {s.open_instead} instead",
        "another print port of the same host takes connections",
        "set the queue up with that port",
        is_obvious=True,
    ),
    Cause(
        "other-kind-of-device",
        "instead",
        lambda s, _: bool(s.what_is_there),
        "what answers there is {s.what_is_there}",
        "what answers at the address has no print port and calls itself something",
        "has another device taken the address?",
    ),
    # ------------------------------------------------------------------ the device's own state
    Cause(
        "needs-attention",
        "device",
        lambda s, _: bool(s.complaints),
        "the {s.complainer} says: {s.complaints_listed}",
        "printer-state-reasons of the printer (IPP, SNMP) or of the spooler",
        "see to it at the printer: paper, cover, toner",
        is_obvious=True,
    ),
    Cause(
        "printer-stopped",
        "device",
        lambda s, _: s.is_stopped,
        "the printer says that it is stopped",
        "printer-state of the printer, without a reason",
        "resume it at its panel or page",
        is_obvious=True,
    ),
    Cause(
        "accepts-only",
        "device",
        lambda s, _: s.may_discard,
        "that it takes connections is all that was seen",
        "a raw port is open, which tells nothing of what becomes of the data: newer models may take"
        " it and print nothing",
        "if nothing prints, allow plain printing (port 9100) in its settings, or use IPP or the"
        " maker's driver",
        is_obvious=True,
    ),
    # ------------------------------------------------------------------ this machine's queue
    Cause(
        "queue-paused",
        "queue",
        lambda s, _: s.printer.stopped and s.is_device_fine,
        "its queue is stopped on this machine although the printer is there",
        "the queue is stopped, and nothing is wrong with the device",
        "resume it: {s.resume}",
    ),
    Cause(
        "queue-stopped",
        "queue",
        lambda s, _: s.printer.stopped,
        "its queue is stopped on this machine",
        "the queue is stopped, and the device has something, too",
        "see to what else is said, then resume the queue",
        is_obvious=True,
    ),
    Cause(
        "queue-rejecting",
        "queue",
        lambda s, _: s.printer.is_rejecting,
        "its queue takes no jobs",
        "printer-is-accepting-jobs of the queue is false",
        "let it: {s.accept}",
    ),
    Cause(
        "jobs-stuck",
        "jobs",
        lambda s, _: s.printer.stuck_jobs > 0,
        "{s.jobs} in its queue",
        "jobs wait in a stopped queue, are stopped themselves, or are older than ten minutes",
        "cure what else is said, else drop them: {s.cancel}",
    ),
    Cause(
        "wsd-port",
        "port",
        lambda s, _: s.printer.is_on_wsd_port and s.is_out,
        "it is set up on a WSD port, by which Windows loses printers that change their address",
        "the queue's Windows port is a WSD port, and the printer was not reached",
        "set it up on a Standard TCP/IP port",
    ),
    # ------------------------------------------------------------------ this machine's network
    Cause(
        "till-without-dhcp",
        "machine",
        lambda s, _: s.is_out,
        "this machine has no address from a DHCP server on {m.link_local_listed}",
        "its only addresses are those it gave itself, 169.254.x.x",
        "see to cable or Wi-Fi and to the router, or give it a fixed address",
        is_there=lambda m: bool(m.link_local),
    ),
    Cause(
        "gateway-outside",
        "machine",
        lambda s, _: s.is_out,
        "the gateway {m.lost_gateway} is not in the network of {m.lost_on}",
        "the default gateway lies outside of the network that address and mask make",
        "put address, mask and gateway of this machine right",
        is_there=lambda m: bool(m.lost_gateway),
    ),
    Cause(
        "two-ways",
        "machine",
        lambda s, m: _misses(s, m.shared_network),
        "{m.ways_listed} are in one network, {m.shared_network}, so that only one is used for it",
        "two interfaces, such as cable and Wi-Fi, have addresses in one range",
        "switch off the one that the printers are not on",
        is_there=lambda m: bool(m.shared_network),
    ),
    Cause(
        "client-isolation",
        "machine",
        lambda s, m: _misses(s, m.isolated_network),
        "on the Wi-Fi {m.isolated_on} nothing but the gateway answers, which may isolate its"
        " clients from each other",
        "printers are set up in a Wi-Fi network where the whole range was tried",
        "switch off client isolation (AP isolation, guest network), or use the cable",
        is_there=lambda m: bool(m.isolated_on),
    ),
    Cause(
        "multicast-filtered",
        "machine",
        lambda s, _: is_called_by_mdns(s.printer),
        "multicast does not pass on {m.unicast_only_listed}: hosts answer mDNS only when each is"
        " asked by itself",
        "no host answers a multicast question, but some answer the same one sent to them alone",
        "let access point and switch pass multicast (IGMP snooping, multicast filter)",
        is_there=lambda m: bool(m.unicast_only),
    ),
)
"""In the order in which they are tried."""
