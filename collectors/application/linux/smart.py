"""Reads the SMART verdict of a drive with smartctl(8).

This is for machines without UDisks2. The agent's account must be permitted to open the drive.
"""

import contextlib
import re
from collections.abc import Callable, Iterable
from typing import Final

from collectors.application.deadline import Deadline
from collectors.application.foreign_json import Object, flag, load_object, number, objects, text
from collectors.application.source import Origin, Unreadable
from collectors.shared.run_command import output_of, run_command, start_command

SMARTCTL: Final = Origin("smartctl")
_DENIED = re.compile(r"Permission denied|Operation not permitted")
_AT_REST = re.compile(r"Device is in (?:STANDBY|SLEEP|LOW[ -]POWER)\b")
_NOT_OPENED: Final = 0x02
"""Bit of the exit status: the device could not be opened."""

QueryDrive = Callable[[str, Deadline], str]
"""Returns ``good`` or ``failing`` for a device name such as ``sda``, before the deadline.

Raises Unreadable, OSError or ValueError.
"""


def read_health(device: str, deadline: Deadline) -> str:
    """Return the verdict of a drive. A drive in standby is not woken.

    Raises Unreadable, OSError or ValueError.
    """
    return parse_health(run_command(_command(device), deadline.at).data)


def start_checks(devices: Iterable[str]) -> QueryDrive:
    """Start smartctl for each drive. Return a function that waits for the result of one drive.

    smartctl must open the drive. A process that can open a drive can read all files on it, so a
    confined collector cannot open drives, and neither can the programs that it starts. Therefore
    call this before the confinement. If smartctl is not installed, the returned function raises
    NotInstalled.
    """
    running = {}
    for device in devices:
        with contextlib.suppress(OSError):
            running[device] = start_command(_command(device))

    def wait_for_health(device: str, deadline: Deadline) -> str:
        if device not in running:
            return read_health(device, deadline)
        process = running.pop(device)
        return parse_health(output_of(process, SMARTCTL.name, deadline.at).data)

    return wait_for_health


def _command(device: str) -> tuple[str, ...]:
    return (SMARTCTL.name, "--json=c", "--health", "--nocheck=standby", f"/dev/{device}")


def parse_health(data: bytes) -> str:
    """Return ``good`` or ``failing`` from the output of smartctl.

    Raises:
        Unreadable: The output has no verdict.
        ValueError: The output is malformed.
    """
    answer = load_object(data, SMARTCTL.name)
    for status in objects(answer.get("smart_status")):
        passed = flag(status, "passed")
        if passed is not None:
            return "good" if passed else "failing"
    raise _error_of(answer)


def _error_of(answer: Object) -> Unreadable:
    """Return the reason for a missing verdict, from smartctl's messages and exit status."""
    messages = " ".join(_messages(answer))
    if _DENIED.search(messages):
        reason = "the system does not permit this account to query the drive"
        return Unreadable("permission-denied", reason)
    if _AT_REST.search(messages):
        return Unreadable("not-applicable", "the drive is at rest and was not woken")
    if "Unknown USB bridge" in messages:
        reason = "the drive cannot be opened: smartctl does not know its USB bridge"
        return Unreadable("unsupported", reason)
    statuses = (number(run, "exit_status") for run in objects(answer.get("smartctl")))
    if any((status or 0) & _NOT_OPENED for status in statuses) or "open device" in messages:
        return Unreadable("collection-failed", "the drive cannot be opened")
    return Unreadable("unsupported", "the drive has no SMART verdict")


def _messages(answer: Object) -> list[str]:
    return [
        text(message, "string") or ""
        for run in objects(answer.get("smartctl"))
        for message in objects(run.get("messages", []))
    ]
