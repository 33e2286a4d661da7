"""Runs sw_vers, scutil, networksetup and launchctl of macOS, and parses their output."""

import re
from typing import Final

from collectors.application.deadline import Deadline
from collectors.shared.host.resolv_conf import name_servers
from collectors.shared.run_command import run_command
from collectors.shared.text import decode

_SCOPED: Final = "\nDNS configuration (for "
"""A section with this beginning has resolvers for only one interface or service."""
_RESOLVER = re.compile(r"^resolver #\d+$", re.MULTILINE)
_SUPPLEMENTAL = re.compile(r"^\s*domain\s*:|^\s*flags\s*:.*\bSupplemental\b", re.MULTILINE)
"""Marks a resolver for the names of certain domains only, for example those of a VPN."""
_NAME_SERVER = re.compile(r"^\s*nameserver\[\d+\]\s*:\s*(\S{1,64})\s*$", re.MULTILINE)
_PORT = re.compile(r"^Hardware Port: (.{1,64})\nDevice: (\S{1,32})$", re.MULTILINE)
_TYPES: Final = (
    ("wi-fi", "wifi"),
    ("wlan", "wifi"),  # in German
    ("ethernet", "ethernet"),
    ("lan", "ethernet"),
    ("thunderbolt bridge", "bridge"),
    ("bluetooth", "bluetooth"),
    ("usb", "ethernet"),
)
"""Parts of the names of ports, each with the type of the interface. The first match counts."""


def run_program(*arguments: str, deadline: Deadline) -> str:
    """Return the output of a program as text. Raises ValueError if it fails."""
    output = run_command(arguments, deadline.at)
    if output.exit_code != 0:
        raise ValueError(f"{arguments[0]} ended with {output.exit_code}")
    return decode(output.data)


def parse_sw_vers(text: str) -> dict[str, str]:
    """Return the values of lines such as ``ProductName: macOS``, by name (sw_vers(1))."""
    pairs = (line.partition(":") for line in text.splitlines()[:16])
    return {name.strip(): value.strip() for name, colon, value in pairs if colon}


def parse_name_servers(text: str) -> tuple[str, ...]:
    """Return the name servers that macOS queries for any name, from the output of `scutil --dns`.

    Name servers for certain domains, interfaces or services are left out. Each of the remaining
    name servers is returned once, in the order of the output.
    """
    resolvers = _RESOLVER.split(text.partition(_SCOPED)[0])
    return name_servers(
        server
        for resolver in resolvers
        if not _SUPPLEMENTAL.search(resolver)
        for server in _NAME_SERVER.findall(resolver)
    )


def parse_hardware_ports(text: str) -> dict[str, str]:
    """Return the type of each interface in the output of `networksetup -listallhardwareports`."""
    return {device: _type(port) for port, device in _PORT.findall(text)}


def parse_launchctl(text: str) -> dict[str, bool]:
    """Return whether each job in the output of `launchctl list` is running, by label.

    A line has three columns: the process id or ``-``, the status, and the label.
    """
    jobs = {}
    for line in text.splitlines()[:4096]:
        words = line.split("\t") if "\t" in line else line.split()
        if len(words) == 3 and words[0] != "PID":  # not the heading
            jobs[words[2].strip()] = words[0].strip().isdigit()
    return jobs


def _type(port: str) -> str:
    name = port.lower()
    return next((kind for word, kind in _TYPES if word in name), "other")
