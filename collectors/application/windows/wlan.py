"""Reads the Wi-Fi connections of Windows with the Native Wifi API (wlanapi.h).

The API returns C structs and lists of them. This module parses them from their bytes. Only the
network to which an interface is connected is read.
"""

import ctypes
import struct
import sys
import uuid
from collections.abc import Callable
from typing import Final, NamedTuple

from collectors.application.readers.network.interfaces import (
    NOT_CONNECTED,
    SIGNALS_DBM,
    Wireless,
    band_and_channel,
)
from collectors.application.windows.script import NOT_REPORTED
from collectors.shared.addresses import mac_text
from collectors.shared.text import decode_text

_INTERFACES_MAX: Final = 64
_ENTRIES_MAX: Final = 256
_LIST_HEADER: Final = struct.Struct("<II")
_INTERFACE: Final = struct.Struct("<16s512sI")  # WLAN_INTERFACE_INFO: GUID, description, state
_CONNECTED: Final = 1  # wlan_interface_state_connected

# The beginning of WLAN_CONNECTION_ATTRIBUTES: state and mode, the profile's name, DOT11_SSID,
# DOT11_BSS_TYPE, the BSSID with 2 bytes of padding, DOT11_PHY_TYPE, its index, the quality in
# percent, the rates of receiving and sending in kbit/s, and whether the network is encrypted.
_CONNECTION: Final = struct.Struct("<II512sI32sI6s2xIIIIII")

# WLAN_BSS_ENTRY: DOT11_SSID, the PHY's id, the BSSID, DOT11_BSS_TYPE, DOT11_BSS_PHY_TYPE, the
# signal in dBm, …, and the centre frequency in kHz.
_ENTRY: Final = struct.Struct("<I32sI6s2xIIi32xI264x")
_ENTRIES_OFFSET: Final = 8  # after the total size and the number of entries

_ERROR_ACCESS_DENIED: Final = 5
_ERRORS_WITHOUT_SERVICE: Final = frozenset({1060, 1061, 1062, 50})
"""The service WlanSvc does not exist or does not run, or the system does not support Wi-Fi."""
_ERRORS_WITHOUT_NETWORK: Final = frozenset({5023, 1168})
"""ERROR_INVALID_STATE and ERROR_NOT_FOUND: the interface is not connected."""
_LOCATION: Final = "Windows reports it only to programs with the location permission"


class Connection(NamedTuple):
    """The connection of an interface. ``access_point`` is the BSSID."""

    ssid: bytes
    access_point: bytes
    send_rate_kbps: int
    is_encrypted: bool


class Bss(NamedTuple):
    """The signal and the frequency of an access point."""

    signal_dbm: int
    frequency_khz: int


class WlanError(OSError):
    """A call of the Native Wifi API failed with the error ``code`` of Windows."""

    def __init__(self, code: int) -> None:
        super().__init__(f"Windows answered with the error {code}")
        self.code = code


QueryConnection = Callable[[uuid.UUID], bytes]
"""Returns the WLAN_CONNECTION_ATTRIBUTES of an interface. Raises WlanError."""
QueryEntries = Callable[[uuid.UUID, Connection], bytes]
"""Returns the WLAN_BSS_LIST of the network of a connection. Raises WlanError."""


def read_wireless() -> dict[uuid.UUID, Wireless]:
    """Return the network of each Wi-Fi interface. Raises WlanError.

    Returns {} if Wi-Fi is not installed on this system, or if its service does not run.
    """
    if sys.platform == "win32":
        try:
            with _Client() as client:
                return wireless_of(client.interfaces(), client.connection, client.entries)
        except FileNotFoundError:
            return {}  # Windows Server has no wlanapi.dll until Wi-Fi is installed
        except WlanError as error:
            if error.code in _ERRORS_WITHOUT_SERVICE:
                return {}
            raise
    else:
        raise OSError("only Windows has the Native Wifi API")


def wireless_of(
    table: bytes, query: QueryConnection, query_entries: QueryEntries
) -> dict[uuid.UUID, Wireless]:
    """Return the network of each interface of a WLAN_INTERFACE_INFO_LIST."""
    return {
        interface: _network(interface, query, query_entries)
        if is_connected
        else Wireless(status="not-applicable", reason=NOT_CONNECTED)
        for interface, is_connected in parse_interfaces(table)
    }


def _network(interface: uuid.UUID, query: QueryConnection, query_entries: QueryEntries) -> Wireless:
    try:
        connection = parse_connection(query(interface))
    except WlanError as error:
        return _wireless_of_error(error)
    if connection is None:
        return Wireless(reason="Windows returned data in an unknown format")
    try:
        bss = parse_entries(query_entries(interface, connection), connection.access_point)
    except WlanError:
        bss = None
    signal = bss.signal_dbm if bss and bss.signal_dbm in SIGNALS_DBM else None
    band, channel = band_and_channel(bss.frequency_khz // 1000 if bss else None)
    return Wireless(
        decode_text(connection.ssid) or None,
        signal,
        mac_text(connection.access_point),
        band,
        channel,
        connection.send_rate_kbps / 1000 or None,
        reason=NOT_REPORTED,
    )


def _wireless_of_error(error: WlanError) -> Wireless:
    if error.code in _ERRORS_WITHOUT_NETWORK:
        return Wireless(status="not-applicable", reason=NOT_CONNECTED)
    if error.code == _ERROR_ACCESS_DENIED:
        return Wireless(status="permission-denied", reason=_LOCATION)
    return Wireless(status="collection-failed", reason=str(error))


def parse_interfaces(table: bytes) -> list[tuple[uuid.UUID, bool]]:
    """Return the GUID of each interface, and whether it is connected."""
    if len(table) < _LIST_HEADER.size:
        return []
    count = min(_LIST_HEADER.unpack_from(table)[0], _INTERFACES_MAX)
    offsets = (_LIST_HEADER.size + number * _INTERFACE.size for number in range(count))
    rows = (_INTERFACE.unpack_from(table, o) for o in offsets if o + _INTERFACE.size <= len(table))
    return [(uuid.UUID(bytes_le=guid), state == _CONNECTED) for guid, _, state in rows]


def parse_connection(data: bytes) -> Connection | None:
    """Parse WLAN_CONNECTION_ATTRIBUTES. Returns None if they are incomplete."""
    if len(data) < _CONNECTION.size:
        return None
    _, _, _, length, ssid, _, address, _, _, _, _, send_rate, is_encrypted = (
        _CONNECTION.unpack_from(data)
    )
    return Connection(ssid[: min(length, len(ssid))], address, send_rate, bool(is_encrypted))


def parse_entries(data: bytes, access_point: bytes) -> Bss | None:
    """Return the entry of an access point in a WLAN_BSS_LIST."""
    if len(data) < _ENTRIES_OFFSET:
        return None
    count = min(_LIST_HEADER.unpack_from(data)[1], _ENTRIES_MAX)
    for number in range(count):
        offset = _ENTRIES_OFFSET + number * _ENTRY.size
        if offset + _ENTRY.size > len(data):
            return None
        _, _, _, address, _, _, signal, frequency = _ENTRY.unpack_from(data, offset)
        if address == access_point:
            return Bss(signal, frequency)
    return None


if sys.platform == "win32":

    class _Client:
        """A handle of the Native Wifi API."""

        def __init__(self) -> None:
            self._api = ctypes.WinDLL("wlanapi")
            self._handle = ctypes.c_void_p()
            client_version, version = 2, ctypes.c_uint32()  # the version of Windows Vista and newer
            self._check(
                self._api.WlanOpenHandle(
                    client_version, None, ctypes.byref(version), ctypes.byref(self._handle)
                )
            )

        def __enter__(self) -> "_Client":
            return self

        def __exit__(self, *_: object) -> None:
            self._api.WlanCloseHandle(self._handle, None)

        def interfaces(self) -> bytes:
            table = ctypes.c_void_p()
            self._check(self._api.WlanEnumInterfaces(self._handle, None, ctypes.byref(table)))
            return self._copy_and_free(
                table,
                lambda head: (
                    _LIST_HEADER.size
                    + min(_LIST_HEADER.unpack(head)[0], _INTERFACES_MAX) * _INTERFACE.size
                ),
            )

        def connection(self, interface: uuid.UUID) -> bytes:
            size, table = ctypes.c_uint32(), ctypes.c_void_p()
            current_connection = 7  # wlan_intf_opcode_current_connection
            self._check(
                self._api.WlanQueryInterface(
                    self._handle,
                    ctypes.c_char_p(interface.bytes_le),
                    current_connection,
                    None,
                    ctypes.byref(size),
                    ctypes.byref(table),
                    None,
                )
            )
            return self._copy_and_free(table, lambda _: size.value)

        def entries(self, interface: uuid.UUID, connection: Connection) -> bytes:
            table = ctypes.c_void_p()
            infrastructure = 1  # dot11_BSS_type_infrastructure
            self._check(
                self._api.WlanGetNetworkBssList(
                    self._handle,
                    ctypes.c_char_p(interface.bytes_le),
                    ctypes.c_char_p(struct.pack("<I32s", len(connection.ssid), connection.ssid)),
                    infrastructure,
                    int(connection.is_encrypted),
                    None,
                    ctypes.byref(table),
                )
            )
            return self._copy_and_free(
                table,
                lambda head: (
                    _ENTRIES_OFFSET + min(_LIST_HEADER.unpack(head)[1], _ENTRIES_MAX) * _ENTRY.size
                ),
            )

        def _copy_and_free(self, table: ctypes.c_void_p, size_of: Callable[[bytes], int]) -> bytes:
            """Return a copy of a table that Windows allocated, and free the table."""
            try:
                head = ctypes.string_at(table.value or 0, _LIST_HEADER.size)
                return ctypes.string_at(table.value or 0, size_of(head))
            finally:
                self._api.WlanFreeMemory(table)

        @staticmethod
        def _check(code: int) -> None:
            if code != 0:
                raise WlanError(code)
