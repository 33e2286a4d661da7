"""How a thing is coloured. Its words say the same: colour is never the only sign."""

from typing import Literal

Tone = Literal["good", "warn", "bad", "muted"]
