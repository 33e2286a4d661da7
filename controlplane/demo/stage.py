"""Where the demo is played: on a LAN in a namespace, on loopback, or in the networks there are."""

import os
import socket
import sys
from dataclasses import dataclass, field

from controlplane.demo.namespace import enter_network_namespace
from controlplane.demo.processes import Processes
from controlplane.demo.venue import VENUE
from controlplane.server import bind


@dataclass(frozen=True, slots=True)
class Stage:
    """``said`` is what is played; ``environment`` is the agent's, ``network`` its configuration.

    ``outside`` is a socket in the network of the terminal, where that is another one; whoever
    gets the stage closes it.
    """

    said: str
    network: str = ""
    environment: dict[str, str] = field(default_factory=dict)
    outside: tuple[socket.socket, ...] = ()


_REAL = Stage("This demo looks at this machine and at its private networks (--lan).")
_ON_LAN = (
    "A venue is played: {devices} devices on a LAN behind a TAP device, in a network namespace"
    " of its own. Nothing leaves this machine."
)
_ON_LOOPBACK = (
    "A venue's till with two print queues is played on loopback, and nothing else is looked at. A"
    " LAN cannot be played here: {reason}."
)


def set_up(processes: Processes, *, is_real: bool) -> Stage:
    """Set the stage until ``processes`` end. Raises OSError.

    A LAN is set up in a namespace that this process enters, and stays in.
    """
    if is_real:
        return _REAL
    reason = why_no_lan()
    outside = () if reason else (_play_lan(processes),)
    environment = _start_spooler(processes, "loopback" if reason else "lan")
    if reason:
        return Stage(_ON_LOOPBACK.format(reason=reason), "device_only = true\n", environment)
    return Stage(_ON_LAN.format(devices=len(VENUE.hosts)), environment=environment, outside=outside)


def _start_spooler(processes: Processes, played: str) -> dict[str, str]:
    """Return the environment in which the agent finds it; on Windows it looks for no CUPS."""
    if sys.platform == "win32":
        return {}
    with bind("127.0.0.1", 0) as listener:
        listener.listen()
        descriptor = listener.fileno()
        words = ("controlplane.demo.spooler", played, str(descriptor))
        processes.start("spooler", *words, inherited=[descriptor])
        return {"CUPS_SERVER": f"127.0.0.1:{listener.getsockname()[1]}"}


def why_no_lan() -> str | None:
    """Say why a LAN cannot be played here, found out by doing it in another process."""
    if sys.platform != "linux":
        return f"{sys.platform} has no network namespaces"
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, _try_lan().encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, encoding="utf-8") as said:
        reason = said.read()
    os.waitpid(child, 0)
    return reason or None


def _try_lan() -> str:
    from controlplane.demo.lan.tap import open_tap  # of Linux only

    try:
        enter_network_namespace()
        open_tap(VENUE)
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        return f"{place}{error.strerror or error}"
    return ""


def _play_lan(processes: Processes) -> socket.socket:
    """Enter a network with the venue's devices; return a socket of the network that was left."""
    from controlplane.demo.lan.tap import open_tap  # of Linux only

    outside = bind("127.0.0.1", 0)
    enter_network_namespace()
    tap_fd = open_tap(VENUE)
    processes.start("lan", "controlplane.demo.lan", str(tap_fd), inherited=[tap_fd])
    os.close(tap_fd)
    return outside
