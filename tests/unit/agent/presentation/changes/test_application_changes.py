"""Tests of changes between two application reports, and of differences that are not changes."""

import pytest

from agent.presentation.changes.application import (
    BOOT_MOVED_S,
    DISK_LEVELS,
    DISK_MOVED,
    MEMORY_MOVED,
    RENEWED_S,
    STARTED_MOVED_S,
)
from agent.presentation.changes.change import NOT_CHECKED
from agent.presentation.changes.changes import changes_between
from agent.wire.payloads.application import ApplicationPayload
from tests.fixtures.healthy import healthy
from tests.unit.agent.presentation.findings.changed_report import Changes, Missing, report_with

GIB = 1024**3
BROKEN = Missing("collection-failed", "it took too long")
ABSENT = Missing("not-applicable", "there is none")


def sentences(before: ApplicationPayload, after: ApplicationPayload) -> list[tuple[str, str]]:
    """Return the severity and the sentence of each change."""
    return [(c.severity, c.sentence) for c in changes_between(before, after).changes]


def summary(before: Changes, after: Changes) -> list[tuple[str, str]]:
    """Return the severity and the sentence of each change between two reports of a healthy machine.

    The earlier report has the values ``before``, and the later report has the values ``after``.
    """
    return sentences(report_with(before), report_with(after))


NOISE: Changes = {
    "cpu.useFraction": 0.91, "cpu.load1": 1.7, "cpu.frequencyMegahertz": 1800,
    "memory.availableBytes": 3 * GIB, "memory.usedFraction": 0.61,
    "hardware.temperatureCelsius": 55.0, "os.uptimeSeconds": 999_999,
    "os.clockOffsetMilliseconds": 7.5, "disk./.usedFraction": 0.34,
    "network.service.connectMilliseconds": 31.0, "enp1s0 interface.receivedBytes": 10**12,
    "printqueue.waitingJobs": 1, "agent.outboxReports": 1,
}  # fmt: skip


def test_small_changes_of_measured_values_are_not_reported() -> None:
    names = {field.key for field in healthy("linux-till").snapshot.fields}
    # A key with a blank belongs to an interface. Any other key must be in the report already.
    noise = {key: value for key, value in NOISE.items() if " " in key or key in names}
    assert len(noise) > 8
    assert sentences(healthy("linux-till"), report_with(noise)) == []


@pytest.mark.parametrize(
    ("key", "before", "after", "sentence", "severity"),
    [
        ("os.kernel", "6.1.0", "6.1.2", "The kernel is 6.1.2; it was 6.1.0.", "muted"),
        ("os.version", "12", "13", "The version of the operating system is 13; it was 12.",
         "muted"),
        ("agent.version", "0.1.0", "0.2.0", "The version of the agent is 0.2.0; it was 0.1.0.",
         "muted"),
        ("os.timeZone", "Europe/Prague", "UTC", "The time zone is UTC; it was Europe/Prague.",
         "warn"),
        ("network.service.tlsIssuer", "Let's Encrypt", "Proxy Inc",
         "The issuer of the service's certificate is Proxy Inc; it was Let's Encrypt.", "warn"),
        ("agent.configDigest", "aa", "bb", "The configuration of the agent has changed.", "muted"),
        ("os.pendingReboot", False, True,
         "New: An update requires a restart of the machine.", "muted"),
        ("service.timeSync.state", "active", "inactive",
         "The service systemd-timesyncd is inactive; it was active.", "muted"),
    ],
)  # fmt: skip
def test_changes_of_software_and_settings_are_reported(
    key: str, before: str | bool, after: str | bool, sentence: str, severity: str
) -> None:
    names = {"service.timeSync.name": "systemd-timesyncd"} if "timeSync" in key else {}
    assert summary({key: before, **names}, {key: after, **names}) == [(severity, sentence)]


def test_the_last_name_in_a_user_agent_is_the_name_of_the_browser() -> None:
    def agent(words: str) -> Changes:
        return {"browser.userAgent": f"Mozilla/5.0 (X11) AppleWebKit/537.36 {words}"}

    assert summary(
        agent("Chrome/142.0.0.0 Edg/142.0.1"), agent("Chrome/143.0.0.0 Edg/143.0.2")
    ) == [("muted", "The browser of the kiosk is Edg 143.0.2; it was Edg 142.0.1.")]


# ---------------------------------------------------------------------------- starts


def program(running: bool, started: str = "2026-11-16T04:01:00Z") -> Changes:
    at = started if running else ABSENT
    return {"process.bar.running": running, "process.bar.startedAt": at}


def test_a_program_that_stops_or_starts_is_reported() -> None:
    assert summary(program(True), program(False)) == [
        ("bad", "The program bar is not running; it was running.")
    ]
    assert summary(program(False), program(True)) == [
        ("good", "The program bar is running; it was not running.")
    ]


def later_by(seconds: float) -> str:
    """Return the time that is ``seconds`` after 04:01, when `program` starts by default."""
    return f"2026-11-16T04:{int(1 + seconds // 60):02}:{seconds % 60:09.6f}Z"


def test_a_start_time_that_changes_by_ten_seconds_is_a_restart() -> None:
    assert summary(program(True), program(True, later_by(STARTED_MOVED_S - 0.001))) == []
    assert summary(program(True), program(True, later_by(STARTED_MOVED_S))) == [
        (
            "muted",
            "The program bar was restarted: it has been running since 2026-11-16 04:01:10 UTC.",
        )
    ]


def test_a_boot_time_that_changes_by_a_minute_is_a_restart_of_the_machine() -> None:
    before: Changes = {"os.bootTime": later_by(0)}
    assert summary(before, {"os.bootTime": later_by(BOOT_MOVED_S - 0.001)}) == []
    assert summary(before, {"os.bootTime": later_by(BOOT_MOVED_S)}) == [
        ("muted", "The machine was restarted: it has been running since 2026-11-16 04:02:00 UTC.")
    ]


def test_an_uptime_that_decreases_by_a_minute_is_a_restart_of_the_agent() -> None:
    def up(seconds: float) -> Changes:
        return {"agent.uptimeSeconds": seconds}

    assert summary(up(5000), up(5000 - BOOT_MOVED_S + 0.001)) == []
    ((severity, sentence),) = summary(up(5000), up(5000 - BOOT_MOVED_S))
    assert severity == "muted"
    assert sentence.startswith("The agent was restarted: it has been running since")


def test_a_restart_of_the_machine_is_not_reported_twice() -> None:
    before: Changes = {"os.bootTime": later_by(0), "agent.uptimeSeconds": 5000}
    after: Changes = {"os.bootTime": later_by(900), "agent.uptimeSeconds": 50}
    assert len(summary(before, after)) == 1


# ---------------------------------------------------------------------------- figures


def disk(used: float, free: int = 500 * GIB) -> Changes:
    return {"disk./.usedFraction": used, "disk./.freeBytes": free, "disk./.sizeBytes": 10**12}


@pytest.mark.parametrize("level", DISK_LEVELS)
def test_a_change_of_the_level_of_a_disk_is_reported(level: float) -> None:
    below = level - DISK_MOVED
    displayed = f"{level * 100:.0f} %", f"{below * 100:.0f} %"
    assert summary(disk(below), disk(level)) == [
        ("warn", f"The disk / is {displayed[0]} full; it was {displayed[1]}.")
    ]
    assert summary(disk(level), disk(below)) == [
        ("good", f"The disk / is {displayed[1]} full; it was {displayed[0]}.")
    ]
    assert summary(disk(below - 0.005), disk(level - 0.001)) == []
    assert summary(disk(below + 0.001), disk(level)) == []


def test_a_disk_that_is_full_is_reported_once() -> None:
    nearly, full = disk(0.92, 8 * GIB), disk(0.98, GIB)
    assert summary(disk(0.5), full) == [
        ("bad", "New: The disk / is full: 1 GiB of 931.3 GiB free.")
    ]
    assert summary(nearly, full) == [("bad", "Worse: The disk / is full: 1 GiB of 931.3 GiB free.")]
    assert summary(full, nearly) == [
        ("good", "Better: The disk / is nearly full: 8 GiB of 931.3 GiB free.")
    ]
    assert summary(full, disk(0.985, GIB // 2)) == []


def test_a_change_of_the_memory_by_a_tenth_is_reported() -> None:
    def memory(size: float) -> Changes:
        return {"hardware.memoryBytes": int(size)}

    size = 8 * GIB
    assert summary(memory(size), memory(size * (1 - MEMORY_MOVED) + GIB // 1000)) == []
    assert summary(memory(size), memory(size * (1 - MEMORY_MOVED))) == [
        ("warn", "The installed memory is 7.2 GiB; it was 8 GiB.")
    ]
    assert summary(memory(size), memory(2 * size)) == [
        ("muted", "The installed memory is 16 GiB; it was 8 GiB.")
    ]


def test_an_expiry_time_that_changes_by_a_day_is_a_renewal() -> None:
    key = "network.service.tlsExpiresAt"
    assert summary({key: "2027-11-20T00:00:01Z"}, {key: "2027-11-21T00:00:00Z"}) == []
    assert RENEWED_S == 86400
    assert summary({key: "2027-11-20T00:00:00Z"}, {key: "2027-11-21T00:00:00Z"}) == [
        ("muted", "The service's certificate is valid until 2027-11-21 00:00:00 UTC.")
    ]


# ----------------------------------------------------------------------- added and removed items


def test_changed_name_servers_and_removed_queues_are_reported() -> None:
    before: Changes = {"network.dnsServers": ("192.168.1.1", "9.9.9.9")}
    after: Changes = {"network.dnsServers": ("8.8.8.8", "192.168.1.1")}
    assert summary(before, after) == [
        ("warn", "The name server 9.9.9.9 was removed."),
        ("muted", "The name server 8.8.8.8 is new."),
    ]
    assert summary({"printqueue.queues": ("bar",)}, {"printqueue.queues": ABSENT}) == [
        ("warn", "The print queue bar was removed.")
    ]


def test_unreadable_print_queues_are_reported_as_not_checked() -> None:
    changes = changes_between(
        report_with({"printqueue.queues": ("bar",)}), report_with({"printqueue.queues": BROKEN})
    )
    assert changes.changes == ()
    assert changes.not_compared == ("Print queues were not checked this time.",)


def test_a_finding_about_unreadable_facts_is_not_resolved() -> None:
    unreadable: Changes = {"disk./.usedFraction": BROKEN, "disk./.freeBytes": BROKEN}
    full = report_with(disk(0.98, GIB))
    (change,) = changes_between(full, report_with(unreadable)).changes
    assert change.after == NOT_CHECKED
    assert change.sentence.startswith("Not checked this time: The disk / is full")
    (change,) = changes_between(report_with(unreadable), full).changes
    assert change.before == NOT_CHECKED
    assert (change.severity, change.sentence[:5]) == ("bad", "New, ")


def test_changes_of_network_links_are_reported() -> None:
    wifi: Changes = {"enp1s0 interface.type": "wifi", "enp1s0 interface.wifiSsid": "Venue"}
    assert summary(wifi, {**wifi, "enp1s0 interface.wifiSsid": "Guests"}) == [
        ("warn", "The interface enp1s0 is on the Wi-Fi Guests; it was on Venue.")
    ]
    speed = "enp1s0 interface.speedMegabitsPerSecond"
    slower = summary({speed: 1000}, {speed: 100})
    assert ("warn", "The interface enp1s0 runs at 100 Mbit/s; it was 1000 Mbit/s.") in slower
    assert ("warn", "The interface enp1s0 is no longer connected.") in summary(
        {"enp1s0 interface.up": True}, {"enp1s0 interface.up": False}
    )


def test_an_unplugged_usb_printer_is_reported_as_a_change() -> None:
    healthy_report = healthy("linux-till")
    peripherals = healthy_report.snapshot.peripherals
    printer = next(t for t in peripherals if any(f.value == "printer" for f in t.fields))
    snapshot = healthy_report.snapshot.model_copy(
        update={
            "peripherals": tuple(
                peripheral for peripheral in peripherals if peripheral is not printer
            )
        }
    )
    without_printer = healthy_report.model_copy(update={"snapshot": snapshot})
    ((severity, sentence),) = sentences(healthy_report, without_printer)
    assert (severity, sentence.split(" ")[-1]) == ("warn", "removed.")
    at_other_port = printer.model_copy(update={"id": "usb-9-9"})
    replugged = snapshot.model_copy(update={"peripherals": (*snapshot.peripherals, at_other_port)})
    assert (
        sentences(healthy_report, healthy_report.model_copy(update={"snapshot": replugged})) == []
    )


def test_a_truncated_snapshot_reports_nothing_as_removed() -> None:
    full = report_with({"printqueue.queues": ("bar",)})
    snapshot = report_with({"printqueue.queues": ABSENT}).snapshot.model_copy(
        update={"truncated": True, "peripherals": ()}
    )
    truncated = full.model_copy(update={"snapshot": snapshot})
    changes = changes_between(full, truncated)
    assert changes.changes == ()
    assert changes.not_compared == (
        "This report was cut at its limits, so added and removed items were not compared.",
    )
