"""Healthy and broken machines: one base for each platform, and the differences of each machine."""

import json
import socket
import ssl
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

from agent.rules.connectivity.fields import history_fields
from agent.wire.payloads.history import CAUSES, Cause, Event, EventKind, History, Incident
from collectors.contract import Field, SourceState, WatchedDevice
from collectors.network.observations import Evidence, KnownPrinter
from tests.fixtures.payloads import STARTED_AT
from tests.unit.agent.histories import good_venue
from tests.unit.agent.presentation.findings.machines.compose import (
    CERTIFICATE,
    PAGE,
    UNSYNCHRONISED,
    Disk,
    Link,
    Machine,
    host,
    queue,
)

TERMINAL = WatchedDevice("Bar", "payment-terminal", "192.168.1.40", "02:00:00:00:01:28")
LOOPBACK = Link("lo", ("127.0.0.1/8",), kind="772")
CABLE = Link("eth0", ("192.168.1.20/24", "fe80::20/64"), "192.168.1.1")
WIFI = Link("wlan0", ("192.168.1.30/24",), "192.168.1.1", "wifi", mac="02:00:00:00:00:30")


def sensors(*rows: tuple[str, float, float]) -> dict[str, str]:
    """Return the files of hwmon. A row has the chip and its label, the temperature in °C, and the
    critical temperature, or 0 if the chip reports none.
    """
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
KIOSK = LINUX.vary("a kiosk with Chromium", kiosk={
    **PAGE, "browser.online": True, "browser.visibility": "visible",
    "browser.heapUsedBytes": 40_000_000, "browser.heapLimitBytes": 2_172_649_472,
    "browser.originUsageBytes": 9_000_000, "browser.originQuotaBytes": 90_000_000_000,
})  # fmt: skip
PI = LINUX.vary(
    "a Raspberry Pi 4 with a memory card",
    files={
        "proc/device-tree/model": "Raspberry Pi 4 Model B Rev 1.5\0",
        "sys/block/mmcblk0/size": "62333952\n",
        **sensors(("cpu_thermal", 71.5, 110), ("rpi_volt", -300, 0)),
    },
    disks=(Disk("/", size=29, free=20), Disk("/boot/firmware", "vfat", 0.5, 0.43, "/dev/mmc")),
    memory=(0.9, 0.5, 0.1, 0),
)
WINDOWS_FACTS: dict[str, Any] = {
    "os": [{"Caption": "Microsoft Windows 11 Pro", "Version": "10.0.26100",
            "BootedAt": "2026-11-17T06:12:30Z"}],
    "reboot": [{"Pending": False}],
    "shutdown": [{"Id": 1074}],
    "processor": [{"Name": "Intel(R) Core(TM) i5", "NumberOfCores": 4,
                   "NumberOfLogicalProcessors": 8}],
    "screens": [{"Active": True}],
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
        ], routes=[{"InterfaceAlias": "Ethernet"}]),
        "Win32_Printer": sections(usb=[], bluetooth=[], jobs=[], printers=[
            {"Name": "Office", "PrinterStatus": 3, "DetectedErrorState": 0}]),
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

ROOT = Disk("/", size=230, free=160)
BMC = Link("usb0", ("169.254.95.120/16",), speed=10)
LAYER = "/var/lib/docker/overlay2/4f"
OVERLAY = f"rw,lowerdir=/a,upperdir={LAYER}/diff,workdir={LAYER}/work"
BAR = KnownPrinter("bar", "Bar", "network", "cups", "192.168.1.77:9100", "192.168.1.77",
                   ("192.168.1.77",), 9100)  # fmt: skip

HEALTHY: tuple[Machine, ...] = (
    LINUX.vary("a till whose connection was never interrupted", agent=tuple(history_fields(
        good_venue(), datetime.fromisoformat(STARTED_AT), UTC))),
    LINUX,
    KIOSK,
    PI,
    WINDOWS,
    MAC,
    # -------------------------------------------------------------- servers
    LINUX.vary("a server whose management controller is a USB interface", links=(LOOPBACK, CABLE,
        BMC), queues=None, watched={}),
    LINUX.vary("a server with unconnected inputs (nct6779) and a hot second sensor of its NVMe",
        files=sensors(("coretemp Package id 0", 61, 100), ("nct6779 AUXTIN0", 121, 0),
        ("nct6779 AUXTIN3", 127, 0), ("nvme Sensor 2", 96.9, 65261.9))),
    LINUX.vary("a Threadripper, whose Tctl is 27 degrees above its temperature",
        files={**sensors(("k10temp Tctl", 92.4, 0)), "sys/class/hwmon/hwmon0/temp2_label": "Tdie",
        "sys/class/hwmon/hwmon0/temp2_input": "65400"}),
    LINUX.vary("a virtualisation host with ZFS, a bridge and the file system of its cluster",
        links=(LOOPBACK, Link("eno1", kind="ethernet"), Link("tap100i0", kind="1", speed=10),
        Link("vmbr0", ("192.168.1.5/24",), "192.168.1.1", "1 bridge")),
        disks=(Disk("/", "zfs", 400, 300, "rpool/ROOT/pve-1", "rw,xattr"),
        Disk("/rpool/data", "zfs", 300, 300, "rpool/data"),
        Disk("/etc/pve", "fuse", 0.125, 0.124, "/dev/fuse", "rw,user_id=0,allow_other"))),
    LINUX.vary("a container host: overlays of containers on its disk, bridges and veth pairs",
        links=(LOOPBACK, CABLE, Link("docker0", ("172.17.0.1/16",), kind="1 bridge"),
        Link("veth1@if5", ("fe80::9/64",), kind="1 veth", speed=10000)), disks=(ROOT,
        Disk(f"{LAYER}/merged", "overlay", 230, 160, "overlay", OVERLAY))),
    # -------------------------------------------------------------- virtual machines, containers
    LINUX.vary("a VMware guest, whose tools set its clock and mount an empty file system",
        files={"proc/812/comm": "vmtoolsd\n"}, clock=UNSYNCHRONISED, disks=(ROOT,
        Disk("/run/vmblock-fuse", "fuse.vmware-vmblock", device="vmware-vmblock",
        options="rw,user_id=0,allow_other", df="vmware-vmblock 0 0 0 - /run/vmblock-fuse"))),
    LINUX.vary("a Hyper-V guest",
        files={"sys/bus/vmbus/devices/a/class_id": "{9527e630-d0ae-497b-adce-e80ab0175caf}\n"},
        clock=UNSYNCHRONISED),
    LINUX.vary("a VirtualBox guest behind NAT, where only the gateway answers",
        files={"proc/900/comm": "VBoxService\n"}, clock=UNSYNCHRONISED, links=(LOOPBACK,
        Link("enp0s3", ("10.0.2.15/24",), "10.0.2.2")),
        lan=(host("10.0.2.2", 2, "enp0s3", open_ports=(53,)),)),
    LINUX.vary("a cloud server with a network of one address", links=(LOOPBACK,
        Link("ens4", ("10.132.0.2/32",), "10.132.0.1", speed=-1)), lan=(), queues=None, watched={}),
    LINUX.vary("an LXC container, whose host sets the clock without marking it as synchronised",
        files={"run/systemd/container": "lxc\n"}, clock=UNSYNCHRONISED,
        units={"systemd-timesyncd.service": ("inactive", "enabled", 0)}, links=(LOOPBACK,
        Link("eth0", ("10.0.3.20/24",), "10.0.3.1", "1 veth", speed=10000)),
        disks=(Disk("/", "zfs", 90, 60, "tank/ct", "rw"),
        Disk("/var/lib/snapd/snap/core22/9", "fuse.snapfuse", 0.07, 0, "snapfuse", "ro,user_id=0")),
        queues=None),
    LINUX.vary("a Docker container", files={".dockerenv": ""}, clock=UNSYNCHRONISED, units={},
        queues=None,
        links=(LOOPBACK, Link("eth0", ("172.17.0.2/16",), "172.17.0.1", "1 veth", speed=10000)),
        disks=(Disk("/", "overlay", 230, 160, "overlay", OVERLAY),
        Disk("/etc/hosts", size=230, free=160)), lan=(host("172.17.0.1", 1),)),
    LINUX.vary("Windows Subsystem for Linux",
        files={"sys/bus/vmbus/devices/a/class_id": "{9527e630-d0ae-497b-adce-e80ab0175caf}\n"},
        clock=UNSYNCHRONISED, disks=(Disk("/", size=1007, free=900, device="/dev/sdd"),
        Disk("/usr/lib/wsl/drivers", "9p", 237, 90, "drivers", "ro,aname=drivers"))),
    # -------------------------------------------------------------- laptops, desktops
    LINUX.vary("a laptop on its battery, with Wi-Fi and an unplugged cable",
        files={"proc/net/wireless": "a\nb\n wlan0: 0000   56.  -54.  -256        0      0\n",
        **supply("BAT0", capacity=64, status="Discharging", energy_full=41, energy_full_design=50),
        **supply("AC", type="Mains", online=0)}, battery=(0.64, False), links=(LOOPBACK,
        Link("eth0", is_up=False, speed=0), WIFI)),
    LINUX.vary("a desktop with a wireless mouse whose battery is nearly empty",
        files=supply("hidpp_battery_0", scope="Device", capacity=5, status="Discharging"),
        battery=(0.05, False)),
    LINUX.vary("a desktop with an AppImage, document portals and a user's cloud disk", disks=(ROOT,
        Disk("/tmp/.mount_TillX", "fuse.Till.AppImage", 0.1, 0, "Till", "ro,user_id=1000"),
        Disk("/run/user/1000/doc", "fuse", device="/dev/fuse", options="rw,user_id=1000",
        df="df: /run/user/1000/doc: Operation not permitted"),
        Disk("/run/user/1001/doc", "fuse.portal", 0, 0, "portal", "rw,user_id=1001"),
        Disk("/home/anna/cloud", "fuse.rclone", 15, 0, "cloud:", "rw,user_id=1000"))),
    LINUX.vary("a desktop with snaps", disks=(ROOT,
        Disk("/snap/core22/1380", "squashfs", 0.07, 0, "/dev/loop3", "ro"),
        Disk("/snap/firefox/4259", "squashfs", 0.26, 0, "/dev/loop4", "ro"))),
    LINUX.vary("a desktop with network disks, one of them hidden by another mount", disks=(ROOT,
        Disk("/mnt/sales", "cifs", 900, 300, "//nas/sales", "rw,vers=3.1.1"),
        Disk("/mnt/nfs", "nfs4", 900, 300, "nas:/export"),
        Disk("/srv/old", device="/dev/sdb1", df="df: /srv/old: No such file or directory"))),
    # -------------------------------------------------------------- Raspberry Pi
    PI.vary("a Raspberry Pi with an overlay over its card",
        disks=(Disk("/", "overlay", 0.45, 0.4, "overlay", "rw,lowerdir=/lower,upperdir=/upper/d"),
        Disk("/media/root-ro", size=29, free=20, device="/dev/mmcblk0p2", options="ro"))),
    PI.vary("a Raspberry Pi that is set up with a read-only card",
        files={"sys/fs/ext4/mmcblk0p2/errors_count": "0\n"},
        disks=(Disk("/", size=29, free=20, device="/dev/mmcblk0p2", options="ro"),)),
    PI.vary("a Raspberry Pi Zero with compressed swap", memory=(0.42, 0.1, 0.42, 0.2),
        watched={"pos-till": 0.1}),
    # -------------------------------------------------------------- clocks
    LINUX.vary("chrony without rtcsync", clock=UNSYNCHRONISED, files={"proc/812/comm": "chronyd\n",
        "etc/chrony/chrony.conf": "pool a iburst\n"}),
    LINUX.vary("OpenNTPD", clock=UNSYNCHRONISED, files={"run/ntpd.sock": ""}),
    LINUX.vary("a firewall that only lets htpdate pass", clock=UNSYNCHRONISED,
        files={"proc/700/comm": "htpdate\n"}),
    # -------------------------------------------------------------- networks
    LINUX.vary("a till with PPPoE", links=(LOOPBACK, Link("eth0", ("192.168.1.20/24",)),
        Link("eth1", ("fe80::21/64",)),
        Link("ppp0", ("203.0.113.7/32",), "direct", "512", speed=0)),
        lan=(host("192.168.1.77", 77),)),
    LINUX.vary("a till with LTE, and a payment terminal at a slow cable of its own",
        links=(LOOPBACK, Link("wwan0", ("10.64.3.9/30",), "direct", "65534", speed=0),
        Link("eth1", ("192.168.0.1/24",), speed=10, duplex=1)),
        lan=(host("192.168.0.2", 2, "eth1"),)),
    LINUX.vary("a food truck, where only the LTE router answers", lan=(host("192.168.1.1", 1),)),
    LINUX.vary("a till with a cable and Wi-Fi in one network", links=(LOOPBACK, CABLE, WIFI)),
    LINUX.vary("a server with two bonded cables", links=(LOOPBACK, Link("eno1"), Link("eno2"),
        Link("bond0", ("192.168.1.5/24",), "192.168.1.1", "1 bond", speed=2000))),
    LINUX.vary("a till with WireGuard, whose tunnel counts errors", links=(LOOPBACK, CABLE,
        Link("wg0", ("10.9.0.4/32",), kind="65534", errors=90_000))),
    LINUX.vary("a network with IPv4 and IPv6, whose IPv6 router was not used lately",
        links=(LOOPBACK,
        Link("eth0", ("192.168.1.20/24", "2001:db8::20/64"), "192.168.1.1 fe80::1")),
        lan=(host("192.168.1.1", 1, open_ports=(53,)), host("192.168.1.77", 77))),
    LINUX.vary("a network with IPv6 only", files={"etc/resolv.conf": "nameserver 2001:db8::1\n"},
        links=(LOOPBACK, Link("eth0", ("2001:db8::20/64", "fe80::20/64"), "fe80::1")), lan=()),
    LINUX.vary("a till that is the access point of its tablets",
        files={"proc/net/wireless": "a\nb\n wlan0: 0000    0.  -256.  -256.       0      0\n"},
        links=(LOOPBACK, CABLE, Link("wlan0", ("10.42.0.1/24",), kind="wifi"))),
    LINUX.vary("printers that are low on supplies and do not use their Wi-Fi",
        queues=(queue("bar", "media-low-warning", "wifi-not-configured-report"),
        queue("office", "toner-low-report", "cups-waiting-for-job-completed")), printers=(BAR,),
        lan=(host("192.168.1.1", 1), host("192.168.1.77", 77, open_ports=(9100, 631))),
        answers=(Evidence("192.168.1.77", 9100, state="idle", queue="ipp/print",
        state_reasons=("media-low-warning", "wifi-not-configured-report",
        "cups-waiting-for-job-completed")),)),
    # -------------------------------------------------------------- Windows, macOS
    WINDOWS.vary("Windows with the full recovery partition of its maker", disks=(*WINDOWS.disks,
        Disk("D:\\", "NTFS", 12, 0.9, options="rw,fixed", label="RECOVERY"))),
    WINDOWS.vary("a German Windows with a recovery partition", disks=(*WINDOWS.disks,
        Disk("D:\\", "NTFS", 0.5, 0.01, options="rw,fixed", label="Wiederherstellung"),
        Disk("E:\\", "NTFS", 0.34, 0.02, options="rw,fixed", label="System-reserviert"))),
    WINDOWS.vary("a Windows server whose management controller is a slow USB interface",
        links=(*WINDOWS.links, Link("USB-NDIS", ("169.254.95.120/16",), speed=10, duplex=1))),
    WINDOWS.vary("a Windows till with a payment terminal at a slow cable of its own",
        links=(*WINDOWS.links, Link("USB-NDIS", ("192.168.0.1/24",), speed=10, duplex=1))),
    WINDOWS.vary("Windows with an installation stick, a CD and a stopped time service",
        disks=(*WINDOWS.disks, Disk("F:\\", "FAT32", 7, 0.1, options="rw,removable"),
        Disk("G:\\", "CDFS", 4, 0, options="ro,cdrom")), commands={"w32tm": None}),
    MAC.vary("a MacBook with growing swap, a mounted image and an iPhone", memory=(8, 1.5, 3, 2.6),
        battery=(0.5, False), clock=UNSYNCHRONISED, disks=(*MAC.disks,
        Disk("/Volumes/Install", "hfs", 0.2, 0, options="ro,local"),
        Disk("/System/Volumes/VM", "apfs", 460, 190, options="rw,local")), links=(*MAC.links,
        Link("en8", ("169.254.7.9/16",), speed=0))),
)  # fmt: skip


class BrokenMachine(NamedTuple):
    """A broken machine, and the codes of the findings that it must have, separated by blanks."""

    codes: str
    machine: Machine


def fault(codes: str, description: str, base: Machine = LINUX, **changes: Any) -> BrokenMachine:
    """Return ``base`` with ``changes`` that must cause the findings ``codes``."""
    return BrokenMachine(codes, base.vary(description, **changes))


def page(codes: str, description: str, **values: object) -> BrokenMachine:
    """Return a kiosk whose page differs from a healthy page in ``values``."""
    return fault(codes, description, KIOSK, kiosk={**(KIOSK.kiosk or {}), **values})


def printer(description: str, *reasons: str, **changes: object) -> Machine:
    """Return a till with a network printer that reports ``reasons``."""
    answers = (Evidence("192.168.1.77", 9100, state="idle", queue="ipp/print",
                        state_reasons=reasons),)  # fmt: skip
    lan = (host("192.168.1.1", 1), host("192.168.1.77", 77, open_ports=(9100,)))
    lan = changes.pop("lan", lan)
    return LINUX.vary(description, printers=(BAR,), answers=answers, lan=lan, **changes)


def drive(health: str) -> dict[str, str]:
    """Return the output of the PowerShell script on a machine whose drive has this health."""
    facts = {
        **WINDOWS_FACTS,
        "drives": [{"DeviceId": "0", "FriendlyName": "KINGSTON", "Health": health}],
    }
    return {"Win32_OperatingSystem": sections(**facts)}


def stall(name: str, share: float) -> dict[str, str]:
    """Return the file of procfs that reports that programs wait for ``name`` during ``share`` % of
    the time.
    """
    return {f"proc/pressure/{name}": f"some avg10=61.00 avg60={share} avg300=9.00 total=1\n"}


def certificate(*changed: object) -> tuple[object, ...]:
    """Return `CERTIFICATE` with its last values replaced by ``changed``."""
    return (*CERTIFICATE[: 5 - len(changed)], *changed)


def with_record(*causes: Cause, link: str = "eth0") -> tuple[Field, ...]:
    """Return the fields of a machine that had one long outage of each cause. It lost power at the
    start of each outage except the newest.
    """
    now = datetime.fromisoformat(STARTED_AT)
    ages = [timedelta(hours=12 * number) for number in range(1, len(causes) + 1)]
    evidence = f"{link} has no link"
    outages = [Incident(cause, now - age, now - age + timedelta(hours=1), 3600.0, evidence)
               for cause, age in zip(causes, ages, strict=True)]  # fmt: skip
    power = (Event("power-lost", now - age) for age in ages[1:])
    since = now - timedelta(days=30)
    return tuple(history_fields(History(since, tuple(outages), tuple(power)), now, UTC))


def with_events(*kinds: EventKind) -> tuple[Field, ...]:
    """Return the fields of a machine on which these events happened, one an hour."""
    now = datetime.fromisoformat(STARTED_AT)
    events = [Event(kind, now - timedelta(hours=n)) for n, kind in enumerate(kinds, start=1)]
    return tuple(history_fields(History(now - timedelta(days=30), (), tuple(events)), now, UTC))


REFUSED: Final = ConnectionRefusedError(111, "Connection refused")
NO_NAME: Final = socket.gaierror(-2, "Name or service not known")
NO_TLS: Final = ssl.SSLError(1, "wrong version number")
NO_TLS.reason = "WRONG_VERSION_NUMBER"
UNPLUGGED: Final = Link("eth0", is_up=False, speed=0)

BROKEN: tuple[BrokenMachine, ...] = (
    # -------------------------------------------------------------- disks
    fault("disk-full", "a full disk", disks=(Disk("/", size=100, free=0.4),)),
    fault("disk-full", "a Mac with a full disk", disks=(replace(MAC.disks[0], free=1),), base=MAC),
    fault("disk-full", "Windows with a full disk C:", disks=(replace(WINDOWS.disks[0], free=1),),
        base=WINDOWS),
    fault("disk-nearly-full", "a memory card that fills up", disks=(Disk("/", size=29, free=2.2),),
        base=PI),
    fault("disk-read-only", "a disk that stopped writing after errors",
        files={"sys/fs/ext4/sda2/errors_count": "14\n"},
        disks=(Disk("/", device="/dev/sda2", options="ro"),)),
    fault("disk-read-only", "a worn memory card that refuses to be written",
        files={"sys/fs/ext4/mmcblk0p2/errors_count": "0\n", "sys/class/block/mmcblk0p2/ro": "1\n"},
        disks=(Disk("/", device="/dev/mmcblk0p2", options="ro"),), base=PI),
    fault("disk-silent", "a network disk whose server is gone", disks=(Disk("/"),
        Disk("/mnt/sales", "cifs", device="//nas/sales", df="df: /mnt/sales: Host is down"))),
    fault("drive-failing", "a drive that fails by SMART",
        commands={"nvme0n1": '{"smart_status": {"passed": false}}'}),
    fault("drive-failing", "a failing Windows drive", commands=drive("Unhealthy"), base=WINDOWS),
    fault("drive-failing", "a Mac with a failing drive",
        commands={"SPNVMeDataType": MAC.commands["SPNVMeDataType"].replace("Verified", "Failing")},
        base=MAC),
    fault("drive-doubtful", "a drive with a warning", commands=drive("Warning"), base=WINDOWS),
    fault("drive-worn", "a worn eMMC", files={"sys/block/mmcblk0/device/life_time": "0x03 0x0a\n"},
        base=PI),
    fault("disk-slow", "a slow memory card", files=stall("io", 71.2), base=PI),
    # -------------------------------------------------------------- memory, processor, clock, power
    fault("memory-stalls", "too little memory", files=stall("memory", 22.4)),
    fault("memory-nearly-full", "memory that is used up", memory=(8, 0.3, 0, 0)),
    fault("swap-nearly-full", "swap that is used up", memory=(8, 1.2, 1, 0.95)),
    fault("processor-busy", "a program that uses all cores", load=(7.9, 0.99, 4)),
    fault("clock-not-synchronised", "a clock that nothing sets", clock=UNSYNCHRONISED),
    fault("clock-not-synchronised", "chrony that reaches no server", clock=UNSYNCHRONISED,
        files={"proc/812/comm": "chronyd\n", "etc/chrony/chrony.conf": "pool a\nrtcsync\n"}),
    fault("clock-not-synchronised", "Windows without a time server",
        commands={"w32tm": "Leap Indicator: 3(not synchronized)\nSource: Local CMOS Clock\n"},
        base=WINDOWS),
    fault("clock-off", "a clock that is 2.5 s late", clock=(0, 0x2001, 2_500_000_000)),
    fault("clock-off", "Windows that is 40 s late", commands={"w32tm": W32TM.format("40.2103000")},
        base=WINDOWS),
    fault("unclean-start", "a crashed kernel", files={"sys/fs/pstore/dmesg-efi-1": "Oops"}),
    fault("unclean-start", "Windows after a power failure",
        commands={"Win32_OperatingSystem": sections(**{**WINDOWS_FACTS,
        "shutdown": [{"Id": 41}]})}, base=WINDOWS),
    fault("hot", "a processor close to its limit", files=sensors(("coretemp Package id 0", 97,
        105))),
    fault("hot", "an old processor at its low limit", files=sensors(("k10temp temp1", 83.6, 83.5))),
    fault("hot", "a Raspberry Pi in a closed box",
        files={"sys/class/thermal/thermal_zone0/type": "soc-thermal\n",
        "sys/class/thermal/thermal_zone0/temp": "86200\n"}, base=PI),
    fault("battery-low", "a tablet that is not charged",
        files=supply("BAT0", capacity=9, status="Discharging")),
    fault("battery-low", "a MacBook that is not charged", battery=(0.11, False), base=MAC),
    fault("battery-worn", "a worn battery",
        files=supply("BAT0", capacity=98, status="Full", energy_full=190, energy_full_design=500)),
    fault("device-battery-low", "a scanner with an empty battery",
        commands={"SPBluetoothDataType": '{"SPBluetoothDataType": [{"device_connected": ['
        '{"X": {"device_minorType": "Barcode", "device_batteryLevelMain": "9%"}}]}]}'}, base=MAC),
    # -------------------------------------------------------------- programs, print queues
    fault("program-missing", "a till without its program", watched={"pos-till": 0}),
    fault("program-grown", "a program that leaks memory", watched={"pos-till": 4.4}),
    fault("program-restarting", "a program in a restart loop", watched={"pos-till": 0.4},
        restarts=41),
    fault("service-restarting", "a spooler in a restart loop", units={"cups.service": ("active",
        "enabled", 40)}),
    fault("service-failed", "a failed time service", units={"systemd-timesyncd.service": ("failed",
        "enabled", 0)}),
    fault("service-failed", "a failed Bluetooth service", units={"bluetooth.service": ("failed",
        "enabled", 0)}),
    fault("spooler-stopped", "a failed spooler", queues=None, units={"cups.service": ("failed",
        "enabled", 0)}),
    fault("print-queue-stuck", "a job that was printed to a stopped queue",
        queues=(queue("bar", "media-empty-error", state=5),), jobs=({"job-state": 3,
        "time-at-creation": 1000, "job-printer-uri": "ipp://x/printers/bar"},)),
    fault("print-queue-stopped", "a paused queue", queues=(queue("bar", "paused", state=5),)),
    fault("print-queue-refusing", "a queue that rejects jobs",
        queues=(queue("bar", accepts=False),)),
    *(BrokenMachine("print-queue-needs-attention", LINUX.vary(f"a queue with {reason}",
        queues=(queue("bar", reason),))) for reason in ("media-jam-error", "cover-open-warning",
        "toner-empty-error", "offline-report", "cups-missing-filter-warning")),
    *(BrokenMachine("print-queue-needs-attention", WINDOWS.vary(
        f"Windows with DetectedErrorState {error}",
        commands={"Win32_Printer": sections(usb=[], bluetooth=[], jobs=[],
        printers=[{"Name": "Bar", "PrinterStatus": 3, "DetectedErrorState": error}])})) for error
        in (4, 7, 8)),
    fault("reports-waiting", "an agent that cannot send", agent=(Field("agent.outboxReports",
        "agent", "available", 12),)),
    # -------------------------------------------------------------- kiosk
    fault("kiosk-silent", "a kiosk whose browser has no page", kiosk={}, base=KIOSK),
    page("kiosk-crashed", "a crashed page", crashed=True),
    page("kiosk-frozen", "a frozen page", frozen=True),
    page("kiosk-error-page", "a page that cannot be reached", url="chrome-error://chromewebdata/"),
    page("kiosk-blank", "a blank page", painted=False),
    page("kiosk-not-drawing", "a page that is no longer drawn", drawing=False),
    page("kiosk-offline", "a browser without a network", **{"browser.online": False}),
    page("kiosk-local-network-denied", "a page without LAN access",
        localNetworkPermission="denied"),
    page("kiosk-hidden", "a covered page", **{"browser.visibility": "hidden"}),
    page("kiosk-leaking", "a page that leaks memory", **{"browser.heapUsedBytes": 1_900_000_000}),
    page("kiosk-storage-full", "a page that stores much", **{"browser.originUsageBytes": 9e10}),
    fault("kiosk-no-screen", "a kiosk whose screen is off",
        files={"sys/class/drm/card0-HDMI-A-1/status": "disconnected\n"}, base=KIOSK),
    # -------------------------------------------------------------- network of the machine
    fault("no-network", "an unplugged cable", links=(LOOPBACK, UNPLUGGED), service=REFUSED),
    fault("no-dhcp-answer", "a cable without DHCP", service=NO_NAME, lan=(), links=(LOOPBACK,
        Link("eth0", ("169.254.7.7/16",)))),
    fault("no-dhcp-answer", "a Wi-Fi without DHCP", links=(LOOPBACK, CABLE, replace(WIFI,
        addresses=("169.254.7.7/16",), gateway=""))),
    fault("name-not-resolved", "a dead name server", service=NO_NAME),
    fault("name-server-silent", "a second name server that is dead", service_ms=(5000, 25),
          dns_answers=("192.168.1.1: answered in 3 ms", "9.9.9.9: no answer in 2 s")),
    fault("no-name-server", "no name server", files={"etc/resolv.conf": "search x\n"}),
    fault("names-slow", "a first name server that is silent", service_ms=(5004, 25)),
    fault("service-slow", "an overloaded line", service_ms=(12, 2300)),
    fault("service-unreachable gateway-silent", "a lost gateway", lan=(host("192.168.1.77", 77),),
        service=REFUSED),
    fault("service-unreachable no-gateway", "no gateway", links=(LOOPBACK, replace(CABLE,
        gateway="")), service=REFUSED, lan=(host("192.168.1.77", 77),)),
    fault("gateway-silent", "a wrong mask: the gateway is outside of the network",
        lan=(host("192.168.1.21", 21),), links=(LOOPBACK, replace(CABLE,
        addresses=("192.168.1.20/29",)))),
    fault("gateway-slow", "a gateway that answers slowly",
        lan=(host("192.168.1.1", 1, latency_ms=340.0), host("192.168.1.77", 77))),
    fault("service-unreachable", "a firewall that refuses", service=REFUSED),
    fault("tls-failed", "a sign-in page", service=NO_TLS),
    fault("certificate-expired", "an expired certificate",
        service=certificate("2026-08-01T00:00:00Z", "2026-10-30T00:00:00Z")),
    fault("certificate-expiring", "a certificate that was not renewed",
        service=certificate("2026-08-27T00:00:00Z", "2026-11-25T00:00:00Z")),
    fault("certificate-untrusted", "a firewall that inspects TLS", service=(CERTIFICATE[0], False,
        "Nosy CA", *CERTIFICATE[3:])),
    fault("wifi-weak", "a till far from its router", links=(LOOPBACK, WIFI),
        files={"proc/net/wireless": "a\nb\n wlan0: 0000   22.  -84.  -256        0      0\n"}),
    fault("link-slow", "a cable with a broken wire", links=(LOOPBACK, replace(CABLE, speed=10))),
    fault("link-slow", "a cable at half duplex", links=(LOOPBACK, replace(CABLE, speed=100,
        duplex=1))),
    fault("link-slow", "Windows at a cable with a broken wire", links=(replace(WINDOWS.links[0],
        speed=10),), base=WINDOWS),
    fault("interface-errors", "a cable that disturbs packets", links=(LOOPBACK, replace(CABLE,
        errors=9000))),
    fault("address-conflict", "an address that two interfaces have", links=(LOOPBACK, CABLE,
        replace(WIFI, addresses=("192.168.1.20/24",)))),
    fault("source-failed", "a scan that the system refuses", lan=(), scan=SourceState("failed",
        "Operation not permitted")),
    fault("report-unfinished", "a collection that was cancelled", is_cancelled=True),
    # -------------------------------------------------------------- the connectivity record
    fault("no-address-repeatedly address-shared router-outages name-server-outages link-lost"
        " provider-outages service-refusals power-losses queue-outages kiosk-outages",
        "a venue with every kind of outage", agent=with_record(*CAUSES)),
    fault("processor-throttled router-address-shared",
        "a hot till, and another device at the router's address",
        agent=with_events("processor-throttled", "processor-throttled", "processor-throttled",
        "gateway-conflict")),
    fault("wifi-lost", "a Wi-Fi that was lost for an hour", links=(LOOPBACK, WIFI),
        agent=with_record("link-down", link="wlan0")),
    # -------------------------------------------------------------- watched devices
    *(fault(code, f"a payment terminal that {problem}", devices=(TERMINAL,),
        lan=(host("192.168.1.1", 1), *lan)) for code, problem, *lan in (
        ("device-absent", "is off"),
        ("device-moved", "got another address", host("192.168.1.61", 40)),
        ("device-replaced", "lost its address to a phone", host("192.168.1.40", 61)))),
    # -------------------------------------------------------------- network printers
    *(BrokenMachine("printer-needs-attention", printer(f"a printer with {reason}", reason))
        for reason in ("media-empty-error", "media-jam-error", "cover-open-error", "door-open",
        "toner-empty-error", "marker-supply-empty-error", "output-area-full-warning",
        "input-tray-missing", "marker-waste-full", "opc-life-over", "other-error",
        "cutter-jam-error")),
    BrokenMachine("printer-unreachable", printer("a printer that is off",
        lan=(host("192.168.1.1", 1),))),
    BrokenMachine("printer-unreachable", printer("a printer whose port is closed",
        lan=(host("192.168.1.1", 1), host("192.168.1.77", 77, refused_ports=(9100,))))),
)  # fmt: skip
