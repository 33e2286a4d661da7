"""The parameters of a sandbox and the source of its random numbers. Equal plans give equal rows."""

import random
import uuid
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

from controlplane.figures.local_time import EPOCH_ORDINAL

ORGANIZATION: Final = "org-0001"
NAMESPACE: Final = uuid.UUID("6f1b1d1c-7a10-4e52-8f4c-4f0e9c520f7e")
"""Namespace of the UUIDs of version 5 that `Plan.id_of` returns."""
VERSION_7: Final = 7 << 76
VARIANT: Final = 2 << 62
NOISE_MAX: Final = (1 << 62) - 1
"""The bits of the version and of the variant in a UUID of version 7, and the largest value of its
last random part (RFC 9562, section 5.7)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The parameters of a sandbox.

    ``sales_per_day`` is the average number of sales at each location. ``until`` is the last day.
    ``first_day`` and ``last_day`` are numbers of days since 1970-01-01.
    ``is_awkward`` adds data that figures must handle with care, such as sales with an unknown tax,
    currencies other than AED, refunds without a date, and locations without a time zone.
    """

    seed: int = 1
    locations: int = 3
    days: int = 365
    sales_per_day: int = 60
    goods: int = 60
    until: date
    organization_id: str = ORGANIZATION
    is_awkward: bool = False

    @property
    def first_day(self) -> int:
        return self.last_day - self.days + 1

    @property
    def last_day(self) -> int:
        return self.until.toordinal() - EPOCH_ORDINAL

    @property
    def created_at(self) -> datetime:
        """Return when the merchant was created: two days before the first day, at 00:00 UTC."""
        midnight = datetime.combine(self.until, datetime.min.time(), UTC)
        return midnight - timedelta(days=self.days + 1)

    def to_json(self) -> dict[str, Any]:
        """Return the plan as it is stored with the organization."""
        return asdict(self) | {"until": self.until.isoformat()}

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> "Plan":
        # Earlier versions, which did not store ``is_awkward``, always generated awkward data.
        until = date.fromisoformat(stored["until"])
        return cls(**{"is_awkward": True} | stored | {"until": until})

    def random_for(self, *subject: object) -> random.Random:
        """Return a generator of random numbers for one subject, such as ``("good", 7)``.

        Equal organizations, seeds and subjects give equal numbers.
        """
        return random.Random(self._name(subject))  # noqa: S311 - not for secrets

    def id_of(self, *subject: object) -> uuid.UUID:
        return uuid.uuid5(NAMESPACE, self._name(subject))

    def _name(self, subject: tuple[object, ...]) -> str:
        return "/".join(map(str, (self.organization_id, self.seed, *subject)))


def id_at(created_at: datetime, rng: random.Random) -> uuid.UUID:
    """Return an id that sorts by ``created_at`` (RFC 9562, version 7).

    New rows are then added at the end of an index, which is fast.
    """
    milliseconds, noise = int(created_at.timestamp() * 1000), rng.getrandbits(74)
    high = milliseconds << 80 | VERSION_7 | (noise >> 62) << 64
    return uuid.UUID(int=high | VARIANT | noise & NOISE_MAX)
