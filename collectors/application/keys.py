"""The keys every snapshot holds, on every platform, whatever their status.

Sources add keys of the same groups for what a machine has several of (mounts, cores, queues,
screens, drives, watched programs). docs/application-fields.md gives each its type and unit.
"""

from typing import Final

SYSTEM_KEYS: Final = ("os.name", "os.version", "os.build", "os.kernel", "os.architecture")
BOOT_KEYS: Final = ("os.bootTime", "os.uptimeSeconds", "os.lastBootReason", "os.pendingReboot")
PLACE_KEYS: Final = ("os.timeZone", "os.locale")
CLOCK_KEYS: Final = ("os.clockSynchronised", "os.clockOffsetMilliseconds")

MACHINE_KEYS: Final = (
    "hardware.maker",
    "hardware.model",
    "hardware.formFactor",
    "hardware.firmware",
)
PROCESSOR_KEYS: Final = (
    "hardware.cpuModel",
    "hardware.physicalCores",
    "hardware.logicalCores",
    "hardware.memoryBytes",
)
TEMPERATURE_KEYS: Final = ("hardware.temperatureCelsius", "hardware.temperatures")
POWER_KEYS: Final = (
    "hardware.batteryFraction",
    "hardware.batteryCharging",
    "hardware.powerSource",
)
DISPLAY_KEYS: Final = ("display.count", "display.connectors")

MEMORY_KEYS: Final = (
    "memory.totalBytes",
    "memory.availableBytes",
    "memory.usedFraction",
)
SWAP_KEYS: Final = ("memory.swapTotalBytes", "memory.swapUsedBytes")
CPU_KEYS: Final = ("cpu.useFraction", "cpu.busiestCoreUseFraction", "cpu.frequencyMegahertz")
LOAD_KEYS: Final = ("cpu.load1", "cpu.load5", "cpu.load15")
PRESSURE_KEYS: Final = ("cpu.stalledFraction", "memory.stalledFraction", "disk.stalledFraction")

DISK_KEYS: Final = ("disk.mounts",)
DRIVE_KEYS: Final = ("disk.drives",)

INTERFACE_KEYS: Final = ("network.interfaceCount",)
RESOLVER_KEYS: Final = ("network.dnsServers", "network.proxy")
REACH_KEYS: Final = (
    "network.service.reachable",
    "network.service.error",
    "network.service.resolveMilliseconds",
    "network.service.connectMilliseconds",
)
TLS_KEYS: Final = (
    "network.service.tlsVersion",
    "network.service.tlsTrusted",
    "network.service.tlsIssuer",
    "network.service.tlsExpiresAt",
)

PROCESS_KEYS: Final = ("process.watched",)

SERVICE_ROLES: Final = ("printSpooler", "timeSync", "bluetooth")
SERVICE_ASPECTS: Final = ("name", "state", "startType", "since", "restarts")


def service_keys(role: str) -> tuple[str, ...]:
    """The keys of one role, in the order of the aspects."""
    return tuple(f"service.{role}.{aspect}" for aspect in SERVICE_ASPECTS)


SERVICE_KEYS: Final = tuple(key for role in SERVICE_ROLES for key in service_keys(role))

QUEUE_KEYS: Final = (
    "printqueue.queues",
    "printqueue.waitingJobs",
    "printqueue.stuckJobs",
    "printqueue.oldestJobSeconds",
)
USB_KEYS: Final = ("peripherals.usbCount",)
BLUETOOTH_KEYS: Final = ("peripherals.bluetoothCount", "peripherals.bluetoothPowered")

SNAPSHOT_KEYS: Final = (
    *SYSTEM_KEYS,
    *BOOT_KEYS,
    *PLACE_KEYS,
    *CLOCK_KEYS,
    *MACHINE_KEYS,
    *PROCESSOR_KEYS,
    *TEMPERATURE_KEYS,
    *POWER_KEYS,
    *DISPLAY_KEYS,
    *MEMORY_KEYS,
    *SWAP_KEYS,
    *CPU_KEYS,
    *LOAD_KEYS,
    *PRESSURE_KEYS,
    *DISK_KEYS,
    *DRIVE_KEYS,
    *INTERFACE_KEYS,
    *RESOLVER_KEYS,
    *REACH_KEYS,
    *TLS_KEYS,
    *PROCESS_KEYS,
    *SERVICE_KEYS,
    *QUEUE_KEYS,
    *USB_KEYS,
    *BLUETOOTH_KEYS,
)
