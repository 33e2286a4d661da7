"""Reads the issuer and the validity of a TLS certificate. The certificate need not be trusted.

The functions import `cryptography` themselves, because it uses 10 MiB of memory and is needed only
if the service uses TLS.
"""

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

from collectors.shared.text import clean_text

if TYPE_CHECKING:
    from cryptography.x509 import Certificate


@dataclass(frozen=True, slots=True)
class CertificateSummary:
    """The issuer of a certificate and its validity, as ISO 8601 timestamps.

    ``issuer`` has the organisation and the common name of the issuer, or only one of these names if
    the certificate lacks the other name.
    """

    issuer: str
    issued_at: str
    expires_at: str


def parse_certificate(der: bytes) -> CertificateSummary:
    """Parse a certificate in DER (RFC 5280). Raises ValueError if it is malformed."""
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
