"""Checks of the way to the service, from the name to the certificate."""

import errno
import ipaddress
import socket
import ssl
import urllib.request
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from agent.doctor.certificate import Certificate, parse_certificate
from agent.doctor.check import Finding, fail, ok, skipped, warn
from agent.doctor.context import Context
from agent.doctor.probe import (
    ProxyRefused,
    ask_for_head,
    ask_for_tunnel,
    connect,
    start_tls,
    unverified,
    way_to,
)
from agent.doctor.route import Route, route_of
from agent.presentation.humanize import seconds_in_words
from agent.rules.replies import http_date

CLOCK_WARN_S: Final = 30.0
CLOCK_FAIL_S: Final = 300.0
EXPIRES_SOON: Final = timedelta(days=14)
BREAKS_FORM: Final = range(80, 94)
"""What OpenSSL finds only when it is strict (X509_V_FLAG_X509_STRICT, which Python 3.13 sets):
X509_V_ERR_PATHLEN_INVALID_FOR_NON_CA to X509_V_ERR_EXTENSIONS_REQUIRE_VERSION_3."""
PROXY_AUTHENTICATION: Final = 407

_SET_CLOCK: Final = "set the clock: `timedatectl set-ntp true`, or this system's equivalent"
_NO_WAY: Final = frozenset({errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN})
_LINK: Final = ("interfaces", "gateway")


def route(evidence: Context) -> Finding:
    service = evidence.config.service if evidence.config else None
    if service is None:
        return fail("no service is configured", "set service.base_url")
    try:
        found = route_of(
            service.base_url, service.proxy, evidence.environment, _system_proxies(evidence)
        )
    except ValueError as error:
        return fail(str(error), "correct service.proxy or the HTTPS_PROXY variable")
    evidence.route = found
    if found.proxy is None:
        return ok(f"straight to {found.host}:{found.port}: {found.why}")
    return ok(f"to {found.host}:{found.port} by the proxy {found.proxy} ({found.why})")


def name_resolution(evidence: Context) -> Finding:
    way = _route(evidence)
    try:
        ipaddress.ip_address(way.first_host)
    except ValueError:
        pass
    else:
        return ok(f"{way.first_host} is an address")
    try:
        found = socket.getaddrinfo(way.first_host, way.first_port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        return fail(
            f"{way.first_host} cannot be resolved: {_words(error)}{_servers()}",
            "check the DNS servers of this machine and the spelling of "
            + ("the proxy" if way.proxy else "service.base_url"),
            explained_by=_LINK,
        )
    addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
    return ok(f"{way.first_host} is {', '.join(addresses[:3])}")


def connection(evidence: Context) -> Finding:
    way = _route(evidence)
    place = f"{way.first_host}:{way.first_port}"
    what = "the proxy" if way.proxy else "the service"
    try:
        with connect(way.first_host, way.first_port) as sock:
            local = sock.getsockname()[0]
    except ConnectionRefusedError:
        setting = f"{way.why}" if way.proxy else "service.base_url"
        return fail(
            f"{place} refuses the connection",
            f"check {setting}; {what} may be down, or a firewall rejects it",
        )
    except OSError as error:
        explained_by = _LINK if error.errno in _NO_WAY else ("gateway",)
        return fail(
            f"no connection to {place}: {_words(error)}",
            f"check the network and that no firewall drops connections to {what}",
            explained_by=explained_by,
        )
    return ok(f"{place}, from {local}")


def proxy(evidence: Context) -> Finding:
    way = _route(evidence)
    if way.proxy is None:
        return skipped("none is used")
    if not way.is_tls or way.proxy.scheme not in {"http", "https"}:
        return skipped(f"no tunnel is asked of {way.proxy}")
    try:
        with connect(way.proxy.host, way.proxy.port) as sock:
            ask_for_tunnel(sock, way.proxy, way)
    except ProxyRefused as error:
        if error.status == PROXY_AUTHENTICATION:
            fix = "put user and password into the proxy's URL: http://user:password@host:port"
        else:
            fix = f"have the proxy allow {way.host}:{way.port}, or correct {way.why}"
        return fail(f"the proxy {way.proxy} refuses: {error}", fix)
    except OSError as error:
        return fail(f"the proxy {way.proxy} breaks off: {_words(error)}", f"check {way.why}")
    return ok(f"{way.proxy} opens the tunnel")


def clock(evidence: Context) -> Finding:
    """Compare this machine's clock with the Date of a reply (RFC 9110, section 6.6.1)."""
    way = _route(evidence)
    try:
        with way_to(way) as sock:
            if way.is_tls:
                with start_tls(sock, way.host, unverified()) as secured:
                    head = ask_for_head(secured, way)
            else:
                head = ask_for_head(sock, way)
    except (OSError, ProxyRefused) as error:
        return skipped(f"the service told no time: {_words(error)}")
    now = datetime.now(UTC)
    service_time = http_date(head.headers.get("date")) if head else None
    if service_time is None:
        return skipped("the service told no time")
    evidence.service_time = service_time
    return judge_clock(now, service_time)


def judge_clock(now: datetime, service_time: datetime) -> Finding:
    """Judge the distance of two aware moments taken together."""
    ahead_s = (now - service_time).total_seconds()
    distance = seconds_in_words(round(abs(ahead_s), -1))  # a Date has whole seconds only
    text = f"{distance} {'ahead of' if ahead_s > 0 else 'behind'} the service's"
    if abs(ahead_s) > CLOCK_FAIL_S:
        return fail(f"this machine's clock is {text}", _SET_CLOCK)
    if abs(ahead_s) > CLOCK_WARN_S:
        return warn(f"this machine's clock is {text}", _SET_CLOCK, may_cause=True)
    return ok("agrees with the service's")


def certificate(evidence: Context) -> Finding:
    way = _route(evidence)
    if not way.is_tls:
        return skipped("plain http on loopback has none")
    context = ssl.create_default_context()
    ca_file = evidence.config.service.ca_file if evidence.config else ""
    if ca_file:
        context.load_verify_locations(ca_file)
    try:
        with way_to(way) as sock, start_tls(sock, way.host, context) as secured:
            return _judge_trusted(_read_certificate(secured), secured.version(), ca_file)
    except ssl.SSLCertVerificationError as error:
        breaks_form = error.verify_code in BREAKS_FORM
        return judge_untrusted(
            error.verify_message, _look_at(way), datetime.now(UTC), breaks_form=breaks_form
        )
    except (OSError, ProxyRefused) as error:
        return fail(
            f"no TLS with {way.host}:{way.port}: {_words(error)}",
            "check service.base_url; a firewall or proxy may cut TLS, or the port has none",
        )


def _judge_trusted(found: Certificate | None, tls: str | None, ca_file: str) -> Finding:
    if found is None:
        return ok(f"trusted, {tls}")
    text = f"issued by {found.issuer}, good until {found.not_after:%Y-%m-%d}, {tls}"
    if found.not_after - datetime.now(UTC) < EXPIRES_SOON:
        return warn(f"{text}: it expires soon", "tell whoever runs the service")
    if found.inspector:
        return warn(
            f"{text}: TLS is inspected on the way",
            "have the service's address exempted if it fails",
        )
    return ok(text + (" (service.ca_file is added)" if ca_file else ""))


def judge_untrusted(
    why: str, found: Certificate | None, now: datetime, *, breaks_form: bool = False
) -> Finding:
    """Say what is wrong with a certificate that was not accepted, and what to do.

    ``breaks_form``: its authority may be known, but a certificate is not made as it must be.
    """
    if found is None:
        return fail(f"not trusted: {why}", "check service.base_url and service.ca_file")
    if found.not_after < now:
        return fail(
            f"it expired on {found.not_after:%Y-%m-%d} (issued by {found.issuer})",
            "have the service's certificate renewed; check this machine's clock",
            explained_by=("clock",),
        )
    if found.not_before > now:
        return fail(
            f"it is not valid before {found.not_before:%Y-%m-%d} (issued by {found.issuer})",
            "check this machine's clock",
            explained_by=("clock",),
        )
    if "mismatch" in why.lower() or "not valid for" in why.lower():
        return fail(
            f"it is for {found.subject}, not for this address ({why})",
            "correct service.base_url; something on the way may answer in the service's place",
        )
    if breaks_form:
        return fail(
            f"issued by {found.issuer}, but not as RFC 5280 requires ({why})",
            "have the authority's certificate made anew with what it lacks (RFC 5280, section"
            " 4.2.1): critical basic constraints, key usage keyCertSign, key identifiers",
        )
    by = f"{found.inspector.title()}, which inspects TLS" if found.inspector else found.issuer
    return fail(
        f"issued by {by}: no authority this machine trusts ({why})",
        "if that authority is right, name a file with its certificate in service.ca_file",
    )


def _look_at(way: Route) -> Certificate | None:
    """Fetch the certificate that was not trusted, over a connection that carries nothing else."""
    try:
        with way_to(way) as sock, start_tls(sock, way.host, unverified()) as secured:
            return _read_certificate(secured)
    except (OSError, ProxyRefused):
        return None


def _read_certificate(secured: ssl.SSLSocket) -> Certificate | None:
    der = secured.getpeercert(binary_form=True)
    return parse_certificate(der) if der else None


def _route(evidence: Context) -> Route:
    if evidence.route is None:
        raise LookupError("the way to the service is not known")
    return evidence.route


def _system_proxies(evidence: Context) -> dict[str, str]:
    """Return the proxies of Windows' registry or macOS' settings."""
    if any(name.lower().endswith("_proxy") for name in evidence.environment):
        return {}
    return {k: v for k, v in urllib.request.getproxies().items() if k in {"http", "https"}}


def _servers(path: Path = Path("/etc/resolv.conf")) -> str:
    """Name the DNS servers that were asked (resolv.conf(5))."""
    try:
        lines = path.read_text("utf-8", "replace").splitlines()
    except OSError:
        return ""
    servers = [
        line.split()[1] for line in lines if line.startswith("nameserver ") and line.split()[1:]
    ]
    return f" (asked {', '.join(servers[:3])})" if servers else " (no DNS server is configured)"


def _words(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    reason = getattr(error, "reason", None) if isinstance(error, ssl.SSLError) else None
    return str(reason or getattr(error, "strerror", None) or error or type(error).__name__)
