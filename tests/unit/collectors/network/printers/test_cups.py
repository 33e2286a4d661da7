"""Tests reading the queues of CUPS, from captured replies and from a simulated spooler."""

import socket
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors import programs
from collectors.network.observations import KnownPrinter
from collectors.network.printers.cups import (
    NOT_RUNNING,
    QUEUES_MAX,
    queue_printer,
    queue_printers,
    read_cups_printers,
)
from collectors.network.printers.lpstat import parse_lpstat
from collectors.shared.ipp import decode_response
from tests.unit.collectors.shared.spooler import deadline, http_response, spooler
from tests.unit.collectors.shared.test_ipp import QUEUES, item, message

UUID = "d4d1e202-baff-3fff-46ff-3ab6dbae6ea6"


# Value tags of attributes (RFC 8010, section 3.5.2): 0x21 integer, 0x23 enum, 0x42 name,
# 0x44 keyword, 0x45 URI.


def queue(*items: bytes) -> bytes:
    """Return the encoded group of attributes of one printer."""
    return b"\x04" + b"".join(items)


def parse_cups_reply(data: bytes) -> tuple[KnownPrinter, ...]:
    return queue_printers(decode_response(data))


def test_queues_of_a_recorded_spooler_are_parsed():
    bar, kitchen, till, usb = parse_cups_reply(QUEUES)
    assert (bar.id, bar.name, bar.uuid) == ("cups:bar", "Bar printer", UUID)
    assert (bar.dns_sd_name, bar.address) == ("Kitchen 4.2 printer", None)
    assert (kitchen.host, kitchen.port, kitchen.queue) == ("10.77.0.2", 631, "ipp/print")
    assert kitchen.address == "10.77.0.2:631"
    assert (till.address, till.port) == ("10.77.0.9:9100", 9100)
    assert (usb.transport, usb.serial, usb.address) == ("usb", "J5XX", None)
    assert not any(
        printer.is_queue_stopped or printer.state_reasons for printer in (bar, kitchen, till, usb)
    )


def test_a_stopped_queue_is_parsed_with_its_reasons():
    data = message(
        queue(
            item(0x42, "printer-name", b"till"),
            item(0x45, "device-uri", b"socket://10.0.0.9"),
            item(0x23, "printer-state", struct.pack("!i", 5)),
            item(0x44, "printer-state-reasons", b"media-empty-error"),
            item(0x44, "", b"paused"),
            item(0x44, "", b"none"),
        )
    )
    (till,) = parse_cups_reply(data)
    assert till.is_queue_stopped
    assert till.state_reasons == ("media-empty-error", "paused")


def test_classes_and_virtual_queues_are_not_listed():
    name = item(0x42, "printer-name", b"x")
    uri = item(0x45, "device-uri", b"socket://10.0.0.9")
    a_class = queue(name, uri, item(0x21, "printer-type", struct.pack("!i", 0x1)))
    pdf = queue(name, item(0x45, "device-uri", b"cups-pdf:/"))
    assert parse_cups_reply(message(a_class, pdf, queue(name), queue(uri))) == ()


def test_more_queues_than_the_bound_are_counted(tmp_path: Path):
    uri = item(0x45, "device-uri", b"socket://10.0.0.9")
    queues = [queue(item(0x42, "printer-name", b"q%d" % n), uri) for n in range(QUEUES_MAX + 7)]
    path = tmp_path / "cups.sock"
    with spooler(path, http_response(message(*queues))):
        known = read_cups_printers(deadline(), {"CUPS_SERVER": str(path)})
    assert len(known.printers) == QUEUES_MAX
    assert known.limitations == (f"print queues left out: 7 of {QUEUES_MAX + 7}",)


def test_not_found_reply_means_no_queues():
    not_found = 0x0406
    assert parse_cups_reply(message(status=not_found)) == ()


def test_the_spooler_is_queried_over_its_socket(tmp_path: Path):
    path = tmp_path / "cups.sock"
    with spooler(path, http_response(QUEUES)) as request:
        known = read_cups_printers(deadline(), {"CUPS_SERVER": str(path)})
    assert [printer.id for printer in known.printers] == [
        f"cups:{n}" for n in ("bar", "kitchen", "till", "usbq")
    ]
    assert (known.failures, known.limitations) == ((), ())
    assert request[0].startswith(b"POST / HTTP/1.1\r\n")
    assert b"\x40\x02" in request[0]  # CUPS-Get-Printers


@pytest.mark.parametrize(
    "reply",
    [
        http_response(b"no ipp"),
        http_response(b"", "403 Forbidden"),
        http_response(message(status=0x0403)),
        b"garbage\r\n\r\n",
        b"",
    ],
)
def test_an_invalid_answer_of_the_spooler_is_a_failure_with_a_reason(
    tmp_path: Path, reply: bytes, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(programs, "POSIX_DIRECTORIES", (str(tmp_path),))  # contains no lpstat
    path = tmp_path / "cups.sock"
    with spooler(path, reply):
        known = read_cups_printers(deadline(), {"CUPS_SERVER": str(path)})
    (failure,) = known.failures
    assert failure.step == "printers: CUPS"
    assert failure.reason.startswith("the queues of CUPS cannot be read: ")


def test_a_leftover_cups_socket_is_reported_as_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(programs, "POSIX_DIRECTORIES", (str(tmp_path),))  # contains no lpstat
    path = tmp_path / "cups.sock"
    with socket.socket(socket.AF_UNIX) as gone:
        gone.bind(str(path))
    known = read_cups_printers(deadline(), {"CUPS_SERVER": str(path)})
    (failure,) = known.failures
    assert failure.reason == NOT_RUNNING


def test_a_stopped_spooler_is_a_failure_only_if_queues_are_configured(tmp_path: Path):
    queues = tmp_path / "printers.conf"
    nowhere = {"CUPS_SERVER": str(tmp_path / "cups.sock")}
    assert read_cups_printers(deadline(), nowhere, queues).failures == ()
    queues.touch()
    (failure,) = read_cups_printers(deadline(), nowhere, queues).failures
    assert failure.reason == NOT_RUNNING


def test_a_missing_spooler_is_not_a_failure(tmp_path: Path):
    known = read_cups_printers(deadline(), {"CUPS_SERVER": str(tmp_path / "none.sock")})
    assert known.printers == known.failures == known.limitations == ()


def test_lpstat_is_used_if_the_spooler_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    lpstat = tmp_path / "lpstat"
    lpstat.write_text("#!/bin/sh\necho 'device for till: socket://10.0.0.9:9100'\n")
    lpstat.chmod(0o755)
    monkeypatch.setattr(programs, "POSIX_DIRECTORIES", (str(tmp_path),))
    path = tmp_path / "cups.sock"
    with spooler(path, http_response(b"", "401 Unauthorized")):
        known = read_cups_printers(deadline(), {"CUPS_SERVER": str(path)})
    assert [printer.address for printer in known.printers] == ["10.0.0.9:9100"]
    assert known.failures == ()
    (limitation,) = known.limitations
    assert limitation == (
        "the queues of CUPS cannot be read over IPP (it answered with HTTP status 401);"
        " they were read with lpstat"
    )


def test_the_output_of_lpstat_is_parsed():
    text = """device for kitchen: ipp://10.0.0.2/ipp/print
device for usb one: usb://A/B
device for till: /dev/usb/lp0
device for old: /dev/ttyS0
lpstat: something else
"""
    assert parse_lpstat(text) == {
        "kitchen": "ipp://10.0.0.2/ipp/print",
        "till": "usb:/dev/usb/lp0",
        "old": "serial:/dev/ttyS0",
    }


@pytest.mark.parametrize(
    "line",
    [
        "dispositivo para {}: {}",
        "Gerät für {}: {}",
        "matériel pour {} : {}",
        "matériel pour {}\u00a0: {}",
        "dispositivo per {}: {}",
        "устройство для {}: {}",
        "{} のデバイス: {}",
        "用于 {} 的设备：{}",
        "{} க்கான சாதனம்: {}",
        "მოწყობილობა {}-სთვის: {}",
    ],
)
def test_the_output_of_lpstat_is_parsed_in_each_language(line: str):
    uri = "ipp://10.0.0.2:631/ipp/print"
    assert parse_lpstat(line.format("till-1", uri)) == {"till-1": uri}


def test_an_instance_of_a_cups_queue_is_not_listed_separately():
    text = "device for till: usb://A/B\ndevice for till/duplex: usb://A/B\n"
    assert parse_lpstat(text) == {"till": "usb://A/B"}


@pytest.mark.parametrize("device", ["/dev/null", "///dev/null", "file:/dev/null", "/tmp/out"])
def test_a_queue_that_prints_to_a_file_is_ignored(device: str):
    ((name, uri),) = parse_lpstat(f"device for pdf: {device}").items()
    assert queue_printer(name, "", uri, None) is None


@given(st.text(max_size=300))
def test_parsing_any_lpstat_output_never_raises(text: str):
    for name, uri in parse_lpstat(text + "\ndevice for a: " + text).items():
        queue_printer(name, "", uri, None)
