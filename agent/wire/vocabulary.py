"""The enumerations of the contract: fields with a fixed list of values."""

from typing import Literal

Platform = Literal["android", "ios", "macos", "windows", "linux"]
Kind = Literal["network", "application"]
Outcome = Literal["completed", "partial", "failed"]
FailureReason = Literal["collection-failed", "execution-interrupted"]
AcknowledgedStatus = Literal["received", "running"]
RequestStatus = Literal[
    "queued", "received", "running", "expired", "completed", "partial", "failed"
]
TrackerStatus = Literal["pending", "sent", "failed", "disabled"]
"""Whether the service has sent a message about a report to its tracker, which is a webhook."""

Completeness = Literal["complete", "partial", "limited"]
"""How complete a report is. docs/adr/0009 defines when each value applies."""
EndpointStatus = Literal["reachable", "discovered"]
"""Whether the port accepts connections, or was only announced by mDNS."""
DiscoverySource = Literal["mdns", "scan"]
PrinterTransport = Literal["network", "serial", "ble", "usb"]
PrinterStatus = Literal["reachable", "unreachable", "unknown"]
MapState = Literal["scanning", "completed", "cancelled"]
Reachability = Literal["reachable", "unknown"]
HostSource = Literal["local", "gateway", "mdns", "tcp"]
"""How a host was discovered. "local": it is this machine. "tcp": by the scan, which
`DiscoverySource` calls "scan"."""
ServiceSource = Literal["mdns", "tcp"]
AddressFamily = Literal["ipv4", "ipv6"]
PeripheralKind = Literal["bluetooth", "usb"]
FieldStatus = Literal[
    "available", "unsupported", "permission-denied", "not-applicable", "collection-failed"
]
BrowserFieldKey = Literal[
    "browser.userAgent",
    "browser.platform",
    "browser.logicalProcessors",
    "browser.approximateMemoryGiB",
    "browser.heapUsedBytes",
    "browser.heapLimitBytes",
    "browser.online",
    "browser.connectionType",
    "browser.effectiveConnectionType",
    "browser.downlinkMbps",
    "browser.roundTripMs",
    "browser.saveData",
    "browser.language",
    "browser.languages",
    "browser.timeZone",
    "browser.displayWidthPixels",
    "browser.displayHeightPixels",
    "browser.pixelRatio",
    "browser.orientation",
    "browser.visibility",
    "browser.focused",
    "browser.pageUptimeSeconds",
    "browser.secureContext",
    "browser.cookiesEnabled",
    "browser.originQuotaBytes",
    "browser.originUsageBytes",
    "browser.batteryLevelFraction",
    "browser.batteryCharging",
    "browser.permission.geolocation",
    "browser.permission.notifications",
    "browser.permission.camera",
    "browser.permission.microphone",
    "browser.bluetoothAuthorizedDevices",
    "browser.usbAuthorizedDevices",
]
