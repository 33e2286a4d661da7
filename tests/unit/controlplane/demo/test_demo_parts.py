"""Tests of the parts of the demo: its print spooler, its directory and its simulated LAN."""

import fcntl
import ipaddress
import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.application.readers.print_queues import parse_queues
from collectors.network.printers.cups import queue_printers
from collectors.shared import ipp
from collectors.shared.print_jobs import parse_jobs
from controlplane.client.errors import CommandError
from controlplane.demo import directory
from controlplane.demo.lan.plan import LanService
from controlplane.demo.spooler import reply_to
from controlplane.demo.venue import QUEUES, UUIDS, VENUE


def query_spooler(operation: int) -> ipp.Response:
    request = ipp.encode_request(operation, requested=("all",))
    return ipp.decode_response(reply_to(request, QUEUES, time.time()))


def test_the_spooler_of_the_demo_lists_its_queues() -> None:
    response = query_spooler(ipp.CUPS_GET_PRINTERS)
    kitchen, bar, office = queue_printers(response)
    assert (kitchen.name, kitchen.host, kitchen.port) == ("Kitchen", "192.168.77.50", 9100)
    assert (bar.uuid, bar.host) == (UUIDS["Bar"], "192.168.77.51")
    assert office.queue == "ipp/print"
    assert [queue.accepting for queue in parse_queues(response)] == [True] * 3


def test_the_print_job_of_the_bar_is_stuck_in_the_demo() -> None:
    (job,) = parse_jobs(query_spooler(ipp.GET_JOBS), time.time())
    assert job.queue == "bar"
    assert job.is_stuck()


@given(st.binary(max_size=64))
def test_the_spooler_of_the_demo_answers_any_request(body: bytes) -> None:
    assert ipp.decode_response(reply_to(body, QUEUES, 0)).is_successful


def test_the_uuid_of_the_bar_printer_is_at_a_new_address() -> None:
    macs = {host.address: host.mac for host in VENUE.hosts}
    assert "192.168.77.51" not in macs
    uuid_attribute = f"printer-uuid=urn:uuid:{UUIDS['Bar']}"
    attributes_by_address = {
        host.address: ipp_printer.attributes for host in VENUE.hosts for ipp_printer in host.ipp
    }
    assert [
        address
        for address, attributes in attributes_by_address.items()
        if uuid_attribute in attributes
    ] == ["192.168.77.61"]
    network = ipaddress.ip_network(VENUE.subnet)
    assert all(ipaddress.ip_address(address) in network for address in macs)
    assert len(set(macs.values())) == len(VENUE.hosts)


def test_a_service_type_with_a_domain_is_refused() -> None:
    with pytest.raises(ValueError, match="is not a type of DNS-SD services"):
        LanService("Kitchen", "_ipp._tcp.local.", 631)


def test_a_demo_deletes_the_files_of_an_earlier_demo(tmp_path: Path) -> None:
    demo_directory, outside = tmp_path / "demo", tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").touch()
    with directory.claim_directory(demo_directory):
        (demo_directory / "state").mkdir()
        (demo_directory / "state" / "file").touch()
        (demo_directory / "link").symlink_to(outside)
    with directory.claim_directory(demo_directory):
        assert [path.name for path in demo_directory.iterdir()] == [directory.LOCK]
    assert (outside / "kept").exists()


def test_a_directory_in_use_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(directory, "WAIT_FOR_LOCK_S", 0.0)
    (tmp_path / "kept").touch()
    (tmp_path / directory.LOCK).touch()
    other = os.open(tmp_path / directory.LOCK, os.O_RDWR)
    try:
        fcntl.flock(other, fcntl.LOCK_EX)
        with (
            pytest.raises(CommandError, match="another demo uses"),
            directory.claim_directory(tmp_path),
        ):
            pass
    finally:
        os.close(other)
    assert (tmp_path / "kept").exists()
