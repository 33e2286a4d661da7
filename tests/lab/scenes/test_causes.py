"""Tests that the report names each simulated cause, and no longer names it after the fix.

There are four reports: of a till without DHCP server and spooler, of a till on a Wi-Fi that
isolates its clients, of all other faults at once, and of the venue after all fixes.
"""

from dataclasses import replace
from typing import Any

import pytest

from tests.lab.scenes.table import (
    LAN,
    NET,
    Part,
    Scene,
    Verdict,
    acts,
    at,
    printer,
    uuid_of,
)
from tests.lab.scenes.test_scenes import check_verdicts
from tests.lab.scenes.venue import Act, Queue, play
from tests.lab.tap.ipp import lab_printer
from tests.lab.tap.lan import DEVICE

pytestmark = [
    pytest.mark.lab,
    pytest.mark.needs("tap"),
    pytest.mark.needs("peers"),
]

Report = dict[str, Any]
NO_DHCP, ISOLATED, ALL_FAULTS, ALL_FIXED = range(4)  # positions of the four reports

VENUE = replace(
    LAN,
    excluded=(),
    config=f"""
[network]
max_duration_seconds = 300
max_hosts = 254
[[printers]]
id = "bar"
name = "Bar"
transport = "network"
address = "{NET}.50:9100"
""",
)


def _raw_queue(name: str, number: int) -> Queue:
    return Queue(name, f"socket://{NET}.{number}")


def _unreachable(*includes: str) -> Verdict:
    return Verdict("unreachable", None, includes)


def _reachable(number: int, port: int = 9100, *excludes: str) -> Verdict:
    return Verdict("reachable", at(number, port), excludes=excludes)


_PAPER = "printer-state-reasons=media-empty-error"
_PRINT = "echo receipt | lp -d"

SCENES = (
    Scene(
        "the printer is off",
        Part({"off": _unreachable("is it switched on")}, queues=(_raw_queue("off", 10),)),
        Part({"off": _reachable(10)}, (printer(10, "Off"),)),
    ),
    Scene(
        "the printer hangs, or another till uses its port",
        Part(
            {"held": _unreachable("in all 4 attempts", "another till or program may use it")},
            (printer(11, "Held", ports=(80,)),),
            queues=(_raw_queue("held", 11),),
        ),
        Part({"held": _reachable(11, 9100, "another till")}, (printer(11, "Held"),)),
    ),
    Scene(
        "the printer's port does not answer, but its other ports do",
        Part(
            {"hung": _unreachable("does not answer", "another till or program may use it")},
            (replace(printer(12, "Hung", ports=(80,)), filtered_ports=(9100,)),),
            queues=(_raw_queue("hung", 12),),
        ),
        Part({"hung": _reachable(12, 9100, "another till")}, (printer(12, "Hung"),)),
    ),
    Scene(
        "another device has the printer's address",
        Part(
            {"taken": Verdict("unknown", None, ("its UUID differs", "give the printer a fixed"))},
            (printer(13, "Other", ipp=(lab_printer(uuid_of(99)),)),),
            queues=(Queue("taken", f"ipp://{NET}.13/ipp/print?uuid={uuid_of(13)}"),),
        ),
        Part(
            {"taken": _reachable(13, 631, "another")},
            (printer(13, "Own", ipp=(lab_printer(uuid_of(13)),)),),
        ),
    ),
    Scene(
        "the queue is paused and a job waits, although the printer is reachable",
        Part(
            {"paused": Verdict("reachable", at(14, 9100), ("cupsenable paused", "1 job waits"))},
            (printer(14, "Paused"),),
            queues=(_raw_queue("paused", 14),),
            commands=("cupsdisable paused", f"{_PRINT} paused"),
        ),
        Part(
            {"paused": _reachable(14, 9100, "cupsenable", "job")},
            (printer(14, "Paused"),),
            commands=("cancel -a paused", "cupsenable paused"),
        ),
    ),
    Scene(
        "the queue rejects jobs",
        Part(
            {"full": Verdict("reachable", at(15, 9100), ("rejects jobs", "cupsaccept full"))},
            (printer(15, "Full"),),
            queues=(_raw_queue("full", 15),),
            commands=("cupsreject full",),
        ),
        Part(
            {"full": _reachable(15, 9100, "cupsaccept")},
            (printer(15, "Full"),),
            commands=("cupsaccept full",),
        ),
    ),
    Scene(
        "the printer is out of paper",
        Part(
            {"paper": Verdict("reachable", at(16), ("the printer reports: out of paper",))},
            (printer(16, "Paper", ipp=(lab_printer(uuid_of(16), _PAPER),)),),
            queues=(Queue("paper", f"ipp://{NET}.16/ipp/print"),),
        ),
        Part(
            {"paper": _reachable(16, 631, "paper")},
            (printer(16, "Paper", ipp=(lab_printer(uuid_of(16)),)),),
        ),
    ),
    Scene(
        "the printer's host name cannot be resolved",
        Part(
            {"named": _unreachable("o address was found for the name bar.lan", "name server")},
            (printer(17, "Named"),),
            queues=(Queue("named", "socket://bar.lan"),),
        ),
        Part(
            {"named": _reachable(17)},
            (printer(17, "Named"),),
            commands=(f"echo {NET}.17 bar.lan > /run/hosts && mount --bind /run/hosts /etc/hosts",),
        ),
    ),
    Scene(
        "multicast is filtered",
        Part(
            {"called": Verdict("reachable", at(18), ("multicast does not work",))},
            (printer(18, "Called"),),
            queues=(Queue("called", "dnssd://Called._ipp._tcp.local/"),),
        ),
        Part({"called": _reachable(18, 631, "multicast")}, (printer(18, "Called"),)),
    ),
)

_NO_DHCP_AND_NO_SPOOLER = Act(
    hosts=(),
    usb=(),
    queues=(),
    commands=(
        f"ip addr flush dev {DEVICE} scope global && ip addr add 169.254.3.4/16 dev {DEVICE}",
        # The socket of a real CUPS has mode 666, too, so that every user may connect to it.
        "python3 -c \"import socket; socket.socket(1).bind('/run/cups/cups.sock')\"",
        "chmod 666 /run/cups/cups.sock",
    ),
    has_spooler=False,
)
_RESTORE_ADDRESS = (
    f"ip addr flush dev {DEVICE} && ip addr add {LAN.agent_address}/24 dev {DEVICE}"
    f" && ip route replace default via {LAN.gateway.address}"
)
_ISOLATED = Act(
    hosts=(),
    usb=(),
    queues=tuple(_raw_queue(name, number) for name, number in (("off", 10), ("held", 11))),
    commands=(
        _RESTORE_ADDRESS,
        f"ip link set {DEVICE} down && ip link set {DEVICE} name wlan0 && ip link set wlan0 up",
        f"ip route replace default via {LAN.gateway.address}",
    ),
)
_ADD_SECOND_INTERFACE = (
    f"ip link set wlan0 down && ip link set wlan0 name {DEVICE} && ip link set {DEVICE} up",
    f"ip route replace default via {LAN.gateway.address}",
    "ip link add wlan0 type veth peer name air && ip link set air up && ip link set wlan0 up",
    f"ip addr add {NET}.3/24 dev wlan0 metric 900",
)
_REMOVE_SECOND_INTERFACE = ("ip link del wlan0",)


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> list[Report]:
    trouble, fixed = acts(SCENES)
    all_acts = (
        _NO_DHCP_AND_NO_SPOOLER,
        _ISOLATED,
        replace(
            trouble, commands=(*_ADD_SECOND_INTERFACE, *trouble.commands), filters_multicast=True
        ),
        replace(fixed, commands=(*_REMOVE_SECOND_INTERFACE, *fixed.commands)),
    )
    return play(all_acts, VENUE, tmp_path_factory.mktemp("causes"))


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.title)
def test_cause_is_reported_until_it_is_fixed(scene: Scene, reports: list[Report]) -> None:
    check_verdicts(scene.trouble, reports[ALL_FAULTS])
    check_verdicts(scene.fixed, reports[ALL_FIXED])


def test_a_missing_dhcp_server_and_a_stopped_spooler_are_reported_until_fixed(
    reports: list[Report],
) -> None:
    first, last = reports[NO_DHCP], reports[ALL_FIXED]
    (bar,) = (printer_facts for printer_facts in first["printers"] if printer_facts["id"] == "bar")
    message = "no address from a DHCP server on"
    assert message in bar["reason"]
    assert any(message in limitation for limitation in first["limitations"])
    assert [failure["reason"] for failure in first["failures"]] == [
        "the print spooler (CUPS) does not run: start it (`systemctl start cups`)"
    ]
    assert last["failures"] == []
    assert not any(message in limitation for limitation in last["limitations"])


@pytest.mark.parametrize(
    ("report_number", "words"),
    [
        (ISOLATED, "the Wi-Fi wlan0 nothing but the gateway answers"),
        (ALL_FAULTS, f"are in one network, {NET}.0/24"),
        (ALL_FAULTS, "multicast does not work on"),
    ],
)
def test_network_problem_is_listed_once_and_in_a_printers_reason_until_it_is_fixed(
    report_number: int, words: str, reports: list[Report]
) -> None:
    assert sum(words in limitation for limitation in reports[report_number]["limitations"]) == 1
    reasons = [printer_facts["reason"] for printer_facts in reports[report_number]["printers"]]
    assert any(words in reason for reason in reasons), reasons
    assert words not in str(reports[ALL_FIXED])
