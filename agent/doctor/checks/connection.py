"""Checks of the connection to the service, from the name to the certificate."""

import errno
import socket
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from agent.adapters.service_route import service_route
from agent.config.model import SYSTEM_PROXY
from agent.doctor.certificate import Certificate, parse_certificate
from agent.doctor.check import Outcome, fail, ok, skipped, warn
from agent.doctor.context import Context
from agent.doctor.probe import (
    ProxyRefused,
    connect,
    connect_to_service,
    open_tunnel,
    request_date,
    unverified_tls,
)
from agent.presentation.humanize import format_seconds
from agent.rules.replies import http_date
from agent.rules.route import Route
from agent.wire.addresses import join_host_port, parse_ip
from collectors.shared.system_proxy import script_address

CLOCK_WARN_S: Final = 30.0
CLOCK_FAIL_S: Final = 300.0
EXPIRES_SOON: Final = timedelta(days=14)
STRICT_ERRORS: Final = range(80, 94)
"""Error codes of OpenSSL's strict mode (X509_V_FLAG_X509_STRICT, which Python 3.13 sets):
X509_V_ERR_PATHLEN_INVALID_FOR_NON_CA to X509_V_ERR_EXTENSIONS_REQUIRE_VERSION_3."""
PROXY_AUTHENTICATION: Final = 407
LISTED_MAX: Final = 3
"""Maximum number of addresses or DNS servers in the detail of an outcome."""

_SET_CLOCK: Final = "set the clock: `timedatectl set-ntp true`, or this system's equivalent"
_UNREACHABLE: Final = frozenset({errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN})
_LOCAL_NETWORK: Final = ("interfaces", "gateway")
"""Names of the checks whose failure explains that this machine reaches no other network."""


def route(context: Context) -> Outcome:
    try:
        route = service_route(context.service, context.environment)
    except ValueError as error:
        return fail(str(error), "correct service.proxy or the HTTPS_PROXY variable")
    detail = f"directly to {route.authority}: {route.why}"
    if route.proxy is not None:
        detail = f"to {route.authority} through the proxy {route.proxy} ({route.why})"
    is_system = context.service.proxy == SYSTEM_PROXY
    script = _proxy_script() if is_system and route.proxy is None else None
    if script is not None:
        return warn(
            f"{detail}; the system's settings name the script {script}, which the agent does not"
            " run",
            "set service.proxy to the proxy that the script selects",
            may_cause=True,
        ).with_facts(route=route)
    return ok(detail).with_facts(route=route)


def name_resolution(context: Context) -> Outcome:
    route = _route(context)
    if parse_ip(route.first_host):
        return ok(f"{route.first_host} is an address")
    try:
        entries = socket.getaddrinfo(route.first_host, route.first_port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        return fail(
            f"{route.first_host} cannot be resolved: {_reason(error)}{_name_servers()}",
            "check the DNS servers of this machine and the spelling of "
            + ("the proxy" if route.proxy else "service.base_url"),
            explained_by=_LOCAL_NETWORK,
        )
    addresses = list(dict.fromkeys(str(entry[4][0]) for entry in entries))
    return ok(f"{route.first_host} is {', '.join(addresses[:LISTED_MAX])}")


def connection(context: Context) -> Outcome:
    route = _route(context)
    endpoint = join_host_port(route.first_host, route.first_port)
    peer = "the proxy" if route.proxy else "the service"
    try:
        with connect(route.first_host, route.first_port) as sock:
            local = sock.getsockname()[0]
    except ConnectionRefusedError:
        setting = route.why if route.proxy else "service.base_url"
        return fail(
            f"{endpoint} refuses the connection",
            f"check {setting}; {peer} may be down, or a firewall rejects the connection",
        )
    except OSError as error:
        explained_by = _LOCAL_NETWORK if error.errno in _UNREACHABLE else ("gateway",)
        return fail(
            f"no connection to {endpoint}: {_reason(error)}",
            f"check the network, and that no firewall drops connections to {peer}",
            explained_by=explained_by,
        )
    return ok(f"{endpoint}, from {local}")


def proxy(context: Context) -> Outcome:
    route = _route(context)
    if route.proxy is None:
        return skipped("no proxy is used")
    if not route.is_tls or route.proxy.scheme not in {"http", "https"}:
        return skipped(f"{route.proxy} needs no tunnel")
    try:
        with connect(route.proxy.host, route.proxy.port) as sock:
            open_tunnel(sock, route.proxy, route)
    except ProxyRefused as error:
        if error.status == PROXY_AUTHENTICATION:
            fix = "put user and password into the proxy's URL: http://user:password@host:port"
        else:
            fix = f"have the proxy allow {route.authority}, or correct {route.why}"
        return fail(f"no tunnel through {route.proxy}: {error}", fix)
    except OSError as error:
        return fail(f"no tunnel through {route.proxy}: {_reason(error)}", f"check {route.why}")
    return ok(f"{route.proxy} opens the tunnel")


def clock(context: Context) -> Outcome:
    """Compare this machine's clock with the Date of a reply (RFC 9110, section 6.6.1)."""
    route = _route(context)
    try:
        with connect_to_service(route, unverified_tls()) as sock:
            date = request_date(sock, route)
    except (OSError, ProxyRefused) as error:
        return skipped(f"the service's time is unknown: {_reason(error)}")
    now = datetime.now(UTC)
    service_time = http_date(date)
    if service_time is None:
        return skipped("the service's reply has no valid Date header")
    return compare_clocks(now, service_time)


def compare_clocks(now: datetime, service_time: datetime) -> Outcome:
    """Compare this machine's time with the service's time. Both have a time zone."""
    ahead_s = (now - service_time).total_seconds()
    # Rounded to 10 s, because a Date has only whole seconds and the reply needs time to arrive.
    distance = format_seconds(round(abs(ahead_s), -1))
    text = f"{distance} {'ahead of' if ahead_s > 0 else 'behind'} the service's"
    if abs(ahead_s) > CLOCK_FAIL_S:
        return fail(f"this machine's clock is {text}", _SET_CLOCK)
    if abs(ahead_s) > CLOCK_WARN_S:
        return warn(f"this machine's clock is {text}", _SET_CLOCK, may_cause=True)
    return ok("agrees with the service's clock")


def certificate(context: Context) -> Outcome:
    route = _route(context)
    if not route.is_tls:
        return skipped("plain http on loopback has no certificate")
    tls_context = ssl.create_default_context()
    if ca_file := context.service.ca_file:
        tls_context.load_verify_locations(ca_file)
    try:
        with connect_to_service(route, tls_context) as sock:
            return _trusted_outcome(*_read_certificate(sock), ca_file)
    except ssl.SSLCertVerificationError as error:
        return untrusted_outcome(
            error.verify_message,
            _fetch_certificate(route),
            datetime.now(UTC),
            is_malformed=error.verify_code in STRICT_ERRORS,
        )
    except (OSError, ProxyRefused) as error:
        return fail(
            f"no TLS with {route.authority}: {_reason(error)}",
            "check service.base_url: a firewall or proxy may interrupt TLS,"
            " or the port does not use TLS",
        )


def _trusted_outcome(cert: Certificate | None, tls_version: str | None, ca_file: str) -> Outcome:
    if cert is None:
        return ok(f"trusted, {tls_version}")
    text = f"issued by {cert.issuer}, valid until {cert.not_after:%Y-%m-%d}, {tls_version}"
    if cert.not_after - datetime.now(UTC) < EXPIRES_SOON:
        return warn(f"{text}: it expires soon", "ask the operator of the service to renew it")
    if cert.inspector:
        return warn(
            f"{text}: TLS is inspected",
            "if connections fail, exempt the service's address from inspection",
        )
    return ok(text + (" (service.ca_file is trusted as well)" if ca_file else ""))


def untrusted_outcome(
    reason: str, cert: Certificate | None, now: datetime, *, is_malformed: bool = False
) -> Outcome:
    """Return the outcome for a certificate that this machine does not accept.

    Args:
        reason: OpenSSL's message.
        cert: The certificate; None if it could not be read.
        is_malformed: Whether the certificate violates RFC 5280. Its authority may still be trusted.
    """
    if cert is None:
        return fail(f"not trusted: {reason}", "check service.base_url and service.ca_file")
    if cert.not_after < now:
        return fail(
            f"it expired on {cert.not_after:%Y-%m-%d} (issued by {cert.issuer})",
            "have the service's certificate renewed; check this machine's clock",
            explained_by=("clock",),
        )
    if cert.not_before > now:
        return fail(
            f"it is not valid before {cert.not_before:%Y-%m-%d} (issued by {cert.issuer})",
            "check this machine's clock",
            explained_by=("clock",),
        )
    if "mismatch" in reason.lower() or "not valid for" in reason.lower():
        return fail(
            f"it is for {cert.hosts}, not for this address ({reason})",
            "correct service.base_url; another device may answer instead of the service",
        )
    if is_malformed:
        return fail(
            f"issued by {cert.issuer}, but not as RFC 5280 requires ({reason})",
            "create the authority's certificate again with the missing extensions (RFC 5280,"
            " section 4.2.1): critical basic constraints, key usage keyCertSign, key identifiers",
        )
    issuer = f"{cert.inspector.title()}, which inspects TLS" if cert.inspector else cert.issuer
    return fail(
        f"issued by {issuer}: this machine does not trust it ({reason})",
        "if this authority is correct, set service.ca_file to a file with its certificate",
    )


def _fetch_certificate(route: Route) -> Certificate | None:
    """Fetch an untrusted certificate. Nothing else is sent or read over this connection."""
    try:
        with connect_to_service(route, unverified_tls()) as sock:
            return _read_certificate(sock)[0]
    except (OSError, ProxyRefused):
        return None


def _read_certificate(sock: socket.socket) -> tuple[Certificate | None, str | None]:
    """Return the certificate and the version of a TLS connection."""
    if not isinstance(sock, ssl.SSLSocket):
        return None, None
    der = sock.getpeercert(binary_form=True)
    return (parse_certificate(der) if der else None), sock.version()


def _route(context: Context) -> Route:
    if context.route is None:
        raise LookupError("the route to the service is unknown")
    return context.route


def _proxy_script() -> str | None:
    try:
        return script_address()
    except (OSError, ValueError):
        return None


def _name_servers(path: Path = Path("/etc/resolv.conf")) -> str:
    """Return a text with the configured DNS servers, to append to a message (resolv.conf(5)).

    Return "" if the file cannot be read.
    """
    try:
        lines = path.read_text("utf-8", "replace").splitlines()
    except OSError:
        return ""
    servers = [
        line.split()[1] for line in lines if line.startswith("nameserver ") and line.split()[1:]
    ]
    if not servers:
        return " (no DNS server is configured)"
    return f" (DNS servers: {', '.join(servers[:LISTED_MAX])})"


def _reason(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    reason = getattr(error, "reason", None) if isinstance(error, ssl.SSLError) else None
    return str(reason or getattr(error, "strerror", None) or error or type(error).__name__)
