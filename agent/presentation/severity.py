"""How severe something is. Displays show it as a colour, and the text always says the same."""

from typing import Final, Literal

Severity = Literal["bad", "warn", "good", "muted"]

SEVERITY_ORDER: Final[tuple[Severity, ...]] = ("bad", "warn", "good", "muted")
"""Most severe first."""
