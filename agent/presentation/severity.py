"""The severity of a finding or change. It sets the colour, and the text always expresses it too."""

from typing import Final, Literal

Severity = Literal["bad", "warn", "good", "muted"]

SEVERITY_ORDER: Final[tuple[Severity, ...]] = ("bad", "warn", "good", "muted")
"""Most severe first."""
