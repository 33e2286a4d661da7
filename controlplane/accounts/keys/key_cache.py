"""A cache of verified API keys, so that not every call reads the database.

A periodic poll finds revoked keys and owners with changed permissions. Entries are valid for
``cached_s`` after the start of the last successful poll. After this time, every call reads the
database.
"""

import math
from collections import OrderedDict
from collections.abc import Callable, Container, Mapping
from datetime import datetime, timedelta
from uuid import UUID

from controlplane.operation.caller import Caller
from controlplane.operation.permissions import hash_secret

KEYS_MAX = 65_536
"""Maximum number of keys. If there are more, the oldest entries are removed."""
USE_NOTED_EVERY = timedelta(minutes=1)
"""Minimum time between stored uses of a key, so that not every call writes to the database."""


class KeyCache:
    """The cache. Use it only from the event loop. ``monotonic`` returns seconds."""

    def __init__(self, cached_s: float, monotonic: Callable[[], float]) -> None:
        self._cached_s = cached_s
        self._monotonic = monotonic
        # Maps the hash of a key to its caller: keys themselves are not stored. Entries are ordered
        # by insertion, not by last use, because an update of the order would slow down every call.
        # If a key in use is removed, its next call reads the database once.
        self._callers: OrderedDict[str, Caller] = OrderedDict()
        self._owners: set[UUID] = set()
        self._valid_until_s = -math.inf
        self._last_noted: dict[UUID, datetime] = {}
        self._unstored_uses: dict[UUID, datetime] = {}

    def find(self, key: str) -> Caller | None:
        is_valid = self._monotonic() < self._valid_until_s
        return self._callers.get(hash_secret(key)) if is_valid else None

    def keep(self, key: str, caller: Caller) -> None:
        self._callers[hash_secret(key)] = caller
        if caller.owner_id is not None:
            self._owners.add(caller.owner_id)
        while len(self._callers) > KEYS_MAX:
            self._callers.popitem(last=False)

    def now_s(self) -> float:
        """Return the monotonic time in seconds. A poll passes its start time to `apply_poll`."""
        return self._monotonic()

    def owners(self) -> frozenset[UUID]:
        """Return the owners of the cached keys."""
        return frozenset(self._owners)

    def apply_poll(
        self, revoked: Container[UUID], versions: Mapping[UUID, int], polled_at_s: float
    ) -> None:
        """Remove revoked keys, and keys whose owner's permissions changed.

        The entries are then valid until ``cached_s`` after the beginning of the poll.

        Args:
            revoked: the ids of all revoked keys at the time of the poll.
            versions: permission versions of the owners at that time.
            polled_at_s: when the poll began.
        """
        outdated_keys = [key for key, caller in self._callers.items() if caller.key_id in revoked]
        if self._owners:
            outdated_keys += [
                key for key, caller in self._callers.items() if _is_stale(caller, versions)
            ]
            self._owners &= versions.keys()
        for key in outdated_keys:
            self._callers.pop(key, None)
        self._valid_until_s = polled_at_s + self._cached_s

    def note_use(self, key_id: UUID, now: datetime) -> None:
        noted_at = self._last_noted.get(key_id)
        if noted_at is None or now - noted_at >= USE_NOTED_EVERY:
            self._last_noted[key_id] = self._unstored_uses[key_id] = now

    def take_uses(self) -> dict[UUID, datetime]:
        """Return the uses that are not stored yet, and forget them."""
        uses, self._unstored_uses = self._unstored_uses, {}
        if len(self._last_noted) > KEYS_MAX:
            self._last_noted.clear()
        return uses


def _is_stale(caller: Caller, versions: Mapping[UUID, int]) -> bool:
    owner = caller.owner_id
    return owner is not None and versions.get(owner) != caller.permissions_version
