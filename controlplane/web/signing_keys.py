"""The keys that sign access tokens and cursors, as of the last few seconds."""

from typing import TYPE_CHECKING

from controlplane.retail.credentials import signing_keys
from controlplane.retail.credentials.signing_keys import SigningKeys

if TYPE_CHECKING:
    from controlplane.web.core import Core


class CachedSigningKeys:
    """Used from the event loop only."""

    def __init__(self, core: "Core") -> None:
        self._core = core
        self._keys: SigningKeys | None = None
        self._read_at_s = 0.0

    async def get(self) -> SigningKeys:
        """Return the keys in use. Creates them at the first call."""
        now_s = self._core.monotonic()
        if self._keys is None or now_s - self._read_at_s >= self._core.settings.key_cached_s:
            keys = await self._core.read(signing_keys.load)
            if keys is None:
                now = self._core.clock()
                keys = await self._core.write(lambda session: signing_keys.create(session, now))
            self._keys, self._read_at_s = keys, now_s
        return self._keys
