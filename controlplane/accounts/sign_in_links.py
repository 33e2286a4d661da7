"""Links that sign a browser in, each once: what they hand over is an API key.

They are kept in memory only: none outlives the process that offered it.
"""

import secrets


class SignInLinks:
    """What stands in a link is 256 random bits, so that it may be looked up as it is."""

    def __init__(self) -> None:
        self._keys: dict[str, str] = {}

    def offer(self, key: str) -> str:
        """Return the path of a link. It goes after ``#``, which no browser sends or logs."""
        code = secrets.token_urlsafe(32)
        self._keys[code] = key
        return f"/#/sign-in/{code}"

    def take(self, code: str) -> str | None:
        """Return the key, and forget it; None where the code was used or never offered."""
        return self._keys.pop(code, None)
