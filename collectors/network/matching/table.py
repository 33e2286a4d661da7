"""The decision table of verdicts about network printers. No I/O.

Two questions are answered first: where does the print system send a job now (`destination.py`),
and which device is the printer (`recognise.py`)? Each combination of the answers that can occur is
in exactly one row. docs/printer-verdicts.md has the same table.
"""

from dataclasses import dataclass
from typing import Literal

from collectors.network.matching.symptoms import Status

Resolution = Literal["fails", "several", "address"]
"""What the print system gets when it resolves the printer's destination. ``fails``: no address.
``several``: several devices, of which it picks any one. ``address``: one address."""

Occupant = Literal["this printer", "another printer", "another device", "unknown", "nobody"]
"""Which device is at the address: this printer, the printer of another queue, another device that
is no printer of this machine, a device that nothing identifies, or none (``nobody``)."""

PortStatus = Literal["open", "refused", "silent", "not tried"]
"""The state of the port: the result of the last connection to it."""

IdentityAt = Literal["at the address", "elsewhere", "at several", "nowhere"]
"""Where the printer's identity was seen. ``at several``: at several devices elsewhere."""

Outcome = Literal[
    "prints",
    "closed",
    "not tried",
    "moved",
    "taken",
    "off",
    "unresolved",
    "renamed",
    "several",
]
"""What is reported. ``prints``, ``closed`` and ``not tried`` describe the printer's port.
``taken``: another device has the printer's address. ``off``: nothing answers there. ``unresolved``:
the destination has no address, and the printer was seen nowhere or at several devices. ``renamed``:
the destination has no address, but the printer was seen. ``several``: see `Resolution`."""


@dataclass(frozen=True, slots=True)
class Situation:
    """One combination of the answers. ``occupant`` and ``port`` are None without an address."""

    resolution: Resolution
    occupant: Occupant | None
    port: PortStatus | None
    identity_seen: IdentityAt


@dataclass(frozen=True, slots=True)
class Row:
    """The verdict for each situation whose values are all among the values of this row.

    docs/printer-verdicts.md lists the possible causes (`causes.py`) of each verdict.
    """

    resolution: Resolution
    occupants: tuple[Occupant | None, ...]
    ports: tuple[PortStatus | None, ...]
    identity_seen: tuple[IdentityAt, ...]
    outcome: Outcome
    status: Status

    def covers(self, situation: Situation) -> bool:
        return (
            situation.resolution == self.resolution
            and situation.occupant in self.occupants
            and situation.port in self.ports
            and situation.identity_seen in self.identity_seen
        )


_NONE = (None,)
_HERE: tuple[IdentityAt, ...] = ("at the address",)
_ELSEWHERE: tuple[IdentityAt, ...] = ("elsewhere",)
_LOST: tuple[IdentityAt, ...] = ("at several", "nowhere")
_MAY_BE: tuple[Occupant, ...] = ("this printer", "unknown")
_OTHER: tuple[Occupant, ...] = ("another printer", "another device")
_NOT_THIS: tuple[Occupant, ...] = (*_OTHER, "unknown", "nobody")
_OPEN: tuple[PortStatus, ...] = ("open",)
_CLOSED: tuple[PortStatus, ...] = ("refused", "silent")
_UNTRIED: tuple[PortStatus, ...] = ("not tried",)

ROWS = (
    Row("fails", _NONE, _NONE, _ELSEWHERE, "renamed", "unreachable"),
    Row("fails", _NONE, _NONE, _LOST, "unresolved", "unreachable"),
    Row("several", _NONE, _NONE, (*_ELSEWHERE, *_LOST), "several", "unknown"),
    Row("address", _MAY_BE, _OPEN, (*_HERE, *_LOST), "prints", "reachable"),
    Row("address", _MAY_BE, _CLOSED, (*_HERE, *_LOST), "closed", "unreachable"),
    Row("address", ("this printer",), _UNTRIED, _HERE, "not tried", "unknown"),
    Row("address", _NOT_THIS, _UNTRIED, (*_ELSEWHERE, *_LOST), "not tried", "unknown"),
    Row("address", _NOT_THIS, (*_OPEN, *_CLOSED), _ELSEWHERE, "moved", "unreachable"),
    Row("address", _OTHER, _OPEN, _LOST, "taken", "unknown"),
    Row("address", _OTHER, _CLOSED, _LOST, "taken", "unreachable"),
    Row("address", ("nobody",), ("silent",), _LOST, "off", "unreachable"),
)


def decide(situation: Situation) -> Row:
    """Return the row of a situation. Raises LookupError if no row covers it."""
    for row in ROWS:
        if row.covers(situation):
            return row
    raise LookupError(f"no verdict for {situation}")
