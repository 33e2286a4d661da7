"""Parsing the replies of busctl, and the field status for each of its errors."""

import json
import socket
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors import programs
from collectors.application import system_bus
from collectors.application.deadline import Deadline
from collectors.application.linux import bluetooth, services
from collectors.application.linux.network import links
from collectors.application.system_bus import Properties, UnitState
from tests.unit.collectors.application.fixtures import by_key, fixture, values, write_files
from tests.unit.collectors.application.linux.test_disks import json_values

DEADLINE = Deadline.after(3600)


@pytest.mark.parametrize(
    ("stderr", "status"),
    [
        (b'Call failed: Name "org.bluez" does not exist', "not-applicable"),
        (
            b"Call failed: The name org.bluez was not provided by any .service files",
            "not-applicable",
        ),
        (b"Failed to connect to bus: No such file or directory", "unsupported"),
        (b"Call failed: Access denied", "permission-denied"),
        (b"Failed to connect to bus: Operation not permitted", "permission-denied"),
        (b"Call failed: Connection timed out", "collection-failed"),
        (b"Call failed: Input/output error", "collection-failed"),
        (b"\xff\xfe", "collection-failed"),
    ],
)
def test_errors_of_busctl_have_a_status(stderr: bytes, status: str) -> None:
    assert system_bus.refusal(1, stderr).status == status


@given(st.binary())
def test_any_error_of_busctl_has_a_reason(stderr: bytes) -> None:
    assert system_bus.refusal(1, stderr).reason


@given(st.binary() | json_values.map(lambda value: json.dumps({"data": value}).encode()))
def test_any_reply_of_busctl_is_read_or_refused(data: bytes) -> None:
    for parse in (
        system_bus.parse_objects,
        system_bus.parse_properties,
        system_bus.parse_unit_states,
    ):
        try:
            parse(data)
        except ValueError:
            continue


def test_the_object_path_of_a_unit_is_escaped() -> None:
    path = system_bus.unit_object("systemd-timesyncd.service")
    assert path == "/org/freedesktop/systemd1/unit/systemd_2dtimesyncd_2eservice"


def test_facts_about_services_are_read() -> None:
    def states(_: object, __: Deadline) -> dict[str, UnitState]:
        return system_bus.parse_unit_states(fixture("linux/units.json"))

    def unit(name: str, _: Deadline) -> Properties:
        if name == "cups.service":
            return system_bus.parse_properties(fixture("linux/unit-cups.json"))
        return {}

    reading = services.read_services(DEADLINE, states, unit)
    fields = by_key(reading)
    assert values(reading.fields)["service.printSpooler.state"] == "active (running)"
    assert fields["service.printSpooler.restarts"].value == 3
    assert fields["service.printSpooler.since"].value == "2026-11-20T13:06:40+00:00"
    assert fields["service.printSpooler.startType"].value == "enabled"
    assert fields["service.timeSync.name"].value == "chrony"
    assert fields["service.bluetooth.state"].status == "not-applicable"
    assert "hunter2" not in repr(reading)


@given(json_values)
def test_any_properties_of_a_unit_are_read(value: object) -> None:
    names = ("NRestarts", "UnitFileState", "ActiveEnterTimestamp")
    keys = ("a", "b", "c", "d", "e")
    fields = services.unit_fields(
        keys, "x.service", UnitState("active", "running"), dict.fromkeys(names, value)
    )
    assert tuple(field.key for field in fields) == keys
    for field in fields:
        assert field.value is not None or field.reason


def test_bluetooth_facts_are_read() -> None:
    objects = system_bus.parse_objects(fixture("linux/bluez.json"))
    reading = bluetooth.read_bluetooth(DEADLINE, lambda _: objects)
    assert values(reading.fields) == {
        "peripherals.bluetoothCount": 2,
        "peripherals.bluetoothPowered": True,
    }
    printer, phone = reading.peripherals
    assert values(printer.fields)["bluetooth.name"] == "Star Micronics"
    assert values(printer.fields)["bluetooth.batteryFraction"] == 0.83
    assert values(printer.fields)["bluetooth.connected"] is True
    assert "bluetooth.name" not in values(phone.fields)
    for personal_text in ("Anna", "annas", "00:11:62", "A4:83", "stranger's"):
        assert personal_text not in repr(reading)


@given(st.dictionaries(st.sampled_from(["Paired", "Name", "Icon", "RSSI", "Address"]), json_values))
def test_the_parser_of_bluetooth_facts_accepts_any_properties(properties: Properties) -> None:
    device = {**properties, "Paired": True}
    (result,) = bluetooth.parse_bluez({"/d": {"org.bluez.Device1": device}})
    assert result.is_personal or isinstance(properties["Icon"], str)


def test_ssids_of_network_manager_are_parsed() -> None:
    objects = system_bus.parse_objects(fixture("linux/network-manager.json"))
    assert links.parse_network_manager(objects) == {"wlan0": "Café"}


@given(json_values)
def test_the_parser_of_ssids_accepts_any_value(value: object) -> None:
    links.parse_network_manager(
        {
            "/d": {
                "org.freedesktop.NetworkManager.Device": {"Interface": "wlan0"},
                "org.freedesktop.NetworkManager.Device.Wireless": {"ActiveAccessPoint": "/p"},
            },
            "/p": {"org.freedesktop.NetworkManager.AccessPoint": {"Ssid": value}},
        }
    )


def test_restarts_of_the_service_of_a_process_are_counted(tmp_path: Path) -> None:
    root = write_files(
        tmp_path,
        {
            "proc/7/cgroup": "0::/system.slice/pos.service\n",
            "proc/8/cgroup": "0::/user.slice/user@1000.service/app.slice/pos.scope\n",
        },
    )

    def restarts(pid: int, properties: Properties) -> services.Restarts:
        def read(name: str, _: Deadline) -> Properties:
            assert name == "pos.service"
            return properties

        return services.count_restarts(root, pid, DEADLINE, read)

    assert restarts(7, {"NRestarts": 4}).count == 4
    assert restarts(7, {}).reason == "systemd does not count the restarts of this service"
    assert restarts(8, {}).reason == "only restarts of system services are counted"
    assert restarts(9, {}).status == "collection-failed"


@given(st.text())
def test_the_parser_of_cgroups_accepts_any_text(text: str) -> None:
    services.parse_service(text)


def test_busctl_is_killed_if_the_system_bus_never_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A real socket accepts connections and never answers. The program that replaces busctl waits
    for an answer.
    """
    bus = tmp_path / "bus"
    script = tmp_path / "busctl"
    script.write_text(f"#!/bin/sh\nexec {sys.executable} -c '{_WAITING_CLIENT}' {bus}\n")
    script.chmod(0o755)
    monkeypatch.setattr(programs, "POSIX_DIRECTORIES", (str(tmp_path), "/usr/bin", "/bin"))
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(bus))
        silent.listen()
        with pytest.raises(TimeoutError, match="busctl did not answer"):
            bluetooth.read_bluetooth(Deadline.after(0.5))


_WAITING_CLIENT = (
    "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); s.recv(1)"
)
