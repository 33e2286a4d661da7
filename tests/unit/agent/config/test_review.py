"""Tests of the review of the configuration. It reports settings that are wrong in combination or
probably unintended. All problems are reported at once, with their positions.
"""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.config.file import load, review
from agent.config.model import Config
from agent.config.review import review_of

ADDRESS_RULE = "must be host:port, a host, [IPv6]:port or a MAC address"
SERVICE = '[service]\nbase_url = "https://ops.venue.test"\nlocation_id = "loc-0001"\n'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "config.toml"


def problems_in(file: Path, text: str, **environment: str) -> list[str]:
    file.write_text(text, encoding="utf-8")
    return [line.removeprefix(f"{file}") for line in review(file, environment)]


def printer(**values: str) -> str:
    fields = {"id": "kitchen", "name": "Kitchen", "address": "192.168.1.50:9100", **values}
    return "[[printers]]\n" + "".join(f'{key} = "{value}"\n' for key, value in fields.items())


def test_all_problems_of_the_review_are_reported_at_once(file: Path) -> None:
    text = SERVICE + printer(id="a b", name="", address="printer kitchen") + printer() + printer()

    assert problems_in(file, text) == [
        ":5:1: printers.id must be one word, without blanks and control characters (it is 'a b')",
        ":6:1: printers.name must not be empty (it is '')",
        f":7:1: printers.address {ADDRESS_RULE} (it is 'printer kitchen')",
        ":13:1: printers.id is also the id of [[printers]] number 2 (it is 'kitchen')",
    ]


def test_problems_of_watched_devices_are_reported(file: Path) -> None:
    bar = '[[watched_devices]]\nname = "Bar"\n'
    text = SERVICE + bar + bar + 'address = "192.168.1.40"\n'
    incomplete, duplicate = problems_in(file, text)
    assert incomplete == (
        ':4:3: watched_devices needs an address = "192.168.1.40" or a mac = "00:11:22:33:44:55"'
    )
    assert duplicate.startswith(":7:1: watched_devices.name is also the name of")


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('kind = "terminal"', "(it is 'terminal'; did you mean 'payment-terminal'?)"),
        ('kind = "pinpad"', "(it is 'pinpad'; did you mean 'payment-terminal'?)"),
        ('kind = "KDS"', "(it is 'KDS'; did you mean 'kitchen-display'?)"),
        ('address = "terminal.local"', "must be an IPv4 address such as 192.168.1.40"),
        ('address = "192.168.1.40:8443"', "must be an IPv4 address such as 192.168.1.40"),
        ('mac = "00:11:22"', "must be a MAC address such as 00:11:22:33:44:55"),
        ('mac = "00:00:00:00:00:00"', "must be a MAC address such as 00:11:22:33:44:55"),
    ],
)
def test_invalid_watched_devices_are_refused(file: Path, line: str, problem: str) -> None:
    required = "" if line.startswith(("address", "mac")) else 'address = "192.168.1.40"\n'
    text = f'{SERVICE}[[watched_devices]]\nname = "Bar"\n{required}{line}\n'
    (actual,) = problems_in(file, text)
    assert problem in actual


def test_a_daemon_accepts_problems_that_only_the_review_reports(file: Path) -> None:
    file.write_text(SERVICE + printer(id="a b") + printer() + printer(), encoding="utf-8")
    assert len(load(Config, file, {}).config.printers) == 3


def test_unknown_keys_and_invalid_values_are_reported_together(file: Path) -> None:
    lines = problems_in(file, SERVICE + printer(id="a b") + "[netwrok]\n")
    assert [line.split(" ")[1] for line in lines] == ["printers.id", "unknown"]


@pytest.mark.parametrize(
    ("transport", "address"),
    [
        ("network", "192.168.1.50"),
        ("network", "192.168.1.50:9100"),
        ("network", "kitchen"),
        ("network", "kitchen-printer.local"),
        ("network", "küche.example.com:631"),
        ("network", "BRN001BA9_F1.local.:9100"),
        ("network", "fe80::1"),
        ("network", "[fe80::1]"),
        ("network", "[fe80::1]:9100"),
        ("network", "00:1b:a9:12:34:56"),
        ("network", "00-1B-A9-12-34-56"),
        ("serial", "/dev/ttyUSB0"),
        ("serial", "/dev/serial/by-id/usb-EPSON-if00"),
        ("serial", "COM3"),
        ("usb", "/dev/usb/lp0"),
        ("usb", "USB001"),
        ("usb", "usb:1-1.4"),
        ("ble", "01:23:45:67:89:ab"),
        ("ble", "0f7e4a52-8f4c-4f0e-9c52-6f1b1d1c7a10"),
    ],
)
def test_valid_printer_addresses_are_accepted(file: Path, transport: str, address: str) -> None:
    assert problems_in(file, SERVICE + printer(transport=transport, address=address)) == []


@pytest.mark.parametrize(
    ("transport", "address"),
    [
        ("network", "printer kitchen"),
        ("network", ""),
        ("network", "192.168.1.50:99999"),
        ("network", "192.168.1.50:0"),
        ("network", "192.168.1.50:"),
        ("network", "192.168.1.50:http"),
        ("network", "192.168.1.300"),
        ("network", "192.168.1"),
        ("network", "http://192.168.1.50"),
        ("network", "kitchen..local"),
        ("network", "-kitchen"),
        ("network", "k" * 64),
        ("network", "[fe80::1"),
        ("network", "[fe80::1]9100"),
        ("network", "[kitchen]:9100"),
        ("network", "00:1b:a9:12:34"),
        ("serial", "ttyUSB0"),
        ("serial", "192.168.1.50:9100"),
        ("usb", "printer kitchen"),
        ("ble", "kitchen"),
    ],
)
def test_invalid_printer_addresses_are_reported(file: Path, transport: str, address: str) -> None:
    (line,) = problems_in(file, SERVICE + printer(transport=transport, address=address))
    assert line.startswith((":7:1: printers.address must", ":7:1: printers.address needs"))


@pytest.mark.parametrize(
    ("text", "position", "message"),
    [
        ('[[printers]]\nid = "a"\nname = "A"\n', "4:3", "needs an address"),
        ("[network]\nports = [80, 443, 80]\n", "5:1", "names 80 twice"),
        ('[network]\nsubnets = ["10.0.0.0/24", "10.0.0.0/24"]\n', "5:1", "10.0.0.0/24 twice"),
        ('[network]\nmdns_service_types = ["till"]\n', "5:1", "such as _till._tcp, not till"),
        (
            f'[network]\nmdns_service_types = ["_{"a" * 60}._tcp", "_{"b" * 60}._tcp", "till"]\n',
            "5:1",
            "such as _till._tcp, not till",
        ),
        ('[network]\nexclude = ["0.0.0.0/0"]\n', "5:1", "leaves no subnet"),
        (
            '[network]\nsubnets = ["10.0.0.0/24"]\nexclude = ["10.0.0.0/25", "10.0.0.128/25"]\n',
            "6:1", "leaves no subnet",
        ),
        ('[schedule]\nnetwork = "0 0 31 2 *"\n', "5:1", "never occurs"),
        ("[limits]\noutbox_max_bytes = 100000\n", "5:1", "at least limits.max_report_bytes"),
        ('[device]\nstate_dir = "state"\n', "5:1", "an absolute path"),
        ('[device]\nlegacy_install_id = " till-1"\n', "5:1", "begin or end with a blank"),
        ('[device]\nlegacy_install_id = "till-1\u00a0"\n', "5:1", "begin or end with a blank"),
        ('[application]\nwatch_processes = ["pos", " "]\n', "5:1", "names of programs"),
        ('[application]\nkiosk_debug_url = "http://127.0.0.1:99999"\n', "5:1", "a port from 1"),
    ],
)  # fmt: skip
def test_each_mistake_is_reported_at_its_position(
    file: Path, text: str, position: str, message: str
) -> None:
    (line,) = problems_in(file, SERVICE + text)
    assert line.startswith(f":{position}: ")
    assert message in line


@pytest.mark.parametrize(
    "address",
    ["https://ops.example.com", "https://example.org/base", "https://venue.example:8443"],
)
def test_address_of_the_example_is_reported(file: Path, address: str) -> None:
    text = SERVICE.replace("https://ops.venue.test", address)
    assert problems_in(file, text) == [
        (
            ":2:1: service.base_url is the address of the example: write the address of your"
            f" service (it is '{address}')"
        )
    ]


@pytest.mark.parametrize(
    "location", ["<location>", "ID", "LOCATION_ID", "your-location", "change-me", "…", "TODO"]
)
def test_unfilled_placeholder_of_the_location_is_reported(file: Path, location: str) -> None:
    (line,) = problems_in(file, SERVICE.replace("loc-0001", location))
    assert line.startswith(":3:1: service.location_id is a placeholder: write the id of")


def test_windows_path_with_a_tab_is_reported(file: Path) -> None:
    (line,) = problems_in(file, SERVICE + 'ca_file = "C:\\temp/ca.pem"\n')
    assert "contains control characters: a Windows path needs single quotes" in line


@pytest.mark.parametrize(
    "text",
    [
        '[network]\nsubnets = ["10.0.0.0/24"]\nexclude = ["10.0.0.0/25"]\n',
        "[network]\nports = []\n",
        '[network]\nmdns_service_types = ["_till._tcp", "_x._udp.local."]\n',
        '[schedule]\nnetwork = "0 0 29 2 *"\n',
        '[device]\nstate_dir = "C:\\\\agent"\n',
        '[application]\nkiosk_debug_url = "http://127.0.0.1:9222"\n',
    ],
)
def test_unusual_but_valid_settings_are_accepted(file: Path, text: str) -> None:
    assert problems_in(file, SERVICE + text) == []


@pytest.mark.parametrize(
    "proxy", ["proxy:3128", "user:pw@proxy", "http://", "http://p:99999", "a b"]
)
def test_invalid_proxy_is_reported_without_its_content(file: Path, proxy: str) -> None:
    (line,) = problems_in(file, f'{SERVICE}proxy = "{proxy}"\n')
    assert (
        line == ':4:1: service.proxy must be a URL such as http://proxy.example:3128, or "system"'
    )


def test_a_problem_from_the_environment_names_the_variable(file: Path) -> None:
    (line,) = problems_in(file, SERVICE, VENUE_AGENT_DEVICE__STATE_DIR="state")
    assert line.startswith("VENUE_AGENT_DEVICE__STATE_DIR: device.state_dir must be an absolute")


@pytest.mark.parametrize(
    "line",
    [
        'location_id = "loc\\u0007"',
        'base_url = "https://ops.venue.test:99999"',
        'base_url = "https://ops venue.test"',
    ],
)
def test_service_settings_that_can_never_work_are_refused(file: Path, line: str) -> None:
    key = line.partition(" ")[0]
    text = "".join(f"{text}\n" for text in SERVICE.splitlines() if not text.startswith(key))
    (problem,) = problems_in(file, f"{text}{line}\n")
    assert f"service.{key} must" in problem


def test_an_install_id_with_a_control_character_is_refused(file: Path) -> None:
    (problem,) = problems_in(file, SERVICE + '[device]\nlegacy_install_id = "till\\u0000"\n')
    assert "device.legacy_install_id must not contain control characters" in problem


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
keys = st.sampled_from(
    ["id", "name", "address", "transport", "ports", "subnets", "exclude", "proxy", "state_dir",
     "mdns_service_types", "watch_processes", "kiosk_debug_url", "network", "outbox_max_bytes"]
)  # fmt: skip
sections = st.sampled_from(
    ["service", "device", "network", "printers", "application", "schedule", "limits"]
)


@pytest.mark.medium
@given(
    st.dictionaries(
        sections, st.dictionaries(keys, values) | st.lists(st.dictionaries(keys, values))
    )
)
def test_the_review_of_any_toml_document_raises_no_error(tree: dict[str, Any]) -> None:
    assert all(mistake.reason for mistake in review_of(tree))
