"""Broken machines, each with the codes of the findings that name its fault."""

import socket
import ssl
from dataclasses import replace
from typing import Final, NamedTuple

from collectors.application.source import available
from collectors.contract import SourceState
from collectors.network.observations import Evidence, KnownPrinter
from tests.unit.agent.presentation.findings.machines.bases import (
    CABLE,
    KIOSK,
    LINUX,
    LOOPBACK,
    MAC,
    PI,
    W32TM,
    WIFI,
    WINDOWS,
    WINDOWS_FACTS,
    sections,
    sensors,
    supply,
)
from tests.unit.agent.presentation.findings.machines.compose import (
    ALONE,
    CERTIFICATE,
    Disk,
    Link,
    Machine,
    host,
    queue,
)


class Broken(NamedTuple):
    codes: str
    machine: Machine


def page(what: str, **values: object) -> Machine:
    return KIOSK.but(what, kiosk={**(KIOSK.kiosk or {}), **values})


def printer(what: str, *reasons: str, **changes: object) -> Machine:
    """Return a till with a network printer that reports ``reasons``."""
    known = KnownPrinter("bar", "Bar", "network", "cups", "192.168.1.77:9100", "192.168.1.77",
                         ("192.168.1.77",), 9100)  # fmt: skip
    answers = (Evidence("192.168.1.77", 9100, state="idle", queue="ipp/print",
                        state_reasons=reasons),)  # fmt: skip
    lan = (host("192.168.1.1", 1), host("192.168.1.77", 77, open_ports=(9100,)))
    return LINUX.but(
        what, printers=(known,), answers=answers, lan=changes.pop("lan", lan), **changes
    )


def drive(health: str) -> dict[str, str]:
    facts = {
        **WINDOWS_FACTS,
        "drives": [{"DeviceId": "0", "FriendlyName": "KINGSTON", "Health": health}],
    }
    return {"Win32_OperatingSystem": sections(**facts)}


def stall(name: str, share: float) -> dict[str, str]:
    return {f"proc/pressure/{name}": f"some avg10=61.00 avg60={share} avg300=9.00 total=1\n"}


def certificate(*changed: object) -> tuple[object, ...]:
    return (*CERTIFICATE[: 5 - len(changed)], *changed)


REFUSED: Final = ConnectionRefusedError(111, "Connection refused")
NO_NAME: Final = socket.gaierror(-2, "Name or service not known")
NO_TLS: Final = ssl.SSLError(1, "wrong version number")
NO_TLS.reason = "WRONG_VERSION_NUMBER"
OFF: Final = Link("eth0", is_up=False, speed=0)

BROKEN: tuple[Broken, ...] = (
    # -------------------------------------------------------------- disks
    Broken("disk-full", LINUX.but("a full disk", disks=(Disk("/", size=100, free=0.4),))),
    Broken("disk-full", MAC.but("a Mac whose disk is full", disks=(replace(MAC.disks[0], free=1),))),
    Broken("disk-full", WINDOWS.but("Windows with a full disk C:",
                                    disks=(replace(WINDOWS.disks[0], free=1),))),
    Broken("disk-nearly-full", PI.but("a memory card that fills up",
                                      disks=(Disk("/", size=29, free=2.2),))),
    Broken("disk-read-only", LINUX.but("a disk that stopped writing after errors",
                                       files={"sys/fs/ext4/sda2/errors_count": "14\n"},
                                       disks=(Disk("/", device="/dev/sda2", options="ro"),))),
    Broken("disk-read-only", PI.but("a worn memory card that refuses to be written",
                                    files={"sys/fs/ext4/mmcblk0p2/errors_count": "0\n",
                                           "sys/class/block/mmcblk0p2/ro": "1\n"},
                                    disks=(Disk("/", device="/dev/mmcblk0p2", options="ro"),))),
    Broken("disk-silent", LINUX.but("a network disk whose server is gone", disks=(
        Disk("/"), Disk("/mnt/sales", "cifs", device="//nas/sales",
                        df="df: /mnt/sales: Host is down")))),
    Broken("drive-failing", LINUX.but("a drive that fails by SMART",
                                      commands={"nvme0n1": '{"smart_status": {"passed": false}}'})),
    Broken("drive-failing", WINDOWS.but("Windows with a failing drive", commands=drive("Unhealthy"))),
    Broken("drive-failing", MAC.but("a Mac with a failing drive", commands={
        "SPNVMeDataType": MAC.commands["SPNVMeDataType"].replace("Verified", "Failing")})),
    Broken("drive-doubtful", WINDOWS.but("a drive with a warning", commands=drive("Warning"))),
    Broken("drive-worn", PI.but("a worn eMMC",
                                files={"sys/block/mmcblk0/device/life_time": "0x03 0x0a\n"})),
    Broken("disk-slow", PI.but("a slow memory card", files=stall("io", 71.2))),
    # -------------------------------------------------------------- memory, processor, clock, power
    Broken("memory-stalls", LINUX.but("too little memory", files=stall("memory", 22.4))),
    Broken("memory-nearly-full", LINUX.but("memory that is used up", memory=(8, 0.3, 0, 0))),
    Broken("swap-nearly-full", LINUX.but("swap that is used up", memory=(8, 1.2, 1, 0.95))),
    Broken("processor-busy", LINUX.but("a program that uses all cores", load=(7.9, 0.99, 4))),
    Broken("clock-not-synchronised", LINUX.but("a clock that nothing sets", clock=ALONE)),
    Broken("clock-not-synchronised", LINUX.but(
        "chrony that reaches no server", clock=ALONE,
        files={"proc/812/comm": "chronyd\n", "etc/chrony/chrony.conf": "pool a\nrtcsync\n"})),
    Broken("clock-not-synchronised", WINDOWS.but("Windows with its own clock", commands={
        "w32tm": "Leap Indicator: 3(not synchronized)\nStratum: 0\nSource: Local CMOS Clock\n"})),
    Broken("clock-off", LINUX.but("a clock that is 2.5 s late", clock=(0, 0x2001, 2_500_000_000))),
    Broken("clock-off", WINDOWS.but("Windows that is 40 s late",
                                    commands={"w32tm": W32TM.format("40.2103000")})),
    Broken("unclean-start", LINUX.but("a crashed kernel",
                                      files={"sys/fs/pstore/dmesg-efi-1": "Oops"})),
    Broken("unclean-start", WINDOWS.but("Windows after a power failure", commands={
        "Win32_OperatingSystem": sections(**{**WINDOWS_FACTS, "shutdown": [{"Id": 41}]})})),
    Broken("hot", LINUX.but("a processor close to its limit",
                            files=sensors(("coretemp Package id 0", 97, 105)))),
    Broken("hot", LINUX.but("an old processor at its low limit",
                            files=sensors(("k10temp temp1", 83.6, 83.5)))),
    Broken("hot", PI.but("a Raspberry Pi in a closed box", files={
        "sys/class/thermal/thermal_zone0/type": "soc-thermal\n",
        "sys/class/thermal/thermal_zone0/temp": "86200\n"})),
    Broken("battery-low", LINUX.but("a tablet that is not charged", files={
        **supply("BAT0", capacity=9, status="Discharging"), **supply("AC", type="Mains", online=0)})),
    Broken("battery-low", MAC.but("a MacBook that is not charged", battery=(0.11, False))),
    Broken("battery-worn", LINUX.but("a worn battery", files=supply(
        "BAT0", capacity=98, status="Full", energy_full=19_000_000, energy_full_design=50_000_000))),
    Broken("device-battery-low", MAC.but("a scanner with an empty battery", commands={
        "SPBluetoothDataType": '{"SPBluetoothDataType": [{"device_connected": [{"Scanner": {'
        '"device_minorType": "Barcode", "device_batteryLevelMain": "9%"}}]}]}'})),
    # -------------------------------------------------------------- programs, print queues
    Broken("program-missing", LINUX.but("a till without its program", watched={"pos-till": 0})),
    Broken("program-grown", LINUX.but("a program that leaks memory", watched={"pos-till": 4.4})),
    Broken("program-restarting", LINUX.but("a program in a restart loop",
                                           watched={"pos-till": 0.4}, restarts=41)),
    Broken("service-restarting", LINUX.but("a spooler in a restart loop",
                                           units={"cups.service": ("active", "enabled", 40)})),
    Broken("service-failed", LINUX.but("a failed time service", units={
        "systemd-timesyncd.service": ("failed", "enabled", 0)})),
    Broken("service-failed", LINUX.but("a failed Bluetooth service", units={
        "bluetooth.service": ("failed", "enabled", 0)})),
    Broken("spooler-stopped", LINUX.but("a failed spooler", queues=None,
                                        units={"cups.service": ("failed", "enabled", 0)})),
    Broken("print-queue-stuck", LINUX.but("a job that was printed to a stopped queue", queues=(
        queue("bar", "media-empty-error", state=5),), jobs=(
        {"job-state": 3, "time-at-creation": 1000, "job-printer-uri": "ipp://x/printers/bar"},))),
    Broken("print-queue-stopped", LINUX.but("a paused queue", queues=(
        queue("bar", "paused", state=5),))),
    Broken("print-queue-refusing", LINUX.but("a queue that rejects jobs", queues=(
        queue("bar", accepts=False),))),
    *(Broken("printer-needs-attention", LINUX.but(f"a queue with {reason}",
                                                  queues=(queue("bar", reason),)))
      for reason in ("media-jam-error", "cover-open-warning", "toner-empty-error", "offline-report",
                     "cups-missing-filter-warning")),
    *(Broken("printer-needs-attention", WINDOWS.but(f"Windows with DetectedErrorState {error}",
        commands={"Win32_Printer": sections(usb=[], bluetooth=[], jobs=[], printers=[
            {"Name": "Bar", "PrinterStatus": 3, "DetectedErrorState": error}])}))
      for error in (4, 7, 8)),
    Broken("reports-waiting", LINUX.but("an agent that cannot send", agent=(
        available("agent.outboxReports", "agent", 12),))),
    # -------------------------------------------------------------- kiosk
    Broken("kiosk-silent", KIOSK.but("a kiosk whose browser has no page", kiosk={})),
    Broken("kiosk-crashed", page("a crashed page", crashed=True)),
    Broken("kiosk-frozen", page("a frozen page", frozen=True)),
    Broken("kiosk-error-page", page("a page that cannot be reached",
                                    url="chrome-error://chromewebdata/")),
    Broken("kiosk-blank", page("a blank page", painted=False)),
    Broken("kiosk-not-drawing", page("a page that is no longer drawn", drawing=False)),
    Broken("kiosk-offline", page("a browser without a network", **{"browser.online": False})),
    Broken("kiosk-local-network-denied", page("a page that may not print",
                                              localNetworkPermission="denied")),
    Broken("kiosk-hidden", page("a covered page", **{"browser.visibility": "hidden"})),
    Broken("kiosk-leaking", page("a page that leaks memory",
                                 **{"browser.heapUsedBytes": 1_900_000_000})),
    Broken("kiosk-storage-full", page("a page that stores too much",
                                      **{"browser.originUsageBytes": 89_000_000_000})),
    Broken("kiosk-no-screen", KIOSK.but("a kiosk whose screen is off", files={
        "sys/class/drm/card0-HDMI-A-1/status": "disconnected\n"})),
    # -------------------------------------------------------------- network of the machine
    Broken("no-network", LINUX.but("an unplugged cable", links=(LOOPBACK, OFF), service=REFUSED)),
    Broken("no-dhcp-answer", LINUX.but("a cable without DHCP", service=NO_NAME,
                                       links=(LOOPBACK, Link("eth0", ("169.254.7.7/16",))), lan=())),
    Broken("no-dhcp-answer", LINUX.but("a Wi-Fi without DHCP", links=(
        LOOPBACK, CABLE, replace(WIFI, addresses=("169.254.7.7/16",), gateway="")))),
    Broken("name-not-resolved", LINUX.but("a dead name server", service=NO_NAME)),
    Broken("no-name-server", LINUX.but("no name server", files={"etc/resolv.conf": "search x\n"})),
    Broken("names-slow", LINUX.but("a first name server that is silent", service_ms=(5004, 25))),
    Broken("service-slow", LINUX.but("an overloaded line", service_ms=(12, 2300))),
    Broken("service-unreachable gateway-silent", LINUX.but(
        "a lost gateway", lan=(host("192.168.1.77", 77),), service=REFUSED)),
    Broken("service-unreachable no-gateway", LINUX.but(
        "no gateway", links=(LOOPBACK, replace(CABLE, gateway="")), service=REFUSED,
        lan=(host("192.168.1.77", 77),))),
    Broken("gateway-silent", LINUX.but(
        "a wrong mask: the gateway is outside of the network", lan=(host("192.168.1.21", 21),),
        links=(LOOPBACK, replace(CABLE, addresses=("192.168.1.20/29",))))),
    Broken("gateway-slow", LINUX.but("a gateway that answers slowly", lan=(
        host("192.168.1.1", 1, latency_ms=340.0), host("192.168.1.77", 77)))),
    Broken("service-unreachable", LINUX.but("a firewall that refuses", service=REFUSED)),
    Broken("tls-failed", LINUX.but("a sign-in page", service=NO_TLS)),
    Broken("certificate-expired", LINUX.but("an expired certificate", service=certificate(
        "2026-08-01T00:00:00Z", "2026-10-30T00:00:00Z"))),
    Broken("certificate-expiring", LINUX.but("a certificate that was not renewed",
        service=certificate("2026-08-27T00:00:00Z", "2026-11-25T00:00:00Z"))),
    Broken("certificate-untrusted", LINUX.but("a firewall that inspects TLS",
        service=(CERTIFICATE[0], False, "Nosy CA", *CERTIFICATE[3:]))),
    Broken("wifi-weak", LINUX.but("a till far from the access point", links=(LOOPBACK, WIFI), files={
        "proc/net/wireless": "a\nb\n wlan0: 0000   22.  -84.  -256        0      0\n"})),
    Broken("link-slow", LINUX.but("a cable with a broken wire",
                                  links=(LOOPBACK, replace(CABLE, speed=10)))),
    Broken("link-slow", LINUX.but("a cable at half duplex",
                                  links=(LOOPBACK, replace(CABLE, speed=100, duplex=1)))),
    Broken("link-slow", WINDOWS.but("Windows at a cable with a broken wire",
                                    links=(replace(WINDOWS.links[0], speed=10),))),
    Broken("interface-errors", LINUX.but("a cable that disturbs packets",
                                         links=(LOOPBACK, replace(CABLE, errors=9000)))),
    Broken("address-conflict", LINUX.but("an address that two interfaces have", links=(
        LOOPBACK, CABLE, replace(WIFI, addresses=("192.168.1.20/24",))))),
    Broken("source-failed", LINUX.but("a scan that the system refuses", lan=(),
                                      scan=SourceState("failed", "Operation not permitted"))),
    Broken("report-unfinished", LINUX.but("a collection that was cancelled", is_cancelled=True)),
    # -------------------------------------------------------------- network printers
    *(Broken("printer-needs-attention", printer(f"a printer with {reason}", reason))
      for reason in ("media-empty-error", "media-jam-error", "cover-open-error", "door-open",
                     "toner-empty-error", "marker-supply-empty-error", "output-area-full-warning",
                     "input-tray-missing", "marker-waste-full", "opc-life-over", "other-error",
                     "cutter-jam-error")),
    Broken("printer-unreachable", printer("a printer that is off", lan=(host("192.168.1.1", 1),))),
    Broken("printer-unreachable", printer("a printer whose port is closed", lan=(
        host("192.168.1.1", 1), host("192.168.1.77", 77, refused_ports=(9100,))))),
)  # fmt: skip
