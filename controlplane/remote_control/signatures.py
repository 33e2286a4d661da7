"""Signatures of devices: Ed25519 over the nonce of a challenge (RFC 8032).

The contract does not define the encodings. A public key is sent as SubjectPublicKeyInfo in DER
(RFC 8410, 44 bytes), encoded in lower-case hex (88 characters). The signature has 64 bytes and is
encoded in hex (128 characters) or base64. The signed message is the text of the nonce in UTF-8.
"""

import base64
import binascii
import re
from typing import Annotated, Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

SPKI_PREFIX = bytes.fromhex("302a300506032b6570032100")
"""SEQUENCE { SEQUENCE { OID 1.3.101.112 }, BIT STRING (33 bytes) } of an Ed25519 key (RFC 8410)."""
KEY_BYTES = 32
SIGNATURE_BYTES = 64
_HEX_KEY = re.compile(f"{SPKI_PREFIX.hex()}[0-9a-f]{{{2 * KEY_BYTES}}}")
_HEX_SIGNATURE = re.compile(r"[0-9a-fA-F]{128}")


def parse_public_key(text: str) -> bytes | None:
    """Return the 32 raw bytes of the key, or None if ``text`` is not an Ed25519 key in hex DER."""
    if _HEX_KEY.fullmatch(text) is None:
        return None
    return bytes.fromhex(text)[len(SPKI_PREFIX) :]


def parse_signature(text: str) -> bytes | None:
    """Return the 64 bytes of a signature in hex or base64, or None if ``text`` is neither."""
    if _HEX_SIGNATURE.fullmatch(text) is not None:
        return bytes.fromhex(text)
    try:
        # The URL-safe alphabet is accepted too, and missing padding ("=").
        standard = text.rstrip("=").replace("-", "+").replace("_", "/").encode("ascii")
        raw = base64.b64decode(standard + b"=" * (-len(standard) % 4), validate=True)
    except (ValueError, binascii.Error):
        return None
    return raw if len(raw) == SIGNATURE_BYTES else None


def _check_public_key(text: str) -> str:
    if parse_public_key(text) is None:
        raise PydanticCustomError("public_key", "must be {form}", {"form": _FORM})
    return text


_FORM: Final = "the lower-case hex of an Ed25519 SubjectPublicKeyInfo in DER"
PublicKey = Annotated[
    str,
    AfterValidator(_check_public_key),
    Field(description=_FORM, json_schema_extra={"pattern": f"^{_HEX_KEY.pattern}$"}),
]
"""The public key of a device, as the operation `challenge` receives it."""


def is_signed(public_key: str, nonce: str, signature: str) -> bool:
    """Return whether ``signature`` is a signature of ``nonce`` by ``public_key``."""
    key_bytes, signature_bytes = parse_public_key(public_key), parse_signature(signature)
    if key_bytes is None or signature_bytes is None:
        return False
    try:
        Ed25519PublicKey.from_public_bytes(key_bytes).verify(signature_bytes, nonce.encode())
    except (InvalidSignature, ValueError):
        return False
    return True
