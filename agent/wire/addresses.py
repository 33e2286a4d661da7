"""Parses and checks addresses: ``host:port``, IP addresses and URLs."""

import ipaddress
from urllib.parse import urlsplit


def split_host_port(text: str) -> tuple[str, str | None]:
    """Split ``host:port`` or ``[v6]:port``. The port is None if ``text`` has no port."""
    if text.startswith("["):
        host, bracket, port_part = text[1:].partition("]")
        if bracket and ":" in host and port_part[:1] in ("", ":"):
            return host, port_part[1:] if port_part else None
        return text, None
    host, colon, port = text.partition(":")
    return (host, port) if colon and ":" not in port else (text, None)


def join_host_port(host: str, port: int) -> str:
    """Return ``192.168.1.50:9100`` or ``[fd00::50]:9100``."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def parse_ip(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return the IP address, or None if ``text`` is something else, such as a host name."""
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def is_loopback(host: str) -> bool:
    """Return whether ``host`` is this machine: ``localhost`` or a loopback address."""
    ip = parse_ip(host)
    return host == "localhost" if ip is None else ip.is_loopback


def is_loopback_url(url: str) -> bool:
    """Return whether the host of ``url`` is this machine."""
    return is_loopback(urlsplit(url).hostname or "")


def is_web_url(text: str) -> bool:
    """Return whether ``text`` is an http or https URL with a host."""
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and bool(parts.hostname)


def is_one_word(text: str) -> bool:
    """Return whether ``text`` has no blanks and no control characters."""
    return text.isprintable() and " " not in text


def has_usable_port(url: str) -> bool:
    """Return whether ``url`` can be parsed, and has no port or a port from 1 to 65535."""
    try:
        return urlsplit(url).port != 0
    except ValueError:
        return False
