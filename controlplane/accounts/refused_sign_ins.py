"""Limits the audit entries of refused sign-ins, because strangers cause them.

Each account has its own limit. All e-mail addresses without an account share one limit, because a
stranger can invent any number of such addresses. Attempts without an entry are counted in the next
entry.
"""

from collections import Counter
from collections.abc import Callable
from typing import Final
from uuid import UUID

from controlplane.operation.fairness import RateLimit

ENTRIES_AT_ONCE: Final = 20
"""Number of entries that can be written for an account in quick succession."""
ENTRY_EVERY_S: Final = 3600
"""Seconds until an account that has used up `ENTRIES_AT_ONCE` can get one more entry."""


class RefusedSignIns:
    """Decides which refused sign-ins get an entry. Use it from the event loop only.

    ``monotonic`` returns seconds.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._limit = RateLimit(1 / ENTRY_EVERY_S, ENTRIES_AT_ONCE, monotonic)
        self._left_out: Counter[UUID | None] = Counter()

    def count_and_describe(self, user_id: UUID | None, reason: str) -> str | None:
        """Count an attempt. Return the text of its entry, or None if it gets no entry.

        ``user_id`` is None if the e-mail address has no account.
        """
        wait_s = self._limit.take(user_id)
        if wait_s > 0:
            self._left_out[user_id] += 1
            return None
        count = self._left_out.pop(user_id, 0)
        return f"{reason}; earlier attempts without an entry: {count}" if count else reason
