"""Runs a PowerShell script and reads the sections it prints."""

import base64
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from collectors.application.deadline import Deadline
from collectors.application.foreign_json import Object, load_object, objects, text
from collectors.application.source import Fields, Origin, Reading, Unreadable, as_reading, status_of
from collectors.contract import FieldStatus
from collectors.shared.run_command import run_command
from collectors.shared.text import decode

NOT_REPORTED: Final = "Windows does not report it"
CIM: Final = Origin("CIM", NOT_REPORTED)
SCRIPT_S: Final = 8.0
"""Time limit of a script. PowerShell needs a second to start, and CIM needs several seconds to
reply on the slow processor of a till.
"""

ROWS_MAX: Final = 1024


@dataclass(frozen=True, slots=True)
class Section:
    """The result of a query: its rows, or the type of the exception that it raised."""

    rows: tuple[Object, ...] = ()
    error: str | None = None

    @property
    def first(self) -> Object:
        return self.rows[0] if self.rows else {}


Sections = dict[str, Section]


@dataclass(frozen=True, slots=True)
class FieldGroup:
    """Fields that are read from the same sections.

    If Windows refuses one of these sections, only the fields of this group are missing.
    """

    keys: tuple[str, ...]
    read: Callable[[Sections], Reading | Fields]

    def __call__(self, sections: Sections) -> Reading:
        try:
            return as_reading(self.read(sections))
        except Exception as error:  # noqa: BLE001 - any error only affects the fields of this group
            return Reading(CIM.all_absent(self.keys, *status_of(error)))


def field_group(
    *keys: str,
) -> Callable[[Callable[[Sections], Reading | Fields]], FieldGroup]:
    """Decorate a function that reads the fields ``keys`` from the sections."""
    return lambda read: FieldGroup(keys, read)


def keys_of(groups: Iterable[FieldGroup]) -> tuple[str, ...]:
    return tuple(key for group in groups for key in group.keys)


def read_groups(groups: Iterable[FieldGroup], sections: Sections) -> Reading:
    readings = [group(sections) for group in groups]
    return Reading(
        fields=tuple(field for reading in readings for field in reading.fields),
        peripherals=tuple(entry for reading in readings for entry in reading.peripherals),
        limitations=tuple(text for reading in readings for text in reading.limitations),
    )


def read_sections(script: str, deadline: Deadline) -> Sections:
    """Run a script. Raises NotInstalled, TimeoutError, another OSError, or ValueError."""
    options = ("-NoLogo", "-NoProfile", "-NonInteractive", "-ExecutionPolicy", "Bypass")
    # The script is passed in Base64, because Windows joins all arguments into one string, and
    # each program splits this string in its own way.
    encoded_script = base64.b64encode(script.encode("utf-16-le")).decode("ascii")
    output = run_command(
        ("powershell.exe", *options, "-EncodedCommand", encoded_script), deadline.at
    )
    if output.exit_code != 0:
        raise ValueError(f"PowerShell ended with {output.exit_code}")
    return parse_sections(output.data)


def parse_sections(data: bytes) -> Sections:
    """Read the output of a script. Raises ValueError if it is not a JSON object."""
    output = load_object(decode(data.removeprefix(b"\xef\xbb\xbf")), "PowerShell")
    sections = {}
    for name, section in output.items():
        if not isinstance(section, dict):
            continue
        rows = tuple(objects(section.get("ok", [])))[:ROWS_MAX]
        sections[name] = Section(rows, text(section, "error"))
    return sections


def section(sections: Sections, name: str) -> Section:
    """Return a section. Raises Unreadable if Windows refused it or it is missing."""
    result = sections.get(name)
    if result is None:
        raise Unreadable("collection-failed", f"PowerShell did not write the section {name}")
    if result.error is not None:
        is_denied = "Unauthorized" in result.error or "AccessDenied" in result.error
        status: FieldStatus = "permission-denied" if is_denied else "collection-failed"
        raise Unreadable(status, f"Windows answered with {result.error}")
    return result
