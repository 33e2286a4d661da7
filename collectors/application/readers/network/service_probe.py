"""Tests whether and how fast the service can be reached, and who issued its certificate.

The probe looks up the service's name once, and connects to the first of its addresses that accepts
a connection. It does a TLS handshake and sends no request. If the certificate is not trusted, the
probe connects a second time to read the issuer.
"""

import socket
import ssl
import time
import warnings
from collections.abc import Callable
from concurrent.futures import wait
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import truststore

from collectors.application.deadline import Deadline
from collectors.application.source import Fields, FieldTuple, Origin, source
from collectors.shared.addresses import is_loopback
from collectors.shared.background import in_background
from collectors.shared.text import clean_text

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

ORIGIN: Final = Origin("connection to the service")
TLS_KEYS: Final = (
    "network.service.tlsVersion",
    "network.service.tlsTrusted",
    "network.service.tlsIssuer",
    "network.service.tlsIssuedAt",
    "network.service.tlsExpiresAt",
)

_PORTS: Final = {"http": 80, "https": 443}
_ADDRESSES_MAX: Final = 4  # at most this many addresses of the service are tried

T = TypeVar("T")
Address = tuple[str, int]
Handshake = tuple[str | bool, ...]
"""The values of the fields `TLS_KEYS`, in the same order."""


class CertificateSummary(NamedTuple):
    """The issuer of a certificate and its validity, as ISO 8601 timestamps.

    ``issuer`` has the organisation and the common name of the issuer, or only one of these names if
    the certificate lacks the other name.
    """

    issuer: str
    issued_at: str
    expires_at: str


@source(
    "service",
    ORIGIN,
    "network.service.reachable",
    "network.service.error",
    "network.service.resolveMilliseconds",
    "network.service.connectMilliseconds",
    *TLS_KEYS,
)
def read_service(deadline: Deadline, url: str, has_proxy: bool = False) -> Fields:
    try:
        parts = urlsplit(url)
        scheme, host, port = parts.scheme, parts.hostname, parts.port
    except ValueError:
        scheme, host, port = "", None, None
    if not host or scheme not in _PORTS:
        return _not_tested("no service is configured")
    # The agent never uses a proxy for a service on this machine.
    uses_proxy = has_proxy or (getproxies().get(scheme) and not proxy_bypass(host))
    if uses_proxy and not is_loopback(host):
        return _not_tested("the service is reached through a proxy, so no connection was tested")
    try:
        return tuple(_connection_fields(host, port or _PORTS[scheme], scheme, deadline))
    except OSError as error:
        return _unreachable_fields(error)


def _connection_fields(host: str, port: int, scheme: str, deadline: Deadline) -> Fields:
    addresses, resolve_ms = timed(lambda: resolve(host, port, deadline))
    connection, connect_ms = timed(lambda: _connect(addresses, deadline))
    with connection:
        tls = (
            _tls_fields(host, addresses, connection, deadline)
            if scheme == "https"
            else ORIGIN.all_absent(TLS_KEYS, "not-applicable", "the service is called without TLS")
        )
    yield ORIGIN.available("network.service.reachable", True)
    yield ORIGIN.not_applicable("network.service.error", "the service can be reached")
    yield ORIGIN.available("network.service.resolveMilliseconds", resolve_ms)
    yield ORIGIN.available("network.service.connectMilliseconds", connect_ms)
    yield from tls


def _unreachable_fields(error: OSError) -> Fields:
    reason = "the service was not reached"
    yield ORIGIN.available("network.service.reachable", False)
    yield ORIGIN.available("network.service.error", _describe(error))
    yield ORIGIN.not_applicable("network.service.resolveMilliseconds", reason)
    yield ORIGIN.not_applicable("network.service.connectMilliseconds", reason)
    yield from ORIGIN.all_absent(TLS_KEYS, "not-applicable", reason)


def timed(action: Callable[[], T]) -> tuple[T, float]:
    start_s = time.perf_counter()
    result = action()
    return result, round((time.perf_counter() - start_s) * 1000, 1)


def resolve(host: str, port: int, deadline: Deadline) -> list[Address]:
    """Resolve the name in a thread, because getaddrinfo(3) takes no time limit.

    The thread is abandoned at the deadline.
    """
    lookup = in_background(
        lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM), "resolver"
    )
    if not wait([lookup], timeout=deadline.require_s()).done:
        raise TimeoutError("the name was not resolved in time")
    try:
        entries = lookup.result()
    except UnicodeError:
        raise OSError("the service's name is not a host name") from None
    return [(str(entry[4][0]), port) for entry in entries[:_ADDRESSES_MAX]]


def _connect(addresses: list[Address], deadline: Deadline) -> socket.socket:
    last_error: OSError = OSError("the name has no address")
    for index, address in enumerate(addresses):
        timeout_s = deadline.require_s() / (len(addresses) - index)
        try:
            return socket.create_connection(address, timeout_s)
        except OSError as error:  # also if IPv6 is disabled in the kernel
            last_error = error
    raise last_error


def _tls_fields(
    host: str, addresses: list[Address], connection: socket.socket, deadline: Deadline
) -> FieldTuple:
    """Do the TLS handshake and return its fields.

    If the certificate is not trusted, do a second handshake without verification, which reads the
    issuer.
    """
    try:
        try:
            values = handshake(connection, host, deadline, verify=True)
        except ssl.SSLCertVerificationError:
            with _connect(addresses, deadline) as second:
                values = handshake(second, host, deadline, verify=False)
    except (OSError, ValueError) as error:
        reason = f"the TLS handshake failed: {_describe(error)}"
        return ORIGIN.all_absent(TLS_KEYS, "collection-failed", reason)
    return tuple(
        ORIGIN.fact(key, value, "the handshake does not report it")
        for key, value in zip(TLS_KEYS, values, strict=True)
    )


def handshake(
    connection: socket.socket, host: str, deadline: Deadline, *, verify: bool
) -> Handshake:
    """Do one TLS handshake and close the connection. Raises OSError or ValueError."""
    context: ssl.SSLContext
    if verify:
        context = truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    else:
        # Nothing is sent over this connection, and nothing in it is trusted.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    connection.settimeout(deadline.require_s())
    with context.wrap_socket(connection, server_hostname=host) as tls_connection:
        der = tls_connection.getpeercert(binary_form=True) or b""
        return (tls_connection.version() or "", verify, *parse_certificate(der))


def _not_tested(reason: str) -> FieldTuple:
    return ORIGIN.all_absent(read_service.keys, "not-applicable", reason)


def _describe(error: Exception) -> str:
    if isinstance(error, socket.gaierror):
        return "the service's name does not resolve"
    if isinstance(error, TimeoutError):
        # Errors of the operating system have an errno. Other errors have a text of their own.
        return str(error) if str(error) and not error.errno else "no answer in time"
    if isinstance(error, ssl.SSLError):
        return error.reason or "TLS error"
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def parse_certificate(der: bytes) -> CertificateSummary:
    """Parse a certificate in DER (RFC 5280). Raises ValueError if it is malformed.

    The certificate need not be trusted.
    """
    # Imported here, because it uses 10 MiB of memory and is needed only if the service uses TLS.
    from cryptography import x509

    # The library warns about negative serial numbers and similar defects.
    with warnings.catch_warnings(action="ignore"):
        try:
            certificate = x509.load_der_x509_certificate(der)
            issued_at = certificate.not_valid_before_utc
            expires_at = certificate.not_valid_after_utc
            return CertificateSummary(
                _issuer_of(certificate), issued_at.isoformat(), expires_at.isoformat()
            )
        except (ValueError, x509.InvalidVersion):
            raise ValueError("not an X.509 certificate") from None


def _issuer_of(certificate: "Certificate") -> str:
    from cryptography.x509.oid import NameOID

    try:
        issuer_names = {attribute.oid: str(attribute.value) for attribute in certificate.issuer}
    except (ValueError, TypeError):  # characters that the ASN.1 string type does not allow
        return "unreadable"
    parts = (issuer_names.get(NameOID.ORGANIZATION_NAME), issuer_names.get(NameOID.COMMON_NAME))
    return clean_text(", ".join(part for part in parts if part), 256) or "unnamed"
