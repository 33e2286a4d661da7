"""The severity of a finding or change.

It sets the colour of a text. The text itself always expresses the severity as well.
"""

from typing import Final, Literal

Severity = Literal["bad", "warn", "good", "muted"]

SEVERITY_ORDER: Final[tuple[Severity, ...]] = ("bad", "warn", "good", "muted")
"""Most severe first."""
STYLES: Final[dict[Severity, str]] = {
    "good": "green",
    "warn": "yellow",
    "bad": "bold red",
    "muted": "dim",
}
"""The style of a text on a terminal, as rich names it, by severity."""
