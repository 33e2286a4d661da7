"""Creates the fields about the Wi-Fi network of an interface."""

from dataclasses import dataclass
from typing import Final

from collectors.application.source import SYSTEM, Fields
from collectors.contract import FieldStatus

KEYS: Final = (
    "interface.wifiSsid",
    "interface.wifiSignalDbm",
    "interface.wifiAccessPoint",
    "interface.wifiBand",
    "interface.wifiChannel",
    "interface.wifiRateMegabitsPerSecond",
)
NOT_CONNECTED: Final = "the interface is not connected to a network"
SIGNALS_DBM: Final = range(-127, 0)
"""Possible signals. If the signal is unknown, drivers report 0, or a value of -128 or less."""

_BANDS: Final = (
    # Band, its frequencies in MHz, and the frequency of its channel 0 (IEEE 802.11, annex E).
    ("2.4 GHz", range(2412, 2473), 2407),
    ("5 GHz", range(5160, 5896), 5000),
    ("6 GHz", range(5955, 7116), 5950),
)
_CHANNEL_14_MHZ: Final = 2484
_CHANNEL_STEP_MHZ: Final = 5


@dataclass(frozen=True, slots=True)
class Wireless:
    """The Wi-Fi network of an interface. ``status`` and ``reason`` explain why a value is None.

    ``access_point`` is the BSSID. ``rate_megabits`` is the rate at which the interface sends.
    """

    ssid: str | None = None
    signal_dbm: int | None = None
    access_point: str | None = None
    band: str | None = None
    channel: int | None = None
    rate_megabits: float | None = None
    status: FieldStatus = "unsupported"
    reason: str = "the system does not report it"


def wireless_fields(wireless: Wireless | None) -> Fields:
    if wireless is None:
        return tuple(SYSTEM.not_applicable(key, "it is not Wi-Fi") for key in KEYS)
    values = (
        wireless.ssid,
        wireless.signal_dbm,
        wireless.access_point,
        wireless.band,
        wireless.channel,
        wireless.rate_megabits,
    )
    return tuple(
        SYSTEM.fact(key, value, wireless.reason, wireless.status)
        for key, value in zip(KEYS, values, strict=True)
    )


def band_and_channel(frequency_mhz: int | None) -> tuple[str | None, int | None]:
    """Return the band and channel of a centre frequency. Both are None if no band contains it."""
    if frequency_mhz == _CHANNEL_14_MHZ:
        return "2.4 GHz", 14
    for band, frequencies, start in _BANDS:
        if frequency_mhz is not None and frequency_mhz in frequencies:
            return band, (frequency_mhz - start) // _CHANNEL_STEP_MHZ
    return None, None
