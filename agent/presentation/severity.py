"""The severity of a finding or change.

It sets the colour of a text. The text itself always expresses the severity as well.
"""

from typing import Final, Literal

Severity = Literal["bad", "warn", "good", "muted"]

SEVERITY_ORDER: Final[tuple[Severity, ...]] = ("bad", "warn", "good", "muted")
"""Most severe first."""
