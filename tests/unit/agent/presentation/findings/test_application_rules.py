"""Applies each rule to a healthy machine with a few changes: once exactly at the rule's threshold,
and once just short of it.
"""

from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.presentation.findings.findings import APPLICATION_RULES, NETWORK_RULES, findings_of
from agent.presentation.plain_text import plain
from tests.fixtures.healthy import healthy
from tests.fixtures.payloads import HOSTILE_STRINGS, application_snapshot, hostile_application
from tests.sizes import examples
from tests.unit.agent.presentation.findings.changed_report import Changes, Missing, report_with

GIB = 1024**3
DAY_S = 86400


class Case(NamedTuple):
    """A finding, and the changes to a healthy machine at its threshold and just short of it.

    ``machine`` is the name of the healthy machine.
    """

    code: str
    at_threshold: Changes
    below_threshold: Changes
    sentence: str
    machine: str = "linux-till"


def disk(mount: str, used: float, free_bytes: int, *, read_only: bool = False) -> Changes:
    return {
        f"disk.{mount}.sizeBytes": 100 * GIB,
        f"disk.{mount}.usedFraction": used,
        f"disk.{mount}.freeBytes": free_bytes,
        f"disk.{mount}.readOnly": read_only,
    }


NO_SPOOLER = Missing("not-applicable", "no print spooler (CUPS) runs here")
NO_QUEUES = {"printqueue.queues": NO_SPOOLER}
NO_NAME_SERVER = Missing("not-applicable", "no name server is set")
SILENT_MOUNT = Missing("collection-failed", "the mount does not answer")
TLS_FAILED = Missing("collection-failed", "the TLS handshake failed: WRONG_VERSION_NUMBER")
NO_BROWSER = Missing("collection-failed", "no browser listens at kiosk_debug_url")

LONG_RECORD: Changes = {"history.since": "2026-01-01T00:00:00Z"}


def outages(*totals: str) -> Changes:
    """Return a record with these totals of 7 days: cause, downtime, and number of interruptions."""
    return {**LONG_RECORD, "history.causes7d": totals}


def events(text: str, *days: int) -> Changes:
    """Return a record with the event ``text`` on each of these days of November."""
    lines = tuple(f"2026-11-{day:02}T01:00:00Z {text}" for day in days)
    return {**LONG_RECORD, "history.events": lines}


def lost_link(total: str) -> Changes:
    """Return a record in which the Wi-Fi interface wlo1 had no link, with this total of 7 days."""
    line = "2026-11-01T00:00:00Z/.. link-down 1 s: wlo1 has no link"
    return {**outages(total), "history.recent": (line,)}


NO_REASON = "the reason is not in the report"
REFUSED = f"The service refused the agent once in 7 days, 5 min in total: {NO_REASON}."
OUTAGES = (
    ("link-lost", "link-down", "The network link was lost once in 7 days, 5 min in total."),
    (
        "no-address-repeatedly", "no-address",
        "The machine was without an address once in 7 days, 5 min in total.",
    ),
    (
        "router-outages", "gateway-silent",
        "The router stopped answering once in 7 days, 5 min in total.",
    ),
    (
        "name-server-outages", "name-servers-silent",
        "The name servers stopped answering once in 7 days, 5 min in total; the network worked.",
    ),
    (
        "provider-outages", "provider-down",
        "The internet provider was down once in 7 days, 5 min in total; the local network worked.",
    ),
    (
        "service-refusals", "service-refuses",
        REFUSED,
    ),
    (
        "service-outages", "service-down",
        "The service stopped answering once in 7 days, 5 min in total; the internet worked.",
    ),
    (
        "service-unreachable-repeatedly", "unreachable",
        "The service could not be reached once in 7 days, 5 min in total.",
    ),
    (
        "queue-outages", "queue-stopped",
        f"A print queue stopped once in 7 days, 5 min in total: {NO_REASON}.",
    ),
    (
        "kiosk-outages", "page-missing",
        f"The kiosk's page was missing once in 7 days, 5 min in total: {NO_REASON}.",
    ),
    (
        "device-absences", "device-absent",
        f"A watched device was gone once in 7 days, 5 min in total: {NO_REASON}.",
    ),
)  # fmt: skip
TERMINAL = {
    "device.Bar.kind": "payment-terminal",
    "device.Bar.present": True,
    "device.Bar.address": "192.168.1.40",
}

CASES = (
    # One interruption of 300 s is a finding. Seven interruptions of 299 s in total are no finding.
    *(
        Case(code, outages(f"{cause} 300 s x1"), outages(f"{cause} 299 s x7"), sentence)
        for code, cause, sentence in OUTAGES
    ),
    Case(
        "wifi-lost",
        lost_link("link-down 25 s x8"),
        lost_link("link-down 25 s x7"),
        "The Wi-Fi link was lost 8 times in 7 days, 25 s in total.",
    ),
    Case(
        "address-shared",
        outages("address-conflict 9 s x1"),
        outages(),
        "Two machines used one address, once in 7 days: the reason is not in the report.",
    ),
    Case(
        "router-address-shared",
        events("gateway-conflict: a and b use 10.0.0.1 by turns", 19),
        events("gateway-conflict: a and b use 10.0.0.1 by turns", 1),
        "Two machines use the router's address: a and b use 10.0.0.1 by turns.",
    ),
    Case(
        "processor-throttled",
        events("processor-throttled: 9 times", 17, 18, 19),
        events("processor-throttled: 9 times", 18, 19),
        "The processor was slowed down because of heat in 3 hours of 7 days.",
    ),
    Case(
        "wifi-roaming",
        {"history.roams24h": 30},
        {"history.roams24h": 29},
        "The Wi-Fi changed its access point 30 times in 24 hours.",
    ),
    Case(
        "power-losses",
        events("power-lost", 18, 19),
        events("power-lost", 10, 19),
        "This machine lost power twice in 7 days.",
    ),
    Case(
        "device-moved",
        {**TERMINAL, "device.Bar.address": "192.168.1.61", "device.Bar.movedFrom": "192.168.1.40"},
        TERMINAL,
        "The payment terminal Bar has moved from 192.168.1.40 to 192.168.1.61.",
    ),
    Case(
        "device-replaced",
        {**TERMINAL, "device.Bar.present": False, "device.Bar.otherMac": "02:00:00:00:00:07"},
        {**TERMINAL, "device.Bar.otherMac": "02:00:00:00:00:07"},
        "The payment terminal Bar does not answer: another device uses its address 192.168.1.40"
        " (MAC 02:00:00:00:00:07).",
    ),
    Case(
        "device-absent",
        {**TERMINAL, "device.Bar.present": False},
        {**TERMINAL, "device.Bar.present": Missing("unsupported", "it was not checked")},
        "The payment terminal Bar does not answer at 192.168.1.40.",
    ),
    Case(
        "disk-full",
        disk("/", 0.97, 2 * GIB - 1),
        disk("/", 0.99, 10 * GIB),
        "The disk / is full: 2 GiB of 100 GiB free.",
    ),
    Case(
        "disk-full",
        disk("D:\\", 1.0, 0),
        disk("D:\\", 1.0, 0, read_only=True),
        "The disk D:\\ is full: 0 bytes of 100 GiB free.",
        "windows-back-office",
    ),
    Case(
        "disk-nearly-full",
        disk("/", 0.9, 10 * GIB - 1),
        disk("/", 0.8999, 10 * GIB - 1),
        "The disk / is nearly full: 10 GiB of 100 GiB free.",
    ),
    Case(
        "disk-read-only",
        {"disk./.readOnly": True},
        {"disk./boot.readOnly": True},
        "The disk / is read-only: programs cannot save data on it.",
    ),
    Case(
        "disk-read-only",
        {"disk.C:\\.readOnly": True},
        {"disk.D:\\.readOnly": True},
        "The disk C:\\ is read-only: programs cannot save data on it.",
        "windows-back-office",
    ),
    Case(
        "disk-read-only",
        {"disk./var/lib.readOnly": True},
        {"disk./.readOnly": True, "disk./.fileSystem": "overlay"},
        "The disk /var/lib is read-only: programs cannot save data on it.",
    ),
    Case(
        "disk-silent",
        {"disk./mnt/share.sizeBytes": SILENT_MOUNT},
        {"disk./mnt/card.sizeBytes": SILENT_MOUNT, "disk./mnt/card.fileSystem": ""},
        "The disk /mnt/share cannot be read: the mount does not answer.",
    ),
    Case(
        "drive-failing",
        {"disk.drive.nvme0n1.health": "failing"},
        {"disk.drive.nvme0n1.health": "good"},
        "The drive nvme0n1 (KINGSTON SNV2S250G) is failing according to its self-diagnosis"
        " (SMART).",
    ),
    Case(
        "drive-doubtful",
        {"disk.drive.1.health": "warning"},
        {"disk.drive.1.health": "unknown"},
        "The drive 1 (TOSHIBA DT01ACA100) reports a warning (SMART).",
        "windows-back-office",
    ),
    Case(
        "drive-worn",
        {"disk.drive.mmcblk0.lifeUsedFraction": 0.9},
        {"disk.drive.mmcblk0.lifeUsedFraction": 0.8},
        "The drive mmcblk0 (DA4064) is worn: 90 % of its lifetime is used.",
    ),
    Case(
        "disk-slow",
        {"disk.stalledFraction": 0.4},
        {"disk.stalledFraction": 0.3999},
        "Programs waited for a disk during 40 % of the last minute.",
    ),
    Case(
        "memory-stalls",
        {"memory.stalledFraction": 0.1},
        {"memory.stalledFraction": 0.0999},
        "Programs waited for memory during 10 % of the last minute.",
    ),
    Case(
        "memory-nearly-full",
        {"memory.usedFraction": 0.92, "memory.availableBytes": GIB // 2},
        {"memory.usedFraction": 0.95, "memory.availableBytes": GIB},
        "The memory is nearly full: 92 % used, 512 MiB available.",
    ),
    Case(
        "swap-nearly-full",
        # 80 % of the swap space
        {"memory.swapUsedBytes": 818_724_864, "memory.usedFraction": 0.8},
        {"memory.swapUsedBytes": 1_023_406_080, "memory.usedFraction": 0.79},
        "The swap space is nearly full: 780.8 MiB of 976 MiB used.",
    ),
    Case(
        "processor-busy",
        {"cpu.load15": 6, "cpu.useFraction": 0.9},
        {"cpu.load15": 6, "cpu.useFraction": 0.89},
        "The processor has been overloaded for 15 minutes: load 6.0 on 4 cores.",
    ),
    Case(
        "processor-busy",
        {"cpu.load15": 15.0, "cpu.useFraction": 1},
        {"cpu.load15": 14.9, "cpu.useFraction": 1},
        "The processor has been overloaded for 15 minutes: load 15.0 on 10 cores.",
        "mac",
    ),
    Case(
        "clock-not-synchronised",
        {"os.clockSynchronised": False},
        {"os.clockSynchronised": Missing("not-applicable", "the time service does not run")},
        "The clock is not synchronised.",
    ),
    Case(
        "clock-off",
        {"os.clockOffsetMilliseconds": -90_000},
        {"os.clockOffsetMilliseconds": -999},
        "The clock is off by 1 min 30 s.",
    ),
    Case(
        "unclean-start",
        {"os.lastBootReason": "power-failure-or-crash", "os.uptimeSeconds": 7 * DAY_S - 1},
        {"os.lastBootReason": "power-failure-or-crash", "os.uptimeSeconds": 7 * DAY_S},
        "The machine started 6 d ago after a power failure or a crash.",
        "windows-back-office",
    ),
    Case(
        "hot",
        {"hardware.temperatureCelsius": 85.0, "hardware.temperatures": ("nvme Composite 85.0",)},
        {"hardware.temperatureCelsius": 84.9},
        "The machine is hot: 85 °C (nvme Composite).",
    ),
    Case(
        "hot",
        {"hardware.temperatureCelsius": 96.0, "hardware.temperatureLimitCelsius": 110.0},
        {"hardware.temperatureCelsius": 94.0, "hardware.temperatureLimitCelsius": 110.0},
        "The machine is hot: 96 °C.",
    ),
    Case(
        "battery-low",
        {"hardware.batteryFraction": 0.2, "hardware.powerSource": "battery"},
        {"hardware.batteryFraction": 0.05, "hardware.powerSource": "mains"},
        "The machine runs on its battery, which is at 20 %.",
    ),
    Case(
        "battery-worn",
        {"hardware.batteryHealthFraction": 0.5},
        {"hardware.batteryHealthFraction": 0.501},
        "The battery is worn: it holds 50 % of its original charge.",
    ),
    Case(
        "link-slow",
        {"enp1s0 interface.speedMegabitsPerSecond": 100, "enp1s0 interface.duplex": "half"},
        {"enp1s0 interface.speedMegabitsPerSecond": 100, "enp1s0 interface.duplex": "full"},
        "The cable at enp1s0 runs at only 100 Mbit/s, half duplex.",
    ),
    Case(
        "device-battery-low",
        {"bluetooth-1f0c2d3e4b5a6978 bluetooth.batteryFraction": 0.15},
        {
            "bluetooth-1f0c2d3e4b5a6978 bluetooth.batteryFraction": 0.01,
            "bluetooth-1f0c2d3e4b5a6978 bluetooth.name": Missing("not-applicable", "personal"),
        },
        "The battery of Socket Mobile S700 is at 15 %.",
    ),
    Case(
        "restart-pending",
        {"os.pendingReboot": True},
        {"os.pendingReboot": False},
        "An update requires a restart of the machine.",
    ),
    Case(
        "long-uptime",
        {"os.uptimeSeconds": 120 * DAY_S},
        {"os.uptimeSeconds": 120 * DAY_S - 1},
        "The machine has been running for 120 d without a restart.",
    ),
    Case(
        "program-missing",
        {"process.pos-till.running": False},
        {"process.pos-till.running": True},
        "The program pos-till is not running.",
    ),
    Case(
        "program-restarting",
        {"process.chromium.restartsSinceBoot": 23},
        {"process.chromium.restartsSinceBoot": 22},
        "The program chromium keeps restarting: 23 times since the machine started.",
    ),
    Case(
        "program-restarting",
        {"process.chromium.restartsSinceBoot": 5, "os.uptimeSeconds": 3600},
        {"process.chromium.restartsSinceBoot": 4, "os.uptimeSeconds": 3600},
        "The program chromium keeps restarting: 5 times since the machine started.",
    ),
    Case(
        "service-restarting",
        {"service.printSpooler.restarts": 40},
        {"service.printSpooler.restarts": 20},
        "The print spooler (cups) keeps restarting: 40 times since the machine started.",
    ),
    Case(
        "service-failed",
        {"service.timeSync.state": "failed (failed)"},
        {"service.timeSync.state": "inactive (dead)"},
        "The time synchronisation (systemd-timesyncd) has failed.",
    ),
    Case(
        "program-grown",
        # half of the memory
        {"process.pos-till.memoryBytes": 4_093_671_424},
        {"process.pos-till.memoryBytes": 4_093_671_423},
        "The program pos-till uses 3.8 GiB of 7.6 GiB of memory.",
    ),
    Case(
        "spooler-stopped",
        {"service.printSpooler.state": "failed (failed)", **NO_QUEUES},
        # The spooler starts on demand: its queues can be read.
        {"service.printSpooler.state": "inactive (dead)"},
        "The print spooler (cups) is not running: nothing can be printed.",
    ),
    Case(
        "spooler-stopped",
        {"service.printSpooler.state": "stopped", **NO_QUEUES},
        {
            "service.printSpooler.state": "stopped",
            "service.printSpooler.startType": "disabled",
            **NO_QUEUES,
        },
        "The print spooler (Spooler) is not running: nothing can be printed.",
        "windows-back-office",
    ),
    Case(
        "print-queue-stuck",
        {
            "printqueue.kitchen.stuckJobs": 1,
            "printqueue.oldestJobSeconds": 610,
            "printqueue.kitchen.reasons": ("media-empty-error", "com.epson.roll-report"),
            "printqueue.kitchen.state": "stopped",
        },
        {"printqueue.kitchen.stuckJobs": 0},
        "The print queue kitchen is stuck: 1 job waits, the oldest for 10 min;"
        " the printer reports: out of paper.",
    ),
    Case(
        "print-queue-stuck",
        {"printqueue.bar.stuckJobs": 2, "printqueue.waitingJobs": 3},
        {"printqueue.bar.waitingJobs": 2},
        "The print queue bar is stuck: 2 jobs wait.",
    ),
    Case(
        "print-queue-stopped",
        {"printqueue.bar.state": "stopped"},
        {"printqueue.bar.state": "unknown"},
        "The print queue bar is stopped.",
    ),
    Case(
        "print-queue-refusing",
        {"printqueue.bar.accepting": False},
        {"printqueue.bar.accepting": Missing("unsupported", "not reported")},
        "The print queue bar does not accept jobs.",
    ),
    Case(
        "print-queue-needs-attention",
        {"printqueue.Kancelář HP.reasons": ("jammed",)},
        {"printqueue.Kancelář HP.reasons": ("low-paper",)},
        "The printer of the queue Kancelář HP needs attention: paper jam.",
        "windows-back-office",
    ),
    Case(
        "print-queue-needs-attention",
        {"printqueue.bar.reasons": ("cover-open-warning", "media-jam-error", "cover-open")},
        {"printqueue.bar.reasons": ("media-low-warning", "connecting-to-device")},
        "The printer of the queue bar needs attention: cover open, paper jam.",
    ),
    Case(
        "print-queue-needs-attention",
        {
            "printqueue.bar.reasons": (
                "offline-report",
                "cups-missing-filter-warning",
                "other-error",
            )
        },
        {"printqueue.bar.reasons": ("other-report", "cups-ipp-conformance-failure-report")},
        "The printer of the queue bar needs attention: offline, a part of its driver is missing,"
        " another problem, see its display.",
    ),
    Case(
        "reports-waiting",
        {"agent.outboxReports": 5},
        {"agent.outboxReports": 4},
        "5 reports of the agent have not been sent.",
    ),
    Case(
        "agent-died",
        {"agent.lastExit": "killed for lack of memory"},
        {"agent.lastExit": "stopped cleanly"},
        "The last run of the agent ended unexpectedly: killed for lack of memory.",
    ),
    Case(
        "no-network",
        {
            "enp1s0 interface.up": False,
            "wlo1 interface.addresses": ("fe80::1/64",),
            "wg0 interface.addresses": (),
        },
        {"enp1s0 interface.up": False, "wlo1 interface.up": False},
        "The machine is not connected to a network.",
    ),
    Case(
        "no-dhcp-answer",
        {"wlo1 interface.addresses": ("169.254.8.1/16", "fe80::1/64")},
        {"wlo1 interface.addresses": ("169.254.8.1/16", "2001:db8::1/64")},
        "The interface wlo1 got no address by DHCP and uses 169.254.8.1 instead.",
    ),
    Case(
        "own-address-only",
        {
            "enp1s0 interface.addresses": ("169.254.95.118/16",),
            "enp1s0 interface.up": True,
            "wlo1 interface.addresses": ("192.168.1.20/24",),
            "wlo1 interface.up": True,
        },
        {"enp1s0 interface.addresses": ("169.254.95.118/16",), "enp1s0 interface.up": False},
        "The interface enp1s0 has only a self-assigned address: 169.254.95.118.",
    ),
    Case(
        "name-not-resolved",
        {
            "network.service.reachable": False,
            "network.service.error": "the service's name does not resolve",
            "network.dnsAnswers": Missing("collection-failed", "no answer within the time limit"),
        },
        {},
        "The service's name could not be resolved; name servers: 192.168.1.1, 9.9.9.9.",
    ),
    Case(
        "service-unreachable",
        {"network.service.reachable": False, "network.service.error": "Connection refused"},
        {},
        "The service cannot be reached: Connection refused.",
    ),
    Case(
        "tls-failed",
        {"network.service.tlsVersion": TLS_FAILED},
        {"network.service.tlsVersion": Missing("not-applicable", "the service has no TLS")},
        "The service was reached, but a TLS connection failed:"
        " the TLS handshake failed: WRONG_VERSION_NUMBER.",
    ),
    Case(
        "certificate-expired",
        {
            "network.service.tlsExpiresAt": "2026-11-20T10:15:02+00:00",
            "network.service.tlsTrusted": False,
        },
        {
            "network.service.tlsExpiresAt": "2026-11-20T10:15:03+00:00",
            "network.service.tlsIssuedAt": "2026-11-20T10:15:02+00:00",
        },
        "The service's certificate expired on 2026-11-20 10:15:02 UTC.",
    ),
    Case(
        "certificate-untrusted",
        {
            "network.service.tlsTrusted": False,
            "network.service.tlsIssuer": "Nosy Middlebox Ltd, Inspecting CA",
        },
        {"network.service.tlsTrusted": True},
        "This machine does not trust the issuer of the service's certificate:"
        " Nosy Middlebox Ltd, Inspecting CA.",
    ),
    Case(
        "certificate-expiring",
        {"network.service.tlsExpiresAt": "2026-12-04T10:15:01+00:00"},
        {"network.service.tlsExpiresAt": "2026-12-04T10:15:02+00:00"},
        "The service's certificate expires in 13 d.",
    ),
    Case(
        "certificate-expiring",
        {
            "network.service.tlsIssuedAt": "2026-11-16T10:15:02+00:00",  # valid for five days
            "network.service.tlsExpiresAt": "2026-11-21T10:15:02+00:00",
        },
        {
            "network.service.tlsIssuedAt": "2026-11-18T10:15:02+00:00",
            "network.service.tlsExpiresAt": "2026-11-24T10:15:02+00:00",
        },
        "The service's certificate expires in 1 d.",
    ),
    Case(
        "no-name-server",
        {"network.dnsServers": NO_NAME_SERVER},
        {"network.dnsServers": Missing("unsupported", "not reported")},
        "No name server (DNS) is configured.",
    ),
    Case(
        "name-server-silent",
        {"network.dnsAnswers": ("192.168.1.1: answered in 3 ms", "9.9.9.9: no answer in 2 s")},
        {
            "network.dnsAnswers": (
                "192.168.1.1: answered in 3 ms: the name does not exist",
                "2001:db8::53: no route to it",
            )
        },
        "The name server 9.9.9.9 does not answer: no answer in 2 s.",
    ),
    Case(
        "name-server-silent",
        {"network.dnsAnswers": ("2001:db8::53: no route to it",)},
        {"network.dnsAnswers": ()},
        "The name server 2001:db8::53 does not answer: no route to it.",
    ),
    Case(
        "name-not-resolved",
        {
            "network.service.reachable": False,
            "network.service.error": "the name was not resolved in time",
            "network.dnsAnswers": ("192.168.1.1: no answer in 2 s", "9.9.9.9: no answer in 2 s"),
        },
        {},
        "The service's name could not be resolved; name servers: 192.168.1.1: no answer in 2 s;"
        " 9.9.9.9: no answer in 2 s.",
    ),
    Case(
        "names-slow",
        {"network.service.resolveMilliseconds": 1000},
        {"network.service.resolveMilliseconds": 999.9},
        "Resolving the service's name took 1 s.",
    ),
    Case(
        "service-slow",
        {"network.service.connectMilliseconds": 1400},
        {"network.service.connectMilliseconds": 999.9},
        "Connecting to the service took 1.4 s.",
    ),
    Case(
        "wifi-weak",
        {"wlo1 interface.wifiSignalDbm": -75},
        {"wlo1 interface.wifiSignalDbm": -74},
        "The Wi-Fi signal at wlo1 is weak: -75 dBm.",
    ),
    Case(
        "link-slow",
        {"enp1s0 interface.speedMegabitsPerSecond": 10},
        {"enp1s0 interface.speedMegabitsPerSecond": 100},
        "The cable at enp1s0 runs at only 10 Mbit/s.",
    ),
    Case(
        "link-slow",
        {"enp1s0 interface.speedMegabitsPerSecond": 10, "enp1s0 interface.defaultRoute": True},
        {"enp1s0 interface.speedMegabitsPerSecond": 10, "enp1s0 interface.defaultRoute": False},
        "The cable at enp1s0 runs at only 10 Mbit/s.",
    ),
    Case(
        "interface-errors",
        {"enp1s0 interface.receiveErrors": 100, "enp1s0 interface.receivedPackets": 99_900},
        {"enp1s0 interface.receiveErrors": 100, "enp1s0 interface.receivedPackets": 99_901},
        "The interface enp1s0 has errors: 100 of 100,000 packets received.",
    ),
    Case(
        "interface-errors",
        {"enp1s0 interface.sendErrors": 500, "enp1s0 interface.sentPackets": 1_500},
        {"enp1s0 interface.sendErrors": 99, "enp1s0 interface.sentPackets": 0},
        "The interface enp1s0 has errors: 500 of 2,000 packets sent.",
    ),
    Case(
        "kiosk-silent",
        {"kiosk.crashed": NO_BROWSER},
        {"kiosk.crashed": Missing("not-applicable", "no kiosk browser is configured")},
        "The kiosk's browser does not answer: no browser listens at kiosk_debug_url.",
    ),
    Case(
        "kiosk-crashed",
        {"kiosk.crashed": True, "kiosk.responding": False},
        {"kiosk.crashed": False},
        "The kiosk's page has crashed.",
    ),
    Case(
        "kiosk-frozen",
        {"kiosk.responding": False},
        {"kiosk.responding": True},
        "The kiosk's page does not respond: it is frozen, or shows a dialog.",
    ),
    Case(
        "kiosk-error-page",
        {"kiosk.errorPage": True, "kiosk.painted": False},
        {"kiosk.errorPage": False},
        "The kiosk shows the browser's error page.",
    ),
    Case(
        "kiosk-blank",
        {"kiosk.painted": False},
        {"kiosk.painted": Missing("not-applicable", "the page is not on the screen")},
        "The kiosk's page is blank: it has drawn nothing since it was loaded.",
    ),
    Case(
        "kiosk-not-drawing",
        {"kiosk.drawing": False},
        {"kiosk.drawing": Missing("not-applicable", "the page is not on the screen")},
        "The kiosk's page is no longer drawn: the screen shows an old image.",
    ),
    Case(
        "kiosk-offline",
        {"browser.online": False},
        {"browser.online": True},
        "The kiosk's browser is offline.",
    ),
    Case(
        "kiosk-local-network-denied",
        {"kiosk.localNetworkPermission": "denied"},
        {"kiosk.localNetworkPermission": Missing("unsupported", "an older browser")},
        "The kiosk's page is denied access to devices of the local network, such as printers.",
    ),
    Case(
        "kiosk-local-network-undecided",
        {"kiosk.localNetworkPermission": "prompt", "kiosk.localNetworkPolicies": ()},
        {"kiosk.localNetworkPermission": "prompt"},
        "The kiosk's page has no permission yet for devices of the local network.",
    ),
    Case(
        "kiosk-no-screen",
        {"display.count": 0},
        {"display.count": Missing("not-applicable", "this machine has no graphics output")},
        "The kiosk has no screen connected.",
    ),
    Case(
        "kiosk-hidden",
        {"browser.visibility": "hidden"},
        {"browser.visibility": "visible"},
        "The kiosk's page is hidden: another window or tab covers it, or the screen is off.",
    ),
    Case(
        "kiosk-leaking",
        {"browser.heapUsedBytes": 750, "browser.heapLimitBytes": 1000},
        {"browser.heapUsedBytes": 749, "browser.heapLimitBytes": 1000},
        "The kiosk's page uses 750 bytes of memory; its limit is 1000 bytes.",
    ),
    Case(
        "kiosk-storage-full",
        {"browser.originUsageBytes": 9 * GIB, "browser.originQuotaBytes": 10 * GIB},
        {"browser.originUsageBytes": 9 * GIB - 1, "browser.originQuotaBytes": 10 * GIB},
        "The kiosk's page stores 9 GiB of data; its limit is 10 GiB.",
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.code)
def test_each_rule_creates_its_finding_at_its_threshold(case: Case) -> None:
    (finding,) = findings_of(report_with(case.at_threshold, case.machine))
    assert (finding.code, finding.sentences) == (case.code, (case.sentence,))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.code)
def test_no_rule_creates_a_finding_below_its_threshold(case: Case) -> None:
    assert case.code not in {
        f.code for f in findings_of(report_with(case.below_threshold, case.machine))
    }


def test_every_rule_has_a_case() -> None:
    assert {rule.code for rule in APPLICATION_RULES} == {case.code for case in CASES}


def test_the_most_severe_finding_is_first_and_omitted_sentences_are_counted() -> None:
    disks = {f"disk./mnt/{n}.sizeBytes": SILENT_MOUNT for n in range(7)}
    findings = findings_of(
        report_with({"os.pendingReboot": True, **disks, "browser.online": False})
    )
    assert [finding.code for finding in findings] == [
        "kiosk-offline",
        "disk-silent",
        "restart-pending",
    ]
    silent = findings[1]
    assert (len(silent.sentences), silent.more, silent.count) == (5, 2, 7)
    assert [finding.severity for finding in findings] == ["bad", "bad", "muted"]


def test_findings_explained_by_another_finding_are_left_out() -> None:
    offline: Changes = {
        "enp1s0 interface.up": False,
        "wlo1 interface.addresses": ("169.254.8.1/16",),
        "wg0 interface.addresses": (),
        "browser.online": False,
        "network.service.reachable": False,
        "network.service.error": "Network is unreachable",
        "network.dnsServers": NO_NAME_SERVER,
    }
    assert [finding.code for finding in findings_of(report_with(offline))] == ["no-dhcp-answer"]
    on_cable = {**offline, "enp1s0 interface.up": True, "network.dnsServers": ("192.168.1.1",)}
    codes = [finding.code for finding in findings_of(report_with(on_cable))]
    assert codes == ["kiosk-offline", "no-dhcp-answer", "service-unreachable"]
    down = {**offline, "wlo1 interface.addresses": ()}
    assert [finding.code for finding in findings_of(report_with(down))] == ["no-network"]


def test_explained_by_contains_only_codes_of_existing_rules() -> None:
    for rules in (APPLICATION_RULES, NETWORK_RULES):
        codes = {rule.code for rule in rules}
        assert all(codes.issuperset(rule.explained_by) for rule in rules)


def test_findings_of_the_sample_snapshot() -> None:
    assert [finding.code for finding in findings_of(application_snapshot())] == [
        "print-queue-stuck",
        "disk-full",
        "disk-silent",
        "restart-pending",
    ]


def test_findings_of_hostile_snapshots_are_plain_and_short() -> None:
    findings = list(findings_of(hostile_application()))
    for text in HOSTILE_STRINGS:
        refused: Changes = {"network.service.reachable": False, "network.service.error": text}
        findings += findings_of(report_with(refused))
    assert len(findings) >= len(HOSTILE_STRINGS)
    for finding in findings:
        for sentence in finding.sentences:
            assert sentence == plain(sentence)
            assert len(sentence) < 500


def keys_of(fact: str) -> list[str]:
    """Return the keys of `Changes` for a fact: one for each interface or peripheral that has it."""
    snapshot = healthy("linux-till").snapshot
    if fact.startswith("interface."):
        return [f"{link.id} {fact}" for link in snapshot.interfaces]
    if fact.startswith("bluetooth."):
        return [
            f"{peripheral.id} {fact}"
            for peripheral in snapshot.peripherals
            if peripheral.id.startswith("bluetooth-")
        ]
    return [fact]


FACTS = sorted({
    fact.strip()
    for rule in APPLICATION_RULES
    for fact in rule.fields.replace("<mount>", "/").split(",")
})  # fmt: skip
KEYS = st.sampled_from(FACTS).map(keys_of).flatmap(st.sampled_from)
VALUES = (
    st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20)
    | st.lists(st.text(max_size=9), max_size=3).map(tuple)
)


@pytest.mark.parametrize("fact", FACTS)
def test_rules_accept_a_value_of_each_type_of_any_fact(fact: str) -> None:
    for key in keys_of(fact):
        for value in (True, False, 0, -1, 10**30, 0.5, "", "x", (), ("x",)):
            for finding in findings_of(report_with({key: value})):
                assert all(finding.sentences)


@given(st.dictionaries(KEYS, VALUES, max_size=12))
@settings(max_examples=examples(60))
def test_rules_accept_any_values_of_several_facts(facts: Changes) -> None:
    for finding in findings_of(report_with(facts)):
        assert all(finding.sentences)
