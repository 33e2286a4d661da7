"""Simulates the LAN and the USB devices of a venue, with a real cupsd and the real agent.

`play` runs this module as a script, inside the LAN (see tests/lab/tap/lan.py) and in its own mount
namespace:

    python -m tests.lab.scenes.venue DIRECTORY

The script reads the acts (see `Act`) from ``venue.json`` in the directory. For each act it sets up
hosts, USB devices and queues, and stores the output of `venue-agent collect network --json` in the
directory. For the first act, it also stores the output of `venue-agent printers --json`.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agent.adapters.storage.printer_memory import PrinterMemory
from agent.adapters.storage.state import StateDirectory
from agent.rules.learned_printers import RememberedPrinters
from collectors.contract import LearnedPrinter
from tests.lab.namespaces import MOUNT_PROBE, TAP_PROBE, entering
from tests.lab.spooler import Spooler, queue_command
from tests.lab.tap.lan import change_plan
from tests.lab.tap.plan import LabPlan, LanHost, save_plan
from tests.paths import ROOT

BACKENDS = ("beh", "bjnp", "cnijbe2", "gutenprint53+usb", "hp", "implicitclass", "smb", "tea4cups")
SPOOLER_SOCKET = Path("/run/cups/cups.sock")
USB_DEVICES = Path("/sys/bus/usb/devices")
STATE = Path("/run/venue-agent")
TIME_LIMIT_S = 600
CHECK_RESULT = "printers.json"
"""The file with the output of `venue-agent printers --json` in the first act."""
_MAKE_DIRECTORIES_PRIVATE = (
    "mount --make-rprivate / && mount -t tmpfs tmpfs /run && mount -t tmpfs tmpfs /sys/bus"
    # The venue must not use the name server of the machine that runs the test.
    ' && mount --bind "$1" /etc/resolv.conf; shift; exec "$@"'
)


@dataclass(frozen=True, slots=True)
class UsbDevice:
    """A USB printer with its values in sysfs. ``node`` is the name of its device file."""

    bus_id: str
    manufacturer: str
    product: str
    serial: str = ""
    device_id: str = ""
    node: str = "lp0"


@dataclass(frozen=True, slots=True)
class Queue:
    """A print queue. ``driver`` is the name of the model in its driver; "" means a raw queue."""

    name: str
    uri: str
    info: str = ""
    driver: str = ""


@dataclass(frozen=True, slots=True)
class Act:
    """The devices and queues during one report.

    Queues also exist in all later acts, which may change them by setting up a queue of the same
    name. A shell runs ``commands`` when the queues exist. CUPS commands in them use the spooler of
    the venue. ``has_spooler`` starts cupsd, which then runs in all later acts. If ``learned`` is
    not empty, it replaces the printer identities that earlier reports stored.
    """

    hosts: tuple[LanHost, ...]
    usb: tuple[UsbDevice, ...]
    queues: tuple[Queue, ...]
    commands: tuple[str, ...] = ()
    has_spooler: bool = True
    filters_multicast: bool = False
    learned: tuple[LearnedPrinter, ...] = ()


@dataclass(frozen=True, slots=True)
class Lan:
    """The LAN of the acts.

    ``config`` is the agent's configuration. ``excluded`` are addresses that must not receive any
    packet.
    """

    subnet: str
    agent_address: str
    gateway: LanHost
    config: str
    excluded: tuple[str, ...]


def play(acts: Sequence[Act], lan: Lan, directory: Path) -> list[dict[str, Any]]:
    """Return the report of each act. Raises if the LAN received forbidden traffic."""
    plans = []
    for number, act in enumerate(acts):
        plan = directory / f"plan-{number}.json"
        hosts = (lan.gateway, *act.hosts)
        save_plan(
            LabPlan(
                lan.subnet,
                lan.agent_address,
                lan.gateway.address,
                hosts,
                excluded=lan.excluded,
                filters_multicast=act.filters_multicast,
            ),
            plan,
        )
        plans.append({**asdict(act), "hosts": [], "plan": str(plan)})  # the plan has the hosts
    (directory / "config.toml").write_text(lan.config)
    (directory / "resolv.conf").write_text("nameserver 127.0.0.1\n")
    (directory / "venue.json").write_text(json.dumps(plans))
    command = [sys.executable, "-m", "tests.lab.scenes.venue", str(directory)]
    directories = ("sh", "-c", _MAKE_DIRECTORIES_PRIVATE, "sh", str(directory / "resolv.conf"))
    lan_command = (sys.executable, "-m", "tests.lab.tap.lan", plans[0]["plan"])
    probe = ("sh", "-c", f"{MOUNT_PROBE[-1]} && {TAP_PROBE[-1]}")
    subprocess.run(
        [*entering("--mount", probe=probe), *directories, *lan_command, *command],
        check=True,
        cwd=ROOT,
        timeout=TIME_LIMIT_S,
    )
    return [json.loads((directory / f"report-{n}.json").read_text()) for n in range(len(acts))]


def _plug_in(devices: Sequence[dict[str, str]]) -> None:
    """Replace the USB devices in sysfs with ``devices``."""
    shutil.rmtree(USB_DEVICES, ignore_errors=True)
    for usb_device in devices:
        device = USB_DEVICES / usb_device["bus_id"]
        interface = USB_DEVICES / f"{usb_device['bus_id']}:1.0"
        (interface / "usbmisc" / usb_device["node"]).mkdir(parents=True)
        device.mkdir()
        files = {name: usb_device[name] for name in ("manufacturer", "product", "serial")}
        for name, text in {**files, "idVendor": "0519", "idProduct": "0003"}.items():
            if text:
                (device / name).write_text(f"{text}\n")
        (interface / "bInterfaceClass").write_text("07\n")
        (interface / "ieee1284_id").write_text(f"{usb_device['device_id']}\n")


def _set_up_queue(spooler: Spooler, queue: dict[str, str]) -> None:
    driver = ("-P", str(spooler.create_driver(queue["driver"]))) if queue["driver"] else ()
    info = ("-D", queue["info"]) if queue["info"] else ()
    command = queue_command(queue["name"], queue["uri"], *driver, *info)
    subprocess.run(command, env=spooler.environment, check=True)


def _remember(learned: Sequence[LearnedPrinter]) -> None:
    """Store the identities of printers, as the daemon does after a report."""
    state = StateDirectory(STATE)
    state.prepare()
    now = datetime.now(UTC).isoformat(timespec="seconds")
    PrinterMemory(state).write(
        RememberedPrinters(tuple(replace(printer, seen_at=now) for printer in learned))
    )


def _run_agent(config: Path, *words: str) -> str:
    command = [sys.executable, "-m", "agent", *words, "--json", "--config", str(config)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def main() -> int:
    directory = Path(sys.argv[1])
    USB_DEVICES.mkdir(parents=True)
    SPOOLER_SOCKET.parent.mkdir()
    SPOOLER_SOCKET.parent.chmod(0o755)
    spooler = Spooler(Path("/run/spooler"))
    os.environ["VENUE_AGENT_DEVICE__STATE_DIR"] = str(STATE)
    start_command = spooler.set_up(backends=BACKENDS)
    with ExitStack() as stack:
        is_started = False
        for number, act in enumerate(json.loads((directory / "venue.json").read_text())):
            if act["has_spooler"] and not is_started:
                is_started = True
                process = stack.enter_context(subprocess.Popen(start_command))
                stack.callback(process.kill)
                SPOOLER_SOCKET.unlink(missing_ok=True)
                SPOOLER_SOCKET.symlink_to(spooler.socket)
                spooler.wait()
            change_plan(Path(act["plan"]))
            # Otherwise the kernel would send to the MACs that addresses had in the previous act.
            subprocess.run(["ip", "neigh", "flush", "all"], check=True)
            _plug_in(act["usb"])
            for queue in act["queues"]:
                _set_up_queue(spooler, queue)
            for command in act["commands"]:
                subprocess.run(["sh", "-c", command], env=dict(spooler.environment), check=True)
            if act["learned"]:
                _remember([LearnedPrinter(**printer) for printer in act["learned"]])
            report = _run_agent(directory / "config.toml", "collect", "network")
            (directory / f"report-{number}.json").write_text(report)
            if number == 0:
                printers = _run_agent(directory / "config.toml", "printers")
                (directory / CHECK_RESULT).write_text(printers)
    return 0


if __name__ == "__main__":
    sys.exit(main())
