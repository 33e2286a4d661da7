"""SMART's verdict by smartctl(8), for machines without UDisks2 whose agent may open the drive."""

from typing import Final

from collectors.application.command import run_command
from collectors.application.deadline import Deadline
from collectors.application.foreign_json import Object, flag, load_object, objects, text
from collectors.application.source import Unreadable

SOURCE: Final = "smartctl"


def read_health(device: str, deadline: Deadline) -> str:
    """``good`` or ``failing`` of ``sda``; a drive at rest is not woken. Raises Unreadable."""
    options = ("--json=c", "--health", "--nocheck=standby")
    output = run_command((SOURCE, *options, f"/dev/{device}"), deadline)
    try:
        return parse_health(output.data)
    except ValueError as error:
        raise Unreadable("collection-failed", str(error)) from None


def parse_health(data: bytes) -> str:
    """Raises Unreadable for a drive that gives no verdict, ValueError for what is no answer."""
    told = load_object(data, SOURCE)
    for status in objects(told.get("smart_status")):
        passed = flag(status, "passed")
        if passed is not None:
            return "good" if passed else "failing"
    said = " ".join(_messages(told))
    if "Permission denied" in said:
        raise Unreadable("permission-denied", "the system does not let this account ask the drive")
    if "STANDBY" in said:
        raise Unreadable("not-applicable", "the drive is at rest and was not woken")
    raise Unreadable("unsupported", "the drive has no SMART verdict")


def _messages(told: Object) -> list[str]:
    return [
        text(message, "string") or ""
        for run in objects(told.get("smartctl"))
        for message in objects(run.get("messages", []))
    ]
