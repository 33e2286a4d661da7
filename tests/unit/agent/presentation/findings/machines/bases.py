"""One healthy machine per platform. The tables name what differs for each machine."""

import json
from typing import Any

from tests.unit.agent.presentation.findings.machines.compose import (
    PAGE,
    Disk,
    Link,
    Machine,
    queue,
)

LOOPBACK = Link("lo", ("127.0.0.1/8",), kind="772")
CABLE = Link("eth0", ("192.168.1.20/24", "fe80::20/64"), "192.168.1.1")
WIFI = Link("wlan0", ("192.168.1.30/24",), "192.168.1.1", "wifi", mac="02:00:00:00:00:30")
MIB = 1 / 1024


def sensors(*rows: tuple[str, float, float]) -> dict[str, str]:
    """Return the files of hwmon. A row is the chip with its label, the reading and ``_crit`` or 0."""
    files = {}
    for number, (sensor, celsius, limit) in enumerate(rows):
        chip, _, label = sensor.partition(" ")
        at = f"sys/class/hwmon/hwmon{number}"
        files |= {f"{at}/name": chip, f"{at}/temp1_input": f"{celsius * 1000:.0f}"}
        files |= {f"{at}/temp1_label": label} if label else {}
        files |= {f"{at}/temp1_crit": f"{limit * 1000:.0f}"} if limit else {}
    return files


def supply(name: str, **values: object) -> dict[str, str]:
    """Return the files of a battery or charger (sysfs-class-power of the kernel)."""
    values = {"type": "Battery", **values}
    return {f"sys/class/power_supply/{name}/{key}": f"{value}\n" for key, value in values.items()}


def sections(**rows: Any) -> str:
    """Return the output of a PowerShell script."""
    return json.dumps({name: {"ok": row} for name, row in rows.items()})


LINUX = Machine(
    "a till with Debian and a cable",
    files={
        "etc/os-release": 'NAME="Debian GNU/Linux"\nID=debian\nVERSION="12 (bookworm)"\n',
        "etc/resolv.conf": "nameserver 192.168.1.1\n",
        "proc/cpuinfo": "model name\t: Intel(R) Celeron(R) J4125 CPU @ 2.00GHz\n",
        "proc/pressure/io": "some avg10=2.00 avg60=1.50 avg300=0.40 total=9\n",
        "proc/pressure/memory": "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
        "sys/block/nvme0n1/size": "488397168\n",
        "sys/block/nvme0n1/device/model": "KINGSTON SNV2S250G\n",
        "sys/class/drm/card0-HDMI-A-1/status": "connected\n",
        **sensors(("coretemp Package id 0", 52, 105), ("nvme Composite", 41.9, 84.8)),
    },
    commands={"nvme0n1": '{"smart_status": {"passed": true}}'},
    links=(LOOPBACK, CABLE),
    disks=(Disk("/", size=230, free=160), Disk("/boot/efi", "vfat", 0.5, 0.4, "/dev/sda1")),
    units={
        "cups.service": ("active", "enabled", 0),
        "systemd-timesyncd.service": ("active", "enabled", 0),
        "bluetooth.service": ("inactive", "enabled", 0),
    },
    queues=(queue("bar"), queue("kitchen")),
    watched={"pos-till": 0.4},
)
KIOSK = LINUX.but("a kiosk with Chromium", kiosk={
    **PAGE, "browser.online": True, "browser.visibility": "visible",
    "browser.heapUsedBytes": 40_000_000, "browser.heapLimitBytes": 2_172_649_472,
    "browser.originUsageBytes": 9_000_000, "browser.originQuotaBytes": 90_000_000_000,
})  # fmt: skip
PI = LINUX.but(
    "a Raspberry Pi 4 with a memory card",
    files={
        "proc/device-tree/model": "Raspberry Pi 4 Model B Rev 1.5\0",
        "sys/block/mmcblk0/size": "62333952\n",
        **sensors(("cpu_thermal", 71.5, 110), ("rpi_volt", -300, 0)),
    },
    disks=(
        Disk("/", size=29, free=20, device="/dev/mmcblk0p2"),
        Disk("/boot/firmware", "vfat", 0.5, 0.43, "/dev/mmcblk0p1"),
    ),
    memory=(0.9, 0.5, 0.1, 0),
)
WINDOWS_FACTS: dict[str, Any] = {
    "os": [{"Caption": "Microsoft Windows 11 Pro", "Version": "10.0.26100",
            "BootedAt": "2026-11-17T06:12:30Z"}],
    "reboot": [{"Pending": False}],
    "shutdown": [{"Id": 1074}],
    "processor": [{"Name": "Intel(R) Core(TM) i5", "NumberOfCores": 4,
                   "NumberOfLogicalProcessors": 8}],
    "screens": [{"Active": True, "Maker": "ELO", "Model": "E022"}],
    "drives": [{"DeviceId": "0", "FriendlyName": "KIOXIA", "Size": 256060514304, "Media": "SSD",
                "Health": "Healthy"}],
    "services": [{"Name": "Spooler", "State": "Running", "StartMode": "Auto"},
                 {"Name": "W32Time", "State": "Running", "StartMode": "Manual"}],
    "nameServers": [{"Address": "192.168.1.1"}, {"Address": "fec0:0:0:ffff::1"}],
}  # fmt: skip
W32TM = """Leap Indicator: 0(no warning)
Stratum: 4 (secondary reference - syncd by (S)NTP)
Root Delay: 0.0312500s
Root Dispersion: 7.8012345s
Source: time.windows.com,0x8
Phase Offset: {}s
"""
WINDOWS = Machine(
    "a back office with Windows 11",
    "win32",
    commands={
        "Win32_OperatingSystem": sections(**WINDOWS_FACTS),
        "Get-NetAdapter": sections(adapters=[
            {"Name": "Ethernet", "Medium": "802.3", "Virtual": False, "HardwareInterface": True},
            {"Name": "USB-NDIS", "Medium": "802.3", "Virtual": False, "HardwareInterface": True},
            {"Name": "WLAN", "Medium": "Native 802.11", "Virtual": False},
        ]),
        "Win32_Printer": sections(
            usb=[], bluetooth=[], radios=[], jobs=[],
            printers=[{"Name": "Office", "PrinterStatus": 3, "DetectedErrorState": 0}],
        ),
        "w32tm": W32TM.format("0.0021345"),
    },
    links=(Link("Ethernet", ("192.168.1.40/24",), "192.168.1.1"),),
    disks=(Disk("C:\\", "NTFS", 237, 90, options="rw,fixed"),),
    memory=(8, 2, 2.5, 0.6),
)  # fmt: skip
MAC = Machine(
    "a Mac mini",
    "darwin",
    commands={
        "sw_vers": "ProductName:\t\tmacOS\nProductVersion:\t\t15.5\nBuildVersion:\t\t24F74\n",
        "SPHardwareDataType": '{"SPHardwareDataType": [{"machine_name": "Mac mini"}]}',
        "SPDisplaysDataType": '{"SPDisplaysDataType": [{"spdisplays_ndrvs": [{"_name": "E022"}]}]}',
        "SPNVMeDataType": json.dumps({"SPNVMeDataType": [{"_items": [
            {"bsd_name": "disk0", "device_model": "APPLE SSD", "smart_status": "Verified"}]}]}),
        "SPSerialATADataType": '{"SPSerialATADataType": []}',
        "SPAirPortDataType": '{"SPAirPortDataType": []}',
        "SPUSBDataType": '{"SPUSBDataType": []}',
        "SPBluetoothDataType": '{"SPBluetoothDataType": []}',
        "networksetup": "\nHardware Port: Ethernet\nDevice: en0\n\nHardware Port: Wi-Fi\n"
        "Device: en1\n\nHardware Port: iPhone USB\nDevice: en8\n",
        "scutil": "resolver #1\n  nameserver[0] : 192.168.1.1\n",
        "launchctl": "PID\tStatus\tLabel\n312\t0\tcom.apple.timed\n-\t0\torg.cups.cupsd\n",
    },
    links=(Link("en0", ("192.168.1.50/24",), "192.168.1.1"), Link("utun0", kind="65534")),
    disks=(Disk("/", "apfs", 460, 190, options="ro,local,rootfs,dovolfs,journaled"),),
    memory=(16, 4, 2, 1.2),
    queues=(queue("Office"),),
)  # fmt: skip
