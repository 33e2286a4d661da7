"""Links that work once and sign in a browser with an API key. They are stored in memory only."""

import secrets


class SignInLinks:
    """The API key of each link, by the code in the link. A code has 256 random bits."""

    def __init__(self) -> None:
        self._keys: dict[str, str] = {}

    def offer(self, key: str) -> str:
        """Return the path of a link.

        The code follows ``#``, so that the browser does not send it when it loads the page.
        """
        code = secrets.token_urlsafe(32)
        self._keys[code] = key
        return f"/#/sign-in/{code}"

    def take(self, code: str) -> str | None:
        """Return the key of a code and forget it. Return None if the code is unknown or used."""
        return self._keys.pop(code, None)
