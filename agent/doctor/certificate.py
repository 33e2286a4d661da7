"""Reads the fields of a certificate, whether or not the certificate is trusted."""

import warnings
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final

from agent.wire.controls import without_controls

if TYPE_CHECKING:
    from cryptography import x509

NAME_MAX: Final = 120
HOSTS_MAX: Final = 3
NO_HOST: Final = "no host"

INSPECTORS: Final = (
    "zscaler", "fortinet", "fortigate", "palo alto", "sophos", "netskope", "blue coat", "bluecoat",
    "symantec web", "mcafee web", "barracuda", "watchguard", "sonicwall", "check point",
    "checkpoint", "cisco umbrella", "untangle", "smoothwall", "kaspersky", "eset ssl", "avast",
    "avg technologies", "bitdefender", "dr.web", "adguard", "mitmproxy", "charles proxy", "fiddler",
)  # fmt: skip
"""Names of products that inspect TLS, in lower case. If such a product creates a certificate, the
issuer of the certificate contains the product's name."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """The fields of a certificate.

    ``issuer`` is the issuer's organization and common name. ``hosts`` are the first hosts for which
    the certificate is valid, or its subject if it names no host. Neither text contains control
    characters.
    """

    issuer: str
    hosts: str
    not_before: datetime
    not_after: datetime

    @property
    def inspector(self) -> str | None:
        """The name of the product that inspects TLS, if the issuer's name contains it."""
        name = self.issuer.lower()
        return next((product for product in INSPECTORS if product in name), None)


def parse_certificate(der: bytes) -> Certificate | None:
    """Parse an X.509 certificate (RFC 5280); None if it is invalid."""
    from cryptography import x509  # the import takes 0.17 s, and few checks need it

    # Ignores warnings such as the one about a negative serial number.
    with warnings.catch_warnings(action="ignore"):
        try:
            certificate = x509.load_der_x509_certificate(der)
            return Certificate(
                issuer=_name(certificate.issuer) or "an unnamed issuer",
                hosts=_hosts(certificate),
                not_before=certificate.not_valid_before_utc,
                not_after=certificate.not_valid_after_utc,
            )
        except (ValueError, TypeError, OverflowError, x509.InvalidVersion):
            return None


def _hosts(certificate: "x509.Certificate") -> str:
    from cryptography import x509

    try:
        extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except (
        ValueError,
        x509.ExtensionNotFound,
        x509.DuplicateExtension,
        x509.UnsupportedGeneralNameType,
    ):
        return _name(certificate.subject) or NO_HOST
    hosts = extension.value.get_values_for_type(x509.DNSName)
    hosts += [str(address) for address in extension.value.get_values_for_type(x509.IPAddress)]
    return ", ".join(map(_plain, hosts[:HOSTS_MAX])) or _name(certificate.subject) or NO_HOST


def _name(name: "x509.Name") -> str:
    from cryptography.x509.oid import NameOID

    parts = []
    for kind in (NameOID.ORGANIZATION_NAME, NameOID.COMMON_NAME):
        attributes = name.get_attributes_for_oid(kind)
        if attributes and (text := _plain(attributes[0].value)) and text not in parts:
            parts.append(text)
    return ", ".join(parts) or _plain(name.rfc4514_string())


def _plain(value: str | bytes) -> str:
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
    return without_controls(text)[:NAME_MAX].strip()
