"""Wi-Fi facts of Windows, from tables in the layout of wlanapi.h."""

import struct
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.application.readers.network.interfaces import Wireless, wireless_fields
from collectors.application.windows import machine, script, wlan
from collectors.application.windows.wlan import Connection, WlanError
from tests.unit.collectors.application.fixtures import fixture, values

CONNECTED, IDLE = uuid.UUID("B0000000-1111-2222-3333-444444444444"), uuid.UUID(int=7)
"""The GUIDs of an interface that is connected to a network, and of one that is not."""
ACCESS_POINT = bytes.fromhex("a4b1c2d3e4f5")
OTHER_ACCESS_POINT = bytes.fromhex("a4b1c2d3e4ff")
TABLE = struct.pack("<II", 2, 0) + b"".join(
    guid.bytes_le + "Wi-Fi".encode("utf-16-le").ljust(512, b"\0") + struct.pack("<I", state)
    for guid, state in ((CONNECTED, 1), (IDLE, 4))
)
"""A WLAN_INTERFACE_INFO_LIST."""
PROFILE = "Profile of a user".encode("utf-16-le").ljust(512, b"\0")
ATTRIBUTES = (
    struct.pack("<II", 1, 0)
    + PROFILE
    + struct.pack("<I32s", 5, b"Venue")
    + struct.pack("<I6s2x", 1, ACCESS_POINT)
    + struct.pack("<5I", 8, 0, 84, 780_000, 866_700)
    + struct.pack("<4I", 1, 0, 7, 4)
)
"""The WLAN_CONNECTION_ATTRIBUTES of the connected interface."""


def entry(address: bytes, signal: int, frequency_khz: int) -> bytes:
    """Return a WLAN_BSS_ENTRY of 360 bytes."""
    head = struct.pack("<I32sI6s2xII", 5, b"Venue", 0, address, 1, 8)
    middle = struct.pack("<iI?xH4xQQH2xI", signal, 84, True, 100, 0, 0, 0, frequency_khz)
    return (head + middle).ljust(360, b"\0")


ENTRIES = struct.pack("<II", 8 + 2 * 360, 2) + entry(OTHER_ACCESS_POINT, -80, 2_412_000)
ENTRIES += entry(ACCESS_POINT, -55, 5_955_000)
"""A WLAN_BSS_LIST with both access points of the network."""


def read(attributes: bytes = ATTRIBUTES, entries: bytes = ENTRIES) -> dict[uuid.UUID, Wireless]:
    return wlan.wireless_of(TABLE, lambda _: attributes, lambda *_: entries)


def test_the_connection_to_an_access_point_is_read() -> None:
    wireless = read()
    assert values(wireless_fields(wireless[CONNECTED])) == {
        "interface.wifiSsid": "Venue",
        "interface.wifiSignalDbm": -55,
        "interface.wifiAccessPoint": "a4:b1:c2:d3:e4:f5",
        "interface.wifiBand": "6 GHz",
        "interface.wifiChannel": 1,
        "interface.wifiRateMegabitsPerSecond": 866.7,
    }
    assert wireless[IDLE].reason == "the interface is not connected to a network"


def test_only_the_entries_of_the_connected_network_are_requested() -> None:
    requested = []

    def entries(interface: uuid.UUID, connection: Connection) -> bytes:
        requested.append((interface, connection))
        return ENTRIES

    wlan.wireless_of(TABLE, lambda _: ATTRIBUTES, entries)
    assert requested == [(CONNECTED, Connection(b"Venue", ACCESS_POINT, 866_700, True))]


@pytest.mark.parametrize(
    ("code", "status", "reason"),
    [
        (
            5,  # ERROR_ACCESS_DENIED
            "permission-denied",
            "Windows reports it only to programs with the location permission",
        ),
        (
            5023,
            "not-applicable",
            "the interface is not connected to a network",
        ),  # ERROR_INVALID_STATE
        (87, "collection-failed", "Windows answered with the error 87"),  # ERROR_INVALID_PARAMETER
    ],
)
def test_a_refusal_of_windows_is_the_reason(code: int, status: str, reason: str) -> None:
    def refuse(_: uuid.UUID) -> bytes:
        raise WlanError(code)

    wireless = wlan.wireless_of(TABLE, refuse, lambda *_: ENTRIES)[CONNECTED]
    assert (wireless.ssid, wireless.status, wireless.reason) == (None, status, reason)


def test_signal_band_and_channel_are_missing_without_the_list_of_access_points() -> None:
    def refuse(*_: object) -> bytes:
        raise WlanError(5)  # ERROR_ACCESS_DENIED

    wireless = wlan.wireless_of(TABLE, lambda _: ATTRIBUTES, refuse)[CONNECTED]
    assert (wireless.ssid, wireless.rate_megabits) == ("Venue", 866.7)
    assert (wireless.signal_dbm, wireless.band, wireless.channel) == (None, None, None)


def test_networks_are_matched_to_adapters_by_their_guid() -> None:
    sections = script.parse_sections(fixture("windows/adapters.json"))
    types = machine.parse_link_types(sections)
    wireless = machine.wireless_of(sections, types, lambda: {CONNECTED: Wireless("Venue")})
    assert wireless == {"WLAN": Wireless("Venue")}
    assert machine.wireless_of(sections, types, dict)["WLAN"].reason == "Windows does not report it"


def test_a_failed_wlan_service_is_the_reason_of_each_adapter() -> None:
    def fail() -> dict[uuid.UUID, Wireless]:
        raise WlanError(1722)  # RPC_S_SERVER_UNAVAILABLE

    sections = script.parse_sections(fixture("windows/adapters.json"))
    wireless = machine.wireless_of(sections, {"WLAN": "wifi"}, fail)
    assert wireless["WLAN"].status == "collection-failed"


@given(st.binary(max_size=700), st.integers(0, len(ENTRIES)))
def test_any_table_is_parsed_or_ignored(data: bytes, length: int) -> None:
    wlan.parse_interfaces(data)
    wlan.parse_entries(data, ACCESS_POINT)
    read(data, ENTRIES[:length])
    read(ATTRIBUTES[:length])
