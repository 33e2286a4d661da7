"""Tests the report after DHCP has given printers new addresses.

The agent remembers the printers of an earlier report, and some queues were set up again. A real
cupsd has the queues. The machine has two name servers: the first never answers, the second does.
"""

import os
import signal
import sys
from dataclasses import replace
from typing import Any

import pytest

from collectors.contract import LearnedPrinter
from tests.lab.scenes.table import LAN, NET, Part, Verdict, at, printer
from tests.lab.scenes.test_scenes import check_verdicts
from tests.lab.scenes.venue import Act, Queue, play
from tests.lab.tap.plan import LanHost

pytestmark = [
    pytest.mark.lab,
    pytest.mark.needs("tap"),
    pytest.mark.needs("peers"),
]

Report = dict[str, Any]

REPEATER = "aa:bb:cc:00:00:01"
BAR_MAC, PASS_MAC, ROOF_MAC = (f"00:26:ab:00:00:{number:02x}" for number in (1, 2, 3))


def raw_queue(name: str, number: int) -> Queue:
    return Queue(name, f"socket://{NET}.{number}")


def remembered_printer(name: str, number: int, mac: str) -> LearnedPrinter:
    address = f"{NET}.{number}"
    return LearnedPrinter(f"cups:{name}", address, address=address, mac_address=mac)


HOSTS = (
    LanHost(f"{NET}.20", BAR_MAC, (631, 9100)),
    LanHost(f"{NET}.21", PASS_MAC, (631, 9100)),
    printer(22, "Named"),
    # A repeater has replaced the MACs of a printer and of a telephone with its own.
    LanHost(f"{NET}.9", REPEATER, (631, 9100)),
    LanHost(f"{NET}.30", REPEATER, ()),
)
QUEUES = (
    *(raw_queue("bar", 7), raw_queue("pass", 8), raw_queue("roof", 9)),
    *(raw_queue("bar-new", 20), Queue("bar-airprint", f"ipp://{NET}.20/ipp/print")),
    Queue("named", "socket://named.lan"),
)
MEMORY = (
    remembered_printer("bar", 7, BAR_MAC),
    remembered_printer("pass", 8, PASS_MAC),
    remembered_printer("roof", 9, ROOF_MAC),
)
NAME_SERVER_SCRIPT = f"""
import os, socket, struct
mute = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); mute.bind(("127.0.0.9", 53))
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); server.bind(("127.0.0.1", 53))
if pid := os.fork():  # the first process ends as soon as both sockets are open
    print(pid)
    os._exit(0)
while True:
    query, client = server.recvfrom(512)
    question = query[12:query.index(b"\\0", 12) + 5]
    is_ipv4 = question[-4:] == b"\\0\\1\\0\\1"
    head = query[:2] + struct.pack(">5H", 0x8180, 1, int(is_ipv4), 0, 0)
    answer = b"\\xc0\\x0c" + struct.pack(">HHIH", 1, 1, 60, 4) + socket.inet_aton("{NET}.22")
    server.sendto(head + question + (answer if is_ipv4 else b""), client)
"""
VENUE = replace(LAN, excluded=(), config="[network]\nmax_duration_seconds = 300\n")


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    directory = tmp_path_factory.mktemp("repairs")
    (directory / "server.py").write_text(NAME_SERVER_SCRIPT)
    act = Act(
        hosts=HOSTS,
        usb=(),
        queues=QUEUES,
        commands=(
            f"{sys.executable} -u {directory}/server.py < /dev/null > {directory}/pid 2>&1",
            "printf 'nameserver 127.0.0.9\\nnameserver 127.0.0.1\\n' > /etc/resolv.conf",
        ),
        learned=MEMORY,
    )
    try:
        (result,) = play((act,), VENUE, directory)
    finally:
        if (directory / "pid").exists():
            os.kill(int((directory / "pid").read_text()), signal.SIGKILL)
    return result


@pytest.mark.parametrize(
    ("name", "verdict"),
    [
        ("bar", Verdict("unreachable", at(20, 9100), ("oved to", "already set up there as bar"))),
        ("bar-new", Verdict("reachable", at(20, 9100))),
        ("bar-airprint", Verdict("reachable", at(20))),
        ("pass", Verdict("unreachable", at(21, 9100), ("oved to", "its new address"))),
        ("roof", Verdict("reachable", at(9, 9100), (), ("another device",))),
        ("named", Verdict("reachable", at(22, 9100), ("the name servers took",))),
    ],
)
def test_each_queue_has_the_expected_status_and_reason(
    name: str, verdict: Verdict, report: Report
) -> None:
    check_verdicts(Part({name: verdict}), report)


def test_slow_name_servers_are_reported_as_one_limitation(report: Report) -> None:
    assert sum("the name servers took" in limitation for limitation in report["limitations"]) == 1
    assert report["failures"] == []
