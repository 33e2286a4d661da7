"""Tests that MACs, UUIDs and serial numbers of devices are parsed, and placeholders ignored."""

import pytest

from collectors.network.matching.identity import (
    mac_in_address,
    mac_in_hostname,
    mac_in_uuid,
    mac_tail_in_hostname,
    normal_uuid,
    real_serial,
)
from collectors.shared.addresses import normal_mac


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("00:1B:A9:12:34:56", "00:1b:a9:12:34:56"),
        ("00-1b-a9-12-34-56", "00:1b:a9:12:34:56"),
        ("001BA9123456", "00:1b:a9:12:34:56"),
        ("00:1b-a9:12:34:56", None),
        ("192.168.1.50", None),
        ("", None),
        (None, None),
    ],
)
def test_macs_in_every_notation_are_converted(given: str | None, expected: str | None):
    assert normal_mac(given) == expected


def test_uuids_in_every_notation_are_converted():
    uuid = "e3248000-80ce-11db-8000-001ba9123456"
    assert normal_uuid(f"urn:uuid:{uuid.upper()}") == uuid
    assert normal_uuid(uuid) == uuid
    assert normal_uuid("00000000-0000-0000-0000-000000000000") is None
    assert normal_uuid("no uuid") is None


def test_the_mac_in_a_uuid_is_parsed():
    assert mac_in_uuid("e3248000-80ce-11db-8000-001ba9123456") == "00:1b:a9:12:34:56"
    assert mac_in_uuid(None) is None


@pytest.mark.parametrize(
    ("hostname", "mac"),
    [
        ("BRN001BA9123456", "00:1b:a9:12:34:56"),
        ("brw001ba9123456.local", "00:1b:a9:12:34:56"),
        ("EPSON001BA9123456.lan", "00:1b:a9:12:34:56"),
        ("BRN001BA91234567", None),
        ("kitchen", None),
        (None, None),
    ],
)
def test_macs_in_default_host_names_are_parsed(hostname: str | None, mac: str | None):
    assert mac_in_hostname(hostname) == mac


def test_the_last_bytes_of_macs_in_default_host_names_are_parsed():
    assert mac_tail_in_hostname("NPI123ABC.local") == "12:3a:bc"
    assert mac_tail_in_hostname("EPSON123ABC") == "12:3a:bc"
    assert mac_tail_in_hostname("BRN001BA9123456") is None
    assert mac_tail_in_hostname("NPI123ABCD") is None


@pytest.mark.parametrize(
    "text", [None, "", "0", "00000000", "000001", "0.00", "12345678", "1234567890", "XXXX", "N/A"]
)
def test_placeholders_of_firmware_are_not_used_as_serial_numbers(text: str | None):
    assert real_serial(text) is None


@pytest.mark.parametrize("text", ["J5XX", "E78123", "2550121", "000C7Z123456", " S1 "])
def test_serial_numbers_that_are_not_placeholders_are_used(text: str):
    assert real_serial(text) == text.strip()


def test_placeholder_macs_and_uuids_are_ignored():
    assert normal_mac("00:00:00:00:00:00") is None
    assert normal_mac("ff-ff-ff-ff-ff-ff") is None
    assert normal_uuid("ffffffff-ffff-ffff-ffff-ffffffffffff") is None
    assert normal_uuid("00000000-0000-1000-8000-000000000000") is not None


def test_the_mac_in_an_ipv6_address_is_parsed():
    assert mac_in_address("fe80::21b:a9ff:fe12:3456%eth0") == "00:1b:a9:12:34:56"
    assert mac_in_address("fd00::21b:a9ff:fe12:3456") == "00:1b:a9:12:34:56"
    for text in ("fe80::1", "192.168.1.50", "kitchen", None):
        assert mac_in_address(text) is None
