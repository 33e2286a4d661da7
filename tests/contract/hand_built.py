"""The agent's messages, built from its models. Each must serialize to its golden message."""

from typing import Final
from uuid import UUID

from agent.wire import device_operations as device
from agent.wire import operator_operations as operator
from agent.wire.base import Message
from agent.wire.codec import validate
from agent.wire.payloads import application as app
from agent.wire.payloads import network as net
from agent.wire.payloads.common import Environment, Failure, Identity

INSTANCE: Final = UUID("5d0c7c1e-1d0f-5a7e-9d0b-0a4c1a7f3e11")
BINDING: Final = UUID("8f14e45f-ceea-467f-a0e6-5a1b2c3d4e5f")
REQUEST: Final = UUID("c9f0f895-fb98-4b91-8b5e-2f6d7a8b9c0d")
REPORT: Final = UUID("0f7e4a52-8f4c-4f0e-9c52-6f1b1d1c7a10")
CHALLENGE: Final = UUID("45c48cce-2e2d-4fbd-aa1a-fc51c7c6ad26")
CAPABILITIES: Final = ("network", "application", "commands.stream", "commands.poll")
PUBLIC_KEY: Final = (
    "302a300506032b6570032100d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
)
SIGNATURE: Final = (
    "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555"
    "fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b"
)

IDENTITY: Final = Identity(
    organization_id="org-0001", location_id="loc-0001", install_id="install-1"
)
NATIVE: Final = Environment(
    platform="native",
    user_agent="venue-agent/0.1.0 (Linux 6.1.0; x86_64)",
    os_platform="linux",
    native_app_version="0.1.0",
    native_protocol_version=1,
    native_capabilities=CAPABILITIES,
    web_release=None,
)
BROWSER: Final = Environment(
    platform="browser",
    user_agent="",
    os_platform=None,
    native_app_version=None,
    native_protocol_version=None,
    native_capabilities=(),
    web_release="2026.11",
)
STARTED: Final = "2026-11-20T19:04:12.120Z"
FINISHED: Final = "2026-11-20T19:04:15.480Z"
MDNS_HELD: Final = "port 5353 is held by another program"


def _field(key: str, source: str, value: app.FieldValue) -> app.SnapshotField:
    return app.SnapshotField(key=key, source=source, status="available", value=value)


def _browser_field(key: str, value: app.BrowserValue) -> app.BrowserField:
    return validate(
        {"key": f"browser.{key}", "source": "devtools", "status": "available", "value": value},
        app.BrowserField,
    )


NETWORK_MAP: Final = net.NetworkMap(
    state="completed",
    os=net.MapOs(platform="linux", version="Debian GNU/Linux 12"),
    interfaces=(
        net.MapInterface(
            name="eth0",
            addresses=(
                net.MapAddress(address="192.168.1.20", family="ipv4", prefix_length=24),
                net.MapAddress(address="fd00::20", family="ipv6", prefix_length=64),
            ),
            gateways=("192.168.1.1",),
            mac_address="1e:4a:7d:11:9a:2f",
        ),
        net.MapInterface(name="lo", addresses=(), gateways=()),
    ),
    hosts=(
        net.MapHost(
            address="192.168.1.50",
            interface_name="eth0",
            hostname="BRN3C2AF4112233.local",
            mac_address="3c:2a:f4:11:22:33",
            services=(
                net.MapService(
                    name="Kitchen 🖨", type="_ipp._tcp", port=631, source="mdns", reachable=True
                ),
                net.MapService(port=9100, source="tcp"),
            ),
            reachability="reachable",
            latency_ms=0.42,
            sources=("mdns", "tcp"),
        ),
        net.MapHost(
            address="192.168.1.1", services=(), reachability="unknown", sources=("gateway",)
        ),
    ),
    sources=net.MapSources(
        interfaces=net.SourceSucceeded(),
        mdns=net.SourceUnsupported(reason="no multicast interface"),
        scan=net.SourceRunning(),
    ),
    limitations=("2 hosts more than the bound allows",),
    bounds=net.MapBounds(
        max_hosts=1024, max_services=2048, max_duration_ms=30000, ports=(22, 80, 631, 9100)
    ),
    truncated=True,
)

NETWORK_FULL: Final = net.NetworkPayload(
    version=2,
    report_id=str(REPORT),
    started_at=STARTED,
    finished_at=FINISHED,
    completeness="partial",
    identity=IDENTITY,
    environment=NATIVE,
    failures=(Failure(step="mdns", reason=MDNS_HELD),),
    limitations=("192.168.1.77 is excluded by the configuration: 1 address was not asked",),
    scope="local-network",
    discovery=net.Discovery(mdns=net.SourceFailed(reason=MDNS_HELD), scan=net.SourceSucceeded()),
    endpoints=(
        net.Endpoint(
            address="192.168.1.50",
            host="BRN3C2AF4112233.local",
            port=631,
            label="Kitchen 🖨",
            model="Brother HL-L2350DW",
            discovered_by=("mdns", "scan"),
            status="reachable",
            mac_address="3c:2a:f4:11:22:33",
            matched_printer_ids=("kitchen",),
        ),
        net.Endpoint(
            address="fd00::9",
            host="fd00::9",
            port=443,
            label="https",
            model=None,
            discovered_by=("mdns",),
            status="discovered",
            mac_address=None,
            matched_printer_ids=(),
        ),
    ),
    endpoints_omitted=3,
    printers=(
        net.Printer(
            id="kitchen",
            name="Kitchen printer",
            transport="network",
            address="192.168.1.50:9100",
            status="reachable",
            reason=None,
            matched_endpoint="192.168.1.50:631",
        ),
        net.Printer(
            id="bar",
            name="Bar",
            transport="usb",
            address=None,
            status="unknown",
            reason="the device node cannot be read",
            matched_endpoint=None,
        ),
    ),
    network_map=NETWORK_MAP,
    unavailable=net.Unavailable(
        mac_address="permission denied",
        interfaces="permission denied",
        gateway="no default route",
        os_version="/etc/os-release is missing",
    ),
)

NETWORK_MINIMAL: Final = net.NetworkPayload(
    version=2,
    report_id=str(REPORT),
    started_at=STARTED,
    finished_at=FINISHED,
    completeness="complete",
    identity=IDENTITY,
    environment=BROWSER,
    failures=(),
    limitations=(),
    scope="device",
    discovery=None,
    endpoints=(),
    endpoints_omitted=0,
    printers=None,
    network_map=None,
    unavailable=net.Unavailable(),
)

APPLICATION_FULL: Final = app.ApplicationPayload(
    version=1,
    report_type="application",
    report_id=str(REPORT),
    started_at=STARTED,
    finished_at=FINISHED,
    completeness="limited",
    identity=IDENTITY,
    environment=NATIVE,
    failures=(Failure(step="peripherals", reason="the bus does not answer"),),
    limitations=("1 disk is not listed",),
    snapshot=app.Snapshot(
        version=1,
        collected_at=STARTED,
        duration_ms=812.5,
        fields=(
            _field("os.name", "/etc/os-release", "Debian GNU/Linux 12"),
            _field("memory.totalBytes", "psutil", 8321499136),
            _field("cpu.load1", "psutil", 0.25),
            _field("power.isOnBattery", "psutil", False),
            _field("watch.running", "psutil", ("pos-till", "kiosk")),
            app.SnapshotField(
                key="disk.health",
                source="smartctl",
                status="permission-denied",
                reason="only root may ask",
            ),
            app.SnapshotField(key="kiosk.url", source="devtools", status="not-applicable"),
        ),
        interfaces=(app.SnapshotInterface(id="eth0", fields=(_field("mtu", "psutil", 1500),)),),
        peripherals=(
            app.Peripheral(
                id="usb-1-2", kind="usb", fields=(_field("product", "sysfs", "Receipt printer"),)
            ),
            app.Peripheral(id="bt-1", kind="bluetooth", fields=()),
        ),
        limitations=("1 disk is not listed",),
        truncated=True,
    ),
    browser_fields=(
        _browser_field("userAgent", "Mozilla/5.0"),
        _browser_field("logicalProcessors", 8),
        _browser_field("pixelRatio", 1.5),
        _browser_field("online", True),
        _browser_field("languages", ("de-CH", "en")),
        app.BrowserField(
            key="browser.batteryCharging",
            source="devtools",
            status="unsupported",
            reason="this browser has no battery interface",
        ),
    ),
)

APPLICATION_MINIMAL: Final = app.ApplicationPayload(
    version=1,
    report_type="application",
    report_id=str(REPORT),
    started_at=STARTED,
    finished_at=FINISHED,
    completeness="complete",
    identity=IDENTITY,
    environment=NATIVE,
    failures=(),
    limitations=(),
    snapshot=app.Snapshot(
        version=1,
        collected_at="",
        duration_ms=0,
        fields=(),
        interfaces=(),
        peripherals=(),
        limitations=(),
        truncated=False,
    ),
    browser_fields=(),
)

MESSAGES: Final[dict[str, Message]] = {
    "challenge/request": device.ChallengeRequest(
        instance_id=INSTANCE,
        public_key=PUBLIC_KEY,
        platform="linux",
        location_id="loc-0001",
        legacy_install_id="install-1",
        app_version="0.1.0",
        capabilities=CAPABILITIES,
    ),
    "challenge/request-minimal": device.ChallengeRequest(
        instance_id=INSTANCE,
        public_key=PUBLIC_KEY,
        platform="windows",
        location_id="loc-0001",
        legacy_install_id="install-1",
        capabilities=(),
    ),
    "enroll/request": device.EnrollRequest(challenge_id=CHALLENGE, signature=SIGNATURE),
    "current/request": device.EmptyRequest(),
    "onCommands/request": device.EmptyRequest(),
    "heartbeat/request": device.HeartbeatRequest(binding_id=BINDING, foreground=False),
    "acknowledge/request-received": device.AcknowledgeRequest(
        request_id=REQUEST, binding_id=BINDING, status="received"
    ),
    "acknowledge/request-running": device.AcknowledgeRequest(
        request_id=REQUEST, binding_id=BINDING, status="running"
    ),
    "submitResult/request-network": device.SubmitResultRequest(
        binding_id=BINDING,
        report_id=REPORT,
        kind="network",
        outcome="partial",
        request_id=REQUEST,
        report=NETWORK_MINIMAL,
    ),
    "submitResult/request-scheduled": device.SubmitResultRequest(
        binding_id=BINDING,
        report_id=REPORT,
        kind="application",
        outcome="completed",
        report=APPLICATION_MINIMAL,
    ),
    "submitResult/request-failed": device.SubmitResultRequest(
        binding_id=BINDING,
        report_id=REPORT,
        kind="network",
        outcome="failed",
        request_id=REQUEST,
        report=None,
        failure_reason="execution-interrupted",
    ),
    "payloads/network-full": NETWORK_FULL,
    "payloads/network-minimal": NETWORK_MINIMAL,
    "payloads/application-full": APPLICATION_FULL,
    "payloads/application-minimal": APPLICATION_MINIMAL,
    "createRequest/request": operator.CreateRequestRequest(instance_id=INSTANCE, kind="network"),
    "listDevices/request": operator.ListDevicesRequest(),
    "listDevices/request-next": operator.ListDevicesRequest(cursor="eyJhIjoxfQ"),
    "deviceDetail/request": operator.DeviceDetailRequest(instance_id=INSTANCE),
    "deviceDetail/request-next": operator.DeviceDetailRequest(
        instance_id=INSTANCE, cursor="eyJhIjoxfQ"
    ),
    "reportDetail/request": operator.ReportDetailRequest(report_id=REPORT),
    "revoke/request": operator.RevokeRequest(instance_id=INSTANCE),
}
