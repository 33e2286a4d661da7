"""The numbers an operator of the service may change, with their defaults."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

HEARTBEAT_S: Final = 60
"""How often a device says that it lives, unless its configuration says otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Durations are in seconds, sizes in bytes. ``tracker_url`` and ``notify_url`` None mean no
    webhook, ``keep_reports_s`` None for ever; ``keep_audit_s`` is for how long lines of the audit
    log are kept.

    ``offline_after`` is a number of missed heartbeats; None as many as the online window has.
    ``notice_hold_s`` and ``notice_calm_s`` are for how long something lasts before it is told, and
    is gone before its end is. ``notify_secret`` signs what ``notify_url`` is sent. ``wishes_max``
    is what one organization may leave waiting.

    ``origin`` is the address at which browsers find the service, ``https://venue.example``, where a
    proxy stands in front of it; None: what they say. ``trusted_proxies`` are the addresses from
    which X-Forwarded-For is believed. The argon2 numbers are those of new hashes of
    passwords, memory in KiB.

    What has no ``organization`` in its name is one API key's, but for ``streams_max``, which is all
    streams of the process. ``processing_share`` is of one processor. A rate or share of 0 bounds
    nothing.
    """

    online_window_s: float = 180
    request_ttl_s: float = 900
    challenge_ttl_s: float = 300
    body_limit_bytes: int = 2 * 1024 * 1024
    body_timeout_s: float = 30
    rate_per_s: float = 20
    burst: int = 100
    keep_alive_s: float = 15
    look_s: float = 2.5
    key_cached_s: float = 5
    refusal_delay_s: float = 1
    calls_at_once: int = 64
    processing_share: float = 0.05
    processing_burst_s: float = 1
    organization_rate_per_s: float = 2000
    organization_burst: int = 10_000
    streams_max: int = 16_384
    organization_streams_max: int = 12_288
    key_streams_max: int = 1024
    key_consoles_max: int = 256
    open_requests_max: int = 16
    page_size: int = 20
    worker_threads: int = 8
    sweep_interval_s: float = 30
    keep_reports_s: float | None = None
    keep_audit_s: float = 400 * 86_400
    tracker_url: str | None = None
    tracker_attempts_max: int = 5
    tracker_timeout_s: float = 10
    tracker_interval_s: float = 2
    offline_after: int | None = None
    notice_hold_s: float = 300
    notice_calm_s: float = 300
    notify_url: str | None = None
    notify_secret: bytes | None = None
    wishes_max: int = 5000
    origin: str | None = None
    trusted_proxies: frozenset[str] = frozenset()
    argon2_memory_kib: int = 19 * 1024
    argon2_passes: int = 2

    @property
    def online_window(self) -> timedelta:
        return timedelta(seconds=self.online_window_s)

    @property
    def offline_window(self) -> timedelta:
        """Return how long a device may be silent before it is offline: never less than it counts as
        online."""
        missed_s = (self.offline_after or 0) * HEARTBEAT_S
        return timedelta(seconds=max(self.online_window_s, missed_s))

    @property
    def request_ttl(self) -> timedelta:
        return timedelta(seconds=self.request_ttl_s)

    @property
    def challenge_ttl(self) -> timedelta:
        return timedelta(seconds=self.challenge_ttl_s)
