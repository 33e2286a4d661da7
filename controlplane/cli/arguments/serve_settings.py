"""The settings of `serve`, from its command line."""

import argparse
import ipaddress
from collections.abc import Sequence
from urllib.parse import urlsplit

from agent.wire.addresses import has_usable_port, is_web_url
from controlplane.client.errors import UsageError
from controlplane.settings import Settings, Smtp

ORGANIZATION_RATE_FACTOR = 100
"""The rate limit of an organization is this multiple of the rate limit of one API key."""
SECRET_MAX = 4096
"""Maximum number of characters that are used from a file with a password or secret."""


def settings_of(options: argparse.Namespace) -> Settings:
    """Return the settings of `serve`. Raises UsageError."""
    for name, url in (("tracker", options.tracker_url), ("notify", options.notify_url)):
        if url is not None and not is_web_url(url):
            raise UsageError(f"--{name}-url {url!r} is not an http or https address")
    return Settings(
        origin=_origin(options.origin),
        trusted_proxies=_proxies(options.trusted_proxy),
        online_window_s=options.online_window,
        request_ttl_s=options.request_ttl,
        challenge_ttl_s=options.challenge_ttl,
        body_limit_bytes=options.body_limit,
        rate_per_s=options.rate,
        burst=options.burst,
        device_report_bytes=options.device_report_bytes,
        organization_report_bytes=options.organization_report_bytes,
        keep_reports_s=options.keep_reports,
        keep_audit_s=options.keep_audit,
        organization_rate_per_s=options.rate * ORGANIZATION_RATE_FACTOR,
        organization_burst=options.burst * ORGANIZATION_RATE_FACTOR,
        offline_after=options.offline_after,
        alert_fire_after_s=options.notify_after,
        alert_resolve_after_s=options.notify_end_after,
        notify_url=options.notify_url,
        notify_secret=_secret(options),
        smtp=_smtp(options),
        tracker_url=options.tracker_url,
        tracker_attempts_max=options.tracker_attempts,
    )


def _origin(text: str | None) -> str | None:
    """Return the origin as browsers send it (RFC 6454, 6.2)."""
    if text is None:
        return None
    parts = urlsplit(text) if is_web_url(text) and has_usable_port(text) else None
    rest = "" if parts is None else f"{parts.path.removeprefix('/')}{parts.query}{parts.fragment}"
    if parts is None or not parts.netloc or rest or "@" in parts.netloc:
        raise UsageError(f"--origin {text!r} is not an origin such as https://venue.example")
    default = {"http": ":80", "https": ":443"}[parts.scheme]
    return f"{parts.scheme}://{parts.netloc.lower().removesuffix(default)}"


def _proxies(addresses: Sequence[str]) -> frozenset[str]:
    try:
        return frozenset(str(ipaddress.ip_address(address)) for address in addresses)
    except ValueError as error:
        raise UsageError(f"--trusted-proxy requires an IP address: {error}") from error


def _smtp(options: argparse.Namespace) -> Smtp | None:
    user, file = options.smtp_user, options.smtp_password_file
    if options.smtp is None:
        if any((options.smtp_from, user, file)):
            raise UsageError("--smtp-from, --smtp-user and --smtp-password-file require --smtp")
        return None
    if (user is None) != (file is None):
        raise UsageError("--smtp-user and --smtp-password-file require each other")
    from controlplane.accounts.users import require_email  # its import takes a second

    try:
        sender = require_email(options.smtp_from or "")
    except ValueError as error:
        raise UsageError("--smtp requires --smtp-from with an e-mail address") from error
    try:
        password = None if file is None else file.read_text(encoding="utf-8").strip()[:SECRET_MAX]
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"cannot use the password in {file}: {reason}") from error
    return Smtp(
        host=options.smtp[0], port=options.smtp[1], sender=sender, user=user, password=password
    )


def _secret(options: argparse.Namespace) -> bytes | None:
    file = options.notify_secret_file
    if file is None:
        return None
    if options.notify_url is None:
        raise UsageError("--notify-secret-file requires --notify-url")
    from controlplane.web.webhooks.alerts import read_secret

    try:
        with file.open(encoding="utf-8") as stream:
            return read_secret(stream.read(SECRET_MAX))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"cannot use the secret in {file}: {reason}") from error
