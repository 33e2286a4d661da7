"""The facts of a Windows machine, parsed from output in the formats that PowerShell writes."""

import base64
import contextlib
import json
import re
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collectors import programs
from collectors.application.deadline import Deadline
from collectors.application.readers import disk_space
from collectors.application.readers.network.interfaces import dhcp_fields
from collectors.application.source import Unreadable
from collectors.application.windows import devices, machine, powershell, script, time_service
from collectors.application.windows.script import read_groups
from collectors.shared.text import decode
from tests.sizes import examples
from tests.unit.collectors.application.fixtures import by_key, fixture, values
from tests.unit.collectors.application.linux.test_disks import json_values

MACHINE = script.parse_sections(fixture("windows/machine.json"))
DEVICES = script.parse_sections(b"\xef\xbb\xbf" + fixture("windows/devices.json"))


@pytest.mark.parametrize(
    ("options", "label", "is_listed"),
    [
        ("rw,fixed", "RECOVERY", False),
        ("rw,fixed", "HP_RECOVERY", False),
        ("rw,removable", "ESD-USB", False),
        ("cdrom", "", False),
        ("rw,fixed", "Data", True),
        ("rw,remote", "", True),
    ],
)
def test_recovery_partitions_installation_media_and_cd_drives_are_not_listed(
    options: str, label: str, is_listed: bool
) -> None:
    assert disk_space.holds_data("D:\\", options.split(","), lambda _: label) is is_listed


def test_machine_facts_are_read() -> None:
    facts = values(read_groups(machine.GROUPS, MACHINE).fields)
    assert facts["os.name"] == "Microsoft Windows 11 IoT Enterprise"
    assert facts["os.version"] == "10.0.26100 24H2"
    assert facts["os.build"] == "26100.4349"
    assert facts["os.bootTime"] == "2026-11-20T06:12:30+00:00"
    assert facts["os.lastBootReason"] == "power-failure-or-crash"
    assert facts["os.pendingReboot"] is True
    assert facts["hardware.model"] == "ST-B20"
    assert facts["hardware.physicalCores"] == 4
    assert facts["display.0.model"] == "E022"
    assert facts["display.adapter.0.mode"] == "1920x1080"
    assert facts["disk.drive.0.health"] == "warning"
    assert facts["disk.drive.0.rotational"] is False
    assert facts["service.printSpooler.state"] == "running"
    assert facts["service.timeSync.startType"] == "manual"
    assert facts["network.dnsServers"] == ("192.168.1.1",)


def test_a_section_that_windows_refuses_affects_only_its_own_keys() -> None:
    sections = {
        **MACHINE,
        "drives": script.Section(error="UnauthorizedAccessException"),
        "services": script.Section(error="CimException"),
    }
    del sections["region"]
    fields = by_key(read_groups(machine.GROUPS, sections))
    assert fields["disk.drives"].status == "permission-denied"
    assert fields["service.printSpooler.state"].status == "collection-failed"
    assert fields["os.timeZone"].status == "collection-failed"
    assert fields["os.name"].status == "available"


def test_every_key_is_present_even_without_data() -> None:
    keys = {field.key for field in read_groups(machine.GROUPS, {}).fields}
    assert set(machine.read_machine.keys) <= {*keys, "network.dnsAnswers"}


def test_link_types_are_parsed() -> None:
    sections = script.parse_sections(fixture("windows/adapters.json"))
    types = machine.parse_link_types(sections)
    assert types == {"Ethernet": "ethernet", "WLAN": "wifi", "vEthernet": "virtual"}


@pytest.mark.parametrize(
    ("routes", "expected"),
    [
        ('{"ok": [{"InterfaceAlias": "WLAN"}]}', frozenset({"WLAN"})),
        ('{"ok": []}', frozenset()),
        ('{"error": "CimException"}', None),
    ],
)
def test_adapters_with_a_default_route_are_known_unless_windows_refuses(
    routes: str, expected: frozenset[str] | None
) -> None:
    sections = script.parse_sections(f'{{"routes": {routes}}}'.encode())
    assert machine.parse_default_routes(sections) == expected
    assert machine.parse_default_routes({}) is None


def test_dhcp_leases_are_parsed() -> None:
    leases = machine.parse_dhcp(script.parse_sections(fixture("windows/adapters.json")))
    facts = values(dhcp_fields(leases["Ethernet"], ["192.168.1.20/24"]))
    assert facts == {
        "interface.ipv4Assignment": "DHCP",
        "interface.dhcpServer": "192.168.1.1",
        "interface.dhcpLeaseObtainedAt": "2026-11-23T14:50:00+00:00",
        "interface.dhcpLeaseExpiresAt": "2026-11-23T15:50:00+00:00",
    }
    assert leases["vEthernet"].is_used is False
    assert "WLAN" not in leases


def test_usb_facts_are_read() -> None:
    printer, scanner = devices.usb_reading(DEVICES).peripherals
    facts = values(printer.fields)
    assert facts["usb.vendorId"] == "04b8"
    assert facts["usb.classes"] == ("printer",)
    assert facts["usb.drivers"] == ("usbprint",)
    assert facts["usb.guess"] == "printer"
    assert values(scanner.fields)["usb.guess"] == "barcode-scanner"
    assert values(scanner.fields)["usb.drivers"] == ("usbccgp", "HidUsb")


def usb_row(hardware: str, instance_hash: str | None = None) -> dict[str, object]:
    return {"Name": "USB Printing Support", "Hardware": hardware, "InstanceHash": instance_hash}


def test_devices_of_one_kind_have_distinct_ids() -> None:
    rows = (
        usb_row("VID_04B8&PID_0E15"),
        usb_row("VID_04B8&PID_0E15"),
        *(usb_row("VID_05F9&PID_2204", digest) for digest in ("aa", "bb")),
        *(usb_row(f"VID_05F9&PID_2204&MI_0{number}") for number in (0, 1)),
        usb_row("VID_0C2E&PID_0B61&MI_00"),
    )
    usb_devices = devices.parse_usb(script.Section(rows))
    assert [(usb_device.local_id, usb_device.serial) for usb_device in usb_devices] == [
        *(("04b8-0e15", None), ("04b8-0e15-2", None)),
        *(("05f9-2204-aa", "aa"), ("05f9-2204-bb", "bb")),
        ("0c2e-0b61", None),
    ]


def test_the_cores_of_all_sockets_are_counted() -> None:
    socket = {"Name": "Xeon", "NumberOfCores": 8, "NumberOfLogicalProcessors": 16}
    sections = {**MACHINE, "processor": script.Section((socket, socket))}
    facts = values(read_groups(machine.GROUPS, sections).fields)
    assert (facts["hardware.physicalCores"], facts["hardware.logicalCores"]) == (16, 32)


def test_the_adapter_of_a_vpn_is_virtual() -> None:
    row = {"Name": "TAP", "Medium": "802.3", "Virtual": False, "HardwareInterface": False}
    physical = {**row, "Name": "LAN", "HardwareInterface": True}
    types = machine.parse_link_types({"adapters": script.Section((row, physical))})
    assert types == {"TAP": "virtual", "LAN": "ethernet"}


@pytest.mark.parametrize(
    "line",
    [
        'Reference ID: 0x4C4F434C (source name:  "LOCL")',
        'Referenz-ID: 0x4C4F434C (Quellname: "LOCL")',
        "Source: Local CMOS Clock",
        "Quelle: Free-running System Clock",
    ],
)
def test_a_machine_that_follows_its_own_clock_is_not_synchronised(line: str) -> None:
    text = f"Leap Indicator: 0(no warning)\r\n{line}\r\nA: 0.1s\r\nB: 0.2s\r\nC: 0.3s\r\n"
    fields = by_key(time_service.clock_reading(text))
    assert fields["os.clockSynchronised"].value is False
    assert fields["os.clockOffsetMilliseconds"].status == "unsupported"


def test_bluetooth_facts_are_read() -> None:
    reading = devices.bluetooth_reading(DEVICES)
    assert by_key(reading)["peripherals.bluetoothCount"].value == 1
    assert by_key(reading)["peripherals.bluetoothPowered"].value is True
    assert "A483E7010203" not in repr(reading)


def test_print_queue_facts_are_read_on_windows() -> None:
    facts = values(devices.queues_reading(DEVICES).fields)
    assert facts["printqueue.waitingJobs"] == 2
    assert facts["printqueue.stuckJobs"] == 1
    assert facts["printqueue.oldestJobSeconds"] == 90000
    assert facts["printqueue.EPSON TM-T20II Receipt.reasons"] == ("no-paper",)
    assert facts["printqueue.Kitchen.state"] == "offline"


def test_a_paused_print_queue_is_stopped() -> None:
    row = {"Name": "Bar", "PrinterStatus": 1, "PrinterState": 1, "WorkOffline": False}
    (queue,) = devices.parse_queues(script.Section((row,)))
    assert (queue.state, queue.reasons) == ("stopped", ("paused",))


def test_clock_facts_are_parsed_in_german() -> None:
    facts = values(time_service.clock_reading(decode(fixture("windows/w32tm.txt"))).fields)
    assert facts == {"os.clockSynchronised": True, "os.clockOffsetMilliseconds": -2.104}
    fields = by_key(time_service.clock_reading("Leap Indicator: 3(not synchronized)\r\n"))
    assert fields["os.clockSynchronised"].value is False
    assert fields["os.clockOffsetMilliseconds"].status == "unsupported"


def test_clock_facts_are_parsed_in_japanese() -> None:
    lines = (
        "閏インジケーター: 0 (警告なし)",
        "ルート遅延: 0.0216253s",
        "ルート分散: 7.7938950s",
        "位相オフセット: 0.0021040s",
    )
    # The console's code page is not UTF-8.
    facts = values(time_service.clock_reading(decode("\r\n".join(lines).encode("cp932"))).fields)
    assert facts == {"os.clockSynchronised": True, "os.clockOffsetMilliseconds": 2.104}


@pytest.mark.parametrize(
    ("message", "status"),
    [
        ("Zugriff verweigert (0x80070005)", "permission-denied"),
        ("Der Dienst wurde nicht gestartet. (0x80070426)", "not-applicable"),
    ],
)
def test_a_refused_query_of_the_time_service_is_not_a_stopped_service(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, message: str, status: str
) -> None:
    program = tmp_path / "w32tm"
    program.write_text(f"#!/bin/sh\necho '{message}'\nexit 5\n")
    program.chmod(0o755)
    monkeypatch.setattr(programs, "POSIX_DIRECTORIES", (str(tmp_path),))
    with pytest.raises(Unreadable) as refused:
        time_service.read_clock(Deadline.after(10))
    assert refused.value.status == status


@given(st.text())
def test_the_parser_of_clock_facts_accepts_any_text(text: str) -> None:
    with contextlib.suppress(ValueError):
        time_service.clock_reading(text)


@given(st.binary())
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    read_all_of(data)


NAMES = sorted(
    {name for section in (*MACHINE.values(), *DEVICES.values()) for name in section.first}
)
rows = st.lists(st.dictionaries(st.sampled_from(NAMES), json_values, max_size=5), max_size=3)


@settings(max_examples=examples(60))
@given(
    st.dictionaries(
        st.sampled_from(sorted((*MACHINE, *DEVICES))),
        st.fixed_dictionaries({"ok": rows | json_values}) | json_values,
        max_size=6,
    )
)
def test_any_structure_of_the_output_is_read_or_refused(sections: dict[str, object]) -> None:
    read_all_of(json.dumps(sections).encode())


def read_all_of(data: bytes) -> None:
    try:
        sections = script.parse_sections(data)
    except ValueError:
        return
    for field in read_groups(machine.GROUPS, sections).fields:
        assert field.value is not None or field.reason
    read_groups(devices.GROUPS, sections)
    with contextlib.suppress(Unreadable):
        machine.parse_link_types(sections)
    with contextlib.suppress(Unreadable):
        machine.parse_dhcp(sections)


def test_the_scripts_read_nothing_personal_and_have_balanced_brackets() -> None:
    for text in (powershell.MACHINE, powershell.DEVICES, powershell.ADAPTERS):
        assert not re.search(r"Serial|Owner|CommandLine|Document|UserName|UUID|CSName", text)
        assert text.count("{") == text.count("}")
        assert text.count("(") == text.count(")")


def test_the_scripts_write_times_that_do_not_depend_on_the_region() -> None:
    """In Finland, a colon in a format becomes a dot. In Thailand, 2026 becomes 2569."""
    for text in (powershell.MACHINE, powershell.DEVICES, powershell.ADAPTERS):
        formats = re.findall(r"ToString\('([^']*)'\)", text)
        assert "s" in formats
        assert set(formats) <= {"s", "x2"}


def test_the_scripts_need_no_methods_that_constrained_powershell_denies() -> None:
    """``GetType()`` is never called. Each use of ``Console``, and of types in ``Text`` and
    ``Security``, is inside a ``try`` block.
    """
    for text in (powershell.MACHINE, powershell.DEVICES, powershell.ADAPTERS):
        assert "GetType()" not in text
        for statement in re.findall(r"^.*\[(?:Console|Text|Security)[.\]].*$", text, re.MULTILINE):
            before = text[: text.index(statement)] + statement[: statement.index("[")]
            assert before.rpartition("try {")[2].count("catch") == 0
            assert "try {" in before


def test_output_in_the_code_page_of_the_console_is_parsed() -> None:
    data = '{"adapters": {"ok": [{"Name": "Büro", "Medium": "802.3"}]}}'.encode("cp850")
    types = machine.parse_link_types(script.parse_sections(data))
    assert list(types.values()) == ["ethernet"]


def test_powershell_receives_the_script_and_its_output_is_parsed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fake PowerShell decodes the script that it receives, and returns it in a section."""
    program = tmp_path / "powershell.exe"
    program.write_text(
        f"#!{sys.executable}\n"
        "import base64, json, sys\n"
        "script = base64.b64decode(sys.argv[-1]).decode('utf-16-le')\n"
        "print(json.dumps({'echo': {'ok': [{'script': script, 'options': sys.argv[1:-1]}]}}))\n"
    )
    program.chmod(0o755)
    monkeypatch.setattr(programs, "POSIX_DIRECTORIES", (str(tmp_path),))
    sections = script.read_sections(powershell.ADAPTERS, Deadline.after(10))
    assert sections["echo"].first["script"] == powershell.ADAPTERS
    assert "-NonInteractive" in sections["echo"].first["options"]
    # A command line on Windows has at most 32,767 characters.
    assert len(base64.b64encode(powershell.MACHINE.encode("utf-16-le"))) < 32_000
