"""The lines about watched devices among the limitations of a network report.

The payload of version 2 has no field for watched devices. So the agent writes one line for each
device into ``limitations`` and ``networkMap.limitations``. The code that shows a report parses
these lines.
"""

import re
from dataclasses import dataclass
from typing import Final, Literal

WatchedState = Literal["present", "moved", "absent", "replaced", "unknown"]
KIND_WORDS: Final = {
    "payment-terminal": "payment terminal",
    "kitchen-display": "kitchen display",
    "scale": "scale",
    "cash-drawer": "cash drawer",
    "other": "device",
}
"""The word that a line uses for each ``kind`` of the configuration."""
NAME_MAX: Final = 200

_HEAD: Final = rf'Watched (?P<kind>{"|".join(KIND_WORDS.values())}) "(?P<name>.+)": '
_AT: Final = r"(?P<address>[\d.]+)"
_OTHER: Final = r"(?P<other_mac>[\da-f:]{17})"
_FORMS: Final[dict[WatchedState, str]] = {
    "present": f"present at {_AT}",
    "moved": rf"moved from (?P<moved_from>[\d.]+) to {_AT}(?:; {_OTHER} answers there now)?",
    "absent": f"no answer(?: from {_AT})?",
    "replaced": f"{_OTHER} answers at {_AT}",
    "unknown": f"not checked(?: at {_AT})?: (?P<reason>.*)",
}
_PATTERNS: Final = {state: re.compile(_HEAD + form, re.DOTALL) for state, form in _FORMS.items()}


@dataclass(frozen=True, slots=True)
class WatchedLine:
    """The state of a watched device.

    ``kind`` is one of the words in `KIND_WORDS`. ``address`` is where the device is, or else where
    it is expected. ``moved_from`` is the expected address of a device that has moved. ``other_mac``
    is the MAC of a different device that answers at the expected address. ``reason`` is why the
    device was not checked.
    """

    name: str
    kind: str
    state: WatchedState
    address: str | None = None
    moved_from: str | None = None
    other_mac: str | None = None
    reason: str | None = None

    @property
    def subject(self) -> str:
        """The device as the subject of a sentence: ``The scale Deli``.

        The kind is left out if the name contains the kind's last word: ``Bar terminal``.
        """
        word = self.kind.rpartition(" ")[2]
        return self.name if word in self.name.casefold() else f"The {self.kind} {self.name}"

    def __str__(self) -> str:
        at = f" at {self.address}" if self.address else ""
        other_device = f"; {self.other_mac} answers there now" if self.other_mac else ""
        words = {
            "present": f"present{at}",
            "moved": f"moved from {self.moved_from} to {self.address}{other_device}",
            "absent": f"no answer from {self.address}" if self.address else "no answer",
            "replaced": f"{self.other_mac} answers{at}",
            "unknown": f"not checked{at}: {self.reason or ''}",
        }[self.state]
        return f'Watched {self.kind} "{self.name[:NAME_MAX]}": {words}'


def parse_watched(line: str) -> WatchedLine | None:
    """Parse a line about a watched device. Returns None for any other limitation."""
    for state, pattern in _PATTERNS.items():
        if match := pattern.fullmatch(line):
            return WatchedLine(state=state, **match.groupdict())
    return None
