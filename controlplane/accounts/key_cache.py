"""API keys that were recognised before, so that not every call asks the database.

What is kept holds for ``cached_s`` after the last look at which keys are revoked, and at whose
owners may do something else now: one look for all of them, beside the calls. Where that look fails,
every call asks for itself.
"""

import math
from collections import OrderedDict
from collections.abc import Callable, Container, Mapping
from datetime import datetime, timedelta
from uuid import UUID

from controlplane.operation.caller import Caller
from controlplane.operation.permissions import hash_key

KEYS_MAX = 65_536
"""Those recognised first are forgotten beyond this, and cost a question to the database."""
USE_NOTED_EVERY = timedelta(minutes=1)
"""A use is written down at most this often: it must not make each reading a writing."""


class KeyCache:
    """Used from the event loop only. ``monotonic`` returns seconds."""

    def __init__(self, cached_s: float, monotonic: Callable[[], float]) -> None:
        self._cached_s = cached_s
        self._monotonic = monotonic
        # By hash: the keys themselves are kept nowhere. In the order in which they came: to note
        # each use would cost every call, and what is forgotten too early costs one question.
        self._found: OrderedDict[str, Caller] = OrderedDict()
        self._owners: set[UUID] = set()
        self._holds_until_s = -math.inf
        self._noted: dict[UUID, datetime] = {}
        self._uses: dict[UUID, datetime] = {}

    def find(self, key: str) -> Caller | None:
        return self._found.get(hash_key(key)) if self._monotonic() < self._holds_until_s else None

    def keep(self, key: str, caller: Caller) -> None:
        self._found[hash_key(key)] = caller
        if caller.owner_id is not None:
            self._owners.add(caller.owner_id)
        while len(self._found) > KEYS_MAX:
            self._found.popitem(last=False)

    def now_s(self) -> float:
        """When a look begins, for `forget`."""
        return self._monotonic()

    def owners(self) -> frozenset[UUID]:
        """Return the users as whom keys act that are kept."""
        return frozenset(self._owners)

    def forget(
        self, revoked: Container[UUID], versions: Mapping[UUID, int], looked_at_s: float
    ) -> None:
        """Keep all but these, which were all that were revoked at that moment, and those whose
        owner's permissions were another version then."""
        gone = [key for key, caller in self._found.items() if caller.key_id in revoked]
        if self._owners:
            gone += [key for key, caller in self._found.items() if _is_stale(caller, versions)]
            self._owners &= versions.keys()
        for key in gone:
            self._found.pop(key, None)
        self._holds_until_s = looked_at_s + self._cached_s

    def note_use(self, key_id: UUID, now: datetime) -> None:
        noted = self._noted.get(key_id)
        if noted is None or now - noted >= USE_NOTED_EVERY:
            self._noted[key_id] = self._uses[key_id] = now

    def take_uses(self) -> dict[UUID, datetime]:
        """Return the uses that are to be written down, once each."""
        uses, self._uses = self._uses, {}
        if len(self._noted) > KEYS_MAX:
            self._noted.clear()
        return uses


def _is_stale(caller: Caller, versions: Mapping[UUID, int]) -> bool:
    owner = caller.owner_id
    return owner is not None and versions.get(owner) != caller.permissions_version
