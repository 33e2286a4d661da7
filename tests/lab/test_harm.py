"""Tests that the LANs of the lab count forbidden traffic, and that a test that sends forbidden
traffic fails.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.lab.namespaces import namespace_prefix
from tests.lab.peers.lan import PeerLan, peer_lan
from tests.lab.tap.lan import FORBIDDEN_TRAFFIC_EXIT_CODE
from tests.lab.tap.plan import LabPlan, LanHost, save_plan
from tests.paths import ROOT

pytestmark = [pytest.mark.lab]

PRINTER, EXCLUDED, TERMINAL = "10.76.0.9", "10.76.0.10", "10.76.0.11"
TERMINAL_MAC = "02:76:00:00:00:03"
# Python scripts that a test runs in the LAN. CONNECT opens a connection, SEND also sends bytes, and
# CALL also waits for the reply.
CONNECT = "import socket; s = socket.create_connection(({address!r}, {port}), 60)"
DATAGRAM = """
import socket
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
    client.connect(("{address}", {port}))
    for _ in range(2):  # a closed port refuses the datagram, and then a later call raises
        try:
            client.send({data})
            client.recv(1)
        except ConnectionRefusedError:
            break
"""
SEND = CONNECT + "; s.sendall(b'%-12345X')"
CALL = CONNECT + "; s.sendall({data}); s.recv(1)"
GET = CALL.format(address=PRINTER, port=80, data=rb"b'GET / HTTP/1.1\r\n\r\n'".decode())
HARMLESS = f"{CONNECT.format(address=PRINTER, port=9100)}; {GET}"
PUT = CALL.format(address=PRINTER, port=80, data=rb"b'PUT / HTTP/1.1\r\n\r\n'".decode())
PRINT_JOB = (
    CONNECT.format(address=PRINTER, port=631) + r"; body = bytes((2, 0, 0, 2, 0, 0, 0, 1, 3)); "
    r"s.sendall(b'POST /ipp/print HTTP/1.1\r\nContent-Length: 9\r\n\r\n' + body); s.recv(1)"
)
SNMP_SET = DATAGRAM.format(
    address=PRINTER, port=161, data="bytes((48, 9, 2, 1, 0, 4, 1, 112, 163, 1, 0))"
)


@pytest.mark.needs("tap")
@pytest.mark.parametrize(
    ("script", "message"),
    [
        (HARMLESS, ""),
        (SEND.format(address=PRINTER, port=631), "1 unknown bytes to port 631 to printers"),
        (PUT, "1 HTTP PUT to printers"),
        (PRINT_JOB, "1 IPP Print-Job to printers"),
        (SNMP_SET, "1 SNMP set to printers"),
        (SEND.format(address=PRINTER, port=9100), "8 bytes to port 9100"),
        (SEND.format(address=PRINTER, port=12000), "8 bytes to port 12000"),
        (CONNECT.format(address=EXCLUDED, port=80), f"packets to the excluded {EXCLUDED}"),
        (CONNECT.format(address=TERMINAL, port=80), f"protocol 6 to the terminal {TERMINAL_MAC}"),
        (DATAGRAM.format(address=TERMINAL, port=9, data="b''"), ""),
        (DATAGRAM.format(address=TERMINAL, port=9, data="b'?'"), f"to the terminal {TERMINAL_MAC}"),
    ],
    ids=(
        "harmless",
        "bytes that are no request",
        "HTTP PUT",
        "print job",
        "SNMP set",
        "bytes to a print port",
        "bytes to a port of terminals",
        "connection to an excluded address",
        "connection to a terminal",
        "empty datagram to a terminal",
        "datagram with content to a terminal",
    ),
)
def test_a_simulated_lan_fails_only_on_forbidden_traffic(
    tmp_path: Path, script: str, message: str
) -> None:
    ports = (80, 631, 9100, 12000)
    hosts = tuple(
        LanHost(address, f"02:76:00:00:00:0{number}", ports)
        for number, address in enumerate(("10.76.0.1", PRINTER, EXCLUDED, TERMINAL))
    )
    plan = LabPlan(
        "10.76.0.0/24", "10.76.0.2", "10.76.0.1", hosts, excluded=(EXCLUDED,),
        terminals=(TERMINAL_MAC,),
    )  # fmt: skip
    save_plan(plan, tmp_path / "plan.json")
    lan_command = (sys.executable, "-m", "tests.lab.tap.lan", str(tmp_path / "plan.json"))
    result = subprocess.run(
        [*namespace_prefix(), *lan_command, sys.executable, "-c", script],
        capture_output=True, check=False, text=True, cwd=ROOT, timeout=300,
    )  # fmt: skip
    assert result.returncode == (FORBIDDEN_TRAFFIC_EXIT_CODE if message else 0), result.stderr
    assert message in result.stderr


LISTEN = """
import socket
with socket.create_server(("", 9100)) as server:
    print("ready", flush=True)
    while True:
        with server.accept()[0] as connection:
            connection.recv(99)
"""


@pytest.mark.needs("peers")
def test_a_peer_lan_fails_only_on_forbidden_traffic(tmp_path: Path) -> None:
    with peer_lan(tmp_path) as lan:
        run_at_a_peer(lan, CONNECT)
    with (
        pytest.raises(AssertionError, match="8 bytes to port 9100"),
        peer_lan(tmp_path) as lan,
    ):
        run_at_a_peer(lan, SEND)


def run_at_a_peer(lan: PeerLan, script: str) -> None:
    """Run a script on a till. It connects to port 9100 of a second host, which listens there."""
    till, listener = lan.add_host("till", 1), lan.add_host("listener", 2)
    command = lan.command(listener, sys.executable, "-c", LISTEN)
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        script_at_listener = script.format(address=listener.address, port=9100)
        subprocess.run(lan.command(till, sys.executable, "-c", script_at_listener), check=True)
        process.kill()
