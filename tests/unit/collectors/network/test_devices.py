"""Tests that reports recognise devices of many makers, with recorded data of these devices."""

from collections.abc import Callable
from dataclasses import replace

from agent.presentation.hosts.rows import host_rows
from agent.rules.reports.network import network_report
from agent.wire.payloads.network import NetworkPayload
from collectors.network.correlate import correlate
from collectors.network.discoveries import OpenPort
from collectors.network.mdns.announced import LinkLayer, choose_services
from collectors.network.network_map import assemble_endpoints, assemble_hosts
from collectors.network.observations import Evidence, MdnsService, PrinterIdentifiers
from collectors.network.questions.ipp import parse_attributes
from collectors.network.questions.web import read_web
from collectors.network.scan.scan import ScannedHost
from collectors.shared.http import HttpReply
from tests.fixtures.network.devices import DEVICES, Device
from tests.unit.agent.rules.reports.test_network import CLEAN, CONTEXT, JOB
from tests.unit.collectors.shared.test_ipp import item, message

ADDRESS = "10.0.0.9"
# In reports, at least these shares of the recorded devices must be correct or recognisable.
CORRECT_MIN = 0.92
RECOGNISABLE_MIN = 0.9


def test_the_recorded_devices_have_at_least_40_makers() -> None:
    assert len({device.maker for device in DEVICES}) == len(DEVICES) >= 40


def test_the_kinds_of_most_devices_are_correct() -> None:
    assert _correct_share(lambda device: (describe(device)[0], device.kind), "kind") >= CORRECT_MIN


def test_labels_and_models_of_most_devices_are_correct() -> None:
    share = _correct_share(
        lambda device: (describe(device)[1:], (device.label, device.model)), "label and model"
    )
    assert share >= CORRECT_MIN


def test_nine_of_ten_devices_are_recognised_without_a_mac_address() -> None:
    rows = [host_rows(payload_of(device))[0] for device in DEVICES]
    assert all(row.mac_address == "" for row in rows)
    assert sum(row.is_recognisable for row in rows) / len(rows) >= RECOGNISABLE_MIN


def describe(device: Device) -> tuple[str, str | None, str | None]:
    """Return the device's kind, and the label and model of its port, according to the payload."""
    payload = payload_of(device)
    (row,) = host_rows(payload)
    endpoint = next(endpoint for endpoint in payload.endpoints if endpoint.port == device.port)
    return row.kind, endpoint.label, endpoint.model


def payload_of(device: Device) -> NetworkPayload:
    """Return the payload of a network report in which the device is the only host."""
    received = [
        MdnsService(
            service.instance,
            service.type,
            device.hostname,
            (ADDRESS,) if service.port else (),
            service.port,
            tuple(service.txt.items()),
            announcer=ADDRESS,
        )
        for service in device.services
    ]
    listed = choose_services(received, LinkLayer(), PrinterIdentifiers())
    observed = correlate(
        scanned=[ScannedHost(ADDRESS, open_ports=device.ports)] if device.ports else [],
        services=listed.services,
        evidence=_evidence(device),
        announcers=listed.announcers,
    )
    hosts = [replace(host, hostname=device.hostname or None) for host in assemble_hosts(observed)]
    result = replace(CLEAN, hosts=tuple(hosts), endpoints=assemble_endpoints(observed))
    return network_report(result, JOB, CONTEXT)


def _evidence(device: Device) -> list[Evidence]:
    results: list[Evidence] = []
    if device.page:
        reply = HttpReply(device.page.status, device.page.headers, device.page.body)
        results += read_web(OpenPort(ADDRESS, device.page.port), reply)
    if device.ipp:
        attributes = (item(0x41, key, value.encode()) for key, value in device.ipp.items())
        evidence = parse_attributes(ADDRESS, 631, message(b"\x04", *attributes))
        results += [evidence] if evidence else []
    if device.spooler:
        results.append(Evidence(ADDRESS, 631, server=device.spooler))
    return results


def _correct_share(compare: Callable[[Device], tuple[object, object]], subject: str) -> float:
    """Return the share of devices that are reported correctly. Print the other devices.

    ``compare`` returns the reported value and the expected value of a device.
    """
    compared = [(device.maker, *compare(device)) for device in DEVICES]
    wrong = [row for row in compared if row[1] != row[2]]
    print(
        f"{subject}: {len(compared) - len(wrong)} of {len(compared)} devices are reported correctly"
    )
    for maker, reported, expected in wrong:
        print(f"  {maker}: reported {reported!r}, expected {expected!r}")
    return 1 - len(wrong) / len(compared)
