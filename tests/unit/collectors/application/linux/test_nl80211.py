"""Wi-Fi facts from nl80211, with messages in the layout of linux/nl80211.h and a fake kernel."""

import errno
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.application.linux.network import links, nl80211
from collectors.application.linux.network.nl80211 import Interface
from collectors.application.readers.network.interfaces import (
    WIFI,
    Wireless,
    band_and_channel,
    wireless_fields,
)
from collectors.shared.linux.netlink import write_attribute
from tests.unit.collectors.application.fixtures import fixture, values, write_files

FAMILY = 31
ACCESS_POINT = bytes.fromhex("a4b1c2d3e4f5")
STATION_TYPE, ACCESS_POINT_TYPE = 2, 3  # enum nl80211_iftype


def u32(number: int) -> bytes:
    return struct.pack("=I", number)


def family(name: str, number: int) -> bytes:
    """Return a CTRL_CMD_NEWFAMILY message."""
    name_attribute = write_attribute(2, name.encode() + b"\0")
    return (
        struct.pack("=BBxx", 1, 2) + write_attribute(1, struct.pack("=H", number)) + name_attribute
    )


def interface(
    name: str = "wlan0",
    *,
    index: int = 3,
    kind: int = STATION_TYPE,
    frequency: int | None = 5220,
    ssid: bytes = b"Venue",
) -> bytes:
    """Return an NL80211_CMD_NEW_INTERFACE message."""
    parts = (
        (3, u32(index)),  # NL80211_ATTR_IFINDEX
        (4, name.encode() + b"\0"),  # NL80211_ATTR_IFNAME
        (1, u32(0)),  # NL80211_ATTR_WIPHY
        (5, u32(kind)),  # NL80211_ATTR_IFTYPE
        (6, bytes.fromhex("020000000020")),  # NL80211_ATTR_MAC
        (52, ssid),  # NL80211_ATTR_SSID
        *([(38, u32(frequency))] if frequency else []),  # NL80211_ATTR_WIPHY_FREQ
    )
    attributes = b"".join(write_attribute(*part) for part in parts)
    return struct.pack("=BBxx", 7, 1) + attributes


def station(signal: int = -58, rate: int = 8667, *, has_rate_32: bool = True) -> bytes:
    """Return an NL80211_CMD_NEW_STATION message. The unit of ``rate`` is 100 kbit/s.

    The attribute 21 (NL80211_ATTR_STA_INFO) contains the signal (7) and the rate (8).
    """
    wide = write_attribute(5, u32(rate)) if has_rate_32 else b""
    rates = write_attribute(1, struct.pack("=H", rate)) + wide + write_attribute(2, b"\7")
    info = write_attribute(7, struct.pack("=b", signal)) + write_attribute(8 | 0x8000, rates)
    body = write_attribute(3, u32(3)) + write_attribute(6, ACCESS_POINT)
    return struct.pack("=BBxx", 19, 1) + body + write_attribute(21 | 0x8000, info)


class Kernel:
    """A fake kernel that answers dump requests. ``stations`` maps the index of an interface to the
    messages about its stations.
    """

    def __init__(self, interfaces: list[bytes], stations: dict[int, list[bytes]]) -> None:
        self.families = [family("nlctrl", 16), family("nl80211", FAMILY)]
        self._interfaces = interfaces
        self._stations = stations

    def __call__(self, message_type: int, body: bytes, answer_type: int) -> list[bytes]:
        assert message_type == answer_type
        command = (message_type, body[0])
        if command == (16, 3):  # CTRL_CMD_GETFAMILY
            return self.families
        if command == (FAMILY, 5):  # NL80211_CMD_GET_INTERFACE
            return self._interfaces
        is_station_request = command == (FAMILY, 17)  # NL80211_CMD_GET_STATION
        assert is_station_request, "no other request may be sent, in particular no scan"
        index = struct.unpack("=I", body[8:12])[0]
        if index not in self._stations:
            raise OSError(errno.ENODEV, "No such device")
        return self._stations[index]


def facts(kernel: Kernel) -> dict[str, object]:
    """Return the values of the Wi-Fi fields of the only interface."""
    (wireless,) = (links.wireless_of(*pair) for pair in nl80211.wifi_of(kernel).values())
    return values(wireless_fields(wireless))


def test_the_connection_to_an_access_point_is_read() -> None:
    kernel = Kernel([interface()], {3: [station()]})
    assert facts(kernel) == {
        "interface.wifiSsid": "Venue",
        "interface.wifiSignalDbm": -58,
        "interface.wifiAccessPoint": "a4:b1:c2:d3:e4:f5",
        "interface.wifiBand": "5 GHz",
        "interface.wifiChannel": 44,
        "interface.wifiRateMegabitsPerSecond": 866.7,
    }


def test_an_old_kernel_reports_the_rate_in_16_bits() -> None:
    kernel = Kernel([interface()], {3: [station(rate=650, has_rate_32=False)]})
    assert facts(kernel)["interface.wifiRateMegabitsPerSecond"] == 65.0


@pytest.mark.parametrize(
    ("kernel", "reason"),
    [
        (
            Kernel([interface(frequency=None, ssid=b"")], {3: []}),
            "the interface is not connected to a network",
        ),
        (Kernel([interface()], {}), "the interface is not connected to a network"),
        (
            Kernel([interface(kind=ACCESS_POINT_TYPE)], {3: [station()]}),
            "the interface is not a client of a network",
        ),
    ],
    ids=["disconnected", "removed", "access-point"],
)
def test_an_interface_without_a_connection_has_a_reason(kernel: Kernel, reason: str) -> None:
    (wireless,) = (links.wireless_of(*pair) for pair in nl80211.wifi_of(kernel).values())
    fields = wireless_fields(wireless)
    assert {(field.status, field.reason) for field in fields} == {("not-applicable", reason)}
    assert tuple(field.key for field in fields) == tuple(key for key, _ in WIFI)


def test_the_stations_of_an_access_point_are_not_read() -> None:
    kernel = Kernel([interface(kind=ACCESS_POINT_TYPE)], {3: [station()]})
    assert nl80211.wifi_of(kernel)["wlan0"][1] is None


def test_the_wireless_extensions_are_read_without_nl80211(tmp_path: Path) -> None:
    kernel = Kernel([], {})
    kernel.families = [family("nlctrl", 16)]
    assert nl80211.wifi_of(kernel) == {}
    root = write_files(tmp_path, {"proc/net/wireless": fixture("linux/proc-net-wireless.txt")})
    wireless = links.read_wireless(
        root, ("wlan0",), dict, lambda _: "Venue", lambda: nl80211.wifi_of(kernel)
    )
    assert wireless["wlan0"] == Wireless("Venue", -56)


def test_values_that_nl80211_lacks_come_from_the_wireless_extensions(tmp_path: Path) -> None:
    kernel = Kernel([interface(ssid=b"")], {3: [station(signal=0)]})
    root = write_files(tmp_path, {"proc/net/wireless": fixture("linux/proc-net-wireless.txt")})
    wireless = links.read_wireless(
        root, ("wlan0",), dict, lambda _: "Venue", lambda: nl80211.wifi_of(kernel)
    )
    assert (wireless["wlan0"].ssid, wireless["wlan0"].signal_dbm) == ("Venue", -56)
    assert wireless["wlan0"].channel == 44


def test_the_wireless_extensions_are_read_if_the_netlink_socket_is_refused(tmp_path: Path) -> None:
    def refuse() -> nl80211.WifiInterfaces:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    wireless = links.read_wireless(tmp_path, ("wlan0",), dict, lambda _: "Venue", refuse)
    assert wireless["wlan0"] == Wireless("Venue")


def test_the_running_kernel_answers_the_dump_of_families() -> None:
    assert all(isinstance(pair[0], Interface) for pair in nl80211.read_wifi().values())


@pytest.mark.parametrize(
    ("frequency", "band", "channel"),
    [
        (2412, "2.4 GHz", 1),
        (2472, "2.4 GHz", 13),
        (2484, "2.4 GHz", 14),
        (5180, "5 GHz", 36),
        (5885, "5 GHz", 177),
        (5955, "6 GHz", 1),
        (7115, "6 GHz", 233),
        (58320, None, None),
        (None, None, None),
    ],
)
def test_band_and_channel_follow_from_the_frequency(
    frequency: int | None, band: str | None, channel: int | None
) -> None:
    assert band_and_channel(frequency) == (band, channel)


@given(st.integers(0, len(interface())), st.integers(0, len(station())))
def test_truncated_messages_are_parsed_or_ignored(first: int, second: int) -> None:
    parsed = nl80211.parse_interface(interface()[:first])
    assert parsed is None or (parsed.index, parsed.name) == (3, "wlan0")
    connection = nl80211.parse_station(station()[:second])
    assert connection is None or connection.access_point == ACCESS_POINT.hex(":")


@given(st.data())
def test_damaged_messages_are_parsed_or_ignored(data: st.DataObject) -> None:
    for whole, parse in (
        (interface(), nl80211.parse_interface),
        (station(), nl80211.parse_station),
    ):
        damaged = bytearray(whole)
        for _ in range(data.draw(st.integers(1, 8))):
            damaged[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
        parse(bytes(damaged))


@given(st.binary(max_size=200))
def test_any_bytes_give_a_signal_in_range_or_none(data: bytes) -> None:
    nl80211.parse_interface(struct.pack("=BBxx", 7, 1) + data)
    connection = nl80211.parse_station(struct.pack("=BBxx", 19, 1) + data)
    assert connection is None or connection.signal_dbm is None or -128 < connection.signal_dbm < 0
