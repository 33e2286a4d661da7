"""The settings of the service, with their defaults."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

HEARTBEAT_S: Final = 60
"""Interval of a device's heartbeats, unless its configuration sets another one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Smtp:
    """The SMTP server for e-mail notifications. ``user`` None means no authentication."""

    host: str
    port: int
    sender: str
    user: str | None = None
    password: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings of one process. Durations are in seconds, sizes in bytes.

    A limit applies to one API key, with these exceptions: limits whose names contain
    ``organization``, and ``pending_requests_max``, apply to one organization. ``open_requests_max``
    and ``device_report_bytes`` apply to one device. ``network_awaited_max`` applies to one network.
    ``streams_max`` and ``awaited_max`` apply to the whole process. A rate, a share or a daily
    number of report bytes of 0 means no limit.

    ``open_requests_max``, ``pending_requests_max`` and the limits of report bytes are counted in
    the database, over all processes. Each process counts the other limits separately.

    Attributes:
        online_window_s: how long a device is online after a heartbeat.
        request_ttl_s: time until a request expires.
        challenge_ttl_s: time until the challenge of an enrollment expires.
        body_limit_bytes: maximum size of the body of a call.
        body_timeout_s: time in which the body of a call must arrive.
        rate_per_s: calls per second. ``burst`` is the number of calls that a key can send at once.
        keep_alive_s: interval of the comments in a stream without events.
        key_cached_s: how long the permissions of a key are cached.
        refusal_delay_s: delay of a refusal with status 429 or 503. It slows down clients that
            ignore the refusal.
        calls_at_once: maximum number of concurrent calls.
        streams_max: maximum number of open event streams. A key can have at most
            ``key_streams_max`` command streams and ``key_consoles_max`` console streams.
        open_requests_max: maximum number of open requests.
        poll_interval_s: interval at which this process polls the database for changes that other
            processes made.
        write_timeout_s: time after which a connection is closed if its client reads nothing.
        awaited_max: maximum number of connections that wait for their clients: for the head or the
            body of a call, or until the client has read a reply.
        network_awaited_max: maximum number of these connections from one network: an IPv4 address,
            or an IPv6 network of 64 bits.
        processing_share: share of one processor for parsing the large bodies that a key sends, and
            for long calls of the agent protocol. Each share has a burst: the processor time that
            can be used at once.
        call_share: share of one processor that all calls of a key may use. This limit and
            ``organization_call_share`` do not apply if ``rate_per_s`` is 0.
        organization_call_share: share of one processor that an organization's keys with a write
            grant may use together. Its read-only keys together have a second share of the same
            size.
        page_size: number of rows in a page if the caller requests no size.
        worker_threads: number of threads that run transactions.
        long_call_processes: number of processes for operations that can take long, such as figures.
        organization_long_calls_max: maximum number of calls that wait for one of these processes.
        device_report_bytes: bytes of reports that one device can send in a day (UTC).
        organization_report_bytes: bytes of reports that all devices of an organization can send in
            a day (UTC).
        keep_reports_s: how long reports are kept. None means forever.
        keep_audit_s: how long entries of the audit log are kept.
        sweep_interval_s: interval at which overdue requests expire and all devices are evaluated.
        tracker_url: webhook for messages about reports. None means no webhook.
            ``tracker_attempts_max`` is the maximum number of attempts to send one message.
        delivery_timeout_s: time after which one attempt to send a notification or such a message
            ends.
        tracker_interval_s: interval at which the due deliveries of all webhooks are sent.
        offline_after: number of missed heartbeats after which a device is offline. None means that
            it is offline at the end of the online window.
        alert_fire_after_s: how long a condition is active before its alert fires.
        alert_resolve_after_s: how long a condition is inactive before its alert resolves.
        notify_url: webhook for alerts. None means no webhook.
        notify_secret: key that signs alert notifications.
        smtp: server for e-mail notifications. None means that no e-mails are sent.
        origin: address of the service for browsers behind a proxy, such as
            ``https://venue.example``. None means that the Host header is used.
        trusted_proxies: addresses of proxies whose X-Forwarded-For header is used.
        argon2_memory_kib: memory for hashing a new password.
        argon2_passes: passes for hashing a new password.
    """

    online_window_s: float = 180
    request_ttl_s: float = 900
    challenge_ttl_s: float = 300
    body_limit_bytes: int = 2 * 1024 * 1024
    body_timeout_s: float = 30
    write_timeout_s: float = 30
    awaited_max: int = 2048
    network_awaited_max: int = 1024
    rate_per_s: float = 20
    burst: int = 100
    keep_alive_s: float = 20
    poll_interval_s: float = 2.5
    key_cached_s: float = 5
    refusal_delay_s: float = 1
    calls_at_once: int = 64
    processing_share: float = 0.05
    processing_burst_s: float = 1
    call_share: float = 0.1
    call_burst_s: float = 10
    organization_call_share: float = 0.5
    organization_call_burst_s: float = 20
    organization_rate_per_s: float = 2000
    organization_burst: int = 10_000
    streams_max: int = 50_000
    organization_streams_max: int = 37_500
    key_streams_max: int = 1024
    key_consoles_max: int = 256
    open_requests_max: int = 16
    page_size: int = 20
    worker_threads: int = 8
    long_call_processes: int = 2
    organization_long_calls_max: int = 16
    sweep_interval_s: float = 30
    device_report_bytes: int = 3_000_000_000
    organization_report_bytes: int = 12_000_000_000
    keep_reports_s: float | None = 180 * 86_400
    keep_audit_s: float = 400 * 86_400
    tracker_url: str | None = None
    tracker_attempts_max: int = 5
    delivery_timeout_s: float = 10
    tracker_interval_s: float = 2
    offline_after: int | None = None
    alert_fire_after_s: float = 300
    alert_resolve_after_s: float = 300
    notify_url: str | None = None
    notify_secret: bytes | None = None
    smtp: Smtp | None = None
    pending_requests_max: int = 5000
    origin: str | None = None
    trusted_proxies: frozenset[str] = frozenset()
    argon2_memory_kib: int = 19 * 1024
    argon2_passes: int = 2

    @property
    def online_window(self) -> timedelta:
        return timedelta(seconds=self.online_window_s)

    @property
    def offline_window(self) -> timedelta:
        """Return the time without a heartbeat after which a device is offline.

        It is never shorter than the time for which a device counts as online.
        """
        missed_s = (self.offline_after or 0) * HEARTBEAT_S
        return timedelta(seconds=max(self.online_window_s, missed_s))

    @property
    def request_ttl(self) -> timedelta:
        return timedelta(seconds=self.request_ttl_s)

    @property
    def challenge_ttl(self) -> timedelta:
        return timedelta(seconds=self.challenge_ttl_s)
