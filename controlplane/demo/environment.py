"""Sets up the network in which the demo runs.

The network is a simulated LAN in a network namespace, or simulated queues on loopback, or the
machine's real networks.
"""

import ctypes
import os
import socket
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from controlplane.demo.processes import Processes
from controlplane.demo.venue import VENUE
from controlplane.server import bind

_CLONE_NEWUSER: Final = 0x10000000  # sched.h
_CLONE_NEWNET: Final = 0x40000000


@dataclass(frozen=True, slots=True)
class Environment:
    """The environment of the service and the agent.

    Args:
        description: What is simulated, for the user.
        network: The content of the ``[network]`` section of the agent's configuration.
        variables: Environment variables that the demo sets for the agent.
        outside_sockets: A socket that is bound in the machine's own network, where the browser
            runs. Empty unless the demo's process entered a network namespace. The caller closes the
            socket.
    """

    description: str
    network: str = ""
    variables: dict[str, str] = field(default_factory=dict)
    outside_sockets: tuple[socket.socket, ...] = ()


_REAL: Final = Environment("This demo scans this machine and its private networks (--lan).")
_ON_LAN: Final = (
    "This demo simulates a venue: {devices} devices on a LAN behind a TAP device, in a network"
    " namespace of its own. Nothing leaves this machine."
)
_ON_LOOPBACK: Final = (
    "This demo simulates a till{queues} on loopback, and scans nothing else. It cannot simulate a"
    " LAN here: {reason}."
)


def set_up_environment(processes: Processes, *, is_real: bool) -> Environment:
    """Start the simulation. It ends together with ``processes``. Raises OSError.

    If ``is_real``, nothing is simulated, and the agent uses the machine's real networks. To
    simulate a LAN, this process enters a network namespace and stays in it.
    """
    if is_real:
        return _REAL
    reason = reason_against_lan()
    outside_sockets = () if reason else (_start_lan(processes),)
    variables = _start_spooler(processes, "loopback" if reason else "lan")
    if reason:
        queues = " with two print queues" if variables else ""
        description = _ON_LOOPBACK.format(queues=queues, reason=reason)
        return Environment(description, "device_only = true\n", variables)
    description = _ON_LAN.format(devices=len(VENUE.hosts))
    return Environment(description, variables=variables, outside_sockets=outside_sockets)


def reason_against_lan() -> str | None:
    """Return why a LAN cannot be simulated here, or None if it can.

    A child process tries to create a LAN, because a process cannot leave a network namespace.
    """
    if sys.platform != "linux":
        return f"{sys.platform} has no network namespaces"
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, _try_lan().encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, encoding="utf-8") as output:
        reason = output.read()
    os.waitpid(child, 0)
    return reason or None


def enter_network_namespace() -> None:
    """Move this process from the machine's network to an empty one, for good. Raises OSError.

    If the kernel does not permit this, the process also enters a user namespace, in which it has
    the required right. The process keeps its user id, and the programs that it starts get no
    additional rights. The process must not have other threads.
    """
    if sys.platform != "linux":
        raise OSError(f"{sys.platform} has no network namespaces")
    uid, gid = os.geteuid(), os.getegid()
    try:
        _unshare(_CLONE_NEWNET)
    except PermissionError:
        _unshare(_CLONE_NEWUSER | _CLONE_NEWNET)
        Path("/proc/self/setgroups").write_text("deny", "ascii")
        Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1", "ascii")
        Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1", "ascii")


def _unshare(flags: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(flags) == -1:
        number = ctypes.get_errno()
        raise OSError(number, f"no network namespace: {os.strerror(number)}")


def _start_spooler(processes: Processes, queues: str) -> dict[str, str]:
    """Start the spooler and return the environment variables that point the agent to it.

    ``queues`` is ``lan`` or ``loopback``: where the printers of the simulated queues are.
    Windows has no CUPS, so nothing is started there.
    """
    if sys.platform == "win32":
        return {}
    with bind("127.0.0.1", 0) as listener:
        listener.listen()
        descriptor = listener.fileno()
        command = ("controlplane.demo.spooler", queues, str(descriptor))
        processes.start("spooler", *command, inherited_files=[descriptor])
        return {"CUPS_SERVER": f"127.0.0.1:{listener.getsockname()[1]}"}


def _try_lan() -> str:
    """Create a LAN in this process. Return why this failed, or "" if it succeeded."""
    from controlplane.demo.lan.tap import open_tap  # Linux only

    try:
        enter_network_namespace()
        open_tap(VENUE)
    except OSError as error:
        path = f"{error.filename}: " if error.filename else ""
        return f"{path}{error.strerror or error}"
    return ""


def _start_lan(processes: Processes) -> socket.socket:
    """Enter a network namespace and simulate the venue's devices there.

    Returns:
        A socket in the machine's own network. It was bound before the process left this network.
    """
    from controlplane.demo.lan.tap import open_tap  # Linux only

    outside_socket = bind("127.0.0.1", 0)
    enter_network_namespace()
    tap_fd = open_tap(VENUE)
    processes.start("lan", "controlplane.demo.lan", str(tap_fd), inherited_files=[tap_fd])
    os.close(tap_fd)
    return outside_socket
