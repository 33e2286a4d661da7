import pytest

from collectors.network.matching.identity import (
    mac_in_hostname,
    mac_in_uuid,
    mac_tail_in_hostname,
    normal_mac,
    normal_uuid,
)


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
def test_macs_in_every_writing(given: str | None, expected: str | None):
    assert normal_mac(given) == expected


def test_uuids_in_every_writing():
    uuid = "e3248000-80ce-11db-8000-001ba9123456"
    assert normal_uuid(f"urn:uuid:{uuid.upper()}") == uuid
    assert normal_uuid(uuid) == uuid
    assert normal_uuid("00000000-0000-0000-0000-000000000000") is None
    assert normal_uuid("no uuid") is None


def test_the_mac_in_a_uuid():
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
def test_macs_in_default_host_names(hostname: str | None, mac: str | None):
    assert mac_in_hostname(hostname) == mac


def test_the_last_bytes_in_default_host_names():
    assert mac_tail_in_hostname("NPI123ABC.local") == "12:3a:bc"
    assert mac_tail_in_hostname("EPSON123ABC") == "12:3a:bc"
    assert mac_tail_in_hostname("BRN001BA9123456") is None
    assert mac_tail_in_hostname("NPI123ABCD") is None
