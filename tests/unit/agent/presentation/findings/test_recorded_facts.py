"""Tests of the rules with facts that collectors read from recorded output and simulated peers."""

import errno
import socket
from pathlib import Path

import pytest

from collectors.application.deadline import Deadline
from collectors.application.kiosk.source import read_kiosk_page
from collectors.application.linux import drives, operating_system, pressure, services
from collectors.application.linux.hardware import read_temperatures
from collectors.application.readers import clock, disk_space, processes
from collectors.application.readers.disk_space import Mount, Space
from collectors.application.readers.network import service_probe
from collectors.application.readers.network.interfaces import Wireless, wireless_fields
from collectors.application.readers.print_queues import read_print_queues
from collectors.application.source import Origin, Reading
from collectors.application.system_bus import UnitState, parse_objects
from collectors.application.windows import devices, machine, script, time_service
from collectors.application.windows.script import read_groups
from collectors.contract import InterfaceFields
from collectors.network.matching.reasons import STATE_WORDS
from collectors.shared.linux.wireless import parse_signals
from collectors.shared.text import decode
from tests.fakes.devtools import answer_with, devtools_port
from tests.unit.agent.presentation.findings.sentences_by_rule import sentences_by_rule
from tests.unit.collectors.application.fixtures import fixture, write_files
from tests.unit.collectors.application.linux.test_system import timex_of
from tests.unit.collectors.application.network.test_network_sources import closed_port, tls_service
from tests.unit.collectors.application.test_kiosk_page import only_the_browser_answers, page_values
from tests.unit.collectors.application.test_print_queues import cups

__all__ = ["tls_service"]  # a fixture

DEADLINE = Deadline.after(3600)
GIB = 1024**3


def test_a_stopped_cups_queue_with_jobs_is_a_finding() -> None:
    """The replies were captured from CUPS 2.4. The queue kitchen is paused and has two jobs."""
    (sentence,) = sentences_by_rule(read_print_queues(DEADLINE, cups))["print-queue-stuck"]
    assert sentence.startswith("The print queue kitchen is stuck: 2 jobs wait, the oldest for ")


def test_a_doubtful_drive_and_an_empty_printer_of_a_windows_till_are_findings() -> None:
    sections = script.parse_sections(fixture("windows/machine.json"))
    actual = sentences_by_rule(
        read_groups(machine.GROUPS, sections),
        read_groups(devices.GROUPS, script.parse_sections(fixture("windows/devices.json"))),
    )
    assert actual["drive-doubtful"] == (
        "The drive 0 (KINGSTON SA400S37120G) reports a warning (SMART).",
    )
    (sentence,) = actual["print-queue-stuck"]
    assert sentence == (
        "The print queue EPSON TM-T20II Receipt is stuck: 1 job waits; the printer reports: out of"
        " paper."
    )
    assert actual["print-queue-stopped"] == ("The print queue Kitchen is offline.",)
    assert "restart-pending" in actual
    assert "spooler-stopped" not in actual


def test_a_windows_clock_without_a_time_source_is_a_finding() -> None:
    status = "Leap Indicator: 0(no warning)\nStratum: 1\nSource: Local CMOS Clock\n"
    assert list(sentences_by_rule(time_service.clock_reading(status))) == ["clock-not-synchronised"]
    assert sentences_by_rule(time_service.clock_reading(decode(fixture("windows/w32tm.txt")))) == {}


def test_a_failing_and_a_worn_drive_are_findings(tmp_path: Path) -> None:
    files = {
        "sys/block/sda/size": "234441648\n",
        "sys/block/sda/device/model": "KINGSTON SA400S3\n",
        "sys/block/mmcblk0/size": "61071360\n",
        "sys/block/mmcblk0/device/life_time": "0x01 0x0b\n",
    }
    objects = parse_objects(fixture("linux/udisks.json"))
    actual = sentences_by_rule(
        drives.read_drives(DEADLINE, write_files(tmp_path, files), lambda _: objects)
    )
    assert actual == {
        "drive-failing": (
            "The drive sda (KINGSTON SA400S3) is failing according to its self-diagnosis (SMART).",
        ),
        "drive-worn": ("The drive mmcblk0 is worn: 110 % of its lifetime is used.",),
    }


def test_read_only_full_and_silent_mounts_are_findings() -> None:
    mounts = (
        Mount("/", "ext4", read_only=True),
        Mount("/home/anna", "ext4", read_only=False),
        Mount("/mnt/share", "cifs", read_only=False, remote=True),
    )
    answers = {
        "/": Space(50 * GIB, 20 * GIB),
        "/home/anna": Space(200 * GIB, GIB),
        "/mnt/share": "the mount does not answer",
    }
    assert sentences_by_rule(
        disk_space.read_disk_space(DEADLINE, lambda: mounts, lambda *_: answers)
    ) == {
        "disk-read-only": ("The disk / is read-only: programs cannot save data on it.",),
        "disk-full": ("The disk /home/* is full: 1 GiB of 200 GiB free.",),
        "disk-silent": ("The disk /mnt/share cannot be read: the mount does not answer.",),
    }


def test_high_memory_and_disk_pressure_are_findings(tmp_path: Path) -> None:
    line = "some avg10=61.00 avg60={} avg300=9.00 total=12\nfull avg10=0.00 avg60=0.00 avg300=0.00"
    root = write_files(
        tmp_path,
        {
            "proc/pressure/cpu": line.format("97.10"),
            "proc/pressure/memory": line.format("22.40"),
            "proc/pressure/io": line.format("55.00"),
        },
    )
    assert sentences_by_rule(pressure.read_pressure(DEADLINE, root)) == {
        "memory-stalls": ("Programs waited for memory during 22 % of the last minute.",),
        "disk-slow": ("Programs waited for a disk during 55 % of the last minute.",),
    }


def test_an_unsynchronised_and_a_wrong_clock_are_findings(tmp_path: Path) -> None:
    time_ok, time_error = 0, 5  # results of adjtimex
    unsynchronised, nanoseconds = 0x0040, 0x2000
    unsynchronised_clock = clock.read_clock(
        DEADLINE, tmp_path, lambda: (time_error, timex_of(unsynchronised, 0))
    )
    assert list(sentences_by_rule(unsynchronised_clock)) == ["clock-not-synchronised"]
    wrong_clock = clock.read_clock(
        DEADLINE, tmp_path, lambda: (time_ok, timex_of(nanoseconds, -2_500_000_000))
    )
    assert sentences_by_rule(wrong_clock) == {"clock-off": ("The clock is off by 2.5 s.",)}


def test_a_pending_restart_and_a_watchdog_reset_are_findings(tmp_path: Path) -> None:
    root = write_files(
        tmp_path,
        {"run/reboot-required": "", "sys/class/watchdog/watchdog0/bootstatus": "32\n"},
    )
    fields = (operating_system.pending_reboot(root), operating_system.boot_reason(root))
    actual = sentences_by_rule(
        Reading((*fields, Origin("test").available("os.uptimeSeconds", 7200)))
    )
    assert actual["unclean-start"] == (
        "The machine started 2 h ago after a reset by the watchdog, because the machine hung.",
    )
    assert "restart-pending" in actual


def test_a_hot_sensor_is_named(tmp_path: Path) -> None:
    root = write_files(
        tmp_path,
        {
            "sys/class/hwmon/hwmon0/name": "coretemp\n",
            "sys/class/hwmon/hwmon0/temp1_input": "97000\n",
            "sys/class/hwmon/hwmon0/temp1_label": "Package id 0\n",
            "sys/class/hwmon/hwmon1/name": "nvme\n",
            "sys/class/hwmon/hwmon1/temp1_input": "51850\n",
        },
    )
    assert sentences_by_rule(read_temperatures(DEADLINE, root)) == {
        "hot": ("The machine is hot: 97 °C (coretemp Package id 0).",)
    }


def test_failed_and_restarting_services_are_findings() -> None:
    dead = {
        "cups.service": UnitState("failed", "failed"),
        "chrony.service": UnitState("failed", "failed"),
    }
    failed_services = services.read_services(
        DEADLINE, lambda *_: dead, lambda *_: {"UnitFileState": "enabled"}
    )
    assert sentences_by_rule(failed_services) == {
        "spooler-stopped": ("The print spooler (cups) is not running: nothing can be printed.",),
        "service-failed": ("The time synchronisation (chrony) has failed.",),
    }
    often = {"UnitFileState": "enabled", "NRestarts": 12}
    running = {"cups.service": UnitState("active", "running")}
    restarting_service = services.read_services(DEADLINE, lambda *_: running, lambda *_: often)
    assert list(sentences_by_rule(restarting_service)) == ["service-restarting"]


def test_a_missing_watched_program_is_a_finding() -> None:
    no_process = processes.read_processes(
        DEADLINE, ("pos-till",), table=lambda _: (), wait=lambda _: None
    )
    assert sentences_by_rule(no_process) == {
        "program-missing": ("The program pos-till is not running.",)
    }


def test_a_weak_signal_read_from_the_kernel_is_a_finding() -> None:
    signal_table = decode(fixture("linux/proc-net-wireless.txt")).replace("-56.", "-82.")
    (signal,) = parse_signals(signal_table).values()
    fields = wireless_fields(Wireless("Venue", signal))
    up = Origin("test").available("interface.up", True)
    actual = sentences_by_rule(Reading(interfaces=(InterfaceFields("wlan0", (up, *fields)),)))
    assert actual == {"wifi-weak": ("The Wi-Fi signal at wlan0 is weak: -82 dBm.",)}


def test_a_service_that_refuses_connections_is_reported() -> None:
    url = f"https://127.0.0.1:{closed_port()}"
    assert sentences_by_rule(service_probe.read_service(DEADLINE, url)) == {
        "service-unreachable": ("The service cannot be reached: Connection refused.",)
    }


def test_a_host_name_of_the_service_that_does_not_exist_is_a_finding(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail_to_resolve(*_: object, **__: object) -> object:
        raise socket.gaierror(errno.ENOENT, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", fail_to_resolve)
    assert sentences_by_rule(service_probe.read_service(DEADLINE, "https://ops.example")) == {
        "name-not-resolved": ("The service's name could not be resolved; name servers: none.",)
    }


def test_a_resolver_that_never_answers_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    def too_late(*_: object) -> object:
        raise TimeoutError("the name was not resolved in time")

    monkeypatch.setattr(service_probe, "resolve", too_late)
    assert list(sentences_by_rule(service_probe.read_service(DEADLINE, "https://ops.example"))) == [
        "name-not-resolved"
    ]


def test_an_untrusted_certificate_is_a_finding(tls_service: int) -> None:
    reading = service_probe.read_service(Deadline.after(60), f"https://localhost:{tls_service}/")
    (sentence,) = sentences_by_rule(reading)["certificate-untrusted"]
    assert sentence.endswith("certificate: Nosy Middlebox Ltd, Inspecting CA \u2603.")


def test_a_page_that_has_crashed_is_a_finding() -> None:
    with devtools_port({"A": answer_with(page_values())}, event="Inspector.targetCrashed") as port:
        assert list(sentences_by_rule(read_kiosk_page(Deadline.after(5), port.url))) == [
            "kiosk-crashed"
        ]


@pytest.mark.medium
def test_a_page_that_does_not_respond_is_a_finding() -> None:
    with devtools_port({"A": only_the_browser_answers}) as port:
        assert list(sentences_by_rule(read_kiosk_page(Deadline.after(5), port.url))) == [
            "kiosk-frozen"
        ]


def test_an_error_page_of_the_browser_is_a_finding() -> None:
    answer = answer_with(page_values(), url="chrome-error://chromewebdata/")
    with devtools_port({"A": answer}) as port:
        assert list(sentences_by_rule(read_kiosk_page(Deadline.after(5), port.url))) == [
            "kiosk-error-page"
        ]


def test_a_blank_page_without_local_network_permission_has_three_findings() -> None:
    answer = answer_with(
        page_values(
            drawing={"value": False},
            painted={"value": False},
            localNetworkPermission={"value": "denied"},
        )
    )
    with devtools_port({"A": answer}) as port:
        assert list(sentences_by_rule(read_kiosk_page(Deadline.after(5), port.url))) == [
            "kiosk-blank",
            "kiosk-not-drawing",
            "kiosk-local-network-denied",
        ]


def test_printer_states_have_the_same_text_in_both_reports() -> None:
    """The rule for print queues describes a problem with the same text as the network report."""
    for reason in ("media-empty", "media-jam", "cover-open", "toner-empty", "output-area-full"):
        queue = Reading((Origin("CUPS").available("printqueue.bar.reasons", (f"{reason}-error",)),))
        (sentence,) = sentences_by_rule(queue)["print-queue-needs-attention"]
        assert sentence.endswith(f"needs attention: {STATE_WORDS[reason]}.")
