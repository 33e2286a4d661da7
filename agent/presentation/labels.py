"""Labels of facts whose key alone does not explain them to a technician."""

from collections.abc import Mapping
from typing import Final

from agent.presentation.humanize import label_of

_STALLED: Final = "Work stalled (last minute)"

LABELS: Final[Mapping[str, str]] = {
    "os.bootTime": "Last start",
    "os.lastBootReason": "Reason of the last start",
    "os.pendingReboot": "Restart pending",
    "hardware.formFactor": "Form",
    "hardware.physicalCores": "Cores",
    "hardware.logicalCores": "Threads of all cores",
    "hardware.temperatureCelsius": "Hottest sensor",
    "hardware.temperatureLimitCelsius": "Limit of hottest sensor",
    "hardware.temperatures": "All sensors, in °C",
    "hardware.batteryFraction": "Battery charge",
    "hardware.batteryCharging": "Plugged in",
    "hardware.batteryHealthFraction": "Battery health",
    "memory.swapTotalBytes": "Swap space",
    "memory.stalledFraction": _STALLED,
    "cpu.useFraction": "All cores over 1 second",
    "cpu.*.useFraction": "over 1 second",
    "cpu.busiestCoreUseFraction": "Busiest core over 1 second",
    "cpu.frequencyMegahertz": "Clock speed",
    "cpu.load1": "Load over 1 minute",
    "cpu.load5": "Load over 5 minutes",
    "cpu.load15": "Load over 15 minutes",
    "cpu.stalledFraction": _STALLED,
    "disk.mounts": "Mounted at",
    "disk.stalledFraction": _STALLED,
    "disk.rotational": "Spinning disk",
    "disk.health": "Health (SMART)",
    "disk.lifeUsedFraction": "Life used up",
    "display.count": "Screens connected",
    "display.enabled": "In use",
    "network.interfaceCount": "Interfaces",
    "network.dnsServers": "Name servers (DNS)",
    "network.dnsAnswers": "Answers of name servers",
    "network.proxy": "Web proxy",
    "network.proxyScript": "Web proxy script (PAC)",
    "network.service.error": "Why it was not reached",
    "network.service.resolveMilliseconds": "Name look-up took",
    "network.service.connectMilliseconds": "Connecting took",
    "network.service.tlsTrusted": "Certificate trusted",
    "network.service.tlsIssuer": "Certificate issued by",
    "network.service.tlsIssuedAt": "Certificate valid since",
    "network.service.tlsExpiresAt": "Certificate valid until",
    "process.watched": "Watched programs",
    "process.count": "Processes",
    "process.startedAt": "Started",
    "process.cpuFraction": "Processor, of one core",
    "process.restartsSinceBoot": "Restarts since boot",
    "service.name": "Service",
    "service.startType": "Starts by itself",
    "service.since": "Running since",
    "service.restarts": "Restarts since boot",
    "printqueue.waitingJobs": "Jobs waiting",
    "printqueue.stuckJobs": "Jobs stuck",
    "printqueue.oldestJobSeconds": "Oldest job waits for",
    "printqueue.accepting": "Takes new jobs",
    "printqueue.reasons": "The printer reports",
    "agent.uptimeSeconds": "Running for",
    "agent.lastExit": "How it ended last time",
    "agent.outboxReports": "Reports waiting to be sent",
    "agent.outboxBytes": "Size of these reports",
    "agent.lastHeartbeatAt": "Last heartbeat",
    "agent.configDigest": "Configuration fingerprint",
    "peripherals.usbCount": "USB devices",
    "peripherals.bluetoothCount": "Paired Bluetooth devices",
    "peripherals.bluetoothPowered": "Bluetooth on",
    "kiosk.crashed": "Page has crashed",
    "kiosk.responding": "Page responds",
    "kiosk.errorPage": "Error page is shown",
    "kiosk.drawing": "Page draws",
    "kiosk.painted": "Page has drawn something",
    "kiosk.localNetworkPermission": "May reach local network",
    "kiosk.loopbackPermission": "May reach this machine",
    "kiosk.localNetworkPolicies": "Local network policies",
    "interface.defaultRoute": "Default route",
    "interface.ipv4Assignment": "IPv4 assignment",
    "interface.dhcpServer": "DHCP server",
    "interface.dhcpLeaseObtainedAt": "DHCP lease since",
    "interface.dhcpLeaseExpiresAt": "DHCP lease until",
    "interface.mtu": "Largest packet, in bytes",
    "interface.receivedPackets": "Packets received",
    "interface.sentPackets": "Packets sent",
    "interface.receiveErrors": "Errors on receiving",
    "interface.sendErrors": "Errors on sending",
    "interface.receiveDrops": "Dropped on receiving",
    "interface.sendDrops": "Dropped on sending",
    "interface.wifiSsid": "Wi-Fi network",
    "interface.wifiSignalDbm": "Wi-Fi signal",
    "interface.wifiAccessPoint": "Wi-Fi access point",
    "interface.wifiBand": "Wi-Fi band",
    "interface.wifiChannel": "Wi-Fi channel",
    "interface.wifiRateMegabitsPerSecond": "Wi-Fi rate",
    "usb.guess": "Probably a",
    "browser.logicalProcessors": "Threads of all cores",
    "browser.approximateMemoryGiB": "Memory, about",
    "browser.heapUsedBytes": "Memory the page uses",
    "browser.heapLimitBytes": "Memory the page may use",
    "browser.effectiveConnectionType": "Connection is as fast as",
    "browser.downlinkMbps": "Download speed",
    "browser.saveData": "Saves data",
    "browser.focused": "Page has the keyboard",
    "browser.visibility": "Page is",
    "browser.pageUptimeSeconds": "Page open for",
    "browser.secureContext": "Page is secure (https)",
    "browser.originUsageBytes": "Storage the page uses",
    "browser.originQuotaBytes": "Storage the page may use",
    "browser.bluetoothAuthorizedDevices": "Bluetooth devices allowed",
    "browser.usbAuthorizedDevices": "USB devices allowed",
}
"""Labels by key. The name of a disk, queue or program is left out of a key: ``disk.health`` stands
for ``disk.drive.sda.health``. A star stands for the name if the key without it is a different fact:
``cpu.*.useFraction``."""

THINGS: Final[Mapping[str, str]] = {
    "network.service": "Connection to the service",
    "service.printSpooler": "Print spooler",
    "service.timeSync": "Time synchronisation",
    "service.bluetooth": "Bluetooth",
}
"""Labels for names in the middle of a key that do not explain themselves."""


def field_label(key: str) -> str:
    """Return the label of a fact: from the table, or else from the last part of its key."""
    first, last = key.partition(".")[0], key.rpartition(".")[2]
    forms = (key, f"{first}.*.{last}", f"{first}.{last}")
    known = next((LABELS[form] for form in forms if form in LABELS), None)
    if known is None and ".permission." in key:
        return f"Permission: {label_of(key).lower()}"
    return known or label_of(key)
