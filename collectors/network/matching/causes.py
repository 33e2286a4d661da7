"""The table of reasons why a printer does not print, with symptoms and fixes. No I/O.

The groups are searched in order. From each group, the first row that fits a printer is reported. A
row of the group "machine" is about this machine or its network. The report lists such a row once,
and again with each printer that it explains. No sentence may claim more than was observed.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from string import Formatter
from typing import Any

from collectors.network.matching.reasons import join_names
from collectors.network.matching.symptoms import Condition, MachineSymptoms, Symptoms
from collectors.network.observations import SLOW_LOOKUP_S, is_resolved_by_mdns


@dataclass(frozen=True, slots=True)
class Cause:
    """One row of the table.

    ``sentence`` and ``remedy`` are format strings. ``s`` stands for the symptoms of the printer and
    ``m`` for those of the machine. If ``is_obvious``, the remedy appears only in
    docs/troubleshooting.md and in the check of printers. That document also describes what
    ``fits`` and ``exists`` examine.

    ``fits`` returns whether this may be the cause of a printer's symptoms. A cause in the machine
    or its network also has ``exists``, which returns whether the cause exists. For such a cause,
    ``fits`` selects the printers that the cause explains.
    """

    code: str
    fits: Condition
    sentence: str
    remedy: str
    is_obvious: bool = False
    exists: Callable[[MachineSymptoms], bool] | None = None

    def is_cause(self, symptoms: Symptoms, machine: MachineSymptoms) -> bool:
        return (self.exists is None or self.exists(machine)) and self.fits(symptoms, machine)

    def describe(
        self, symptoms: Symptoms | None, machine: MachineSymptoms, *, with_remedy: bool = False
    ) -> str:
        text = self.sentence if self.is_obvious else f"{self.sentence}: {self.remedy}"
        if self.is_obvious and with_remedy:
            text = f"{self.sentence}; {self.remedy}"
        return _LISTING.format(text, s=symptoms, m=machine)


def explain(
    symptoms: Symptoms, machine: MachineSymptoms, *, with_all_remedies: bool = False
) -> tuple[str, ...]:
    """Return what was observed of a printer, what is wrong with it, and how to fix it."""
    applicable = [
        cause
        for causes in _GROUPS.values()
        if (cause := next((c for c in causes if c.is_cause(symptoms, machine)), None))
    ]
    # The sentences of the group "place" already contain what was observed.
    is_observation_stated = any(cause in _GROUPS["place"] for cause in applicable)
    observation = () if is_observation_stated or not symptoms.seen else (symptoms.seen,)
    descriptions = (
        cause.describe(symptoms, machine, with_remedy=with_all_remedies) for cause in applicable
    )
    return (*observation, *descriptions)


def machine_causes(machine: MachineSymptoms) -> Iterator[str]:
    """Yield what is wrong with this machine or its network, even if it affects no printer."""
    for cause in _GROUPS["machine"]:
        if cause.exists is not None and cause.exists(machine):
            yield cause.describe(None, machine)


class _Listing(Formatter):
    """Formats tuples as ``a, b and c``."""

    def format_field(self, value: Any, format_spec: str) -> str:
        if isinstance(value, tuple):
            return join_names(value)
        return str(super().format_field(value, format_spec))


_LISTING = _Listing()


def _is_unreached_in(symptoms: Symptoms, network: str) -> bool:
    """Return whether the printer is set up in ``network`` and was not reached."""
    return symptoms.is_unreached and bool(network) and symptoms.is_in(network)


_CHECK_POWER = "is it switched on and connected?"

# "place": why the printer's address, port or cable leads nowhere. "instead": which other device or
# port may be meant. "device": problems that the printer has. "queue" and "jobs": problems of its
# queue. "port": the kind of its Windows port. "machine": problems of this machine or its network.
_GROUPS: dict[str, tuple[Cause, ...]] = {
    "place": (
        Cause(
            "address-taken",
            lambda s, _: bool(s.difference),
            "{s.seen}, but {s.difference}",
            "give the printer a fixed address, or set it up again if it was replaced",
        ),
        Cause(
            "printer-without-dhcp",
            lambda s, _: s.out_of_reach == "link-local",
            "{s.seen}; {s.address} is an address that a device assigns itself without a DHCP"
            " server",
            "check that it is connected to this network, then restart it or give it a fixed"
            " address",
        ),
        Cause(
            "wrong-mask",
            lambda s, _: s.out_of_reach == "wrong mask",
            "{s.seen}; {s.address} is outside of this machine's network because of this machine's"
            " mask",
            "give this machine the same mask as the other devices",
        ),
        Cause(
            "other-subnet",
            lambda s, _: s.out_of_reach == "other network",
            "{s.seen}; {s.address} is in another network than this machine",
            "move the printer or this machine, so that both are in the same network",
        ),
        Cause(
            "already-set-up",
            lambda s, _: bool(s.old_address_state and s.set_up_as),
            "{s.seen}; it is already set up there as {s.set_up_as}; {s.old_address_state}",
            "print with that queue and remove this one",
        ),
        Cause(
            "address-changed",
            lambda s, _: bool(s.old_address_state),
            "{s.seen}; {s.old_address_state}",
            "set the printer up with its new address, or give it a fixed one",
        ),
        Cause(
            "queue-missing",
            lambda s, _: s.is_queue_missing,
            "{s.seen}, but it has no queue {s.printer.queue}",
            "was it renamed or removed there?",
        ),
        Cause(
            "renamed",
            lambda s, _: bool(s.device_address) and bool(s.printer.dns_sd_name),
            "{s.seen}; the device that had this name is at {s.device_address}",
            "was it renamed? Set the printer up again, or restore its name",
        ),
        Cause(
            "name-lost",
            lambda s, _: bool(s.device_address),
            "{s.seen}; the device is at {s.device_address}",
            "correct the name in the router or name server, or set the printer up by its address",
        ),
        Cause(
            "name-servers-silent",
            lambda s, _: s.failed_lookup == "name server",
            "{s.seen}",
            "correct the name servers of this machine or of the router's DHCP",
        ),
        Cause(
            "name-unresolved",
            lambda s, _: s.failed_lookup == "host name",
            "{s.seen}",
            "correct the name in the router or name server, or set the printer up by its address",
        ),
        Cause(
            "service-changed",
            lambda s, _: s.failed_lookup == "service",
            "{s.seen}",
            "enable AirPrint (IPP) in its settings, or set the printer up again",
        ),
        Cause(
            "off",
            lambda s, _: bool(s.failed_lookup),
            "{s.seen}",
            _CHECK_POWER,
        ),
        Cause(
            "asleep-or-off",
            lambda s, _: s.contact == "no-answer" and not s.is_answering,
            "{s.seen}",
            _CHECK_POWER,
        ),
        Cause(
            "port-held",
            lambda s, _: s.contact in ("refused", "no-answer") and len(s.attempts) > 1,
            "{s.seen}, in all {s.attempts_count} attempts",
            "another till or program may use it, or it hangs: stop other programs, or restart"
            " the printer",
        ),
        Cause(
            "port-held-for-a-while",
            lambda s, _: s.contact == "open" and len(s.attempts) > 1,
            "{s.seen}; it accepted no connection at first",
            "another till or program may print to it at the same time",
        ),
        Cause(
            "port-closed",
            lambda s, _: s.contact in ("refused", "no-answer"),
            "{s.seen}",
            "enable printing on that port in its settings",
            is_obvious=True,
        ),
        Cause(
            "device-file-missing",
            lambda s, _: s.printer.is_file_missing,
            "{s.printer.presence_reason}",
            "load the driver (`modprobe usblp`), or set the queue up with a URI that `lpinfo -v`"
            " lists",
        ),
        Cause(
            "unplugged",
            lambda s, _: s.printer.present is False,
            "{s.printer.presence_reason}",
            "check its cable and power",
            is_obvious=True,
        ),
        Cause(
            "usb-suspended",
            lambda s, _: bool(s.printer.suspended_sysfs_path),
            "{s.printer.presence_reason}, but suspended to save power",
            "if it does not wake up for a job, run"
            " `echo on > {s.printer.suspended_sysfs_path}/power/control`",
        ),
    ),
    "instead": (
        Cause(
            "replaced-perhaps",
            lambda s, _: s.may_have_replaced,
            "if it has replaced the printer",
            "{s.forget_command}",
        ),
        Cause(
            "replaced",
            lambda s, _: bool(s.replaced_on),
            "since {s.replaced_on} it is a different device",
            "was the printer replaced?",
        ),
        Cause(
            "other-port-open",
            lambda s, _: bool(s.other_open_ports),
            "port {s.other_open_ports} is open for printing instead",
            "set the queue up with that port",
            is_obvious=True,
        ),
        Cause(
            "other-kind-of-device",
            lambda s, _: bool(s.occupant_name),
            "the device there is {s.occupant_name}",
            "has another device taken the address?",
        ),
    ),
    "device": (
        Cause(
            "needs-attention",
            lambda s, _: bool(s.complaints),
            "the {s.complaint_source} reports: {s.complaints}",
            "fix it at the printer: paper, cover, toner",
            is_obvious=True,
        ),
        Cause(
            "printer-stopped",
            lambda s, _: s.is_stopped,
            "the printer reports that it is stopped",
            "resume it at its panel or page",
            is_obvious=True,
        ),
        Cause(
            "accepts-only",
            lambda s, _: s.may_discard,
            "only an open port was verified",
            "if nothing prints, allow plain printing (port 9100) in its settings, or use IPP or"
            " the maker's driver",
            is_obvious=True,
        ),
    ),
    "queue": (
        Cause(
            "queue-paused",
            lambda s, _: s.printer.is_queue_stopped and s.is_device_fine,
            "its queue is stopped on this machine although the printer works",
            "resume it: {s.resume_command}",
        ),
        Cause(
            "queue-stopped",
            lambda s, _: s.printer.is_queue_stopped,
            "its queue is stopped on this machine",
            "fix the other problems, then resume the queue",
            is_obvious=True,
        ),
        Cause(
            "queue-rejecting",
            lambda s, _: s.printer.is_rejecting,
            "its queue rejects jobs",
            "enable it: {s.accept_command}",
        ),
    ),
    "jobs": (
        Cause(
            "jobs-stuck",
            lambda s, _: s.printer.stuck_jobs > 0,
            "{s.waiting_jobs} in its queue",
            "fix the other problems, or cancel them: {s.cancel_command}",
        ),
    ),
    "port": (
        Cause(
            "wsd-port",
            lambda s, _: s.printer.is_on_wsd_port and s.is_unreached,
            "it is set up on a WSD port; Windows loses a printer on such a port if its address"
            " changes",
            "set it up on a Standard TCP/IP port",
        ),
    ),
    "machine": (
        Cause(
            "till-without-dhcp",
            lambda s, _: s.is_unreached,
            "this machine has no address from a DHCP server on {m.link_local}",
            "check the cable or Wi-Fi and the router, or give this machine a fixed address",
            exists=lambda m: bool(m.link_local),
        ),
        Cause(
            "gateway-outside",
            lambda s, _: s.is_unreached,
            "the gateway {m.lost_gateway} is not in the network of {m.lost_on}",
            "correct address, mask and gateway of this machine",
            exists=lambda m: bool(m.lost_gateway),
        ),
        Cause(
            "two-ways",
            lambda s, m: _is_unreached_in(s, m.shared_network),
            "{m.shared_by} are in one network, {m.shared_network}, and only one of them is used",
            "switch off the interface that does not lead to the printers",
            exists=lambda m: bool(m.shared_network),
        ),
        Cause(
            "client-isolation",
            lambda s, m: _is_unreached_in(s, m.isolated_network),
            "on the Wi-Fi {m.isolated_on} nothing but the gateway answers; this Wi-Fi may"
            " isolate its clients",
            "switch off client isolation (AP isolation, guest network), or use the cable",
            exists=lambda m: bool(m.isolated_on),
        ),
        Cause(
            "slow-name-servers",
            lambda s, _: s.printer.lookup_s >= SLOW_LOOKUP_S,
            "the name servers took {m.slow_lookup_s:.0f} seconds to find a printer by its name",
            "remove the silent name server from the settings of this machine or of the router's"
            " DHCP",
            exists=lambda m: m.slow_lookup_s > 0,
        ),
        Cause(
            "multicast-filtered",
            lambda s, _: is_resolved_by_mdns(s.printer),
            "multicast does not work on {m.unicast_only}: hosts answer mDNS only by unicast",
            "enable multicast in the access point and switch (IGMP snooping, multicast filter)",
            exists=lambda m: bool(m.unicast_only),
        ),
    ),
}

CAUSES: tuple[Cause, ...] = tuple(chain(*_GROUPS.values()))
"""All rows, in the order in which they are tried."""
