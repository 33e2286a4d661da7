"""Tests of reading print queues, the kiosk page, watched devices and the processor's throttling."""

import asyncio
import contextlib
import struct
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from agent.adapters.connectivity import kiosk_page, print_queues, print_queues_windows
from agent.adapters.connectivity.local import SystemLocalSensors
from agent.adapters.connectivity.local_http import REPLY_MAX_BYTES, exchange_local
from agent.adapters.connectivity.watched_devices import SETTLED_AFTER_S, WatchedDevices
from agent.adapters.machine import thermal_throttles
from agent.config.model import WatchedDevice
from agent.rules.connectivity.local_faults import LocalReading, LocalState
from collectors.shared.addresses import parse_networks
from collectors.shared.host.spooler_windows import SpoolerPrinter
from collectors.shared.http import HttpRequest
from collectors.shared.linux.rtnetlink import LinkNeighbour, NeighbourState
from tests.unit.agent.samples import config

MAC, OTHER_MAC = "02:00:00:00:00:05", "02:00:00:00:00:99"
CHANGED_AT_S = 1_790_000_000
"""When the state of each printer changed, in seconds since 1970."""
PAPER_OUT, DOOR_OPEN, WORK_OFFLINE = 0x10, 0x400000, 0x400
"""Bits of PRINTER_INFO_2 (winspool.h): two of Status, and one of Attributes."""


def attribute(tag: int, name: str, value: bytes) -> bytes:
    """Encode an attribute of IPP (RFC 8010, section 3.1)."""
    return (
        struct.pack("!BH", tag, len(name)) + name.encode() + struct.pack("!H", len(value)) + value
    )


def printer(name: str, state: int, *reasons: str, is_accepting: bool = True) -> bytes:
    """Encode the attributes of a print queue, with the state as a number (RFC 8011, 5.4.11)."""
    return b"".join(
        (
            b"\x04",
            attribute(0x42, "printer-name", name.encode()),
            attribute(0x23, "printer-state", state.to_bytes(4, "big")),
            attribute(0x44, "printer-state-reasons", (reasons or ("none",))[0].encode()),
            *(attribute(0x44, "", each.encode()) for each in reasons[1:]),
            attribute(0x22, "printer-is-accepting-jobs", bytes([is_accepting])),
            attribute(0x21, "printer-state-change-time", CHANGED_AT_S.to_bytes(4, "big")),
        )
    )


def ipp(*printers: bytes, status: int = 0) -> bytes:
    """Encode an IPP response."""
    charset = attribute(0x47, "attributes-charset", b"utf-8")
    return struct.pack("!BBHI", 1, 1, status, 1) + b"\x01" + charset + b"".join(printers) + b"\x03"


@contextlib.asynccontextmanager
async def serve_reply(reply: bytes, socket: Path) -> AsyncIterator[None]:
    """Answer each HTTP request to a Unix socket with ``reply``."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        with contextlib.suppress(ConnectionError):
            writer.write(reply)
            await writer.drain()
        writer.close()

    async with await asyncio.start_unix_server(answer, socket):
        yield


def http(body: bytes, status: str = "200 OK") -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


# ------------------------------------------------------------------ print queues


def test_a_stopped_queue_has_its_reasons_and_the_time_of_the_change() -> None:
    queues = print_queues.parse_queues(
        ipp(
            printer("receipts", 5, "media-empty-error", "cover-open"),
            printer("kitchen", 4),
            printer("bar\x1b[2J", 3, is_accepting=False),
        )
    )
    at = datetime.fromtimestamp(CHANGED_AT_S, UTC)
    assert queues == {
        "receipts": LocalState("stopped (media-empty-error, cover-open)", at),
        "kitchen": LocalState(None, at),
        "bar [2J": LocalState("it accepts no jobs"),
    }


def test_the_status_not_found_of_cups_means_that_there_are_no_queues() -> None:
    assert print_queues.parse_queues(ipp(status=0x0406)) == {}


@pytest.mark.parametrize("cut", range(0, 160, 7))
def test_a_reply_that_ends_early_is_refused(cut: int) -> None:
    with pytest.raises(ValueError, match=r"ends within|shorter|runs over the end"):
        print_queues.parse_queues(ipp(printer("receipts", 5))[:cut])


@pytest.mark.parametrize(
    "reply",
    [
        b"",
        b"nonsense",
        http(b"", "401 Unauthorized"),
        http(ipp(status=0x0500)),
        http(ipp(printer("receipts", 5)))[:-9],
        b"x" * (REPLY_MAX_BYTES + 1),
    ],
    ids=["empty", "no HTTP", "401", "IPP error", "cut", "too long"],
)
async def test_an_invalid_reply_leaves_the_queues_unknown(reply: bytes, tmp_path: Path) -> None:
    async with serve_reply(reply, tmp_path / "cups.sock"):
        assert await print_queues.query_queues(tmp_path / "cups.sock") is None
    assert await print_queues.query_queues(tmp_path / "gone.sock") is None


async def test_cups_gets_no_query_before_it_runs(tmp_path: Path) -> None:
    """A connection to the socket would make systemd start CUPS."""
    async with serve_reply(http(ipp(printer("receipts", 5))), tmp_path / "cups.sock"):
        sensors = SystemLocalSensors(config(), tuple, tmp_path)
        assert (await sensors.read()).complete_causes == frozenset()
        (tmp_path / "certs").mkdir()
        (tmp_path / "certs/0").touch()  # CUPS creates this file when it starts
        reading = await sensors.read()
    assert reading.complete_causes == {"queue-stopped"}
    assert reading.states["queue-stopped", "receipts"].fault == "stopped"


def test_the_spooler_of_windows_reports_queues_that_do_not_print() -> None:
    printers = (
        SpoolerPrinter("Receipts", "", status=PAPER_OUT | DOOR_OPEN),
        SpoolerPrinter("Kitchen", "", attributes=WORK_OFFLINE),
    )
    assert print_queues_windows.states_of(printers) == {
        "Receipts": LocalState("stopped (out of paper, door open)"),
        "Kitchen": LocalState("stopped (offline)"),
    }


# ------------------------------------------------------------------ the kiosk page


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        (b'[{"type": "page", "url": "http://till.test/"}]', None),
        (b'[{"type": "page", "url": "devtools://x"}, 7]', "the browser has no page open"),
        (b'[{"type": "browser_ui", "url": "chrome://x"}]', "the browser has no page open"),
        (b"[]", "the browser has no page open"),
    ],
)
def test_a_list_of_targets_shows_whether_a_page_is_open(body: bytes, fault: str | None) -> None:
    assert kiosk_page.fault_of(body) == fault


@pytest.mark.parametrize(
    "body", [b"", b"{}", b"[" * 100_000, b"\xff"], ids=["empty", "object", "deep", "no UTF-8"]
)
def test_a_body_without_a_list_of_pages_is_refused(body: bytes) -> None:
    with pytest.raises(ValueError, match="did not list its pages"):
        kiosk_page.fault_of(body)


async def test_a_closed_port_is_reported_as_a_missing_browser() -> None:
    server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()
    fault = await kiosk_page.read_page_fault(f"http://localhost:{port}")
    assert fault == "no browser listens at kiosk_debug_url"


async def test_a_body_is_complete_although_the_connection_stays_open(tmp_path: Path) -> None:
    may_close = asyncio.Event()

    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(http(b"[]") + b"more")
        await may_close.wait()
        writer.close()

    async with await asyncio.start_unix_server(answer, tmp_path / "socket"):
        assert await exchange_local(tmp_path / "socket", HttpRequest("GET", "till", "/")) == b"[]"
        may_close.set()


# ------------------------------------------------------------------ watched devices


class Lan:
    """A network of this machine.

    ``table`` maps each address to the MAC and state of its neighbour. ``resolved`` lists the sets
    of addresses that were resolved. ``networks`` is empty if there is no link.
    """

    def __init__(self) -> None:
        self.table: dict[str, tuple[str | None, NeighbourState]] = {}
        self.resolved: list[set[str]] = []
        self.now_s = 0.0
        self.networks: tuple[str, ...] = ("10.0.0.7/24",)

    def reader_of(self, *devices: WatchedDevice, **options: Any) -> Callable[[], LocalReading]:
        """Return a function that reads the state of watched devices in this network."""

        watched = WatchedDevices(
            devices,
            lambda: parse_networks(self.networks),
            options.pop("exclude", ()),
            read_table=lambda: [LinkNeighbour(2, a, m, s) for a, (m, s) in self.table.items()],
            prime=self.resolved.append,
            **options,
        )

        def read() -> LocalReading:
            """Do both steps of `WatchedDevices`, and return the reading of the second step.

            If the agent sends nothing, each step returns a complete reading.
            """
            watched.step(self.now_s)
            if not watched.is_pending:
                return watched.step(self.now_s)
            assert watched.step(self.now_s + 1.0) == LocalReading()
            self.now_s += SETTLED_AFTER_S
            return watched.step(self.now_s)

        return read


TERMINAL = WatchedDevice(name="card", kind="payment-terminal", address="10.0.0.5", mac=MAC)


def faults(reading: LocalReading) -> dict[str, str | None]:
    return {key[1]: state.fault for key, state in reading.states.items()}


def test_a_device_that_does_not_answer_arp_is_absent() -> None:
    lan = Lan()
    read = lan.reader_of(TERMINAL, WatchedDevice(name="far", address="192.0.2.1"))
    lan.table["10.0.0.5"] = (MAC, "stale")
    assert faults(read()) == {"card": None}
    lan.table["10.0.0.5"] = (MAC, "failed")
    assert faults(read()) == {"card": "no answer to ARP at 10.0.0.5"}
    lan.table.clear()
    assert faults(read()) == {"card": "no answer to ARP at 10.0.0.5"}
    assert lan.resolved == [{"10.0.0.5"}] * 3


def test_a_device_at_another_address_is_reported_once_as_moved() -> None:
    lan = Lan()
    read = lan.reader_of(TERMINAL)
    lan.table["10.0.0.9"] = (MAC, "stale")
    reading = read()
    assert faults(reading) == {"card": None}
    assert reading.events == (("device-moved", "card: from 10.0.0.5 to 10.0.0.9"),)
    assert lan.resolved == [{"10.0.0.5", "10.0.0.9"}]
    assert read().events == ()
    lan.table = {"10.0.0.5": (MAC, "reachable")}
    assert read().events == (("device-moved", "card: from 10.0.0.9 to 10.0.0.5"),)


def test_another_device_at_the_address_is_named_unless_it_answers_for_several_addresses() -> None:
    lan = Lan()
    read = lan.reader_of(TERMINAL)
    lan.table["10.0.0.5"] = (OTHER_MAC, "reachable")
    assert faults(read()) == {"card": f"another device ({OTHER_MAC}) answers at 10.0.0.5"}
    lan.table["10.0.0.6"] = (OTHER_MAC, "reachable")
    assert faults(read()) == {}


def test_without_a_link_the_state_of_watched_devices_is_unknown() -> None:
    lan = Lan()
    watched = WatchedDevices(
        (TERMINAL,),
        lambda: parse_networks(lan.networks),
        read_table=list,
        prime=lan.resolved.append,
    )
    watched.step(0.0)
    lan.networks = ()
    assert watched.step(SETTLED_AFTER_S) == LocalReading()
    assert not watched.is_pending


def test_an_excluded_address_is_not_resolved() -> None:
    lan = Lan()
    read = lan.reader_of(TERMINAL, exclude=("10.0.0.0/29",))
    assert faults(read()) == {}
    assert lan.resolved == [set()]


def test_an_agent_that_sends_nothing_resolves_no_address() -> None:
    lan = Lan()
    read = lan.reader_of(TERMINAL, sends_nothing=True)
    assert faults(read()) == {}
    lan.table["10.0.0.5"] = (MAC, "reachable")
    assert faults(read()) == {"card": None}
    assert lan.resolved == []


def test_a_device_with_only_a_mac_is_absent_after_it_was_present() -> None:
    lan = Lan()
    read = lan.reader_of(WatchedDevice(name="scale", mac=MAC))
    assert faults(read()) == {}
    lan.table["10.0.0.8"] = (MAC, "reachable")
    assert read() == LocalReading({("device-absent", "scale"): LocalState(None)})
    lan.table.clear()
    assert faults(read()) == {"scale": "no answer to ARP at 10.0.0.8"}


# ------------------------------------------------------------------ the processor


def test_the_highest_counter_of_throttling_is_read(tmp_path: Path) -> None:
    assert thermal_throttles(tmp_path) is None
    for number, count in (("cpu0", 3), ("cpu1", 7)):
        (tmp_path / number / "thermal_throttle").mkdir(parents=True)
        folder = tmp_path / number / "thermal_throttle"
        (folder / "core_throttle_count").write_text(f"{count}\n")
        (folder / "core_throttle_total_time_ms").write_text("900\n")
    assert thermal_throttles(tmp_path) == 7
