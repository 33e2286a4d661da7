"""The paired Bluetooth devices, from BlueZ (org.bluez.Device(5))."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from collectors.application.deadline import Deadline
from collectors.application.readers.peripherals import (
    BLUETOOTH_KEYS,
    BluetoothDevice,
    bluetooth_reading,
)
from collectors.application.source import Origin, Reading, source
from collectors.application.system_bus import Objects, managed_objects

ORIGIN: Final = Origin("BlueZ")
_PERSONAL_ICONS: Final = ("phone", "computer", "modem", "audio-head")


def query_bluez(deadline: Deadline) -> Objects:
    return managed_objects("org.bluez", "/", deadline)


@source("bluetooth", ORIGIN, *BLUETOOTH_KEYS)
def read_bluetooth(
    deadline: Deadline, query: Callable[[Deadline], Objects] = query_bluez
) -> Reading:
    """Read the paired devices, and whether the radio is on.

    Raises Unreadable if BlueZ does not provide them.
    """
    objects = query(deadline)
    devices = parse_bluez(objects)
    is_on = any(
        interfaces.get("org.bluez.Adapter1", {}).get("Powered") is True
        for interfaces in objects.values()
    )
    powered = ORIGIN.available("peripherals.bluetoothPowered", is_on)
    return bluetooth_reading(devices, powered, ORIGIN)


def parse_bluez(objects: Objects) -> tuple[BluetoothDevice, ...]:
    """Return the paired devices. BlueZ also lists unpaired devices that are in range."""
    return tuple(
        _device(device, interfaces.get("org.bluez.Battery1", {}))
        for interfaces in objects.values()
        if (device := interfaces.get("org.bluez.Device1", {})).get("Paired") is True
    )


def _device(device: Mapping[str, Any], battery: Mapping[str, Any]) -> BluetoothDevice:
    icon = device.get("Icon")
    percent = battery.get("Percentage")
    connected, signal = device.get("Connected"), device.get("RSSI")
    name = device.get("Name")
    return BluetoothDevice(
        address=str(device.get("Address", "")),
        name=name if isinstance(name, str) else None,
        kind=icon if isinstance(icon, str) else None,
        connected=connected if isinstance(connected, bool) else None,
        battery_fraction=percent / 100 if isinstance(percent, int) and percent <= 100 else None,
        signal_dbm=signal if isinstance(signal, int) else None,
        # A phone, a headset or a device of an unknown kind may belong to an employee or guest.
        is_personal=not isinstance(icon, str) or icon.startswith(_PERSONAL_ICONS),
    )
