"""Simulates a LAN while a command runs.

    python -m tests.lab.tap.lan PLAN.json COMMAND [ARGUMENT ...]

The script exits with the code of the command, or with `FORBIDDEN_TRAFFIC_EXIT_CODE` if the LAN
received forbidden traffic. It must run in its own network namespace (see namespaces.py), whose only
devices are loopback and the TAP. In the environment of the command, ``TAP_LAN_CONTROL`` is the path
of the socket that `read_counters`, `reset_counters` and `change_plan` use.
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from controlplane.demo.lan.lan import FRAME_MAX
from controlplane.demo.lan.tap import DEVICE, open_tap
from tests.lab.harm import Harm
from tests.lab.tap.counted_lan import CountedLan
from tests.lab.tap.counters import LanCounters, counters_from_json, counters_to_json
from tests.lab.tap.plan import load_plan

CONTROL_VARIABLE = "TAP_LAN_CONTROL"
FORBIDDEN_TRAFFIC_EXIT_CODE = 70
_CHANGE_PLAN = b"change-plan "


def read_counters() -> LanCounters:
    """Return the counters of the LAN in which this process runs."""
    return counters_from_json(json.loads(_call(b"counters")))


def reset_counters() -> None:
    """Reset the counters and the state of every host."""
    _call(b"reset")


def change_plan(path: Path) -> None:
    """Replace the hosts of the LAN in which this process runs."""
    _call(_CHANGE_PLAN + bytes(path))


def _call(command: bytes) -> bytes:
    with tempfile.TemporaryDirectory() as directory, _control_socket() as client:
        client.bind(str(Path(directory) / "reply"))
        client.settimeout(60)
        client.sendto(command, os.environ[CONTROL_VARIABLE])
        return client.recv(FRAME_MAX)


def _control_socket() -> socket.socket:
    return socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)


def start_liar(plan_path: Path, packets: int, tap_fd: int) -> subprocess.Popen[bytes]:
    """Start the script liar.py, and wait until it is ready."""
    command = [
        sys.executable,
        "-m",
        "tests.lab.tap.liar",
        str(plan_path),
        str(tap_fd),
        str(packets),
    ]
    liar = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=(tap_fd,)
    )
    assert liar.stdout is not None
    assert liar.stdout.readline() == b"ready\n"
    return liar


def simulate(
    lan: CountedLan,
    control: socket.socket,
    child: subprocess.Popen[bytes],
    liar: subprocess.Popen[bytes] | None = None,
) -> int:
    """Answer frames until the command ends, and return its exit code.

    The liar starts to send after the first mDNS query.
    """
    while child.poll() is None:
        if liar is not None and liar.stdin is not None and lan.was_queried:
            liar.stdin.write(b"\n")
            liar.stdin.close()
            liar.stdin = None
        if lan.run_once(control.fileno()):
            _answer_control(lan, control)
    lan.run_once()  # the frames that the command sent just before it ended
    return child.returncode


def _answer_control(lan: CountedLan, control: socket.socket) -> None:
    command, sender = control.recvfrom(FRAME_MAX)
    if command == b"reset":
        lan.reset()
    elif command.startswith(_CHANGE_PLAN):
        lan.use_plan(load_plan(Path(os.fsdecode(command.removeprefix(_CHANGE_PLAN)))))
    control.sendto(json.dumps(counters_to_json(lan.counters)).encode(), sender)


def main() -> int:
    plan = load_plan(Path(sys.argv[1]))
    tap_fd = open_tap(plan)
    # A sweep sends bursts, so the device needs a queue as long as that of a switch.
    subprocess.run(["ip", "link", "set", DEVICE, "txqueuelen", "10000"], check=True)
    with tempfile.TemporaryDirectory(prefix="tap-lan-") as directory, _control_socket() as control:
        path = str(Path(directory) / "control")
        control.bind(path)
        environment = {**os.environ, CONTROL_VARIABLE: path}
        liar = start_liar(Path(sys.argv[1]), plan.lies, tap_fd) if plan.lies else None
        try:
            harm = Harm(plan.excluded, plan.terminals)
            lan = CountedLan(plan, tap_fd, harm)
            with subprocess.Popen(sys.argv[2:], env=environment) as child:
                # The LAN gets a higher priority than the collectors (tests/lab/conftest.py).
                with suppress(PermissionError):
                    os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(2))
                code = simulate(lan, control, child, liar)
            lan.traffic.store()
            forbidden = [f"{count} {traffic}" for traffic, count in lan.traffic.forbidden().items()]
            if harm.counts or forbidden:
                traffic = ", ".join(filter(None, (str(harm), *forbidden)))
                sys.stderr.write(f"the LAN received forbidden traffic: {traffic}\n")
                return FORBIDDEN_TRAFFIC_EXIT_CODE
            return code
        finally:
            if liar is not None:
                liar.kill()
                liar.communicate()


if __name__ == "__main__":
    sys.exit(main())
